"""Asks requests again when something that they are about has changed while they waited."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from hitl_tui.engine.log.records import Cursor, LedgerEntry
from hitl_tui.engine.log.redaction import hiding
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.binding import about_hash, digests_of
from hitl_tui.engine.thread.earlier import request_of, with_earlier
from hitl_tui.engine.thread.graph_change import note_graph, refuse_lost_gates
from hitl_tui.engine.thread.interrupts import make_request, with_authors, with_request
from hitl_tui.engine.thread.listed import for_lists
from hitl_tui.engine.thread.logged import decisions, logged_digest
from hitl_tui.engine.thread.session import Session
from hitl_tui.engine.thread.taint_policy import taint_question

log = logging.getLogger(__name__)


def reopen_changed(session: Session) -> None:
    """Ask pending requests again, in one commit, if they would be asked differently now.

    Another program may have written to the thread, or the thread's graph may have changed.
    """
    cursor = session.cursor
    digest = logged_digest(session.info, cursor)
    if not cursor.pending or session.store is None:
        return
    other_graph = bool(digest) and digest != session.graph.digest
    gates = [request for request in cursor.pending if _is_asked_by_graph(request)]
    if not other_graph and all(request.step == cursor.head for request in gates):
        return
    if other_graph:
        note_graph(session)
    ledger: list[LedgerEntry] = []
    moved = with_reopened(session, session.cursor, session.state, ledger)
    if ledger:
        session.commit_cursor(moved, ledger)


def with_reopened(
    session: Session,
    cursor: Cursor,
    state: LiveState,
    ledger: list[LedgerEntry],
    *,
    step: int | None = None,
    actor: str | None = None,
) -> Cursor:
    """Return the cursor with its pending requests as they would be asked on a state.

    Changed ones get a new id.

    Only a node itself can ask its own requests: once the subject of one has changed, it no longer waits, and
    the node asks again when it runs.

    Args:
        ledger: gets the entries of requests that were opened again or no longer wait.
        step: the step of that state, if it is being made; the newest by default.
        actor: who made the change.

    Raises:
        GateUnanswered: the graph no longer has a gate that waits.
    """
    refuse_lost_gates(session.graph, session.thread_id, cursor.pending)
    head = cursor.head if step is None else step
    pending, cursor = cursor.pending, replace(cursor, pending=())
    changed = False
    for request in pending:
        at = replace(journal.after_entries(session.cursor, ledger), head=head, invocation=cursor.invocation)
        now = asked_on(session, request, at, state)
        if now is not None and now.request_hash == request.request_hash:
            cursor = with_request(cursor, request)
            continue
        changed = True
        kind = "withdrawn" if now is None and _is_asked_by_graph(request) else "reopened"
        ledger.append(
            journal.ledger_entry(
                at, kind, at=session.clock(), step=head, request=request, actor=actor, made_by="node"
            )
        )
        if now is not None:
            asked = (
                request_of(decisions(session.store, session.thread_id), request.id) if session.store else None
            )
            now = with_authors(session, with_earlier(now, asked, None) if asked else now, actor)
            now = for_lists(session, now, state)
            at = journal.after_entries(session.cursor, ledger)
            ledger.append(journal.request_entry(at, now, session.clock()))
            cursor = with_request(cursor, now)
    if changed and not cursor.pending and cursor.status == "waiting":
        cursor = replace(cursor, status="waiting", reason="paused")
    return cursor


def asked_on(session: Session, request: Request, cursor: Cursor, state: LiveState) -> Request | None:
    """Return a pending request as it would be asked on a state; None if it would not be asked.

    Args:
        cursor: at the step of that state.
    """
    if request.thread or request.breakpoint:
        return request
    try:
        if request.policy:
            return taint_question(session, request.node, cursor=cursor, state=state)
        if request.when == "inside":
            return request if _about(session, request, state) == request.about_hash else None
        gates = session.graph.before if request.when == "before" else session.graph.after
        if request.node not in gates:
            return None
        return make_request(session, request.node, request.when, cursor=cursor, state=state)
    except Exception as error:  # raised by the user's function for the payload: the run reports it
        why = hiding(session.private())(str(error))
        log.warning("%r can't be asked as it is now: %s", request.title, why)
        return None


def _about(session: Session, request: Request, state: LiveState) -> str:
    """Return the hash of the values that a node's own request is about, in a state."""
    if request.subject is None:
        return ""
    return about_hash(digests_of(state, session.view(state), [request.subject]))


def _is_asked_by_graph(request: Request) -> bool:
    """Whether a gate or a policy asks it, so that it can be asked without running a node."""
    return request.when != "inside" and not request.thread and not request.breakpoint
