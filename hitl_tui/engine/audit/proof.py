"""Checks that the answers with which a thread would continue are in its ledger, from allowed logins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hitl_tui.engine.log.outcomes import KeptAnswer, PassedGate
from hitl_tui.engine.log.records import Cursor, LedgerEntry
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.thread.logged import decisions
from hitl_tui.errors import LogCorrupt

_ANSWERS = ("answer", "timeout")
_ENDS = (*_ANSWERS, "withdrawn", "reopened")


def missing_answer(store: Store, cursor: Cursor) -> str:
    """Return why a thread must not continue from its cursor, or "".

    Each answer that the cursor keeps must be an entry of the ledger with the same hash. If its request names
    logins, the answer and its votes must come from them. A gate at the newest step that the cursor no longer
    asks must have been answered or withdrawn.
    """
    kept = list(_kept(cursor))
    if not kept and cursor.status != "waiting":
        return ""
    try:
        ledger = decisions(store, cursor.thread_id)
    except LogCorrupt as error:
        return error.message
    entries = {entry.n: entry for entry in ledger}
    for answer in kept:
        entry = entries.get(answer.n)
        if entry is None or entry.kind not in _ANSWERS or _hash(entry) != answer.request_hash:
            return f"entry {answer.n} of the ledger is not the answer by which the thread would continue"
        if entry.kind == "answer" and (why := _stranger(store, ledger, entry)):
            return why
    return _unanswered(cursor, ledger) if cursor.status == "waiting" else ""


def _kept(cursor: Cursor) -> Iterator[PassedGate | KeptAnswer]:
    yield from cursor.passed
    yield from cursor.answers
    for branch in cursor.branches:
        yield from branch.answers


def _hash(entry: LedgerEntry) -> str:
    return f"sha256:{entry.request_hash.hex()}"


def _stranger(store: Store, ledger: Iterable[LedgerEntry], answer: LedgerEntry) -> str:
    """Return why an answer or a vote came from a login that its request does not name, or ""."""
    about = [entry for entry in ledger if entry.request_id == answer.request_id and entry.n <= answer.n]
    for request in about:
        data = request.data if request.kind == "request" and isinstance(request.data, Mapping) else {}
        named = {str(name) for name in data.get("logins") or ()}
        for given in about:
            if not named or (given.kind != "vote" and given.n != answer.n):
                continue
            if not given.login or not named.intersection(store.roles(given.login)):
                return f"{given.login or 'nobody with a login'} may not answer {request.note!r}"
    return ""


def _unanswered(cursor: Cursor, ledger: Iterable[LedgerEntry]) -> str:
    """Return why a gate at the newest step, which the cursor does not ask, may not be passed, or ""."""
    asked: dict[str | None, LedgerEntry] = {}
    for entry in ledger:
        if entry.kind == "request" and entry.thread_id == cursor.thread_id and entry.step == cursor.head:
            if isinstance(entry.data, Mapping) and entry.data.get("when") in ("before", "after"):
                asked[entry.request_id] = entry
        elif entry.kind in _ENDS:
            asked.pop(entry.request_id, None)
    for request in cursor.pending:
        asked.pop(request.id, None)
    first = next(iter(asked.values()), None)
    return f"{first.note!r} was asked and never answered" if first else ""
