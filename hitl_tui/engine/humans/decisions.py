"""What humans (and deadlines) do to a thread: input, edits, answers, limits, cancel (SPEC 11).

Each function writes one commit; the session must be held for writing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hitl_tui.engine.channels.canonical import state_hash
from hitl_tui.engine.channels.changes import set_values
from hitl_tui.engine.channels.values import normalise
from hitl_tui.engine.graphs.limits import extended
from hitl_tui.engine.humans.inputs import read_input
from hitl_tui.engine.interrupts.answers import ANSWER, check_answer, deadlocked, find_request, vote
from hitl_tui.engine.interrupts.asking import gate_of, how_it_ended
from hitl_tui.engine.interrupts.on_taint import approve
from hitl_tui.engine.log.outcomes import Exchange
from hitl_tui.engine.log.records import END, ROLLBACK, START, LedgerEntry
from hitl_tui.engine.log.requests import DEADLINE_PASSED, Request
from hitl_tui.engine.log.taint import Lineage
from hitl_tui.engine.nodes.branches import answered, to_run_again
from hitl_tui.engine.subgraphs.children import abandon, refresh, relay
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.run_inputs import INPUT
from hitl_tui.engine.thread.session import Session, replace
from hitl_tui.engine.thread.spending import with_branches
from hitl_tui.engine.thread.steps import Step
from hitl_tui.errors import AnswerRefused, HitlError, StaleWriter, UsageError

DONE = ("completed", "cancelled")


def start(
    session: Session,
    inputs: Mapping[str, Any] | None,
    *,
    actor: str | None = None,
    from_entry: bool = False,
    tainted: Mapping[str, Lineage] | None = None,
) -> int:
    """Commit the input of a run as a step, through the reducers; returns the step.

    A new thread begins at its entry node; so does one that is completed or cancelled, and any with
    `from_entry` (seed 004's way to resume): a new invocation on the state as it is.
    """
    cursor = session.cursor
    if not from_entry:
        refuse_rolling_back(session)
    ledger: list[LedgerEntry] = []
    if cursor.head < 0 or cursor.status in DONE or from_entry:
        abandon(session)
        for request in cursor.pending:
            ledger.append(_entry(session, ledger, "withdrawn", request=request, actor=actor))
        cursor = replace(
            with_branches(cursor),
            status="pending",
            reason="",
            position=f"node:{session.graph.entry}",
            invocation=cursor.invocation + 1,
            iteration=0,
            attempt=1,
            passed=False,
            approved_hash="",
            answers=(),
            exchanges=(),
            pending=(),
            error=None,
        )
    run_inputs, changes = read_input(session, inputs, tainted)
    step = session.cursor.head + 1
    if run_inputs:
        ledger.append(_entry(session, ledger, INPUT, step=step, actor=actor, data=run_inputs))
    for request in cursor.pending:
        ledger.append(_entry(session, ledger, "rebound", step=step, request=request, actor=actor))
    cursor = replace(cursor, pending=session.rebound(cursor.pending, step), **run_inputs)
    session.commit_step(cursor, changes, Step(source="input", actor=actor), ledger=ledger)
    return step


def refuse_rolling_back(session: Session) -> None:
    """A thread whose rollback is not over goes on with that, or with something that names its place."""
    cursor = session.cursor
    if cursor.position == ROLLBACK and cursor.status not in DONE:
        raise UsageError(
            f"thread {session.thread_id!r} is being rolled back",
            'go on with rollback(); or leave the rest undone: resume="entry", or an edit with as_node',
        )


def update_state(
    session: Session,
    values: Mapping[str, Any],
    *,
    expected_step: int | None = None,
    as_node: str | None = None,
    actor: str | None = None,
    note: str | None = None,
    seen: bytes = b"",
) -> int:
    """Set channel values as one new step; returns it.

    Pending requests are kept and bound to the new step. With `as_node` the cursor becomes that
    node's successor, and requests are withdrawn, since the thread has left their place.

    Raises:
        StaleWriter: the head is not `expected_step`; nothing was stored.
    """
    cursor = session.cursor
    if cursor.head < 0:
        raise UsageError(
            f"thread {session.thread_id!r} has no step to edit yet", "start it with an input first"
        )
    if expected_step is not None and expected_step != cursor.head:
        raise StaleWriter(
            f"thread {session.thread_id!r} is at step {cursor.head}, the edit was made on {expected_step}",
            "look at what changed, then edit again",
        )
    changes = set_values(session.state, session.graph.channels, values)
    step = cursor.head + 1
    data = {"channels": sorted(values), "as_node": as_node}
    ledger = [_entry(session, [], "edit", step=step, actor=actor, note=note, seen=seen, data=data)]
    if as_node is not None:
        abandon(session)
        for request in cursor.pending:
            ledger.append(_entry(session, ledger, "withdrawn", request=request, actor=actor))
        cursor = replace(
            with_branches(cursor),
            position=position_after(session, as_node),
            status="waiting",
            reason="paused",
            pending=(),
            answers=(),
            exchanges=(),
            passed=False,
            approved_hash="",
            error=None,
            attempt=1,
        )
    else:
        for request in cursor.pending:
            ledger.append(_entry(session, ledger, "rebound", step=step, request=request, actor=actor))
        branches = to_run_again(cursor.branches)
        cursor = replace(cursor, pending=session.rebound(cursor.pending, step), branches=branches)
    session.commit_step(cursor, changes, Step(source="human", actor=actor, note=note), ledger=ledger)
    return step


def position_after(session: Session, as_node: str) -> str:
    """The position of a thread whose last node was `as_node`."""
    graph = session.graph
    if as_node == START:
        return f"node:{graph.entry}"
    if as_node not in graph.nodes:
        raise UsageError(
            f"as_node names an unknown node {as_node!r}", f"nodes: {', '.join(graph.nodes)}, START"
        )
    if as_node in graph.edges:
        target = graph.edges[as_node]
        return "end" if target == END else f"node:{target}"
    return f"route:{as_node}"


def answer(
    session: Session,
    request_id: str,
    value: Any,
    *,
    step: int,
    actor: str | None = None,
    note: str | None = None,
    seen: bytes = b"",
) -> int:
    """Answer a pending request; returns the head after it.

    Deadlines that have passed come first: a late answer finds the thread gone on without it.

    Raises:
        AnswerRefused: recorded in the ledger; nothing else was stored.
    """
    expire(session)
    try:
        request = find_request(session.cursor, request_id, how_it_ended(session, request_id))
        value = check_answer(request, value, step=step, actor=actor, now=session.clock())
        if seen and seen != state_hash(session.state.digests):
            raise AnswerRefused(
                f"{request.title!r} was answered on another state than the thread has now",
                "look at what changed, then answer again",
            )
        if request.thread:
            _pass_down(session, request, value, actor=actor, note=note)
            return session.cursor.head
    except AnswerRefused as refusal:
        data = {"answer": _recordable(value), "why": refusal.message, "answered_step": step}
        entry = _entry(
            session, [], "refused", request_id=request_id, actor=actor, note=note, seen=seen, data=data
        )
        session.commit_cursor(session.cursor, [entry])
        refresh(session)
        raise
    return _apply_answer(session, request, value, actor=actor, note=note, seen=seen)


def _apply_answer(
    session: Session,
    request: Request,
    value: Any,
    *,
    actor: str | None,
    note: str | None,
    seen: bytes = b"",
    kind: str = "answer",
) -> int:
    cursor = session.cursor
    voted, settled = vote(request, value, actor, note, session.clock())
    data = {"answer": value}
    if not settled and kind == "answer":
        pending = tuple(voted if one.id == request.id else one for one in cursor.pending)
        if deadlocked(voted):
            data["deadlocked"] = True
        entry = _entry(session, [], "vote", request=request, actor=actor, note=note, seen=seen, data=data)
        session.commit_cursor(replace(cursor, pending=pending), [entry])
        return cursor.head
    entry = _entry(session, [], kind, request=request, actor=actor, note=note, seen=seen, data=data)
    rest = tuple(one for one in cursor.pending if one.id != request.id)
    cursor = replace(cursor, pending=rest)
    if not rest:
        cursor = replace(cursor, status="waiting", reason="paused")
    if request.policy == "on_taint":
        cursor = approve(session, cursor, request, value)
    elif request.when == "before":
        cursor = replace(cursor, passed=True)
    if request.path:
        cursor = replace(cursor, branches=answered(cursor.branches, request, value))
    elif request.when == "inside":
        if request.key:
            kept = Exchange(f"{ANSWER}{request.key}", value)
            cursor = replace(cursor, exchanges=(*cursor.exchanges, kept))
        else:
            cursor = replace(cursor, answers=(*cursor.answers, value))
    gate = gate_of(session, request)
    if gate is None:
        session.commit_cursor(cursor, [entry])
        return session.cursor.head
    choice, text = gate.choose(value)
    changes = set_values(session.state, session.graph.channels, choice.values_for(session.view(), text))
    session.commit_step(
        replace(cursor, pending=session.rebound(cursor.pending, cursor.head + 1)),
        changes,
        Step(source="human", actor=actor, note=text or note, decision=choice.id),
        ledger=[entry],
    )
    return session.cursor.head


def _pass_down(
    session: Session, request: Request, value: Any, *, actor: str | None, note: str | None
) -> None:
    """Give an answer to the child thread that asks."""

    def entry() -> LedgerEntry:
        return _entry(session, [], "answer", request=request, actor=actor, note=note, data={"answer": value})

    def give(child: Session) -> int:
        return answer(child, request.id, value, step=request.thread_step, actor=actor, note=note)

    relay(session, request, give, entry)


def pass_breakpoints(session: Session, actor: str | None = None) -> None:
    """Resuming a thread passes its plain breakpoints; other requests keep waiting for an answer."""
    for request in session.cursor.pending:
        if request.breakpoint:
            if request.thread:
                _pass_down(session, request, "continue", actor=actor, note="resumed")
            else:
                _apply_answer(session, request, "continue", actor=actor, note="resumed")


def expire(session: Session) -> bool:
    """Apply what became of requests whose deadline has passed; True where the thread failed by it."""
    now = session.clock()
    for late in [one.id for one in session.cursor.pending if one.deadline is not None and now > one.deadline]:
        request = next((one for one in session.cursor.pending if one.id == late), None)
        if request is not None and request.thread:
            relay(session, request, expire, partial(_entry, session, [], "timeout", request=request))
            if session.cursor.status == "failed":
                return True
        elif request is not None and not _timed_out(session, request):
            return True
    return False


def _timed_out(session: Session, request: Request) -> bool:
    """Apply the answer that a request has for its deadline; without one the thread fails: False."""
    why = None
    if request.on_timeout is not None:
        try:
            _apply_answer(
                session, request, request.on_timeout, actor=None, note=DEADLINE_PASSED, kind="timeout"
            )
        except HitlError as error:
            why = f"its answer for the deadline could not be applied: {error.message}"
        else:
            return True
    ledger = [_entry(session, [], "timeout", request=request, note=why)]
    for other in session.cursor.pending:
        if other.id != request.id:
            ledger.append(_entry(session, ledger, "withdrawn", request=other))
    cursor = replace(session.cursor, status="failed", reason="deadline", pending=())
    session.commit_cursor(cursor, ledger)
    return False


def extend_limits(
    session: Session, limits: Mapping[str, float | None], *, actor: str | None = None, note: str | None = None
) -> None:
    """Raise limits, so that a thread stopped by one may go on.

    Args:
        limits: names as in `Limits`; None takes a limit away.

    Raises:
        UsageError: no such limit, or a value that is none.
    """
    known = session.cursor.limits
    cursor = replace(session.cursor, limits=extended(known, limits))
    if cursor.reason == "limit":
        cursor = replace(cursor, status="waiting", reason="paused")
    data = {name: [getattr(known, name), value] for name, value in limits.items()}
    entry = _entry(session, [], "extend", actor=actor, note=note, data=data)
    session.commit_cursor(cursor, [entry])


def note_pause(session: Session, *, actor: str | None, note: str | None) -> None:
    """Write down who has paused a thread from another process."""
    session.commit_cursor(session.cursor, [_entry(session, [], "pause", actor=actor, note=note)])


def cancel(session: Session, *, actor: str | None = None, note: str | None = None) -> None:
    """End a thread as cancelled(user); a new invocation or a fork may go on from it."""
    cursor = session.cursor
    if cursor.status in DONE:
        raise UsageError(
            f"thread {session.thread_id!r} is {cursor.status} already", "fork it to go on from it"
        )
    abandon(session)
    entry = _entry(session, [], "cancel", actor=actor, note=note)
    session.commit_cursor(replace(cursor, status="cancelled", reason="user", pending=()), [entry])


def _entry(
    session: Session,
    written: list[LedgerEntry],
    kind: str,
    *,
    request: Request | None = None,
    request_id: str | None = None,
    **facts: Any,
) -> LedgerEntry:
    """A ledger entry after those `written` for the same commit."""
    cursor = journal.behind(session.cursor, written)
    wanted = request.id if request else request_id
    return journal.ledger_entry(cursor, kind, at=session.clock(), request_id=wanted, **facts)


def _recordable(value: Any) -> Any:
    """A refused answer as the ledger keeps it, whatever it was."""
    try:
        return normalise(value, "answer")
    except Exception:
        return repr(value)[:1000]
