"""Answers to the requests of a thread: from people, from passed breakpoints and from deadlines.

Each function is one commit; the session must be held for writing.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from hitl_tui.engine.commands.claiming import claim_of, give_back
from hitl_tui.engine.commands.command import Answer
from hitl_tui.engine.commands.decisions import decision_entry, head_origin
from hitl_tui.engine.log.outcomes import HOLDS, KeptAnswer, PassedGate
from hitl_tui.engine.log.records import Cursor, LedgerEntry, MadeBy
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.threads import claimed_by
from hitl_tui.engine.nodes.branches import with_answer
from hitl_tui.engine.nodes.children import refresh, relay
from hitl_tui.engine.state.changes import Change, after, set_values
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.state.values import normalise
from hitl_tui.engine.thread.allowances import APPROVE, Allowance, allowed_by
from hitl_tui.engine.thread.authors import Authors, authors_of
from hitl_tui.engine.thread.canaries import CANARY, is_canary
from hitl_tui.engine.thread.comments import as_facts, with_comments
from hitl_tui.engine.thread.graph_change import note_graph
from hitl_tui.engine.thread.interrupts import (
    check_answer,
    checked_value,
    find_request,
    gate_of,
    how_it_ended,
    is_deadlocked,
    vote,
)
from hitl_tui.engine.thread.journal import StepFacts, account
from hitl_tui.engine.thread.measures import check_scores, measured_facts
from hitl_tui.engine.thread.private import error_without_private
from hitl_tui.engine.thread.reopening import asked_on, reopen_changed, with_reopened
from hitl_tui.engine.thread.session import Session
from hitl_tui.engine.thread.taint_policy import refuses
from hitl_tui.errors import AnswerRefused, HitlError


def answer(session: Session, command: Answer) -> int:
    """Carry out `Answer`."""
    request_id, value, seen = command.request_id, command.value, command.seen
    actor, note = command.actor, command.note
    reopen_changed(session)
    expire(session)
    try:
        request = find_request(session.cursor, request_id, how_it_ended(session, request_id))
        value = check_answer(
            request,
            with_comments(request, value, command.comments),
            step=command.step,
            head=session.cursor.head,
            actor=actor,
            account=account(),
            roles=session.store.roles() if request.logins and session.store else (),
            authors=authors_of(session.store, session.info) if request.four_eyes else Authors(),
            login=session.store.login if session.store else "",
            signer=session.signer,
            now=session.clock(),
        )
        check_scores(request, command.scores)
        standing = claim_of(session, request)
        if standing and standing.actor != actor:
            raise claimed_by(standing, session.clock())
        if seen and not _was_shown(session, request, seen):
            raise AnswerRefused(
                f"{request.title!r} was answered on another state than the thread has now",
                "look at what changed, then answer again",
            )
        if request.thread:
            _pass_down(session, request, command, value, seen=seen)
    except AnswerRefused as refusal:
        data = {
            "answer": _recordable(value), "why": refusal.message, "answered_step": command.step,
            **_ledger_facts(command),
        }  # fmt: skip
        entry = decision_entry(
            session, [], "refused", request_id=request_id, actor=actor, note=note, seen=seen, data=data
        )
        session.commit_cursor(session.cursor, [entry])
        refresh(session)
        raise
    if not request.thread:
        made_by: MadeBy = "policy" if command.policy else "person"
        _apply_answer(
            session,
            request,
            value,
            actor=actor,
            note=note,
            seen=seen,
            facts=_ledger_facts(command),
            made_by=made_by,
        )
    if standing:
        give_back(session, request, actor)
    return session.cursor.head


def _was_shown(session: Session, request: Request, seen: bytes) -> bool:
    """Whether the thread has had a state since it asked, without asking again after that."""
    if seen == session.state.committed_hash:
        return True
    since = session.cursor.head - request.step + 1
    points = session.store.checkpoints(session.thread_id, None, since) if session.store else []
    return any(point.state_hash == seen for point in points)


def _ledger_facts(command: Answer) -> dict[str, Any]:
    """Return what the ledger keeps about an answer besides its value."""
    facts: dict[str, Any] = {
        **as_facts(command.comments),
        **measured_facts(command.reasons, command.scores),
    }
    return {**facts, "policy": dict(command.policy)} if command.policy else facts


def _apply_answer(
    session: Session,
    request: Request,
    value: Any,
    *,
    actor: str | None,
    note: str | None,
    seen: bytes = b"",
    kind: str = "answer",
    made_by: MadeBy = "person",
    facts: Mapping[str, Any] | None = None,
) -> int:
    """Commit an answer, or a vote if others must agree; return the head after it."""
    gate = gate_of(session, request)
    if gate is not None:
        note_graph(session)  # what its answers do, and what verify requires of them
    cursor = session.cursor
    login = session.store.login if session.store else ""
    now = session.clock()
    voted, settled = vote(request, value, actor, note, account=account(), login=login, now=now)
    data = {"answer": value, **head_origin(session), **(facts or {})}
    if not settled and kind == "answer":
        pending = tuple(voted if other.id == request.id else other for other in cursor.pending)
        if is_deadlocked(voted):
            data["deadlocked"] = True
        entry = decision_entry(
            session, [], "vote", request=voted, actor=actor, note=note, seen=seen, data=data, made_by=made_by
        )
        session.commit_cursor(replace(cursor, pending=pending), [entry])
        return cursor.head
    changes: list[Change] = []
    if gate is not None:
        choice, text = gate.choose(value)
        changes = set_values(session.state, session.graph.channels, choice.values_for(session.view(), text))
    state = after(session.state, changes) if changes else session.state
    holds = _required_hash(session, request, changes, state)
    if holds != request.request_hash:
        data[HOLDS] = holds
    entry = decision_entry(
        session, [], kind, request=request, actor=actor, note=note, seen=seen, data=data, made_by=made_by
    )
    cursor = _with_answer(session, request, value, n=entry.n, holds=holds)
    if is_canary(session.store, session.info):
        cursor = replace(cursor, status="cancelled", reason=CANARY, pending=())
    if gate is None:
        session.commit_cursor(_after_gate_answer(session, request, cursor, state), [entry])
        return session.cursor.head
    ledger = [entry]
    cursor = with_reopened(session, cursor, state, ledger, step=cursor.head + 1, actor=actor)
    session.commit_step(
        _after_gate_answer(session, request, cursor, state),
        changes,
        StepFacts(
            source="human",
            actor=actor,
            note=_step_note(text, note, data),
            decision=choice.id,
            made_by=made_by,
        ),
        state=state,
        ledger=ledger,
    )
    return session.cursor.head


def _required_hash(session: Session, request: Request, changes: Sequence[Change], state: LiveState) -> str:
    """Return the hash that a request must still have when the run continues.

    What the answer itself sets does not count as a change. If the hash has changed already although nobody
    has changed the state, the old hash is kept, and so the request will be asked again.
    """
    own = request.request_hash
    if all(change.before_hash == change.after_hash for change in changes):
        return own
    before = asked_on(session, request, session.cursor, session.state)
    if before is None or before.request_hash != own:
        return own
    at_step = replace(session.cursor, head=session.cursor.head + 1)
    now = asked_on(session, request, at_step, state)
    return now.request_hash if now else own


def _step_note(text: str, note: str | None, data: Mapping[str, Any]) -> str | None:
    """Return the note of a step that an answer makes: its comment, and the rule if a policy has answered."""
    return note if "policy" in data else text or note


def _after_gate_answer(session: Session, request: Request, cursor: Cursor, state: LiveState) -> Cursor:
    """Return the cursor after the answer to a request after a node: completed if nothing else is to run."""
    if request.when != "after" or cursor.pending or cursor.status == "cancelled":
        return cursor
    return session.cursor_after_node(cursor, request.node, state)


def _with_answer(session: Session, request: Request, value: Any, *, n: int, holds: str) -> Cursor:
    """Return the cursor after an answer, which it keeps for the node; other requests still wait.

    Args:
        n: the number of the ledger's entry with the answer.
        holds: the hash that a gate's request must still have when the run continues.
    """
    rest = tuple(other for other in session.cursor.pending if other.id != request.id)
    cursor = replace(session.cursor, pending=rest)
    if not rest:
        cursor = replace(cursor, status="waiting", reason="paused")
    if refuses(request, value):
        cursor = replace(cursor, status="cancelled", reason="rejected", pending=())
    elif request.when != "inside":
        gate = PassedGate(request.node, request.when, request.request_hash, holds, n, request.policy)
        return replace(cursor, passed=(*cursor.passed, gate))
    kept = KeptAnswer(request.request_hash, value, n, request.key)
    if request.path in {branch.path for branch in cursor.branches}:
        return replace(cursor, branches=with_answer(cursor.branches, request.path, kept))
    if request.when != "inside":
        return cursor
    return replace(cursor, answers=(*cursor.answers, kept))


def _pass_down(session: Session, request: Request, command: Answer, value: Any, *, seen: bytes) -> None:
    """Pass an answer to the child thread that asks.

    Args:
        value: the checked answer, with the comments in its text.
    """
    actor, note = command.actor, command.note

    def relayed_answer() -> LedgerEntry:
        data = {"answer": value, **_ledger_facts(command)}
        return decision_entry(
            session, [], "answer", request=request, actor=actor, note=note, seen=seen, data=data
        )

    def give(child: Session) -> int:
        return answer(child, replace(command, step=request.thread_step, seen=b""))

    relay(session, request, give, relayed_answer)


def pass_breakpoints(session: Session, actor: str | None = None) -> None:
    """Answer the plain breakpoints of a thread, as resuming does; other requests keep waiting."""
    for request in session.cursor.pending:
        if request.breakpoint:
            if request.thread:
                go_on = Answer(request.id, "continue", request.step, actor, "resumed")
                _pass_down(session, request, go_on, go_on.value, seen=b"")
            else:
                _apply_answer(session, request, "continue", actor=actor, note="resumed")


def approve_allowed(session: Session, known: Sequence[Allowance]) -> bool:
    """Approve the pending requests that are allowed calls; return whether there were any."""
    approved = False
    for request in session.cursor.pending:
        # The thread of a subgraph approves its own requests.
        by = () if request.thread else allowed_by(known, request, session.clock())
        if by:
            facts = {"allowances": [{"id": each.id, "thread": each.thread, "by": each.actor} for each in by]}
            note = f"allowed by {', '.join(dict.fromkeys(allowance.id for allowance in by))}"
            value = checked_value(request, APPROVE)
            _apply_answer(session, request, value, actor=None, note=note, facts=facts, made_by="policy")
            approved = True
    return approved


def expire(session: Session) -> bool:
    """Escalate requests whose time has come, and answer those whose deadline has passed with their default.

    Return whether the thread has failed by that."""
    try:
        return _expire(session)
    except Exception as error:  # raised by the function of a choice
        if (hidden := error_without_private(error, session.private())) is None:
            raise
        raise hidden from None


def _expire(session: Session) -> bool:
    now = session.clock()
    _escalate(session, now)
    for late in [
        request.id
        for request in session.cursor.pending
        if request.deadline is not None and now > request.deadline
    ]:
        request = next((request for request in session.cursor.pending if request.id == late), None)
        if request is not None and request.thread:
            relay(session, request, expire, partial(decision_entry, session, [], "timeout", request=request))
            if session.cursor.status == "failed":
                return True
        elif request is not None and not _apply_deadline(session, request):
            return True
    return False


def _escalate(session: Session, now: int) -> None:
    """Let more people answer the requests that have waited for so long that they escalate."""
    for waits in [request.id for request in session.cursor.pending]:
        # Requests in the same subgraph may have escalated together with the first one.
        request = next((request for request in session.cursor.pending if request.id == waits), None)
        if request is None or request.escalate_at is None or now < request.escalate_at:
            continue
        if request.thread:
            relayed = partial(decision_entry, session, [], "escalated", request=request)
            relay(session, request, lambda child: _escalate(child, now), relayed)
            continue
        others = tuple(name for name in request.escalate_to if name not in request.reviewers)
        wider = replace(request, reviewers=(*request.reviewers, *others), escalate_at=None)
        pending = tuple(wider if other.id == request.id else other for other in session.cursor.pending)
        data = {"to": list(request.escalate_to)}
        entry = decision_entry(session, [], "escalated", request=wider, data=data)
        session.commit_cursor(replace(session.cursor, pending=pending), [entry])


def _apply_deadline(session: Session, request: Request) -> bool:
    """Give the answer that a request has for its deadline.

    Without one the thread fails, and it returns False.
    """
    why = None
    if request.on_timeout is not None:
        try:
            _apply_answer(
                session,
                request,
                request.on_timeout,
                actor=None,
                note=None,
                kind="timeout",
                made_by="deadline",
            )
        except HitlError as error:
            why = f"its answer for the deadline could not be applied: {error.message}"
        else:
            return True
    ledger = [decision_entry(session, [], "timeout", request=request, note=why)]
    for other in session.cursor.pending:
        if other.id != request.id:
            ledger.append(decision_entry(session, ledger, "withdrawn", request=other))
    cursor = replace(session.cursor, status="failed", reason="deadline", pending=())
    session.commit_cursor(cursor, ledger)
    return False


def _recordable(value: Any) -> Any:
    """Return a refused answer as the ledger can keep it, whatever its type."""
    try:
        return normalise(value, what="the answer")
    except Exception:
        return repr(value)[:1000]
