"""What an edit, an answer or other settings would do, before anyone commits it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_tui.engine.commands.decisions import DONE, position_after
from hitl_tui.engine.log.events import Preview
from hitl_tui.engine.log.records import END, ROLLBACK, Checkpoint
from hitl_tui.engine.nodes.children import waiting_child
from hitl_tui.engine.state.changes import Change, after, set_values
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread.interrupts import find_request, gate_of
from hitl_tui.engine.thread.session import Session
from hitl_tui.engine.thread.taint_policy import refuses
from hitl_tui.errors import HitlError


def preview_edit(
    session: Session,
    values: Mapping[str, Any],
    as_node: str | None,
    past: tuple[Checkpoint, LiveState] | None,
) -> Preview:
    """What setting `values` would do, at the head or at a past step (given by checkpoint and state)."""
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
    done = past is None and as_node is None and session.cursor.status in DONE
    return Preview(
        updates=tuple(change.applied("human") for change in changes),
        problems=problems,
        next_node="END" if done else next_node(session, position, after(state, changes)),
        rebinds=() if past or as_node else tuple(request.title for request in session.cursor.pending),
        forks=past is not None,
    )


def preview_answer(session: Session, request_id: str, answer: Any) -> Preview:
    """What an answer would do; raises `AnswerRefused` for one that is not allowed."""
    request = find_request(session.cursor, request_id)
    child = waiting_child(session) if request.thread else None
    if child is not None:
        return preview_answer(child, request_id, answer)
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


def past_position(session: Session, checkpoint: Checkpoint, *, edited: bool) -> str:
    """Where a thread goes on from a past step; an edit there may turn the route of its node."""
    if checkpoint.position == ROLLBACK:
        # What was undone is as it was at the beginning.
        return f"node:{session.graph.entry}"
    if edited and checkpoint.node in session.graph.routes:
        return f"route:{checkpoint.node}"
    return checkpoint.position


def next_node(session: Session, position: str, state: LiveState) -> str | None:
    """Where a position leads to by a state, termination included; None when it can't be told."""
    try:
        return session.next_target(position, state).target or None
    except HitlError:
        return None
