"""What a driver tells of a local thread: values, updates and checkpoints, private values masked (SPEC 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_tui.drivers.protocol import Capabilities, Snapshot, Unfinished
from hitl_tui.engine.channels.state import LiveState
from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate
from hitl_tui.engine.log.records import Checkpoint, UpdateRecord
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import Owner, ThreadInfo
from hitl_tui.engine.subgraphs.children import link_of
from hitl_tui.engine.thread.journal import CHANNELS
from hitl_tui.engine.thread.rebuild import applied_updates, live_state, state_at
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import UnknownThread


def snapshot(
    session: Session,
    store: Store,
    capabilities: Capabilities,
    *,
    last_event: int,
    page: int,
    held_by: str,
    graph_changed: tuple[str, ...] | None,
) -> Snapshot:
    """Everything a screen needs to begin.

    Args:
        held_by: the other process that runs the thread, "" for none.
        graph_changed: what differs since the file of the graph was saved.
        last_event: the number of the newest event that is in it.
        page: checkpoints to give at most.
    """
    head = session.cursor.head
    return Snapshot(
        thread_id=session.thread_id,
        graph=session.graph.info,
        progress=session.progress,
        values=_public(session, session.state.values),
        checkpoints=history(session, store, None, page)[::-1],
        updates=updates_at(session, store, head) if head >= 0 else (),
        ledger=tuple(store.ledger(session.thread_id)) if session.exists else (),
        parent=session.info.parent,
        fork_step=session.info.fork_step,
        capabilities=capabilities,
        last_event=last_event,
        notice=session.notice,
        held_by=held_by,
        graph_changed=graph_changed,
        owners=_owners(session, store),
        unfinished=_unfinished(session),
        signing_key=session.signer.key if session.signer else "",
    )


def _owners(session: Session, store: Store) -> tuple[Owner, ...]:
    """The threads that a subgraph's thread runs for, the outermost first."""
    owners: list[Owner] = []
    info: ThreadInfo | None = session.info
    while info is not None and info.owner is not None:
        owners.append(info.owner)
        info = store.info(info.owner.thread_id)
    return tuple(reversed(owners))


def _unfinished(session: Session) -> Unfinished | None:
    """What the cursor keeps of the branches of the node it stands at; their values stay there."""
    cursor = session.cursor
    kind, _, node = cursor.position.partition(":")
    if not cursor.branches or kind != "node":
        return None
    child = link_of(cursor)
    return Unfinished(
        node,
        cursor.head + 1,
        0 if child else len(cursor.branches),
        tuple(kept.outcome for kept in cursor.branches if kept.outcome),
        child.thread_id if child else "",
    )


def history(session: Session, store: Store, before: int | None, limit: int) -> tuple[Checkpoint, ...]:
    """Checkpoints before a step (None: from the head), newest first."""
    return tuple(store.checkpoints(session.thread_id, before, limit)) if session.exists else ()


def values_at(session: Session, store: Store, step: int) -> dict[str, Any]:
    """All channel values as of a step."""
    if step == session.cursor.head:
        return _public(session, session.state.values)
    return _public(session, state_at(store, session.thread_id, step, _defaults(session)))


def updates_at(session: Session, store: Store, step: int) -> tuple[AppliedUpdate, ...]:
    """The updates of a step, in the order in which they were reduced."""
    return updates_between(session, store, step, step)[step]


def updates_between(
    session: Session, store: Store, first: int, last: int, only: str | None = None
) -> dict[int, tuple[AppliedUpdate, ...]]:
    """The updates of each of the steps `first` to `last`, of one channel or of all."""
    thread_id = session.thread_id
    records: dict[int, list[UpdateRecord]] = {step: [] for step in range(first, last + 1)}
    for record in store.records(thread_id, first, last):
        if only in (None, record.channel):
            records[record.step].append(record)
    written = {record.channel for some in records.values() for record in some}
    # From some steps on there are other channels than before, with values that no record has.
    anew = {one.step for one in store.ledger(thread_id) if one.kind == CHANNELS} if first < last else ()
    found: dict[int, tuple[AppliedUpdate, ...]] = dict.fromkeys(records, ())
    values: dict[str, Any] | None = None
    for step, some in records.items():
        if some:
            if values is None:
                values = _defaults(session)
                if step > 0:
                    values = state_at(store, thread_id, step - 1, values, only=written)
            found[step], values = applied_updates(some, values)
        if step in anew:
            values = None
    return found


def written_at(session: Session, store: Store, first: int, last: int) -> dict[int, dict[str, bool]]:
    """The channels that each of the steps `first` to `last` wrote, and whether their hashes differ since."""
    found: dict[int, dict[str, bool]] = {step: {} for step in range(first, last + 1)}
    for record in store.records(session.thread_id, first, last) if session.exists else ():
        written = found[record.step]
        changed = record.previous_hash != record.next_hash
        written[record.channel] = changed or written.get(record.channel, False)
    return found


def place(session: Session, store: Store, step: int) -> tuple[Checkpoint, LiveState]:
    """A committed step with its state; raises `UnknownThread` where there is none."""
    checkpoint = store.checkpoint(session.thread_id, step)
    if checkpoint is None:
        raise UnknownThread(f"thread {session.thread_id!r} has no step {step}", "choose a committed step")
    return checkpoint, live_state(store, session.thread_id, step, session.graph.channels)


def _defaults(session: Session) -> dict[str, Any]:
    return {name: channel.default for name, channel in session.graph.channels.items()}


def _public(session: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    channels = session.graph.channels
    return {
        name: PRIVATE if channels[name].visibility == "private" else value
        for name, value in values.items()
        if name in channels
    }
