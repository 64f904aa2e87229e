"""Which thread owns which rows of a log, and under which names they were written.

A fork owns only what came after it left its parent.  Reads walk its *segments*: its own rows, then
its parent's up to the fork, and so on.  A thread that was carried here from another store (see
`transfer`) owns rows that were written under other names; its *past* says which, so that they keep
the names their hashes were made with.
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
"""The highest step, seq and ledger number a thread can have."""

Row = TypeVar("Row", Checkpoint, UpdateRecord, LedgerEntry)


class Past(NamedTuple):
    """The rows of a carried thread up to `last_*` included were written under the name `thread_id`.

    `facts` is the `facts_hash` of the thread that wrote them.
    """

    thread_id: str
    last_step: int
    last_seq: int
    last_entry: int
    facts: bytes = b""


class Origin(msgspec.Struct, frozen=True):
    """What is fixed about a thread; `shared_entries` of its parent's decisions are its own, too."""

    info: ThreadInfo
    shared_entries: int
    past: tuple[Past, ...] = ()


class Carried(NamedTuple):
    """A thread to be taken in whole: what is fixed about it, and all it was written with, the cursor last."""

    info: ThreadInfo
    past: tuple[Past, ...]
    commits: Iterable[Commit]


class Spent(NamedTuple):
    """What steps of one source and node took together; `unpriced` of them have no known cost."""

    source: Source
    node: str
    steps: int
    tokens_in: int
    tokens_out: int
    cost: float
    unpriced: int
    duration: int

    @classmethod
    def of(cls, point: Checkpoint) -> Spent:
        """What one step took."""
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


def summed(spent: Iterable[Spent]) -> list[Spent]:
    """One part for each source and node."""
    parts: dict[tuple[str, str], Spent] = {}
    for part in spent:
        same = parts.get(part[:2])
        parts[part[:2]] = part if same is None else Spent(*part[:2], *map(add, same[2:], part[2:]))
    return list(parts.values())


class Segment(msgspec.Struct, frozen=True):
    """The rows one thread gives to a lineage: those above `after_*`, up to `last_*` included.

    `thread_id` is the thread that owns them, `name` the one they were written under.
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
        """The part of it that a fork shares."""
        return msgspec.structs.replace(
            self,
            last_step=min(self.last_step, step),
            last_seq=min(self.last_seq, seq),
            last_entry=min(self.last_entry, entry),
        )

    @property
    def left_out(self) -> bool:
        """Whether a fork of an earlier step has left it out."""
        return self.last_step < self.after_step

    def named(self, rows: Iterable[Row]) -> Iterable[Row]:
        """Rows of it with the name they were written under."""
        return rows if self.name == self.thread_id else map(self._named, rows)

    def _named(self, row: Row) -> Row:
        if isinstance(row, Checkpoint) and row.parent_thread == self.thread_id:
            return replace(row, thread_id=self.name, parent_thread=self.name)
        return replace(row, thread_id=self.name)


def own_segments(thread_id: str, origin: Origin) -> Iterator[Segment]:
    """The segments of a thread's own rows, the newest first."""
    info = origin.info
    start = (-1, 0, 0) if info.parent is None else (info.fork_step, info.fork_seq, origin.shared_entries)
    names = [Past(thread_id, UNBOUNDED, UNBOUNDED, UNBOUNDED, info.facts_hash), *reversed(origin.past)]
    for index, (name, last_step, last_seq, last_entry, facts) in enumerate(names):
        below = names[index + 1][1:4] if index + 1 < len(names) else start
        yield Segment(thread_id, name, below[0], last_step, below[1], last_seq, below[2], last_entry, facts)
