"""Previews: what an edit, an answer or new settings would do, before they are committed."""

from __future__ import annotations

import asyncio
from typing import Any

from hitl_tui.engine.commands.agents import changed_agent
from hitl_tui.engine.commands.command import Answer, ConfigureAgents, UpdateState
from hitl_tui.engine.commands.decisions import DONE, past_position, position_after
from hitl_tui.engine.commands.forking import decisions_until, passed_gates
from hitl_tui.engine.commands.guarding import ForkPoint, refuse_skipping
from hitl_tui.engine.log.events import EDIT, Preview
from hitl_tui.engine.log.records import END, Checkpoint
from hitl_tui.engine.nodes.children import waiting_child
from hitl_tui.engine.state.changes import Change, after, set_values
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread.interrupts import find_request, gate_of
from hitl_tui.engine.thread.private import error_without_private
from hitl_tui.engine.thread.rebuild import live_state
from hitl_tui.engine.thread.session import Session
from hitl_tui.engine.thread.taint_policy import refuses
from hitl_tui.errors import GateUnanswered, HitlError, UnknownThread


def preview(session: Session, command: UpdateState | Answer) -> Preview:
    """Return what a command would do.

    Raises:
        AnswerRefused: an answer that is not allowed.
        UnknownThread: an edit of a step that does not exist.
    """
    try:
        if isinstance(command, Answer):
            return _preview_answer(session, command.request_id, command.value)
        return _preview_edit(session, command)
    except Exception as error:  # raised by the function of a gate, of a choice or of a route
        if (hidden := error_without_private(error, session.private())) is None:
            raise
        raise hidden from None


def _preview_edit(session: Session, command: UpdateState) -> Preview:
    """Return what an edit would do at its step: the head, or a past step, from which it would fork."""
    values, as_node, step = command.values, command.as_node, command.expected_step
    past = None if step is None or step == session.cursor.head else _step_and_state(session, step)
    state = past[1] if past else session.state
    changes: list[Change] = []
    problems: dict[str, str] = {}
    for name, value in values.items():
        try:
            changes += set_values(state, session.graph.channels, {name: value})
        except HitlError as error:
            problems[name] = str(error)
    position = past_position(session, past[0], edited=True) if past else session.cursor.position
    if as_node is not None:
        position = position_after(session, as_node)
        try:
            _refuse_skipping(
                session, as_node, past[0] if past else None, after(state, changes), edited=bool(values)
            )
        except GateUnanswered as error:
            problems[EDIT] = str(error)
    done = past is None and as_node is None and session.cursor.status in DONE
    return Preview(
        updates=tuple(change.applied("human") for change in changes),
        problems=problems,
        next_node="END" if done else next_node(session, position, after(state, changes)),
        rebinds=() if past or as_node else tuple(request.title for request in session.cursor.pending),
        forks=past is not None,
    )


def _refuse_skipping(
    session: Session, as_node: str, past: Checkpoint | None, state: LiveState, *, edited: bool
) -> None:
    """Refuse what the edit, or the fork from a past step, would refuse; raises `GateUnanswered`."""
    if past is None or session.store is None:
        refuse_skipping(session, as_node, state=state, passed=session.cursor.passed)
        return
    decided = decisions_until(session, session.store, past)
    passed = passed_gates(session.store, session.thread_id, past, decided)
    position = past_position(session, past, edited=edited)
    point = ForkPoint(session.thread_id, past.step, decided, position)
    refuse_skipping(session, as_node, state=state, passed=passed, fork=point)


def _preview_answer(session: Session, request_id: str, answer: Any) -> Preview:
    request = find_request(session.cursor, request_id)
    child = waiting_child(session) if request.thread else None
    if child is not None:
        return _preview_answer(child, request_id, answer)
    gate = gate_of(session, request)
    changes: list[Change] = []
    if gate is not None:
        choice, text = gate.choose(answer)
        changes = set_values(session.state, session.graph.channels, choice.values_for(session.view(), text))
    state = after(session.state, changes)
    return Preview(
        updates=tuple(change.applied("human") for change in changes),
        problems={},
        next_node=END if refuses(request, answer) else next_node(session, session.cursor.position, state),
        rebinds=(),
        forks=False,
    )


async def preview_agents(session: Session, command: ConfigureAgents) -> Preview:
    """Return known problems that would prevent a call of the agents with their new settings, by agent.

    Raises:
        UsageError: no such agent or setting.
    """
    problems: dict[str, str] = {}
    for name, settings in command.agents.items():
        lacks = getattr(changed_agent(session, name, settings), "lacks", None)
        # This may import the provider's library, which takes seconds.
        if lacks and (words := await asyncio.to_thread(lacks)):
            problems[name] = words
    return Preview(updates=(), problems=problems, next_node=None, rebinds=(), forks=False)


def _step_and_state(session: Session, step: int) -> tuple[Checkpoint, LiveState]:
    """Return a committed step with its state."""
    store = session.store
    checkpoint = store.checkpoint(session.thread_id, step) if store else None
    if store is None or checkpoint is None:
        raise UnknownThread(f"thread {session.thread_id!r} has no step {step}", "choose a committed step")
    return checkpoint, live_state(store, session.thread_id, step, session.graph.channels)


def next_node(session: Session, position: str, state: LiveState) -> str | None:
    """Return where a position leads with a state, termination included; None if that is not known."""
    try:
        return session.next_target(position, state)[0] or None
    except HitlError:
        return None
