"""Forks: a new thread that shares its parent's log up to a step (SPEC 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_tui.engine.channels.changes import set_values
from hitl_tui.engine.channels.state import LiveState
from hitl_tui.engine.humans.agent_changes import agent_entries
from hitl_tui.engine.humans.preview import past_position
from hitl_tui.engine.interrupts.asking import make_request, request_entry, waiting
from hitl_tui.engine.log.records import Checkpoint, Cursor
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.agent_settings import Settings, merged, settings_at
from hitl_tui.engine.thread.rebuild import live_state
from hitl_tui.engine.thread.run_inputs import as_of, given_at_steps
from hitl_tui.engine.thread.session import Session, replace
from hitl_tui.engine.thread.steps import Step
from hitl_tui.errors import UnknownThread, UsageError


def fork(
    session: Session,
    store: Store,
    step: int,
    new_thread_id: str,
    *,
    changes: Mapping[str, Any] | None = None,
    agents: Settings | None = None,
    actor: str | None = None,
    note: str | None = None,
) -> Session:
    """A new thread from a committed step; the parent is untouched, and its state not needed.

    Args:
        session: the parent; its cursor is enough.
        changes: channel values to set as the fork's first step; the route follows from them.
        agents: settings of agents, beside those that were in force at `step`.

    Raises:
        UnknownThread: no such step.
        UsageError: the name is taken, or a setting that an agent does not take.
    """
    checkpoint = store.checkpoint(session.thread_id, step)
    if checkpoint is None:
        raise UnknownThread(f"thread {session.thread_id!r} has no step {step}", "choose a committed step")
    if store.info(new_thread_id) is not None:
        raise UsageError(f"there is a thread {new_thread_id!r} already", "choose another name for the fork")
    state, written = LiveState({}, {}), []
    if changes:  # a bad one is refused before anything is written
        state = live_state(store, session.thread_id, step, session.graph.channels)
        written = set_values(state, session.graph.channels, changes)
    now = session.clock()
    info = _fork_info(session, checkpoint, new_thread_id, now, actor)
    cursor = _fork_cursor(session, store, checkpoint, new_thread_id, now, edited=bool(changes))
    child = Session(session.graph, store, info, cursor, state, clock=session.clock)
    settings = merged(child.agents, cursor.agents, agents or {})
    data = {"parent": session.thread_id, "step": step}
    entry = journal.ledger_entry(cursor, "fork", at=now, actor=actor, note=note, data=data)
    said = journal.behind(cursor, [entry])
    ledger = [entry, *agent_entries(said, cursor.agents, settings, at=now, actor=actor, note=note)]
    cursor = replace(cursor, agents=settings)
    with child.writing():
        if changes:
            child.commit_step(cursor, written, Step(source="fork", actor=actor, note=note), ledger=ledger)
        else:
            child.commit_cursor(cursor, ledger)
        _ask_again(child, checkpoint)
    return child


def _fork_info(
    session: Session, checkpoint: Checkpoint, thread_id: str, now: int, actor: str | None
) -> ThreadInfo:
    return ThreadInfo(
        thread_id=thread_id,
        graph_name=session.info.graph_name,
        graph_digest=session.graph.digest,
        source=session.info.source,
        parent=session.thread_id,
        fork_step=checkpoint.step,
        fork_seq=checkpoint.last_seq,
        created_at=now,
        created_by=actor,
    )


def _fork_cursor(
    session: Session, store: Store, checkpoint: Checkpoint, thread_id: str, now: int, *, edited: bool
) -> Cursor:
    step = checkpoint.step
    totals = store.totals(session.thread_id, step)
    ledger = store.ledger(session.thread_id)
    decided = [entry for entry in ledger if entry.at <= checkpoint.at]
    position = past_position(session, checkpoint, edited=edited)
    done = checkpoint.status == "completed" and not edited
    return Cursor(
        thread_id=thread_id,
        head=step,
        last_seq=checkpoint.last_seq,
        last_record_hash=_record_hash_at(store, session.thread_id, checkpoint),
        ledger_n=decided[-1].n if decided else 0,
        ledger_hash=decided[-1].hash if decided else b"",
        status="completed" if done else "waiting",
        reason=checkpoint.reason if done else "paused",
        position=position,
        passed=_passed(session, checkpoint),
        invocation=checkpoint.invocation,
        iteration=checkpoint.iteration,
        visits=totals.visits,
        tokens_in=totals.tokens_in,
        tokens_out=totals.tokens_out,
        cost=totals.cost,
        cost_known=totals.cost_known,
        active=totals.active,
        limits=session.cursor.limits,
        agents=settings_at(decided),
        **as_of(step, given_at_steps(ledger), session.cursor),
        snapshot_bytes=session.cursor.snapshot_bytes,
        compensated=session.cursor.compensated,
        created_at=now,
        updated_at=now,
    )


def _passed(session: Session, checkpoint: Checkpoint) -> bool:
    """True at the step that an answer to a gate before a node made: it is not asked again."""
    kind, _, node = checkpoint.position.partition(":")
    return checkpoint.decision is not None and kind == "node" and node in session.graph.before


def _record_hash_at(store: Store, thread_id: str, checkpoint: Checkpoint) -> bytes:
    """The hash of the newest record at a checkpoint: steps without records are stepped over."""
    found: Checkpoint | None = checkpoint
    while found is not None and found.last_seq and found.last_seq < found.first_seq:
        found = store.checkpoint(thread_id, found.step - 1)
    if found is None or not found.last_seq:
        return b""
    return list(store.records(thread_id, found.step, found.step))[-1].record_hash


def _ask_again(child: Session, checkpoint: Checkpoint) -> None:
    """Open the question again that waited at the forked step; its id is the fork's own."""
    kind, _, node = child.cursor.position.partition(":")
    waited = checkpoint.status == "waiting" and checkpoint.reason in ("approval", "interrupt")
    if waited and kind == "route" and node in child.graph.after:
        if not child.state.values:
            child.load_state()
        request = make_request(child, node, "after")
        cursor = replace(child.cursor, position=f"route:{node}")
        child.commit_cursor(waiting(cursor, request), [request_entry(child.cursor, request, child.clock())])
