"""What all stores share: the lineage of forks, errors, and saving and loading states without a graph."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from heapq import heappop, heappush, nsmallest
from operator import attrgetter, itemgetter
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from hitl_tui.engine.log.jobs import Jobs
from hitl_tui.engine.log.records import (
    GRAPH,
    NO_PERSON,
    Checkpoint,
    Commit,
    Cursor,
    Effect,
    LedgerEntry,
    StoredGraph,
    Totals,
    UpdateRecord,
)
from hitl_tui.engine.log.signing import DECIDING
from hitl_tui.engine.log.store import RIGHTS, Durability, Reader, Right, all_threads
from hitl_tui.engine.log.threads import (
    DecisionPlace,
    Deletion,
    Fault,
    Lease,
    Part,
    PauseRequest,
    Presence,
    Space,
    Stamp,
    ThreadInfo,
    ThreadSize,
    ThreadSummary,
    Waiting,
    claimed_by,
    other_thread,
)
from hitl_tui.engine.thread.hashes import facts_hash
from hitl_tui.errors import (
    HitlError,
    LogCorrupt,
    StaleWriter,
    StoreUnusable,
    ThreadBusy,
    UnknownThread,
    UsageError,
)
from hitl_tui.stores.lease import (
    describe,
    ends_too_late,
    holder,
    is_dead,
    is_present,
    is_released,
    new_lease,
    process_of,
)
from hitl_tui.stores.lineage import UNBOUNDED, ImportedThread, Origin, Past, Segment, Spending, own_segments
from hitl_tui.suggest import did_you_mean


def of_other_version(what: str, version: int, known: int, instead: str) -> StoreUnusable:
    """Return the error for a store or a file with another version of its format than this program's.

    Args:
        what: the start of the message, such as "the store runs.db was made".
        instead: what else can be done, such as "name another file".
    """
    newer = version > known
    age = "a newer" if newer else "an older"
    return StoreUnusable(
        f"{what} by {age} hitl-tui (version {version}, this one knows {known})",
        f"upgrade hitl-tui, or {instead}" if newer else instead,
    )


def refuse_takeover(thread_id: str, holder: Lease | None, lease: Lease, now: int) -> Lease | None:
    """Return the dead holder from which `lease` takes over, if any; raises `ThreadBusy` for a living one."""
    if holder is None or holder.token == lease.token or is_released(holder):
        return None
    if not is_dead(holder, now):
        ours = process_of(holder) == process_of(lease)
        runs = "already running in this process" if ours else f"run by {describe(holder)}"
        raise ThreadBusy(
            f"thread {thread_id!r} is {runs}",
            "wait until it is done, or watch it meanwhile",
        )
    return holder


def check_same(thread_id: str, commit: Commit, facts: bytes) -> None:
    """Refuse a commit of a deleted thread if another thread has its name now.

    Args:
        facts: the `facts_hash` of the thread that has the name.

    Raises:
        UnknownThread: nothing is stored.
    """
    if commit.birth and commit.birth != facts:
        raise other_thread(thread_id)


def commit_refusal(thread_id: str, commit: Commit, version: int, holder: Lease | None) -> HitlError | None:
    """Return why a commit may not be written, or None if it may.

    Args:
        version: the thread's current version.
        holder: who holds the thread now.
    """
    if version != commit.expected_version:
        return StaleWriter(
            f"thread {thread_id!r} is at version {version}, not {commit.expected_version}: nothing is stored",
            "look at what changed and try again",
        )
    if commit.takes is not None:
        return None if holder is None else lease_lost(thread_id, holder)
    return None if holder and holder.token == commit.lease_token else lease_lost(thread_id, holder)


def lease_lost(thread_id: str, holder: Lease | None) -> ThreadBusy:
    """Return the error for a writer that no longer has the lease."""
    who = f"is now run by {describe(holder)}" if holder else "is run by nobody, and its lease was released"
    return ThreadBusy(
        f"thread {thread_id!r} {who}: nothing is stored", "open the thread again, and look at what changed"
    )


def still_present(attending: Iterable[Presence], now: int) -> tuple[Presence, ...]:
    """Return those who still have this thread's requests open, in the order in which they opened them."""
    if not attending:
        return ()
    still = (presence for presence in attending if is_present(presence, now))
    return tuple(sorted(still, key=attrgetter("since")))


def with_presence(
    attending: Iterable[Presence], presence: Presence, now: int, over: str = ""
) -> tuple[Presence, ...]:
    """Return who has a thread's requests open, with one more person; see `Store.attend`."""
    others = [other for other in still_present(attending, now) if other.lease.token != presence.lease.token]
    if not presence.claims:
        return (*others, presence)
    for other in others:
        if other.claims and other.is_of(presence) and other.actor not in (presence.actor, over):
            raise claimed_by(other, now)
    return (*(other for other in others if not (other.claims and other.is_of(presence))), presence)


def name_taken(thread_id: str) -> ThreadBusy:
    """Return the error for a new thread whose name is taken."""
    return ThreadBusy(f"there is a thread {thread_id!r} already", "choose another name")


def unknown_thread(thread_id: str) -> UnknownThread:
    """Return the error for a thread that the store does not have."""
    return UnknownThread(f"there is no thread {thread_id!r}", "list the threads to see what there is")


def is_inside(info: ThreadInfo, thread_id: str | None, known: Collection[str]) -> bool:
    """Whether `Store.threads` lists a thread with `within=thread_id`.

    Args:
        known: the names of all threads of the store.
    """
    if thread_id is None:
        return True
    owner = info.owner.thread_id if info.owner else ""
    return owner == thread_id if thread_id else owner not in known


def child_counts(infos: Iterable[ThreadInfo]) -> Counter[str]:
    """Return how many child threads each thread has."""
    return Counter(info.owner.thread_id for info in infos if info.owner)


T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


class Checkpointer(ABC):
    """A store of threads; implements `hitl_tui.engine.log.store.Store` on top of a thread's own rows."""

    login = ""
    """See `Store`."""

    def __init__(self) -> None:
        # What a thread shares is fixed when it is made, so a lineage can be cached.
        self._lineages: dict[str, tuple[Segment, ...]] = {}

    # -- for each kind of store -----------------------------------------------------------------

    @abstractmethod
    def create_thread(self, info: ThreadInfo, cursor: Cursor, first: Commit | None = None) -> None:
        """Add a thread and its first commit, both or neither.

        Args:
            cursor: the one before the first commit; for a fork, `ledger_n` is the number of shared decisions.

        Raises:
            ThreadBusy: the name is taken.
            UnknownThread: the parent does not exist.
            UsageError: the name can't be a thread's (`check_thread_id`).
        """

    @abstractmethod
    def commit(self, thread_id: str, commit: Commit) -> Stamp | None:
        """Write all of a commit or none of it (see `Store.commit`)."""

    @abstractmethod
    def write_threads(self, threads: Iterable[ImportedThread]) -> None:
        """Add whole threads, one after the other; if reading one raises, nothing of any is added.

        Leases and versions of the commits are not checked.

        Raises:
            ThreadBusy: a name is taken.
            UsageError: a name can't be a thread's.
        """

    def info(self, thread_id: str) -> ThreadInfo | None:
        """Return the thread's fixed facts, or None if there is no such thread."""
        origin = self._origin(thread_id)
        if origin and origin.info.parent is None and thread_id not in self._lineages:
            self._lineages[thread_id] = tuple(own_segments(thread_id, origin))
        return origin.info if origin else None

    @abstractmethod
    def cursor(self, thread_id: str, *, unchecked: bool = False) -> Cursor | None:
        """See `Store.cursor`."""

    def stamp(self, thread_id: str) -> Stamp | None:
        """See `Store.stamp`."""
        return None

    @abstractmethod
    def graph(self, digest: str) -> StoredGraph | None:
        """Return a graph as data, as a commit stored it; None if there is none with this digest."""

    @abstractmethod
    def children(self, thread_id: str) -> list[ThreadInfo]:
        """Return the forks of a thread, oldest first."""

    @abstractmethod
    def inner_names(self, thread_id: str) -> list[str]:
        """See `Store.inner_names`."""

    def _may_be_inside(self, thread_id: str, owner: str) -> bool:
        """Whether a thread is a child of another, or its facts can't be read."""
        try:
            info = self.info(thread_id)
        except LogCorrupt:
            return True
        return info is not None and info.owner is not None and info.owner.thread_id == owner

    @abstractmethod
    def threads(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> list[ThreadSummary]:
        """See `Store.threads`; `query` is a part of the id, ignoring (ASCII) case."""

    @abstractmethod
    def summary(self, thread_id: str) -> ThreadSummary | None:
        """Return the thread's line in `threads`, or None if there is no such thread."""

    def waiting(self, limit: int) -> list[Waiting]:
        """See `Store.waiting`."""
        return [self._waiting(thread) for thread in self.threads("", limit, None, "", waiting=True)]

    def _waiting(self, thread: ThreadSummary) -> Waiting:
        name = thread.info.thread_id
        try:
            cursor = self.cursor(name)
            point = self.checkpoint(name, cursor.head) if cursor and cursor.pending else None
        except LogCorrupt:
            return Waiting(thread)
        if cursor is None:
            return Waiting(thread)
        return Waiting(thread, cursor.pending, cursor.goal, point.state_hash if point else b"")

    def roles(self, login: str = "") -> tuple[str, ...]:
        """See `Store.roles`."""
        return ()

    def may_delete(self, login: str | None = None) -> bool:
        """See `Store.may_delete`."""
        return login is None

    @property
    def why_read_only(self) -> str:
        """See `Store.why_read_only`."""
        return ""

    def rights(self) -> frozenset[Right]:
        """See `Store.rights`."""
        return RIGHTS

    def now(self) -> int:
        """See `Store.now`."""
        return time.time_ns() // 1000

    def changes(self, thread_id: str | None = None) -> object:
        """See `Store.changes`."""
        return None

    def subscribe(
        self, wake: Callable[[], object], thread_id: str | None = None
    ) -> Callable[[], None] | None:
        """See `Store.subscribe`."""
        return None

    def jobs(self) -> Jobs | None:
        """See `Store.jobs`."""
        return None

    @abstractmethod
    def list_threads(self) -> list[str]:
        """Return the ids of all threads that have a step, in alphabetical order."""

    def new_lease(self, now: int) -> Lease:
        """Make a lease of this process with a new token; `now` is in microseconds."""
        return new_lease(now)

    @abstractmethod
    def lease(self, thread_id: str) -> Lease | None:
        """Return who holds the thread, dead or alive; None if nobody does."""

    @abstractmethod
    def held(self) -> list[str]:
        """Return the threads with a lease, of a dead or living process."""

    def doubtful_leases(self) -> Iterator[tuple[str, Fault]]:
        """Return the threads whose lease is reported by `faults`, with that report."""
        for thread_id in self.held():
            for fault in self._faults_of_lease(thread_id):
                yield thread_id, fault

    @abstractmethod
    def acquire(self, thread_id: str, lease: Lease, now: int) -> Lease | None:
        """Acquire the lease of a thread; return the dead holder's lease if one was taken over.

        Args:
            now: microseconds since the epoch.

        Raises:
            ThreadBusy: a living process has it; names user, host and process.
            UnknownThread: there is no such thread.
        """

    @abstractmethod
    def renew(self, thread_id: str, token: str, expires_at: int) -> None:
        """Extend a lease; raises `ThreadBusy` if it is no longer held."""

    @abstractmethod
    def release(self, thread_id: str, token: str) -> None:
        """Release a lease; nothing happens if it is not held."""

    @abstractmethod
    def request_pause(self, thread_id: str, request: PauseRequest | None) -> None:
        """See `Store.request_pause`."""

    @abstractmethod
    def pause_request(self, thread_id: str) -> PauseRequest | None:
        """See `Store.pause_request`."""

    @abstractmethod
    def attend(self, thread_id: str, presence: Presence, now: int, over: str = "") -> None:
        """See `Store.attend`."""

    @abstractmethod
    def leave(self, thread_id: str, token: str) -> None:
        """See `Store.leave`."""

    @abstractmethod
    def attending(self, thread_id: str, now: int) -> tuple[Presence, ...]:
        """See `Store.attending`."""

    @abstractmethod
    def delete(self, deletion: Deletion) -> list[LedgerEntry]:
        """See `Store.delete`."""

    @abstractmethod
    def store_ledger(self, newest: int | None = None) -> list[LedgerEntry]:
        """See `Store.store_ledger`."""

    @abstractmethod
    def size(self, thread_id: str) -> ThreadSize:
        """See `Store.size`."""

    @abstractmethod
    def space(self) -> Space:
        """See `Store.space`."""

    @abstractmethod
    def vacuum(self) -> Space:
        """See `Store.vacuum`."""

    @abstractmethod
    def close(self) -> None:
        """Release files and handles; closing twice is fine."""

    # -- the rows of one thread -------------------------------------------------------------------

    @abstractmethod
    def _origin(self, thread_id: str) -> Origin | None:
        """Return what is fixed about a thread, None if there is no such thread."""

    @abstractmethod
    def _own_checkpoints(self, thread_id: str, first: int, last: int, limit: int) -> list[Checkpoint]:
        """Return checkpoints of steps `first` to `last`, newest first."""

    @abstractmethod
    def _own_records(self, thread_id: str, first: int, last: int) -> Iterable[UpdateRecord]:
        """Return records of steps `first` to `last`, by seq."""

    @abstractmethod
    def _own_snapshot(self, thread_id: str, first: int, last: int) -> tuple[int, bytes] | None:
        """Return the newest snapshot of steps `first` to `last`."""

    def _own_snapshots(self, thread_id: str, first: int, last: int) -> Iterable[tuple[int, bytes]]:
        """Return the snapshots of steps `first` to `last`, oldest first."""
        snapshots: list[tuple[int, bytes]] = []
        while newest := self._own_snapshot(thread_id, first, snapshots[-1][0] - 1 if snapshots else last):
            snapshots.append(newest)
        return reversed(snapshots)

    def _own_effects(
        self, thread_id: str, first: int, last: int, channels: Container[str] | None
    ) -> Iterator[Effect]:
        """Return the effects of the records of steps `first` to `last`, by seq, for some channels or all."""
        for record in self._own_records(thread_id, first, last):
            if channels is None or record.channel in channels:
                yield Effect.of(record)

    def _own_steps_with(self, thread_id: str, first: int, last: int, text: str) -> Iterable[int]:
        """Return those of the steps `first` to `last` whose rows may contain a text.

        See `Store.steps_with`.
        """
        return range(first, last + 1)

    @abstractmethod
    def _own_ledger(self, thread_id: str, first: int, last: int, *, call_data: bool) -> list[LedgerEntry]:
        """Return the ledger entries `first` to `last`, oldest first; see `Store.ledger`."""

    @abstractmethod
    def _own_spending(self, thread_id: str, last: int) -> Iterable[Spending]:
        """Return what the thread's own steps up to `last` have used, in one or several parts."""

    # -- the rows of a lineage ----------------------------------------------------------------

    def checkpoint(self, thread_id: str, step: int) -> Checkpoint | None:
        """Return the checkpoint of a step; the parent's if the thread shares it."""
        points = self.checkpoints(thread_id, step + 1, 1)
        return points[0] if points and points[0].step == step else None

    def checkpoints(self, thread_id: str, before: int | None, limit: int) -> list[Checkpoint]:
        """Return at most `limit` checkpoints with step < `before` (None: from the head), newest first."""
        points: list[Checkpoint] = []
        for segment in self._lineage(thread_id):
            last = segment.last_step if before is None else min(before - 1, segment.last_step)
            missing = limit - len(points)
            if missing > 0 and last > segment.after_step:
                own = self._own_checkpoints(segment.thread_id, segment.after_step + 1, last, missing)
                points += segment.named(own)
        return points

    def records(self, thread_id: str, first_step: int, last_step: int) -> Iterator[UpdateRecord]:
        """Return the records of steps `first_step` to `last_step`, both included, by seq."""
        for segment in reversed(self._lineage(thread_id)):
            first = max(first_step, segment.after_step + 1)
            last = min(last_step, segment.last_step)
            if first <= last:
                yield from segment.named(self._own_records(segment.thread_id, first, last))

    def effects(
        self, thread_id: str, first_step: int, last_step: int, channels: Container[str] | None = None
    ) -> Iterator[Effect]:
        """Return the effects of the records of steps `first_step` to `last_step`, both included, by seq."""
        for segment in reversed(self._lineage(thread_id)):
            first = max(first_step, segment.after_step + 1)
            last = min(last_step, segment.last_step)
            if first <= last:
                yield from self._own_effects(segment.thread_id, first, last, channels)

    def steps_with(self, thread_id: str, first_step: int, last_step: int, text: str) -> Iterator[int]:
        """Return those of the steps `first_step` to `last_step` whose rows may contain a text."""
        for segment in self._lineage(thread_id):
            first = max(first_step, segment.after_step + 1)
            last = min(last_step, segment.last_step)
            if first <= last:
                yield from self._own_steps_with(segment.thread_id, first, last, text)

    def snapshot(self, thread_id: str, step: int) -> tuple[int, bytes] | None:
        """Return the newest snapshot at or before `step`: its step and its bytes."""
        for segment in self._lineage(thread_id):
            first, last = segment.after_step + 1, min(step, segment.last_step)
            if first <= last and (snapshot := self._own_snapshot(segment.thread_id, first, last)):
                return snapshot
        return None

    def snapshots(self, thread_id: str, first_step: int, last_step: int) -> Iterator[tuple[int, bytes]]:
        """Return the snapshots of steps `first_step` to `last_step`, oldest first."""
        for segment in reversed(self._lineage(thread_id)):
            first = max(first_step, segment.after_step + 1)
            last = min(last_step, segment.last_step)
            if first <= last:
                yield from self._own_snapshots(segment.thread_id, first, last)

    def ledger(self, thread_id: str, after: int = 0, *, call_data: bool = True) -> list[LedgerEntry]:
        """See `Store.ledger`."""
        entries: list[LedgerEntry] = []
        for segment in reversed(self._lineage(thread_id)):
            first, last = max(after, segment.after_entry) + 1, segment.last_entry
            if first <= last:
                own = self._own_ledger(segment.thread_id, first, last, call_data=call_data)
                entries += segment.named(own)
        return entries

    def decisions(self) -> Iterator[DecisionPlace]:
        """See `Store.decisions`."""
        waiting: list[tuple[int, int, int, DecisionPlace]] = []
        for order, thread in enumerate(all_threads(self)):
            # Nothing in a thread is newer than its last change.
            while waiting and -waiting[0][0] >= thread.updated_at:
                yield heappop(waiting)[-1]
            name = thread.info.thread_id
            if self._origin(name) is None:  # it was deleted meanwhile
                continue
            for entry in self._own_ledger(name, self.shared_entries(name) + 1, UNBOUNDED, call_data=False):
                if entry.kind in DECIDING:
                    place = DecisionPlace(entry.at, name, entry.n, entry.actor)
                    heappush(waiting, (-entry.at, order, -entry.n, place))
        while waiting:
            yield heappop(waiting)[-1]

    def totals(self, thread_id: str, step: int) -> Totals:
        """Return sums over the checkpoints of steps 0 to `step`; visits count steps with source "node"."""
        spent: list[Spending] = []
        counted: set[str] = set()
        for segment in self._lineage(thread_id):
            last = min(step, segment.last_step)
            # An imported thread has several segments: its newest one counts all of its rows.
            if last > segment.after_step and segment.thread_id not in counted:
                counted.add(segment.thread_id)
                spent += self._own_spending(segment.thread_id, last)
        visits: dict[str, int] = {}
        for part in spent:
            if part.source in ("node", "map", "subgraph"):
                visits[part.node] = visits.get(part.node, 0) + part.steps
        return Totals(
            visits=visits,
            tokens_in=sum(part.tokens_in for part in spent),
            tokens_out=sum(part.tokens_out for part in spent),
            cost=sum(part.cost for part in spent),
            cost_known=not any(part.unpriced for part in spent),
            active=sum(part.duration for part in spent),
        )

    def past(self, thread_id: str, cursor: Cursor) -> tuple[Past, ...]:
        """Return the names under which the rows up to a cursor of the thread were written, oldest first."""
        segments = [
            segment.up_to(cursor.head, cursor.last_seq, cursor.ledger_n)
            for segment in reversed(self._lineage(thread_id))
        ]
        return tuple(
            Past(segment.name, segment.last_step, segment.last_seq, segment.last_entry, segment.facts)
            for segment in segments
            if not segment.left_out
        )

    def shared_entries(self, thread_id: str) -> int:
        """Return how many of its parent's decisions a fork shares; 0 for other threads."""
        origin = self._origin(thread_id)
        return origin.shared_entries if origin else 0

    def facts(self, thread_id: str) -> bytes:
        """See `Store.facts`."""
        origin = self._origin(thread_id)
        return facts_hash(origin.info, origin.shared_entries, origin.past) if origin else b""

    @abstractmethod
    def faults(self, thread_id: str | None, since: int = 0) -> Iterator[Fault]:
        """See `Store.faults`."""

    def reader(self) -> Reader | None:
        """See `Store.reader`."""
        return None

    def _faults_of_present(self, thread_id: str) -> Iterator[Fault]:
        """Yield unreadable rows about a thread's lease, pause request and presence, and impossible leases.

        These rows are about the present, so no hash covers them; a commit needs the lease's token and the
        version. They can be forged to make a thread look busy, free, claimed or asked to pause, but they
        decide nothing.
        """

        yield from self._faults_of_lease(thread_id)

        def attending(thread_id: str) -> object:
            return self.attending(thread_id, 0)

        for field, read in (("pause", self.pause_request), ("presence", attending)):
            try:
                read(thread_id)
            except LogCorrupt as error:
                yield Fault(field, None, None, error.message)

    def _faults_of_lease(self, thread_id: str) -> Iterator[Fault]:
        try:
            lease = self.lease(thread_id)
        except LogCorrupt as error:
            yield Fault("lease", None, None, error.message)
        else:
            if lease is not None and ends_too_late(lease, self.now()):
                yield Fault("lease", None, "one that ends within an hour", describe(lease))

    def parts(self, thread_id: str) -> list[Part]:
        """Return which thread wrote which rows of a thread's log, its own part last."""
        return [
            Part(
                segment.thread_id,
                segment.name,
                segment.after_step,
                segment.after_seq,
                segment.after_entry,
                segment.facts,
            )
            for segment in reversed(self._lineage(thread_id))
            if not segment.left_out
        ]

    def _lineage(self, thread_id: str) -> tuple[Segment, ...]:
        """Return the segments of a thread, its own first; empty if there is no such thread."""
        known = self._lineages.get(thread_id)
        if known is not None:
            return known
        segments: list[Segment] = []
        step = seq = entry = UNBOUNDED
        above: str | None = thread_id
        passed: set[str] = set()
        while above is not None:
            if above in passed:
                raise LogCorrupt(
                    f"thread {thread_id!r} is a fork of itself, by way of {above!r}",
                    "restore a backup of the store",
                )
            passed.add(above)
            if (parents := self._lineages.get(above)) is not None:
                segments += (parent.up_to(step, seq, entry) for parent in parents)
                break
            origin = self._origin(above)
            if origin is None:
                break
            own = [part.up_to(step, seq, entry) for part in own_segments(above, origin)]
            segments += own
            info = origin.info
            if info.parent is not None:
                oldest = own[-1]
                step, seq = min(step, oldest.after_step), min(seq, oldest.after_seq)
                entry = min(entry, oldest.after_entry)
            above = info.parent
        if not segments:
            return ()
        lineage = self._lineages[thread_id] = tuple(segments)
        return lineage

    # -- states without a graph -------------------------------------------------------------------

    def load_latest(self, thread_id: str) -> tuple[int, dict[str, Any]] | None:
        """Return the newest step and the state after it, or None if the thread has no step."""
        cursor = self.cursor(thread_id)
        if cursor is None or cursor.head < 0:
            return None
        from hitl_tui.engine.thread.rebuild import state_at

        return cursor.head, state_at(self, thread_id, cursor.head)

    def load_step(self, thread_id: str, step: int) -> dict[str, Any] | None:
        """Return the state after a step, or None if the thread has no such step."""
        cursor = self.cursor(thread_id)
        if cursor is None or not 0 <= step <= cursor.head:
            return None
        from hitl_tui.engine.thread.rebuild import state_at

        return state_at(self, thread_id, step)

    def save(self, thread_id: str, step: int, state: Mapping[str, Any]) -> None:
        """Write a whole state as the next step of a thread, which is created if necessary.

        Differences are written as `set` records, so that the log stays the truth; a channel that `state`
        lacks keeps its value. Saving the same step again changes nothing. A new thread starts at step 0 or 1;
        it counts as completed, so `resume="entry"` runs a graph on it.

        Raises:
            StaleWriter: the step is in the log with another state.
            ThreadBusy: the thread is running.
            UsageError: the step leaves a gap.
            ValueRejected: a value that is not JSON.
        """

        from hitl_tui.stores.saving import save

        save(self, thread_id, step, state)


def check_durability(durability: Durability) -> Durability:
    """Check the name of a durability; raises `UsageError`."""
    known = get_args(Durability)
    if durability not in known:
        raise UsageError(f"there is no durability {durability!r}", did_you_mean(str(durability), known))
    return durability


def waiting(cursor: Cursor) -> tuple[str, int | None]:
    """Return what a thread waits for, as short text, and since when; ("", None) if it does not wait."""
    if cursor.pending:
        return cursor.pending[0].title, cursor.pending[0].asked_at
    if cursor.status == "waiting":
        return cursor.reason, cursor.updated_at
    return "", None


def as_opened(cursor: Cursor, held_by: str | None) -> Cursor:
    """Return a cursor as it is after opening its thread: if its runner has died, the thread is paused.

    Args:
        held_by: a description of who holds the thread; None for nobody alive.
    """
    if cursor.status == "running" and held_by is None:
        return replace(cursor, status="waiting", reason="paused")
    return cursor


def page_of(
    threads: Iterable[tuple[ThreadInfo, Cursor, int, T]],
    limit: int,
    after: tuple[ThreadSummary, int] | None,
    within: str | None,
    *,
    waits: bool,
) -> list[T]:
    """Return a page of items for threads, in the order of `Store.threads`.

    Args:
        threads: each with its cursor from `as_opened`, how many threads the store had before it, and its
            item.
        after: the last thread of the page before, and how many threads the store had before that.
        waits: only those that wait.
    """

    def place(info: ThreadInfo, since: int | None, moved: int, order: int) -> tuple[int, int | str]:
        if waits:
            return moved if since is None else since, info.thread_id
        return (info.created_at, info.thread_id) if within else (-moved, -order)

    placed: list[tuple[tuple[int, int | str], T]] = []
    for info, cursor, order, item in threads:
        since = waiting(cursor)[1]
        if not waits or since is not None:
            placed.append((place(info, since, cursor.updated_at, order), item))
    if after is not None:
        line, order = after
        last = place(line.info, line.waiting_since, line.updated_at, order)
        placed = [(at, item) for at, item in placed if at > last]
    return [item for _, item in nsmallest(limit, placed, key=itemgetter(0))]


def writer(checkpoint: Checkpoint) -> str:
    """Return who wrote a step: a person or a node by name, "the deadline" and the like, or its source."""
    instead = NO_PERSON.get(checkpoint.made_by, "") if checkpoint.source == "human" else ""
    return checkpoint.actor or checkpoint.node or instead or checkpoint.source


def summary_of(
    info: ThreadInfo,
    cursor: Cursor,
    last_writer: str,
    lease: Lease | None,
    now: int,
    *,
    inside: int | None = None,
    attending: tuple[Presence, ...] = (),
) -> ThreadSummary:
    """Return a line of a list of threads; a holder counts only while its process lives.

    Args:
        now: microseconds since the epoch.
    """
    held_by = holder(lease, now)
    cursor = as_opened(cursor, held_by)
    waiting_for, waiting_since = waiting(cursor)
    return ThreadSummary(
        info=info,
        head=cursor.head,
        status=cursor.status,
        reason=cursor.reason,
        next_node=cursor.next_node,
        waiting_for=waiting_for,
        waiting_since=waiting_since,
        last_writer=last_writer,
        updated_at=cursor.updated_at,
        held_by=held_by,
        inside=inside,
        attending=attending,
    )


def size_of(
    thread_id: str,
    records: Iterable[UpdateRecord],
    *,
    steps: int,
    checkpoints: int,
    snapshots: int,
    decisions: int,
) -> ThreadSize:
    """Return the size of a thread's own rows, given its records and the bytes of the rest."""
    channels: Counter[str] = Counter()
    for record in records:
        result = b"" if record.result is UNSET else _encode(record.result)
        channels[record.channel] += len(_encode(record.update)) + len(result)
    return ThreadSize(thread_id, steps, dict(channels), checkpoints, snapshots, decisions)


def graphs_named(store: Checkpointer, info: ThreadInfo) -> set[str]:
    """Return the digests of the graphs with which a thread was started or has continued."""
    cursor = store.cursor(info.thread_id, unchecked=True)
    digests = {info.graph_digest, cursor.graph if cursor else ""}
    for entry in store.ledger(info.thread_id):
        if entry.kind == GRAPH and isinstance(entry.data, Mapping):
            digests |= {str(entry.data.get("was")), str(entry.data.get("is"))}
    return digests


def ascii_lower(text: str) -> str:
    """Return a text with only A to Z in lower case, like SQLite's `lower`."""
    return text.lower() if text.isascii() else "".join(c.lower() if c.isascii() else c for c in text)
