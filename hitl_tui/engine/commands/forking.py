"""Forks: a new thread that shares its parent's log up to a step.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from hitl_tui.engine.commands.agents import agent_entries
from hitl_tui.engine.commands.command import Fork
from hitl_tui.engine.commands.decisions import origin_of, past_position, position_after
from hitl_tui.engine.commands.guarding import (
    ForkPoint,
    data_of,
    is_settled,
    names_people_of,
    refusal_of_question,
    refuse_skipping,
)
from hitl_tui.engine.log.outcomes import HOLDS, PassedGate
from hitl_tui.engine.log.records import START, Checkpoint, Cursor, LedgerEntry
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.state.canonical import show_hash
from hitl_tui.engine.state.changes import after, set_values
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.agent_settings import merged_settings, settings_at
from hitl_tui.engine.thread.canaries import CANARY, refuse_canary
from hitl_tui.engine.thread.earlier import request_of
from hitl_tui.engine.thread.graph_change import refuse_lost_gates
from hitl_tui.engine.thread.hashes import chained, facts_hash
from hitl_tui.engine.thread.interrupts import make_request, with_request
from hitl_tui.engine.thread.journal import StepFacts
from hitl_tui.engine.thread.listed import for_lists
from hitl_tui.engine.thread.logged import check_steps, decisions
from hitl_tui.engine.thread.rebuild import live_state
from hitl_tui.engine.thread.run_inputs import inputs_at, inputs_at_steps
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import UnknownThread, UsageError


def fork(session: Session, command: Fork, *, rerouted: bool = False) -> str:
    """Carry out `Fork`.

    Args:
        session: the parent; it need not be held for writing, and only its cursor is used.
        rerouted: the route after the step is chosen again by the current graph.
    """
    store, step, new_thread_id, changes = session.store, command.step, command.new_thread_id, command.changes
    actor, note = command.actor, command.note
    if store is None:
        raise UsageError("this thread is not stored", "give it a store to fork it")
    refuse_canary(store, session.info)
    checkpoint = _checked_checkpoint(session, store, step)
    if store.info(new_thread_id) is not None:
        raise UsageError(f"there is a thread {new_thread_id!r} already", "choose another name for the fork")
    state, written = LiveState({}, {}), []
    if changes or command.as_node is not None:  # bad values are refused before anything is written
        state = live_state(store, session.thread_id, step, session.graph.channels)
        written = set_values(state, session.graph.channels, changes or {})
    now = session.clock()
    decided = decisions_until(session, store, checkpoint)
    info = _fork_info(session, checkpoint, new_thread_id, now, actor)
    info = replace(info, facts_hash=facts_hash(info, len(decided)))
    cursor = _fork_cursor(session, store, checkpoint, info, decided, edited=bool(changes))
    passed, position = cursor.passed, cursor.position
    if rerouted or command.as_node is not None:
        place = position_after(session, command.as_node or checkpoint.node or START)
        cursor = replace(cursor, position=place, status="waiting", reason="paused", passed=())
    child = Session(session.graph, store, info, cursor, state, clock=session.clock, signer=session.signer)
    if command.as_node is None:
        _refuse_lost_gate(session, checkpoint, decided)
    else:
        point = ForkPoint(session.thread_id, step, decided, position)
        refuse_skipping(child, command.as_node, state=after(state, written), passed=passed, fork=point)
    settings = merged_settings(child.agents, cursor.agents, command.agents or {})
    data = _fork_data(session, command, checkpoint)
    entry = journal.ledger_entry(
        cursor, "fork", at=now, actor=actor, note=note, data=data, signer=child.signer
    )
    said = journal.after_entries(cursor, [entry])
    changed = agent_entries(
        said, cursor.agents, settings, at=now, actor=actor, note=note, signer=child.signer
    )
    ledger = [entry, *changed]
    cursor = replace(cursor, agents=settings)
    if node := _node_to_ask_again(child, checkpoint, cursor):
        if not written:
            child.state = live_state(store, session.thread_id, step, session.graph.channels)
        at_step = replace(cursor, head=step + bool(written))
        forked = after(child.state, written)
        request = make_request(child, node, "after", cursor=at_step, state=forked)
        request = for_lists(child, request, forked, decided)
        ledger.append(journal.request_entry(journal.after_entries(cursor, ledger), request, now))
        cursor = with_request(cursor, request)
    _check_canary(command, cursor.pending)
    with child.writing():
        if changes:
            child.commit_step(
                cursor,
                written,
                StepFacts(source="fork", actor=actor, note=note, made_by="person"),
                ledger=ledger,
            )
        else:
            child.commit_cursor(cursor, ledger)
    return child.thread_id


def _fork_data(session: Session, command: Fork, checkpoint: Checkpoint) -> dict[str, Any]:
    """Return what the ledger keeps of a fork."""
    data: dict[str, Any] = {"parent": session.thread_id, "step": command.step, **origin_of(checkpoint)}
    if command.as_node is not None:
        data["as_node"] = command.as_node
    if command.canary:
        data[CANARY] = command.canary
    return data


def _check_canary(command: Fork, pending: Sequence[Request]) -> None:
    """Refuse a canary that nobody would be asked about, or that nothing makes bad; raises `UsageError`."""
    if not command.canary:
        return
    if not command.changes:
        raise UsageError("a canary needs a value that is known to be bad", "set a channel, as draft=@bad.txt")
    choices = [choice.id for request in pending for choice in request.choices]
    if not choices:
        raise UsageError(
            f"no gate asks at step {command.step}, and a canary only asks",
            "name the step at which a thread waits at a gate after a node",
        )
    if command.canary not in choices:
        raise UsageError(
            f"{command.canary!r} is not one of the answers", f"the answers: {', '.join(choices)}"
        )


def _checked_checkpoint(session: Session, store: Store, step: int) -> Checkpoint:
    """Return the checkpoint of a step after checking its hash."""
    checkpoint = store.checkpoint(session.thread_id, step)
    if checkpoint is None:
        raise UnknownThread(f"thread {session.thread_id!r} has no step {step}", "choose a committed step")
    check_steps(store, session.cursor, step)
    return checkpoint


def _refuse_lost_gate(session: Session, checkpoint: Checkpoint, decided: Sequence[LedgerEntry]) -> None:
    """Refuse a fork from a step where a gate waits that its graph does not have; raises `GateUnanswered`."""
    graph = session.graph
    if checkpoint.step == session.cursor.head:
        refuse_lost_gates(graph, session.thread_id, session.cursor.pending)
    if not _is_waiting(checkpoint) or graph.after.get(checkpoint.node) is not None:
        return
    for entry in reversed(decided):
        data = data_of(entry)
        if entry.kind == "request" and (data.get("node"), data.get("when")) == (checkpoint.node, "after"):
            if names_people_of(data) and not is_settled(decided, entry.request_id):
                raise refusal_of_question(f"a fork of step {checkpoint.step}", entry)
            return


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
    session: Session,
    store: Store,
    checkpoint: Checkpoint,
    info: ThreadInfo,
    decided: list[LedgerEntry],
    *,
    edited: bool,
) -> Cursor:
    step, now = checkpoint.step, info.created_at
    record, point, entry = _links_of_fork(store, session.thread_id, checkpoint, info)
    totals = store.totals(session.thread_id, step)
    ledger = decisions(store, session.thread_id)
    position = past_position(session, checkpoint, edited=edited)
    done = checkpoint.status == "completed" and not edited
    return Cursor(
        thread_id=info.thread_id,
        head=step,
        last_seq=checkpoint.last_seq,
        last_record_hash=record,
        checkpoint_hash=point,
        ledger_n=len(decided),
        ledger_hash=entry,
        status="completed" if done else "waiting",
        reason=checkpoint.reason if done else "paused",
        position=position,
        passed=passed_gates(store, session.thread_id, checkpoint, decided),
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
        **inputs_at(step, inputs_at_steps(ledger), session.cursor),
        snapshot_bytes=session.cursor.snapshot_bytes,
        compensated=session.cursor.compensated,
        created_at=now,
        updated_at=now,
    )


def passed_gates(
    store: Store, thread_id: str, checkpoint: Checkpoint, decided: list[LedgerEntry]
) -> tuple[PassedGate, ...]:
    """Return the answers to gates that let a fork pass: those since the last node ran, or since the input."""
    point: Checkpoint | None = checkpoint
    since = len(decided)
    while point is not None and point.source in ("human", "fork"):
        point = store.checkpoint(thread_id, point.step - 1)
        since = next((entry.n for entry in decided if point and entry.hash == point.ledger_hash), 0)
    gates: dict[tuple[str, str], PassedGate] = {}
    for entry in decided[since:]:
        asked = request_of(decided, entry.request_id)
        place = asked.data if asked and isinstance(asked.data, dict) else {}
        at = place.get("node", ""), place.get("when", "")
        if at[1] not in ("before", "after") or place.get("policy"):
            continue
        if entry.kind == "request":
            gates.pop(at, None)  # it was asked again: earlier answers no longer count
        elif entry.kind in ("answer", "timeout") and entry.request_hash:
            answered = show_hash(entry.request_hash)
            gates[at] = PassedGate(*at, answered, entry.data.get(HOLDS, answered), entry.n)
    return tuple(gates.values())


def decisions_until(session: Session, store: Store, checkpoint: Checkpoint) -> list[LedgerEntry]:
    """Return the decisions up to a checkpoint: those until the one that it names."""
    ledger = decisions(store, session.thread_id)
    for entry in reversed(ledger):
        if entry.hash == checkpoint.ledger_hash:
            return ledger[: entry.n]
    # It names none: nothing was decided since its thread started.
    shared = [
        part.after_entry for part in store.parts(session.thread_id) if part.after_step < checkpoint.step
    ]
    return ledger[: max(shared, default=0)]


def _links_of_fork(
    store: Store, thread_id: str, checkpoint: Checkpoint, fork: ThreadInfo
) -> tuple[bytes, bytes, bytes]:
    """Return the hashes to which a fork's first record, checkpoint and decision are chained."""
    record, point, entry = b"", checkpoint.checkpoint_hash, checkpoint.ledger_hash
    link: Checkpoint | None = checkpoint
    # Skip steps without records.
    while link is not None and link.last_seq and link.last_seq < link.first_seq:
        link = store.checkpoint(thread_id, link.step - 1)
    if link is not None and link.last_seq:
        record = list(store.records(thread_id, link.step, link.step))[-1].record_hash
    for part in store.parts(thread_id):
        # Nothing was written in these threads before they were forked themselves.
        if part.after_step <= checkpoint.step and part.after_seq == checkpoint.last_seq:
            record = chained(record, part.facts)
        if part.after_step == checkpoint.step:
            point, entry = chained(point, part.facts), chained(entry, part.facts)
    facts = fork.facts_hash
    return chained(record, facts), chained(point, facts), chained(entry, facts)


def _node_to_ask_again(child: Session, checkpoint: Checkpoint, cursor: Cursor) -> str:
    """Return the node whose request waited at the forked step, to be asked again; "" for none."""
    kind, _, node = cursor.position.partition(":")
    return node if _is_waiting(checkpoint) and kind == "route" and node in child.graph.after else ""


def _is_waiting(checkpoint: Checkpoint) -> bool:
    """Whether a step was committed with a request that waits for a person."""
    return checkpoint.status == "waiting" and checkpoint.reason in ("approval", "interrupt")
