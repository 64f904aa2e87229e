"""What there is to see of an open thread, read from its session and its store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_tui.drivers.protocol import Relative, Snapshot, Unfinished
from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate
from hitl_tui.engine.log.records import Checkpoint, UpdateRecord
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import Owner, Presence, ThreadInfo
from hitl_tui.engine.nodes.children import link_of
from hitl_tui.engine.thread.journal import CHANNELS
from hitl_tui.engine.thread.rebuild import Decoded, applied_updates, state_at
from hitl_tui.engine.thread.session import Session

MOST = 40
"""Relatives shown at most: the thread's own line first, then forks by age."""


def family(store: Store, thread_id: str, page: int) -> tuple[Relative, ...]:
    """The thread, its parents and the forks of all of them, each with its newest checkpoints."""
    line: list[ThreadInfo] = []
    info = store.info(thread_id)
    while info is not None:
        line.append(info)
        info = store.info(info.parent) if info.parent else None
    members = {member.thread_id: member for member in line}
    queue = list(line)
    while queue and len(members) < MOST:
        for child in store.children(queue.pop(0).thread_id):
            if child.thread_id not in members and len(members) < MOST:
                members[child.thread_id] = child
                queue.append(child)
    relatives = []
    for member in members.values():
        summary = store.summary(member.thread_id)
        if summary is not None:
            newest = store.checkpoints(member.thread_id, None, page)
            # A fork that was carried here without its parent owns all of its steps.
            shared = member.fork_step if member.parent else -1
            own = tuple(checkpoint for checkpoint in reversed(newest) if checkpoint.step > shared)
            relatives.append(Relative(member.thread_id, member.parent, shared, summary, own))
    return tuple(relatives)


def snapshot(
    session: Session,
    store: Store,
    *,
    refusals: Mapping[str, str],
    last_event: int,
    page: int,
    held_by: str,
    graph_changed: tuple[str, ...] | None,
    attending: tuple[Presence, ...] = (),
) -> Snapshot:
    """Everything a screen needs to begin.

    Args:
        refusals: which commands can't be carried out, and why.
        held_by: the other process that runs the thread, "" for none.
        attending: who is at what waits.
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
        updates=updates(session, store, head, head)[head] if head >= 0 else (),
        ledger=tuple(store.ledger(session.thread_id)) if session.exists else (),
        parent=session.info.parent,
        fork_step=session.info.fork_step,
        last_event=last_event,
        refusals=refusals,
        notice=session.notice,
        held_by=held_by,
        graph_changed=graph_changed,
        owners=_owners(session, store),
        unfinished=_unfinished(session),
        signing_key=session.signer.key if session.signer else "",
        attending=attending,
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


def values_at(session: Session, store: Store, step: int, decoded: Decoded) -> dict[str, Any]:
    """All channel values as of a step."""
    if step == session.cursor.head:
        return _public(session, session.state.values)
    return _public(session, state_at(store, session.thread_id, step, _defaults(session), decoded=decoded))


def updates(
    session: Session,
    store: Store,
    first: int,
    last: int,
    *,
    only: str | None = None,
    decoded: Decoded | None = None,
) -> dict[int, tuple[AppliedUpdate, ...]]:
    """The updates of each of the steps `first` to `last`, of one channel or of all."""
    thread_id = session.thread_id
    records: dict[int, list[UpdateRecord]] = {step: [] for step in range(first, last + 1)}
    for record in store.records(thread_id, first, last):
        if only in (None, record.channel):
            records[record.step].append(record)
    written = {record.channel for some in records.values() for record in some}
    # From some steps on there are other channels than before, with values that no record has.
    anew = {entry.step for entry in store.ledger(thread_id) if entry.kind == CHANNELS} if first < last else ()
    applied: dict[int, tuple[AppliedUpdate, ...]] = dict.fromkeys(records, ())
    values: dict[str, Any] | None = None
    for step, some in records.items():
        if some:
            if values is None:
                values = _defaults(session)
                if step > 0:
                    values = state_at(store, thread_id, step - 1, values, only=written, decoded=decoded)
            applied[step], values = applied_updates(some, values)
        if step in anew:
            values = None
    return applied


def written(session: Session, store: Store, first: int, last: int) -> dict[int, dict[str, bool]]:
    """The channels that each of the steps `first` to `last` wrote, and whether their hashes differ since."""
    by_step: dict[int, dict[str, bool]] = {step: {} for step in range(first, last + 1)}
    for record in store.records(session.thread_id, first, last) if session.exists else ():
        written = by_step[record.step]
        changed = record.previous_hash != record.next_hash
        written[record.channel] = changed or written.get(record.channel, False)
    return by_step


def _defaults(session: Session) -> dict[str, Any]:
    return {name: channel.default for name, channel in session.graph.channels.items()}


def _public(session: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    channels = session.graph.channels
    return {
        name: PRIVATE if channels[name].visibility == "private" else value
        for name, value in values.items()
        if name in channels
    }
