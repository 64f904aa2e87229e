"""What lists show of a request besides its title: the first words of its subject, and what came before it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from hitl_tui.engine.log.outcomes import HASHED
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.redaction import hiding
from hitl_tui.engine.log.requests import Request, Vote
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread.logged import decisions
from hitl_tui.engine.thread.session import Session

EXCERPT: Final = 240
"""Most characters of a subject that a request keeps for lists."""
_READ: Final = 2_000
"""Characters of a text that are read for its first words: it may begin with blanks."""


def for_lists(
    session: Session, request: Request, state: LiveState, decided: Sequence[LedgerEntry] | None = None
) -> Request:
    """Return a request with what lists show of it; that of a subgraph's thread has it already.

    Args:
        state: that of the step it is about.
        decided: the decisions so far, where they are known; None reads them.
    """
    if request.thread:
        return request
    request = replace(request, excerpt=_excerpt(session, request, state))
    if request.breakpoint or request.policy or not (request.subject or request.choices):
        return request
    if decided is None:
        is_logged = session.store is not None and session.cursor.ledger_n > 0
        decided = decisions(session.store, session.thread_id) if session.store and is_logged else ()
    before = [entry for entry in decided if entry.kind == "request" and _is_at_place(entry, request)]
    versions = {_about(entry) for entry in before} | {request.about_hash}
    return replace(
        request,
        version=len(versions) if request.subject else 0,
        last_answer=_last_answer({entry.request_id for entry in before}, decided),
    )


def _excerpt(session: Session, request: Request, state: LiveState) -> str:
    """Return the first words of a request's subject; "" without one, or if it is private."""
    name = (request.subject or "").partition(".")[0]
    channel = session.graph.channels.get(name)
    if channel is None or channel.visibility == "private" or request.subject not in state.values:
        return ""
    words = first_words(state.values[request.subject])
    return str(hiding(session.private())(words))


def first_words(value: Any) -> str:
    """Return the beginning of a value as text: a text keeps its line breaks, parts of others are named."""
    if isinstance(value, str):
        return value[:_READ].lstrip()[:EXCERPT]
    words: list[str] = []
    length = 0
    for part in _parts(value):
        words.append(part)
        length += len(part) + 2
        if length >= EXCERPT:
            break
    return ", ".join(words)[:EXCERPT].rstrip(", ")


def _parts(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _parts(item, str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, item in enumerate(value, 1):
            yield from _parts(item, f"{name} {number}".strip() if len(value) > 1 else name)
    elif value is not None and value != "":
        shown = value[:EXCERPT] if isinstance(value, str) else str(value)
        yield f"{name} {shown}".strip()


def _is_at_place(entry: LedgerEntry, request: Request) -> bool:
    """Whether an earlier request was asked at the same place about the same channel."""
    data, hashed = _facts(entry)
    place = data.get("node"), data.get("when"), data.get("policy", ""), hashed.get("subject")
    if place != (request.node, request.when, request.policy, request.subject):
        return False
    asks = hashed.get("path", ""), hashed.get("key", ""), entry.note
    return request.when != "inside" or asks == (request.path, request.key, request.title)


def _about(entry: LedgerEntry) -> Any:
    return _facts(entry)[1].get("about_hash", "")


def _facts(entry: LedgerEntry) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the data of a request's entry, and what that keeps for its hash."""
    data = entry.data if isinstance(entry.data, Mapping) else {}
    hashed = data.get(HASHED)
    return data, hashed if isinstance(hashed, Mapping) else {}


def _last_answer(asked: Collection[str | None], decided: Sequence[LedgerEntry]) -> Vote | None:
    """Return a person's last answer to one of these requests, None if nobody has answered one."""
    for entry in reversed(decided if asked else ()):
        if entry.kind == "answer" and entry.request_id in asked and entry.actor:
            answer = _facts(entry)[0].get("answer")
            return Vote(entry.actor, answer, entry.at, entry.note, entry.account, entry.login)
    return None
