"""Reads a thread's log for viewing: of an open thread, or of one that is only viewed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from hitl_tui.drivers.protocol import Relative, Snapshot, Unfinished
from hitl_tui.engine.graph.drawing import nodes_at_once
from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate
from hitl_tui.engine.log.records import CHANNELS, Checkpoint, UpdateRecord
from hitl_tui.engine.log.store import Store, all_threads
from hitl_tui.engine.log.threads import ORIGIN, Owner, Presence, ThreadInfo
from hitl_tui.engine.thread.logged import LoggedThread, defaults_of
from hitl_tui.engine.thread.rebuild import Decoded, applied_updates, state_at
from hitl_tui.engine.thread.run_inputs import shown_ledger
from hitl_tui.errors import ThreadBusy, UnknownThread

if TYPE_CHECKING:
    from hitl_tui.engine.audit.lineage import Arrival
    from hitl_tui.engine.graph.description import GraphInfo
    from hitl_tui.engine.log.events import Progress
    from hitl_tui.engine.log.records import Cursor, LedgerEntry
    from hitl_tui.engine.log.repeats import Repeats


class OpenedThread(Protocol):
    """What is read of a thread besides its store: from a session, or from its log."""

    cursor: Cursor
    info: ThreadInfo

    @property
    def thread_id(self) -> str: ...
    @property
    def exists(self) -> bool: ...
    @property
    def declared(self) -> GraphInfo: ...
    @property
    def progress(self) -> Progress: ...
    @property
    def values(self) -> Mapping[str, Any]: ...


PAGE = 50
MOST = 40
"""Most relatives that are shown: the thread's own line first, then forks by age."""


def family(store: Store, thread_id: str, page: int) -> tuple[Relative, ...]:
    """Return the thread, its parents and the forks of all of them, each with its newest checkpoints."""
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
            # A fork that was imported without its parent owns all of its steps.
            shared = member.fork_step if member.parent else -1
            own = tuple(checkpoint for checkpoint in reversed(newest) if checkpoint.step > shared)
            relatives.append(Relative(member.thread_id, member.parent, shared, summary, own))
    return tuple(relatives)


def snapshot(
    thread: OpenedThread,
    store: Store,
    *,
    refusals: Mapping[str, str],
    last_event: int,
    page: int,
    held_by: str,
    graph_changed: tuple[str, ...] | None = None,
    repeats: Repeats | None = None,
    notice: str = "",
    signing_key: str = "",
    attending: tuple[Presence, ...] = (),
    handed: bool = False,
) -> Snapshot:
    """Return everything a screen needs at the start.

    Args:
        refusals: the commands that can't be carried out, and why.
        held_by: the other process that runs the thread, "" for none.
        attending: who has its requests open or claimed.
        graph_changed, repeats: see `Snapshot`.
        notice, signing_key, handed: see `Snapshot`.
        last_event: the number of the newest included event.
        page: the most checkpoints to return.
    """
    head = thread.cursor.head
    return Snapshot(
        thread_id=thread.thread_id,
        graph=thread.declared,
        progress=thread.progress,
        values=public_values(thread, thread.values),
        checkpoints=history(thread, store, None, page)[::-1],
        updates=updates(thread, store, head, head)[head] if head >= 0 else (),
        ledger=tuple(shown_ledger(store.ledger(thread.thread_id, call_data=False))) if thread.exists else (),
        parent=thread.info.parent,
        fork_step=thread.info.fork_step,
        last_event=last_event,
        refusals=refusals,
        notice=notice,
        held_by=held_by,
        handed=handed,
        graph_changed=graph_changed,
        repeats=repeats,
        owners=_owners(thread, store),
        unfinished=_unfinished(thread, store),
        signing_key=signing_key,
        attending=attending,
        source=str(thread.info.source.get("graph", "")),
        now=store.now(),
    )


def _owners(thread: OpenedThread, store: Store) -> tuple[Owner, ...]:
    """Return the threads that a subgraph's thread runs for, outermost first."""
    owners: list[Owner] = []
    info: ThreadInfo | None = thread.info
    while info is not None and info.owner is not None:
        owners.append(info.owner)
        info = store.info(info.owner.thread_id)
    return tuple(reversed(owners))


def _unfinished(thread: OpenedThread, store: Store) -> Unfinished | None:
    """Return what the cursor keeps of the branches of its node, without their values."""
    cursor = thread.cursor
    kind, _, node = cursor.position.partition(":")
    if kind != "node" or cursor.head < 0:
        return None
    if not cursor.branches:
        return _mirrored_inside(thread, store, node)
    child = cursor.child
    return Unfinished(
        node,
        cursor.head + 1,
        0 if child else len(cursor.branches),
        tuple(kept.outcome for kept in cursor.branches if kept.outcome),
        child.thread_id if child else "",
    )


def _mirrored_inside(thread: OpenedThread, store: Store, node: str) -> Unfinished | None:
    """Return the thread of another engine's subgraph that started at the newest step; a running one first."""
    point = store.checkpoint(thread.thread_id, thread.cursor.head)
    if point is None or not point.origin or not any(child.graph for child in thread.declared.nodes):
        return None
    # Their checkpoints are named in order; a copy that is no step has a later name than the step.
    children = [
        row
        for row in all_threads(store, within=thread.thread_id)
        if row.info.source.get(ORIGIN, "") >= point.origin
    ]
    children.sort(key=lambda row: row.status == "completed")
    return Unfinished(node, thread.cursor.head + 1, child=children[0].info.thread_id) if children else None


def history(thread: OpenedThread, store: Store, before: int | None, limit: int) -> tuple[Checkpoint, ...]:
    """Return checkpoints before a step (None: from the head), newest first."""
    return tuple(store.checkpoints(thread.thread_id, before, limit)) if thread.exists else ()


def values_at(thread: OpenedThread, store: Store, step: int, decoded: Decoded) -> dict[str, Any]:
    """Return all channel values at a step."""
    if step == thread.cursor.head:
        return public_values(thread, thread.values)
    return public_values(
        thread, state_at(store, thread.thread_id, step, defaults_of(thread.declared), decoded=decoded)
    )


def visits(thread: OpenedThread, store: Store, step: int) -> dict[str, int]:
    """Return how often each node ran up to a step; a LangGraph superstep counts for each of its nodes."""
    nodes = {node.name for node in thread.declared.nodes}
    counts: dict[str, int] = {}
    for place, steps in store.totals(thread.thread_id, step).visits.items():
        parts = nodes_at_once(place)
        for node in parts if parts and nodes.issuperset(parts) else [place]:
            counts[node] = counts.get(node, 0) + steps
    return counts


def updates(
    thread: OpenedThread,
    store: Store,
    first: int,
    last: int,
    *,
    only: str | None = None,
    decoded: Decoded | None = None,
) -> dict[int, tuple[AppliedUpdate, ...]]:
    """Return the updates of each of the steps `first` to `last`, of one channel or of all."""
    thread_id = thread.thread_id
    records: dict[int, list[UpdateRecord]] = {step: [] for step in range(first, last + 1)}
    for record in store.records(thread_id, first, last):
        if only in (None, record.channel):
            records[record.step].append(record)
    written = {record.channel for some in records.values() for record in some}
    # From some steps on there are other channels than before, with values that no record has.
    anew = (
        {entry.step for entry in store.ledger(thread_id, call_data=False) if entry.kind == CHANNELS}
        if first < last
        else ()
    )
    applied: dict[int, tuple[AppliedUpdate, ...]] = dict.fromkeys(records, ())
    values: dict[str, Any] | None = None
    for step, some in records.items():
        if some:
            if values is None:
                values = defaults_of(thread.declared)
                if step > 0:
                    values = state_at(store, thread_id, step - 1, values, only=written, decoded=decoded)
            applied[step], values = applied_updates(some, values)
        if step in anew:
            values = None
    return applied


def written(thread: OpenedThread, store: Store, first: int, last: int) -> dict[int, dict[str, bool]]:
    """Return the channels that each of the steps `first` to `last` wrote, and whether they differ since."""
    by_step: dict[int, dict[str, bool]] = {step: {} for step in range(first, last + 1)}
    for record in store.records(thread.thread_id, first, last) if thread.exists else ():
        written = by_step[record.step]
        changed = record.previous_hash != record.next_hash
        written[record.channel] = changed or written.get(record.channel, False)
    return by_step


def public_values(thread: OpenedThread, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the channels that a thread's graph declares; private ones are `PRIVATE`."""
    shown = {channel.name: channel.visibility == "public" for channel in thread.declared.channels}
    return {name: value if shown[name] else PRIVATE for name, value in values.items() if name in shown}


class LoggedView:
    """A thread as its log has it; shared by readers that check it and those that don't.

    Attributes:
        logged: the logged thread, for the functions of this module.
    """

    logged: OpenedThread

    @property
    def thread_id(self) -> str:
        """The thread's id."""
        return self.logged.thread_id

    @property
    def graph(self) -> GraphInfo:
        """The graph that it last ran on; one without nodes and channels if that can't be read."""
        return self.logged.declared

    @property
    def progress(self) -> Progress:
        """Its progress, from its cursor."""
        return self.logged.progress

    @property
    def values(self) -> dict[str, Any]:
        """The newest values; private ones are `PRIVATE`."""
        return public_values(self.logged, self.logged.values)

    @property
    def hides_values(self) -> bool:
        """Whether some of its channels are private."""
        return any(channel.visibility == "private" for channel in self.graph.channels)


class RecordedThread(LoggedView):
    """A thread viewed through its log alone: none of it is built or run.

    Only what opening a thread requires is written: that its runner has died, or the requests of a thread
    inside it.

    Args:
        store: where it lives; it stays open.

    Raises:
        UnknownThread, LogCorrupt.
    """

    def __init__(self, store: Store, thread_id: str) -> None:
        self._store = store
        self._decoded = Decoded()
        self._held_by = ""
        self.logged = LoggedThread.checked(store, thread_id)
        if (summary := store.summary(thread_id)) is not None:
            self._held_by = summary.held_by or ""
        if self._is_outdated():
            self._bring_up_to_date()
            self.logged = LoggedThread.checked(store, thread_id)

    def _is_outdated(self) -> bool:
        cursor = self.logged.cursor
        return cursor.child is not None or (cursor.status == "running" and not self._held_by)

    def _bring_up_to_date(self) -> None:
        from hitl_tui.engine.nodes.children import outdated, refresh
        from hitl_tui.engine.thread.session import Session

        session = Session.recorded(self._store, self.thread_id)
        if not self._held_by:
            session.recover()
        if outdated(session):
            with suppress(ThreadBusy), session.writing():
                refresh(session)

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return its decisions, oldest first."""
        return tuple(shown_ledger(self._store.ledger(self.thread_id, call_data=False)))

    def snapshot(self, signing_key: str = "") -> Snapshot:
        """Return everything a screen would need at the start.

        `signing_key` would sign decisions, "" for none.
        """
        return snapshot(
            self.logged,
            self._store,
            refusals={},
            last_event=0,
            page=PAGE,
            held_by=self._held_by,
            signing_key=signing_key,
        )

    def history(self, before: int | None = None, limit: int = PAGE) -> tuple[Checkpoint, ...]:
        """Return checkpoints before a step (None: from the head), newest first."""
        return history(self.logged, self._store, before, limit)

    def checkpoint(self, step: int) -> Checkpoint:
        """Return the checkpoint of a step.

        Raises:
            UnknownThread: there is no such step.
        """
        point = self._store.checkpoint(self.thread_id, step)
        if point is None:
            raise UnknownThread(f"thread {self.thread_id!r} has no step {step}")
        return point

    def state_at(self, step: int) -> dict[str, Any]:
        """Return all channel values at a step; private ones are `PRIVATE`."""
        return values_at(self.logged, self._store, step, self._decoded)

    def updates(self, first: int, last: int, only: str | None = None) -> dict[int, tuple[AppliedUpdate, ...]]:
        """Return the updates of the steps `first` to `last`, of one channel or of all; see `Driver`."""
        return updates(self.logged, self._store, first, last, only=only, decoded=self._decoded)

    def lineage(self, channel: str, step: int) -> tuple[Arrival, ...]:
        """Return why a channel is tainted at a step; see `Driver`."""
        from hitl_tui.engine.audit.lineage import lineage

        return lineage(self._store.records(self.thread_id, 0, step), channel)
