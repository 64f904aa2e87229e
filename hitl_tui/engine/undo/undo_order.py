"""In which order a thread is undone, with the threads of its subgraphs at their places (SPEC 7, 13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from hitl_tui.engine.graphs.compensation import UNDO_FAILED, UNDONE, RollbackEntry
from hitl_tui.engine.log.records import ROLLED_BACK, Checkpoint, Cursor, LedgerEntry
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.subgraphs.below import named, owned

_PAGE = 256


@dataclass(frozen=True)
class Below:
    """The thread of a subgraph's run, undone as a whole at its place among its parent's steps.

    Attributes:
        node: the subgraph's node.
        entries: what can be undone of it and of the threads below it.
        over: nothing is left to do: it has been rolled back.
        own: the thread began it; False where it is a fork's, of a step from before the fork.
    """

    thread_id: str
    node: str
    entries: tuple[RollbackEntry, ...] = ()
    over: bool = False
    own: bool = True

    @property
    def remains(self) -> bool:
        """Whether a rollback of the thread goes into it."""
        return self.own and (not self.over or any(entry.remains for entry in self.entries))


def rollback_entries(store: Store | None, cursor: Cursor) -> tuple[RollbackEntry, ...]:
    """All entries of a thread and of those below it, in the order in which a rollback runs them.

    Those that a fork shares with its parent are among them.
    """
    found: list[RollbackEntry] = []
    for one in undo_order(store, cursor):
        found += one.entries if isinstance(one, Below) else [one]
    return tuple(found)


def undo_order(store: Store | None, cursor: Cursor) -> list[RollbackEntry | Below]:
    """What a thread has to undo, last one first."""
    if store is None:
        return []
    begun = owned(store, cursor.thread_id)
    if not begun and not cursor.compensated:
        return []
    # Of a visit that came to no step, the place is where it began.
    left = {name: info.created_at for name, info in begun.items()}
    info = store.info(cursor.thread_id)
    shared = info.fork_step if info else -1
    fates = _fates(store.ledger(cursor.thread_id))
    found: list[RollbackEntry | Below] = []
    for point in _points(store, cursor.thread_id):
        threads = named(point)
        for name in threads:
            left.pop(name, None)
        found += [_below(store, name, node_of(begun[name])) for name in _since(left, point.at)]
        foreign = point.step <= shared
        found += _of_step(point, fates, foreign)
        found += [_below(store, name, point.node, own=not foreign) for name in threads]
    return found + [_below(store, name, node_of(begun[name])) for name in _since(left, 0)]


def node_of(info: ThreadInfo) -> str:
    """The subgraph's node that a thread ran for."""
    return info.owner.node if info.owner else ""


def _points(store: Store, thread_id: str) -> Iterator[Checkpoint]:
    """The checkpoints of a thread, newest first."""
    before: int | None = None
    while points := store.checkpoints(thread_id, before, _PAGE):
        yield from points
        before = points[-1].step


def _since(left: dict[str, int], at: int) -> list[str]:
    """Take out the threads that were begun at a time or later, newest first."""
    found = [name for name, begun in left.items() if begun >= at][::-1]
    for name in found:
        del left[name]
    return found


def _below(store: Store, thread_id: str, node: str, *, own: bool = True) -> Below:
    cursor = store.cursor(thread_id)
    if cursor is None:
        return Below(thread_id, node, own=own)
    entries = [_inside(entry, thread_id, own) for entry in rollback_entries(store, cursor)]
    over = (cursor.status, cursor.reason) == ROLLED_BACK
    return Below(thread_id, node, tuple(entries), over, own)


def _inside(entry: RollbackEntry, thread_id: str, own: bool) -> RollbackEntry:
    state = entry.state if own or entry.state == "done" else "inherited"
    return msgspec.structs.replace(entry, thread=entry.thread or thread_id, state=state)


def _of_step(
    point: Checkpoint, fates: Mapping[tuple[int, int], Sequence[LedgerEntry]], foreign: bool
) -> Iterator[RollbackEntry]:
    for index in reversed(range(len(point.compensations))):
        one = point.compensations[index]
        node = one.path or point.node
        entry = RollbackEntry(point.step, index, point.invocation, node, one.handler, one.args, "open")
        yield _told(entry, fates.get((point.step, index), ()), foreign)


def _fates(ledger: Iterable[LedgerEntry]) -> dict[tuple[int, int], list[LedgerEntry]]:
    """What the ledger says of each entry, oldest first."""
    fates: dict[tuple[int, int], list[LedgerEntry]] = {}
    for one in ledger:
        if one.kind in (UNDONE, UNDO_FAILED):
            fates.setdefault((one.data["step"], one.data["index"]), []).append(one)
    return fates


def _told(entry: RollbackEntry, fate: Sequence[LedgerEntry], foreign: bool) -> RollbackEntry:
    """An entry with what became of it."""
    state: Literal["open", "done", "failed", "inherited"] = "inherited" if foreign else "open"
    error, failures = "", [one for one in fate if one.kind == UNDO_FAILED]
    if fate and fate[-1].kind == UNDONE:
        state = "done"
    elif failures:
        state, error = "inherited" if foreign else "failed", failures[-1].note or ""
    return msgspec.structs.replace(entry, state=state, error=error, attempts=len(failures))
