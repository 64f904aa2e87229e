"""Whether a thread stands where its log says, checked before anybody acts on it (SPEC 10, 12).

`verify` reads a whole log; opening a thread, answering and resuming check what they build on.
"""

from __future__ import annotations

from collections.abc import Sequence

from hitl_tui.engine.log.records import Cursor, LedgerEntry
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.thread.hashes import chained, checkpoint_hash, request_hash
from hitl_tui.errors import LogCorrupt, UnknownThread

_BINDS = ("request", "rebound", "vote")
_ENDS = ("answer", "timeout", "withdrawn")


def standing(store: Store, thread_id: str) -> tuple[ThreadInfo, Cursor]:
    """A thread's facts and cursor, once they agree with the newest step and with the decisions.

    Raises:
        UnknownThread: there is no such thread.
        LogCorrupt: something of it is not what was written; says what.
    """
    info, cursor = store.info(thread_id), store.cursor(thread_id)
    if info is None or cursor is None:
        raise UnknownThread(f"there is no thread {thread_id!r}", "see `hitl-tui threads`")
    if store.facts(thread_id) != info.facts_hash:
        raise _changed(thread_id, "what is fixed about it (its graph, where it was forked, who began it)")
    _check_head(store, cursor)
    if cursor.pending:
        check_requests(cursor, store.ledger(thread_id))
    return info, cursor


def check_requests(cursor: Cursor, ledger: Sequence[LedgerEntry]) -> None:
    """Refuse requests that are not what the newest decision about each of them says; raises `LogCorrupt`."""
    known = ledger[: cursor.ledger_n]  # others may have decided since the cursor was read
    for request in cursor.pending:
        if unbound(request, known) is not None:
            raise _changed(cursor.thread_id, f"the request {request.id} ({request.title!r})")


def unbound(request: Request, ledger: Sequence[LedgerEntry]) -> tuple[bytes | str | None, bytes] | None:
    """What the newest decision about a pending request says of it, and what it is; None where they agree."""
    is_now = request_hash(request)
    for entry in reversed(ledger):
        if entry.request_id == request.id and entry.kind in (*_BINDS, *_ENDS):
            should: bytes | str = entry.kind if entry.kind in _ENDS else entry.request_hash
            return None if should == is_now else (should, is_now)
    return None, is_now


def _check_head(store: Store, cursor: Cursor) -> None:
    """The newest checkpoint is the one that the cursor knows, and all of it is as it was written."""
    link = b""
    newest = store.checkpoints(cursor.thread_id, cursor.head + 1, 2)
    parts = store.parts(cursor.thread_id)
    if cursor.head >= 0:
        if not newest or newest[0].step != cursor.head:
            raise _changed(cursor.thread_id, f"its step {cursor.head}, which is missing")
        before = newest[1].checkpoint_hash if len(newest) > 1 else b""
        # A fork has no step of its own yet: what it shares is its parent's to check.
        for part in parts:
            if part.after_step == cursor.head - 1:
                before = chained(before, part.facts)
        link = newest[0].checkpoint_hash
        if all(part.after_step < cursor.head for part in parts):
            link = checkpoint_hash(newest[0], before, cursor.last_record_hash)
    for part in parts:
        if part.after_step == cursor.head:
            link = chained(link, part.facts)
    if link != cursor.checkpoint_hash:
        raise _changed(cursor.thread_id, f"its step {cursor.head}")


def _changed(thread_id: str, what: str) -> LogCorrupt:
    return LogCorrupt(
        f"thread {thread_id!r}: {what} was changed in the store, and not by hitl-tui",
        f"see what else with `hitl-tui verify {thread_id}`; go back to a copy of the store",
    )
