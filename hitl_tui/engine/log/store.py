"""Interface of a store; `hitl_tui.stores` has the implementations.

A fork shares its parent's log: reads include the parent's rows, so a caller need not know of it.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Final, Literal, Protocol

from hitl_tui.engine.log.jobs import Jobs
from hitl_tui.engine.log.records import (
    Checkpoint,
    Commit,
    Cursor,
    Effect,
    LedgerEntry,
    StoredGraph,
    Totals,
    UpdateRecord,
)
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
)

Durability = Literal["decisions", "steps", "none"]
"""Which commits are on the disk when they return, so that no power cut takes them back: those with
entries of the ledger, all, or none.  With "none" nothing ever waits for the disk, and a power cut may
damage the store."""

Right = Literal["run", "decide", "operate"]
"""To run threads, to decide in them, and to do what only who operates a store does: forks, rollbacks."""
RIGHTS: Final[frozenset[Right]] = frozenset(("run", "decide", "operate"))

Reader = tuple[str, str]
"""A function, as "module:name", and the place that it opens a store of."""


class Store(Protocol):
    """Threads, each an append-only log with one cursor.

    `login` is the database login of this process, "" if the store is no database.
    """

    @property
    def login(self) -> str: ...

    def roles(self, login: str = "") -> tuple[str, ...]:
        """Return a login of the database (by default our own), and the groups it is in.

        () if the store has no logins, or not that one.
        """

    def may_delete(self, login: str | None = None) -> bool:
        """Whether a login of the database (by default our own) may delete threads.

        In a store without logins, everyone who can open it may; a named login may not.
        """

    @property
    def why_read_only(self) -> str:
        """Why the store is read-only; "" if it can be written."""

    def rights(self) -> frozenset[Right]:
        """Return what our database login may do to threads; everything if the store has no logins."""

    def create_thread(self, info: ThreadInfo, cursor: Cursor, first: Commit | None = None) -> None:
        """Add a thread and its first commit, both or neither; raises `ThreadBusy` when the name is taken."""

    def commit(self, thread_id: str, commit: Commit) -> Stamp | None:
        """Write all of a commit or nothing; returns the new `stamp` if the commit releases the thread.

        Raises:
            StaleWriter: the thread's version is not `commit.expected_version`.
            ThreadBusy: the thread's lease is not `commit.lease_token`, or it `takes` a thread that is held.
            StoreUnusable: the store is read-only, full or locked.
        """

    def info(self, thread_id: str) -> ThreadInfo | None:
        """Return what never changes about a thread, None if there is no such thread."""

    def cursor(self, thread_id: str, *, unchecked: bool = False) -> Cursor | None:
        """Return the thread's cursor, None if there is no such thread.

        Args:
            unchecked: return it even if it was tampered with; only for `verify`.

        Raises:
            LogCorrupt: the cursor, or the thread's info, is not what was written.
        """

    def stamp(self, thread_id: str) -> Stamp | None:
        """Return a value that changes when the thread is written.

        None if the store has no such value, or no such thread.
        """

    def graph(self, digest: str) -> StoredGraph | None:
        """Return the stored graph with a digest, None if there is none."""

    def checkpoint(self, thread_id: str, step: int) -> Checkpoint | None:
        """Return the checkpoint of a step; it may be shared with the parent."""

    def checkpoints(self, thread_id: str, before: int | None, limit: int) -> list[Checkpoint]:
        """Return at most `limit` checkpoints with step < `before` (None: from the head), newest first."""

    def records(self, thread_id: str, first_step: int, last_step: int) -> Iterator[UpdateRecord]:
        """Return the records of steps `first_step` to `last_step`, both included, by seq."""

    def effects(
        self, thread_id: str, first_step: int, last_step: int, channels: Container[str] | None = None
    ) -> Iterator[Effect]:
        """Return the effects of the records of steps `first_step` to `last_step`, both included, by seq.

        Args:
            channels: only these channels, None for all.
        """

    def steps_with(self, thread_id: str, first_step: int, last_step: int, text: str) -> Iterable[int]:
        """Return those steps from `first_step` to `last_step` whose rows may contain a text, ignoring case.

        All of them, if the store can't search faster than by reading them.
        """

    def snapshot(self, thread_id: str, step: int) -> tuple[int, bytes] | None:
        """Return the newest snapshot at or before `step`: its step and its bytes."""

    def snapshots(self, thread_id: str, first_step: int, last_step: int) -> Iterator[tuple[int, bytes]]:
        """Return the snapshots of steps `first_step` to `last_step`, both included, oldest first."""

    def ledger(self, thread_id: str, after: int = 0, *, call_data: bool = True) -> list[LedgerEntry]:
        """Return the thread's ledger entries, oldest first; a fork's begin with its parent's up to the fork.

        They include recorded calls, which are no decisions.

        Args:
            after: only entries with a greater number.
            call_data: if False, the data of recorded calls, which can be large, may be left out.
        """

    def decisions(self) -> Iterator[DecisionPlace]:
        """Iterate over the decisions of all threads (see `DECIDING`), newest first, read a page at a time.

        Those that a fork shares with its parent are the parent's.
        """

    def totals(self, thread_id: str, step: int) -> Totals:
        """Return sums over the checkpoints of steps 0 to `step`; visits count the steps of every node."""

    def facts(self, thread_id: str) -> bytes:
        """Return the `facts_hash` of a thread's info as it is stored now; b"" if there is no such thread."""

    def parts(self, thread_id: str) -> list[Part]:
        """Return which thread wrote which rows of a thread's log, its own part last."""

    def faults(self, thread_id: str | None, since: int = 0) -> Iterator[Fault]:
        """Return inconsistent or orphaned rows, of a thread or of the whole store.

        Args:
            since: sums over a thread's steps before this one are not checked.

        Raises:
            LogCorrupt: it can't be read.
        """

    def reader(self) -> Reader | None:
        """Return what another process needs to open this store for reading; None if only this process can."""

    def children(self, thread_id: str) -> list[ThreadInfo]:
        """Return the forks of a thread, oldest first."""

    def inner_names(self, thread_id: str) -> list[str]:
        """Return the ids of the threads that ran directly inside a thread, oldest first.

        They include threads whose info can't be read, if the store knows their ids.
        """

    def threads(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> list[ThreadSummary]:
        """Return threads by last change, newest first; `query` is a part of the thread id.

        Args:
            after: the last thread of the previous page.
            within: "" for top-level threads, which ran inside no thread of this store; a thread's id for
                those that ran directly inside it, oldest first.  Both count the threads inside each.
            waiting: only those that wait for a human, the longest waiting first.
        """

    def waiting(self, limit: int) -> list[Waiting]:
        """Return at most `limit` top-level threads that wait for a human, with their requests.

        The longest waiting comes first.  A thread with a damaged cursor has no requests here; opening it
        reports the damage.
        """

    def changes(self, thread_id: str | None = None) -> object:
        """Return a value that stays equal until a process writes to the store; None if the store has none.

        Args:
            thread_id: watch a thread and those inside it; writes to others may change the value, too.
        """

    def subscribe(
        self, wake: Callable[[], object], thread_id: str | None = None
    ) -> Callable[[], None] | None:
        """Call `wake`, from any thread, soon after a write or when `changes` works again.

        Args:
            thread_id: only for writes to a thread and those inside it.

        Returns:
            A function that unsubscribes; None if the store can't call back, so it has to be polled.
        """

    def jobs(self) -> Jobs | None:
        """The jobs of workers; None if the store has no workers."""

    def now(self) -> int:
        """Return microseconds since the epoch, by the clock that all writers of the store share."""

    def new_lease(self, now: int) -> Lease:
        """Return a lease of this process with a new token; `now` in microseconds."""

    def summary(self, thread_id: str) -> ThreadSummary | None:
        """Return the thread's row of `threads`, None if there is no such thread."""

    def acquire(self, thread_id: str, lease: Lease, now: int) -> Lease | None:
        """Take the thread's lease; returns the dead or expired lease that it replaced.

        Raises:
            ThreadBusy: a living holder has it (names user, host and process).
        """

    def renew(self, thread_id: str, token: str, expires_at: int) -> None:
        """Keep a lease; raises `ThreadBusy` when another holder has taken the thread."""

    def release(self, thread_id: str, token: str) -> None:
        """Release a lease; does nothing if it is not held."""

    def request_pause(self, thread_id: str, request: PauseRequest | None) -> None:
        """Ask the thread's holder to pause it, replacing the last such request; None withdraws it."""

    def pause_request(self, thread_id: str) -> PauseRequest | None:
        """Return the latest pause request to the thread's holder."""

    def attend(self, thread_id: str, presence: Presence, now: int, over: str = "") -> None:
        """Record that a person views or claims a request, replacing the last record with the same token.

        Args:
            over: whose claim of the same request this claim may replace; "" for nobody's.

        Raises:
            AnswerRefused: the request is claimed by somebody else (names them, and for how long).
        """

    def leave(self, thread_id: str, token: str) -> None:
        """Remove a record of `attend`; does nothing if there is none."""

    def attending(self, thread_id: str, now: int) -> tuple[Presence, ...]:
        """Return who views or claims the thread's requests now, oldest first."""

    def delete(self, deletion: Deletion) -> list[LedgerEntry]:
        """Delete threads, all or none, and add an entry for each to the store's own ledger.

        Raises:
            UnknownThread: one does not exist.
            UsageError: a fork of one, or a thread inside one, would remain.
            ThreadBusy: one is held, runs or waits; not with `force`.
            StaleWriter: one has changed since it was read; not with `force`.
        """

    def store_ledger(self, newest: int | None = None) -> list[LedgerEntry]:
        """Return the entries for deleted threads, oldest first: kind "delete", in a hash chain of their own.

        Args:
            newest: the number of newest entries to return, None for all.
        """

    def size(self, thread_id: str) -> ThreadSize:
        """Return the size of a thread's own rows; raises `UnknownThread`."""

    def space(self) -> Space:
        """Return the disk space that the store uses; zero for a store in memory."""

    def vacuum(self) -> Space:
        """Free unused space and drop graphs that no thread uses; returns the space then.

        Raises:
            StoreUnusable: the store is in use, read-only or full.
        """

    def close(self) -> None:
        """Release files and handles."""


_PAGE = 256


def new_thread_id(store: Store, stem: str) -> str:
    """Return an unused thread id: stem, day and number, as in "demo-2026-11-21-2"."""
    from datetime import date

    day = f"{stem}-{date.today().isoformat()}"
    number = 1
    while store.info(f"{day}-{number}") is not None:
        number += 1
    return f"{day}-{number}"


def all_threads(
    store: Store, query: str = "", within: str | None = None, *, waiting: bool = False
) -> Iterator[ThreadSummary]:
    """Iterate over all threads of a list of `Store.threads`, read a page at a time."""
    last: ThreadSummary | None = None
    while page := store.threads(query, _PAGE, last, within, waiting=waiting):
        yield from page
        last = page[-1]
