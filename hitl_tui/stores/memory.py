"""A store in memory: for tests, demos and short sessions; lost when the process ends."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from hitl_tui.engine.log.records import (
    Checkpoint,
    Commit,
    Cursor,
    LedgerEntry,
    StoredGraph,
    UpdateRecord,
)
from hitl_tui.engine.log.threads import (
    Deletion,
    Fault,
    Lease,
    PauseRequest,
    Presence,
    Space,
    Stamp,
    ThreadInfo,
    ThreadSize,
    ThreadSummary,
    check_thread_id,
)
from hitl_tui.stores import base
from hitl_tui.stores.base import (
    Checkpointer,
    as_opened,
    ascii_lower,
    check_same,
    commit_refusal,
    lease_lost,
    name_taken,
    page_of,
    refuse_takeover,
    size_of,
    still_present,
    summary_of,
    unknown_thread,
    with_presence,
    writer,
)
from hitl_tui.stores.deletion import deletion_entries
from hitl_tui.stores.lease import holder
from hitl_tui.stores.lineage import UNBOUNDED, ImportedThread, Origin, Past, Spending

_encode = msgspec.json.Encoder().encode


class _Thread:
    """One thread's own rows, each list in the order of its steps or numbers."""

    def __init__(self, info: ThreadInfo, cursor: Cursor, order: int, past: Sequence[Past] = ()) -> None:
        self.info = info
        self.cursor = cursor
        self.order = order
        self.origin = Origin(info, cursor.ledger_n if info.parent is not None else 0, tuple(past))
        self.last_writer = info.created_by or ""
        self.lease: Lease | None = None
        self.pause: PauseRequest | None = None
        self.attending: tuple[Presence, ...] = ()
        self.records: list[UpdateRecord] = []
        self.checkpoints: list[Checkpoint] = []
        self.snapshots: list[tuple[int, bytes]] = []
        self.ledger: list[LedgerEntry] = []

    def add(self, commit: Commit) -> None:
        """Add a commit."""
        self.records += commit.records
        self.ledger += commit.ledger
        if commit.checkpoint is not None:
            self.checkpoints.append(commit.checkpoint)
            self.last_writer = writer(commit.checkpoint)
        if commit.snapshot is not None:
            self.snapshots.append((commit.cursor.head, commit.snapshot))
        self.cursor = commit.cursor


class MemoryCheckpointer(Checkpointer):
    """A store in memory, usable from several threads.

    Nothing is copied: reads return the committed objects, which must not be changed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._threads: dict[str, _Thread] = {}
        self._graphs: dict[str, StoredGraph] = {}
        self._deleted: list[LedgerEntry] = []
        self._lock = threading.RLock()

    def create_thread(self, info: ThreadInfo, cursor: Cursor, first: Commit | None = None) -> None:
        check_thread_id(info.thread_id)
        with self._lock:
            if info.thread_id in self._threads:
                raise name_taken(info.thread_id)
            if info.parent is not None:
                self._thread(info.parent)
            thread = _Thread(info, cursor, self._order())
            if first is not None:
                thread.add(first)
                if first.graph is not None:
                    self._graphs[first.graph.digest] = first.graph
            self._threads[info.thread_id] = thread

    def commit(self, thread_id: str, commit: Commit) -> Stamp | None:
        with self._lock:
            thread = self._thread(thread_id)
            check_same(thread_id, commit, thread.info.facts_hash)
            refusal = commit_refusal(thread_id, commit, thread.cursor.version, thread.lease)
            if refusal is not None:
                raise refusal
            thread.add(commit)
            if commit.graph is not None:
                self._graphs[commit.graph.digest] = commit.graph
            if commit.takes is not None:
                thread.lease = commit.takes
            if not commit.gives_back:
                return None
            thread.lease = None
            return thread.cursor.version, thread

    def write_threads(self, threads: Iterable[ImportedThread]) -> None:
        written: dict[str, _Thread] = {}
        graphs: dict[str, StoredGraph] = {}
        for info, past, commits in threads:
            thread = written[check_thread_id(info.thread_id)] = _Thread(info, Cursor(info.thread_id), 0, past)
            for commit in commits:
                thread.add(commit)
                if commit.graph is not None:
                    graphs[commit.graph.digest] = commit.graph
        with self._lock:
            for name in written.keys() & self._threads.keys():
                raise name_taken(name)
            for name, thread in written.items():
                thread.order = self._order()
                self._threads[name] = thread
            self._graphs |= graphs

    def cursor(self, thread_id: str, *, unchecked: bool = False) -> Cursor | None:
        thread = self._threads.get(thread_id)
        return thread.cursor if thread else None

    def stamp(self, thread_id: str) -> Stamp | None:
        thread = self._threads.get(thread_id)
        return (thread.cursor.version, thread) if thread else None

    def graph(self, digest: str) -> StoredGraph | None:
        return self._graphs.get(digest)

    def faults(self, thread_id: str | None, since: int = 0) -> Iterator[Fault]:
        """Return none: nobody else can change what is in memory."""
        return iter(())

    def children(self, thread_id: str) -> list[ThreadInfo]:
        with self._lock:
            infos = [thread.info for thread in self._threads.values() if thread.info.parent == thread_id]
        return sorted(infos, key=lambda info: info.created_at)

    def inner_names(self, thread_id: str) -> list[str]:
        with self._lock:
            return [name for name in self._threads if self._may_be_inside(name, thread_id)]

    def threads(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> list[ThreadSummary]:
        part = ascii_lower(query)
        with self._lock:
            known = self._threads
            threads = [t for name, t in known.items() if part in ascii_lower(name)]
            threads = [t for t in threads if base.is_inside(t.info, within, known)]
            now = self.now()
            counted = known.values() if within is not None else ()
            inside = base.child_counts(t.info for t in counted)
            placed = [
                (t.info, as_opened(t.cursor, holder(t.lease, now)) if waiting else t.cursor, t.order, t)
                for t in threads
            ]
            last = None
            if after is not None:
                before = known.get(after.info.thread_id)
                last = after, before.order if before else 0
            page = page_of(placed, limit, last, within, waits=waiting)
            return [
                _summary(thread, now, None if within is None else inside[thread.info.thread_id])
                for thread in page
            ]

    def summary(self, thread_id: str) -> ThreadSummary | None:
        thread = self._threads.get(thread_id)
        return _summary(thread, self.now()) if thread else None

    def list_threads(self) -> list[str]:
        with self._lock:
            return sorted(name for name, thread in self._threads.items() if thread.cursor.head >= 0)

    def held(self) -> list[str]:
        with self._lock:
            return sorted(name for name, thread in self._threads.items() if thread.lease)

    def lease(self, thread_id: str) -> Lease | None:
        thread = self._threads.get(thread_id)
        return thread.lease if thread else None

    def acquire(self, thread_id: str, lease: Lease, now: int) -> Lease | None:
        with self._lock:
            thread = self._thread(thread_id)
            dead = refuse_takeover(thread_id, thread.lease, lease, now)
            thread.lease = lease
            return dead

    def renew(self, thread_id: str, token: str, expires_at: int) -> None:
        with self._lock:
            thread = self._thread(thread_id)
            if thread.lease is None or thread.lease.token != token:
                raise lease_lost(thread_id, thread.lease)
            thread.lease = msgspec.structs.replace(thread.lease, expires_at=expires_at)

    def release(self, thread_id: str, token: str) -> None:
        with self._lock:
            thread = self._threads.get(thread_id)
            if thread and thread.lease and thread.lease.token == token:
                thread.lease = None

    def request_pause(self, thread_id: str, request: PauseRequest | None) -> None:
        with self._lock:
            thread = self._threads.get(thread_id)
            if thread is None:
                raise unknown_thread(thread_id)
            thread.pause = request

    def pause_request(self, thread_id: str) -> PauseRequest | None:
        thread = self._threads.get(thread_id)
        return thread.pause if thread else None

    def attend(self, thread_id: str, presence: Presence, now: int, over: str = "") -> None:
        with self._lock:
            thread = self._thread(thread_id)
            thread.attending = with_presence(thread.attending, presence, now, over)

    def leave(self, thread_id: str, token: str) -> None:
        with self._lock:
            if thread := self._threads.get(thread_id):
                thread.attending = tuple(at for at in thread.attending if at.lease.token != token)

    def attending(self, thread_id: str, now: int) -> tuple[Presence, ...]:
        thread = self._threads.get(thread_id)
        return still_present(thread.attending, now) if thread else ()

    def delete(self, deletion: Deletion) -> list[LedgerEntry]:
        with self._lock:
            entries = deletion_entries(self, deletion)
            for name in deletion.versions:
                del self._threads[name]
                self._lineages.pop(name, None)
            self._deleted += entries
            return entries

    def store_ledger(self, newest: int | None = None) -> list[LedgerEntry]:
        return self._deleted[-newest:] if newest else list(self._deleted)

    def size(self, thread_id: str) -> ThreadSize:
        thread = self._thread(thread_id)
        with self._lock:
            return size_of(
                thread_id,
                thread.records,
                steps=len(thread.checkpoints),
                checkpoints=sum(len(_encode(point)) for point in thread.checkpoints),
                snapshots=sum(len(part) for _, part in thread.snapshots),
                decisions=sum(len(_encode(entry)) for entry in thread.ledger),
            )

    def space(self) -> Space:
        """Return nothing: it is not on a disk."""
        return Space(0, 0)

    def vacuum(self) -> Space:
        with self._lock:
            named = [base.graphs_named(self, thread.info) for thread in self._threads.values()]
            self._graphs = {
                digest: graph for digest, graph in self._graphs.items() if digest in set().union(*named)
            }
        return self.space()

    def close(self) -> None:
        """Do nothing: the threads are kept as long as the object."""

    def _order(self) -> int:
        """Return a number that no earlier thread has had, not even a deleted one."""
        return len(self._threads) + len(self._deleted)

    def _origin(self, thread_id: str) -> Origin | None:
        thread = self._threads.get(thread_id)
        return thread.origin if thread else None

    def _own_checkpoints(self, thread_id: str, first: int, last: int, limit: int) -> list[Checkpoint]:
        with self._lock:
            rows = self._threads[thread_id].checkpoints
            end = bisect_right(rows, last, key=lambda row: row.step)
            start = max(bisect_left(rows, first, key=lambda row: row.step), end - limit)
            return rows[start:end][::-1]

    def _own_records(self, thread_id: str, first: int, last: int) -> Iterable[UpdateRecord]:
        with self._lock:
            rows = self._threads[thread_id].records
            start = bisect_left(rows, first, key=lambda row: row.step)
            end = bisect_right(rows, last, key=lambda row: row.step)
            return rows[start:end]

    def _own_snapshot(self, thread_id: str, first: int, last: int) -> tuple[int, bytes] | None:
        with self._lock:
            rows = self._threads[thread_id].snapshots
            end = bisect_right(rows, last, key=lambda row: row[0])
            newest = rows[end - 1] if end else None
        return newest if newest and newest[0] >= first else None

    def _own_ledger(self, thread_id: str, first: int, last: int, *, call_data: bool) -> list[LedgerEntry]:
        with self._lock:
            return [entry for entry in self._threads[thread_id].ledger if first <= entry.n <= last]

    def _own_spending(self, thread_id: str, last: int) -> Iterable[Spending]:
        return [
            Spending.of(point) for point in reversed(self._own_checkpoints(thread_id, 0, last, UNBOUNDED))
        ]

    def _thread(self, thread_id: str) -> _Thread:
        thread = self._threads.get(thread_id)
        if thread is None:
            raise unknown_thread(thread_id)
        return thread


def _summary(thread: _Thread, now: int, inside: int | None = None) -> ThreadSummary:
    return summary_of(
        thread.info,
        thread.cursor,
        thread.last_writer,
        thread.lease,
        now,
        inside=inside,
        attending=still_present(thread.attending, now),
    )
