"""Requests of a session's gates and breakpoints, and their entries in the ledger (SPEC 11)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hitl_tui.engine.channels.state import LiveState
from hitl_tui.engine.graphs.gates import Gate
from hitl_tui.engine.interrupts.questions import breakpoint_request, gate_request
from hitl_tui.engine.log.records import Cursor, LedgerEntry
from hitl_tui.engine.log.requests import Request, When
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.session import Session, replace
from hitl_tui.errors import UsageError


def gate_of(session: Session, request: Request) -> Gate | None:
    """The gate a request came from; None for breakpoints, policies and questions of a node itself."""
    if request.policy:
        return None
    graph = session.graph
    gates = {"before": graph.before, "after": graph.after}.get(request.when, {})
    return gates.get(request.node)


def make_request(
    session: Session, node: str, when: When, *, cursor: Cursor | None = None, state: LiveState | None = None
) -> Request:
    """The request to open at a node.

    Args:
        cursor, state: as they will be once the step is committed; the session's own by default.
    """
    cursor = cursor or session.cursor
    gate = (session.graph.before if when == "before" else session.graph.after)[node]
    now = session.clock()
    if gate is None:
        return breakpoint_request(cursor, node, when, now)
    return gate_request(cursor, gate, when, session.view(state), now)


def waiting(cursor: Cursor, request: Request) -> Cursor:
    """The cursor with one more request to wait for."""
    asks = request.breakpoint or request.kind in ("ask", "edit")
    return replace(
        cursor,
        status="waiting",
        reason="interrupt" if asks else "approval",
        pending=(*cursor.pending, request),
    )


def ask(session: Session, requests: Sequence[Request], cursor: Cursor) -> None:
    """Stop a node for requests: new ones are logged, those that wait already stay, the rest is withdrawn.

    Raises:
        UsageError: the runner has no store, so that nobody could ever answer.
    """
    if session.store is None:
        raise UsageError(
            f"node {requests[0].node!r} asks a person, and this runner keeps nothing, so it could not go on",
            "compile(checkpointer=MemoryCheckpointer()), or SQLiteCheckpointer(path)",
        )
    entries = withdrawn(session, {request.id for request in requests})
    waited = {request.id for request in session.cursor.pending}
    cursor = replace(cursor, position=f"node:{requests[0].node}", pending=())
    for request in requests:
        if request.id not in waited:
            at = journal.behind(session.cursor, entries)
            entries.append(journal.request_entry(at, request, session.clock()))
        cursor = waiting(cursor, request)
    session.commit_cursor(cursor, entries)


def withdrawn(session: Session, but: Collection[str] = ()) -> list[LedgerEntry]:
    """Entries for the pending requests that nobody waits for any more, all `but` some."""
    entries: list[LedgerEntry] = []
    for request in session.cursor.pending:
        if request.id not in but:
            at = journal.behind(session.cursor, entries)
            entries.append(journal.ledger_entry(at, "withdrawn", at=session.clock(), request=request))
    return entries


def how_it_ended(session: Session, request_id: str) -> str:
    """What the ledger says became of a request: answer, timeout, withdrawn; "" for nothing."""
    if session.store is None or any(request.id == request_id for request in session.cursor.pending):
        return ""
    ends = [
        entry.kind
        for entry in session.store.ledger(session.thread_id)
        if entry.request_id == request_id and entry.kind in ("answer", "timeout", "withdrawn")
    ]
    return ends[-1] if ends else ""
