"""Forks: a new thread that shares its parent's log up to a step (SPEC 11)."""

from __future__ import annotations

from msgspec.structs import replace

from hitl_tui.engine.commands.agents import agent_entries
from hitl_tui.engine.commands.command import Fork
from hitl_tui.engine.commands.decisions import origin_of, past_position, position_after
from hitl_tui.engine.log.records import START, Checkpoint, Cursor, LedgerEntry
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.state.changes import after, set_values
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.agent_settings import merged, settings_at
from hitl_tui.engine.thread.hashes import chained, facts_hash
from hitl_tui.engine.thread.interrupts import make_request, waiting
from hitl_tui.engine.thread.journal import StepFacts
from hitl_tui.engine.thread.rebuild import live_state
from hitl_tui.engine.thread.run_inputs import as_of, inputs_at_steps
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import UnknownThread, UsageError


def fork(session: Session, command: Fork, *, rerouted: bool = False) -> str:
    """Carry out `Fork`.

    Args:
        session: the parent, which is not held for writing; its cursor is enough, and its state not needed.
        rerouted: the way on after the step is chosen anew, as its graph has it now.
    """
    store, step, new_thread_id, changes = session.store, command.step, command.new_thread_id, command.changes
    actor, note = command.actor, command.note
    if store is None:
        raise UsageError("this thread is kept nowhere", "give it a store to fork it")
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
    decided = _decided(session, store, checkpoint)
    info = _fork_info(session, checkpoint, new_thread_id, now, actor)
    info = replace(info, facts_hash=facts_hash(info, len(decided)))
    cursor = _fork_cursor(session, store, checkpoint, info, decided, edited=bool(changes))
    if rerouted or command.as_node is not None:
        place = position_after(session, command.as_node or checkpoint.node or START)
        cursor = replace(cursor, position=place, status="waiting", reason="paused", passed=False)
    child = Session(session.graph, store, info, cursor, state, clock=session.clock, signer=session.signer)
    settings = merged(child.agents, cursor.agents, command.agents or {})
    data = {"parent": session.thread_id, "step": step, **origin_of(checkpoint)}
    seen = checkpoint.state_hash
    entry = journal.ledger_entry(
        cursor, "fork", at=now, actor=actor, note=note, seen=seen, data=data, signer=child.signer
    )
    said = journal.after_entries(cursor, [entry])
    changed = agent_entries(
        said, cursor.agents, settings, at=now, actor=actor, note=note, signer=child.signer
    )
    ledger = [entry, *changed]
    cursor = replace(cursor, agents=settings)
    if node := _waited_after(child, checkpoint, cursor):
        if not written:
            child.state = live_state(store, session.thread_id, step, session.graph.channels)
        at_step = replace(cursor, head=step + bool(written))
        request = make_request(child, node, "after", cursor=at_step, state=after(child.state, written))
        ledger.append(journal.request_entry(journal.after_entries(cursor, ledger), request, now))
        cursor = waiting(cursor, request)
    with child.writing():
        if changes:
            child.commit_step(
                cursor, written, StepFacts(source="fork", actor=actor, note=note), ledger=ledger
            )
        else:
            child.commit_cursor(cursor, ledger)
    return child.thread_id


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
    record, point, entry = _links(store, session.thread_id, checkpoint, info)
    totals = store.totals(session.thread_id, step)
    ledger = store.ledger(session.thread_id)
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
        **as_of(step, inputs_at_steps(ledger), session.cursor),
        snapshot_bytes=session.cursor.snapshot_bytes,
        compensated=session.cursor.compensated,
        created_at=now,
        updated_at=now,
    )


def _passed(session: Session, checkpoint: Checkpoint) -> bool:
    """True at the step that an answer to a gate before a node made: it is not asked again."""
    kind, _, node = checkpoint.position.partition(":")
    return checkpoint.decision is not None and kind == "node" and node in session.graph.before


def _decided(session: Session, store: Store, checkpoint: Checkpoint) -> list[LedgerEntry]:
    """The decisions up to a checkpoint: those until the one that it names."""
    ledger = store.ledger(session.thread_id)
    for entry in reversed(ledger):
        if entry.hash == checkpoint.ledger_hash:
            return ledger[: entry.n]
    # It names none: nothing was decided since its thread began.
    shared = [
        part.after_entry for part in store.parts(session.thread_id) if part.after_step < checkpoint.step
    ]
    return ledger[: max(shared, default=0)]


def _links(
    store: Store, thread_id: str, checkpoint: Checkpoint, fork: ThreadInfo
) -> tuple[bytes, bytes, bytes]:
    """What a fork's first record, checkpoint and decision are chained to."""
    record, point, entry = b"", checkpoint.checkpoint_hash, checkpoint.ledger_hash
    link: Checkpoint | None = checkpoint
    # Steps without records are stepped over.
    while link is not None and link.last_seq and link.last_seq < link.first_seq:
        link = store.checkpoint(thread_id, link.step - 1)
    if link is not None and link.last_seq:
        record = list(store.records(thread_id, link.step, link.step))[-1].record_hash
    for part in store.parts(thread_id):
        # Nothing was written in these before they were forked in turn.
        if part.after_step <= checkpoint.step and part.after_seq == checkpoint.last_seq:
            record = chained(record, part.facts)
        if part.after_step == checkpoint.step:
            point, entry = chained(point, part.facts), chained(entry, part.facts)
    facts = fork.facts_hash
    return chained(record, facts), chained(point, facts), chained(entry, facts)


def _waited_after(child: Session, checkpoint: Checkpoint, cursor: Cursor) -> str:
    """The node whose question waited at the forked step, to be opened again; "" for none."""
    kind, _, node = cursor.position.partition(":")
    waited = checkpoint.status == "waiting" and checkpoint.reason in ("approval", "interrupt")
    return node if waited and kind == "route" and node in child.graph.after else ""
