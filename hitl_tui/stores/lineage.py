"""Which thread owns which rows of a log, and under which names they were written.

A fork owns only the rows after the fork. Reads go through its *segments*: its own rows, then its parent's up
to the fork, and so on. A thread that was imported from another store (see `transfer`) owns rows that were
written under other names; its *past* says which, so that they keep the names with which their hashes were
made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import add
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.log.records import Checkpoint, Commit, LedgerEntry, Source, UpdateRecord
from hitl_tui.engine.log.threads import ThreadInfo

UNBOUNDED = 2**32 - 1
"""The highest step, seq and ledger number that a thread can have."""

Row = TypeVar("Row", Checkpoint, UpdateRecord, LedgerEntry)


class Past(NamedTuple):
    """The name under which rows of an imported thread up to `last_*` were written: `thread_id`.

    `facts` is the `facts_hash` of the thread that wrote them.
    """

    thread_id: str
    last_step: int
    last_seq: int
    last_entry: int
    facts: bytes = b""


class Origin(msgspec.Struct, frozen=True):
    """What is fixed about a thread; it shares the first `shared_entries` decisions of its parent."""

    info: ThreadInfo
    shared_entries: int
    past: tuple[Past, ...] = ()


class ImportedThread(NamedTuple):
    """A thread to be imported as a whole: what is fixed about it, and all its commits, the cursor last."""

    info: ThreadInfo
    past: tuple[Past, ...]
    commits: Iterable[Commit]


class Spending(NamedTuple):
    """What steps of one source and node have used together; `unpriced` of them have no known cost."""

    source: Source
    node: str
    steps: int
    tokens_in: int
    tokens_out: int
    cost: float
    unpriced: int
    duration: int

    @classmethod
    def of(cls, point: Checkpoint) -> Spending:
        """Return what one step used."""
        return cls(
            point.source,
            point.node,
            1,
            point.tokens_in,
            point.tokens_out,
            point.cost or 0.0,
            int(point.cost is None),
            point.duration,
        )


def sum_by_node(spent: Iterable[Spending]) -> list[Spending]:
    """Return one sum for each source and node."""
    parts: dict[tuple[str, str], Spending] = {}
    for part in spent:
        same = parts.get(part[:2])
        parts[part[:2]] = part if same is None else Spending(*part[:2], *map(add, same[2:], part[2:]))
    return list(parts.values())


class Segment(msgspec.Struct, frozen=True):
    """The rows of one thread in a lineage: those above `after_*`, up to `last_*` included.

    `thread_id` is the thread that owns them, `name` the one under which they were written.
    """

    thread_id: str
    name: str
    after_step: int
    last_step: int
    after_seq: int
    last_seq: int
    after_entry: int
    last_entry: int
    facts: bytes

    def up_to(self, step: int, seq: int, entry: int) -> Segment:
        """Return the part that a fork shares."""
        return msgspec.structs.replace(
            self,
            last_step=min(self.last_step, step),
            last_seq=min(self.last_seq, seq),
            last_entry=min(self.last_entry, entry),
        )

    @property
    def left_out(self) -> bool:
        """Whether a fork from an earlier step has left it out."""
        return self.last_step < self.after_step

    def named(self, rows: Iterable[Row]) -> Iterable[Row]:
        """Return its rows with the name under which they were written."""
        return rows if self.name == self.thread_id else map(self._named, rows)

    def _named(self, row: Row) -> Row:
        if isinstance(row, Checkpoint) and row.parent_thread == self.thread_id:
            return replace(row, thread_id=self.name, parent_thread=self.name)
        return replace(row, thread_id=self.name)


def own_segments(thread_id: str, origin: Origin) -> Iterator[Segment]:
    """Return the segments of a thread's own rows, the newest first."""
    info = origin.info
    start = (-1, 0, 0) if info.parent is None else (info.fork_step, info.fork_seq, origin.shared_entries)
    names = [Past(thread_id, UNBOUNDED, UNBOUNDED, UNBOUNDED, info.facts_hash), *reversed(origin.past)]
    for index, (name, last_step, last_seq, last_entry, facts) in enumerate(names):
        below = names[index + 1][1:4] if index + 1 < len(names) else start
        yield Segment(thread_id, name, below[0], last_step, below[1], last_seq, below[2], last_entry, facts)
