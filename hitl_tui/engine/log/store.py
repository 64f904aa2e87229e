"""What the engine asks of a store; `hitl_tui.stores` has the implementations.

A fork shares its parent's log: every read resolves the lineage, so a caller never sees the seam.

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

    `login` is as whom a database knows this process, "" where the store is none.
    """

    @property
    def login(self) -> str: ...

    def roles(self, login: str = "") -> tuple[str, ...]:
        """A login of the database, the own one if none is named, and the groups it is in.

        () where the store has no logins, or not that one.
        """

    def may_delete(self, login: str | None = None) -> bool:
        """Whether a login of the database, the own one if none is named, may take threads out.

        A store that has no logins lets whoever has opened it, and nobody by name.
        """

    @property
    def why_read_only(self) -> str:
        """Why the store is read-only; "" if it can be written."""

    def rights(self) -> frozenset[Right]:
        """What the own login of the database may do to threads; all of it where the store has no logins."""

    def create_thread(self, info: ThreadInfo, cursor: Cursor, first: Commit | None = None) -> None:
        """Add a thread and its first commit, both or neither; raises `ThreadBusy` when the name is taken."""

    def commit(self, thread_id: str, commit: Commit) -> Stamp | None:
        """Write all of a commit or none of it; of one that gives the thread back, its `stamp` then.

        Raises:
            StaleWriter: the thread's version is not `commit.expected_version`.
            ThreadBusy: the thread's lease is not `commit.lease_token`, or it `takes` what somebody has.
            StoreUnusable: the store is read-only, full or locked.
        """

    def info(self, thread_id: str) -> ThreadInfo | None:
        """The thread's fixed facts, or None when there is no such thread."""

    def cursor(self, thread_id: str, *, unchecked: bool = False) -> Cursor | None:
        """Where the thread stands, or None when there is no such thread.

        Args:
            unchecked: read what is there, though it may not be what was written; for `verify` alone.

        Raises:
            LogCorrupt: the cursor, or what is fixed about the thread, is not what was written.
        """

    def stamp(self, thread_id: str) -> Stamp | None:
        """What tells whether a thread was written since.

        None where the store can't tell, or has no such thread.
        """

    def graph(self, digest: str) -> StoredGraph | None:
        """A graph as data, as a commit brought it; None when there is none of that digest."""

    def checkpoint(self, thread_id: str, step: int) -> Checkpoint | None:
        """The checkpoint of a step, the parent's where the thread shares it."""

    def checkpoints(self, thread_id: str, before: int | None, limit: int) -> list[Checkpoint]:
        """At most `limit` checkpoints with step < `before` (None: from the head), newest first."""

    def records(self, thread_id: str, first_step: int, last_step: int) -> Iterator[UpdateRecord]:
        """The records of steps `first_step` to `last_step`, both included, by seq."""

    def effects(
        self, thread_id: str, first_step: int, last_step: int, channels: Container[str] | None = None
    ) -> Iterator[Effect]:
        """The effects of the records of steps `first_step` to `last_step`, both included, by seq.

        Args:
            channels: those that are asked about, None for all of them.
        """

    def steps_with(self, thread_id: str, first_step: int, last_step: int, text: str) -> Iterable[int]:
        """Of the steps `first_step` to `last_step` those whose rows may hold a text, capitals aside.

        All of them where that is not known sooner than by reading them.
        """

    def snapshot(self, thread_id: str, step: int) -> tuple[int, bytes] | None:
        """The newest snapshot at or before `step`: its step and its bytes."""

    def snapshots(self, thread_id: str, first_step: int, last_step: int) -> Iterator[tuple[int, bytes]]:
        """The snapshots of steps `first_step` to `last_step`, both included, oldest first."""

    def ledger(self, thread_id: str, after: int = 0, *, call_data: bool = True) -> list[LedgerEntry]:
        """The thread's decisions, oldest first; a fork's begin with its parent's up to the fork.

        Recorded calls, which are no decisions, are among them.

        Args:
            after: only entries with a greater number.
            call_data: False may leave out the data of recorded calls, which can be many and long.
        """

    def totals(self, thread_id: str, step: int) -> Totals:
        """Sums over the checkpoints of steps 0 to `step`; visits count the steps of nodes of any kind."""

    def facts(self, thread_id: str) -> bytes:
        """The `facts_hash` of a thread as its facts are stored now; b"" when there is no such thread."""

    def parts(self, thread_id: str) -> list[Part]:
        """Who wrote which rows of a thread's log, its own part last."""

    def faults(self, thread_id: str | None, since: int = 0) -> Iterator[Fault]:
        """What is stored twice and differs, or belongs to nothing: of a thread, or of the store as a whole.

        Args:
            since: of a thread: sums over steps before this one are taken as they are stored.

        Raises:
            LogCorrupt: it can't be read.
        """

    def reader(self) -> Reader | None:
        """What opens the same store in another process, for reading; None where only this one can read it."""

    def children(self, thread_id: str) -> list[ThreadInfo]:
        """The forks of a thread, oldest first."""

    def inner_names(self, thread_id: str) -> list[str]:
        """The ids of the threads that ran directly inside a thread, oldest first.

        Of those whose facts cannot be read, too, where the store knows their ids.
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
        """Threads by last change, newest first; `query` is a part of the thread id.

        Args:
            after: the last one of the page before this one, of the same list.
            within: "" for those at the top, which ran inside no thread of this store; a thread's id for those
                that ran directly inside it, oldest first.  Both count what is inside each.
            waiting: only those that wait for a human, the one that has waited longest first.
        """

    def waiting(self, limit: int) -> list[Waiting]:
        """At most `limit` of the threads at the top that wait for a human, with what they ask.

        The one that has waited longest comes first.  One whose cursor is damaged asks nothing here: opening
        it tells what is wrong.
        """

    def changes(self, thread_id: str | None = None) -> object:
        """What stays equal as long as nobody, here or elsewhere, writes; None where the store can't tell.

        Args:
            thread_id: only a thread and those inside it are asked about; others may count, too.
        """

    def subscribe(
        self, wake: Callable[[], object], thread_id: str | None = None
    ) -> Callable[[], None] | None:
        """Have `wake` called, from any thread, soon after somebody wrote or `changes` can tell again.

        Args:
            thread_id: only for what is written of a thread and those inside it.

        Returns:
            What ends that; None where the store can't call, so that it is to be looked at again and again.
        """

    def jobs(self) -> Jobs | None:
        """What workers are to do; None for a store that hands threads to none."""

    def now(self) -> int:
        """Microseconds since the epoch, by the clock that all who write the store go by."""

    def new_lease(self, now: int) -> Lease:
        """A lease of this process with a fresh token; `now` in microseconds."""

    def summary(self, thread_id: str) -> ThreadSummary | None:
        """The thread's line in `threads`, or None when there is no such thread."""

    def acquire(self, thread_id: str, lease: Lease, now: int) -> Lease | None:
        """Take the thread for writing; returns the dead or expired lease that was taken over.

        Raises:
            ThreadBusy: a living holder has it (names user, host and process).
        """

    def renew(self, thread_id: str, token: str, expires_at: int) -> None:
        """Keep a lease; raises `ThreadBusy` when another holder has taken the thread."""

    def release(self, thread_id: str, token: str) -> None:
        """Give a lease back; nothing happens when it is not held."""

    def request_pause(self, thread_id: str, request: PauseRequest | None) -> None:
        """Ask whoever holds the thread to pause it, in place of what was asked before; None asks no more."""

    def pause_request(self, thread_id: str) -> PauseRequest | None:
        """What was asked last of the thread's holder."""

    def attend(self, thread_id: str, presence: Presence, now: int, over: str = "") -> None:
        """Note that somebody is at a question of the thread, in place of what their token said before.

        Args:
            over: whose claim of the same question a claim takes over; "" for nobody's.

        Raises:
            AnswerRefused: the question is claimed by somebody else (names them, and for how long).
        """

    def leave(self, thread_id: str, token: str) -> None:
        """They are there no more; nothing happens where they weren't."""

    def attending(self, thread_id: str, now: int) -> tuple[Presence, ...]:
        """Who is at a question of the thread now, oldest first; who has ended is left out."""

    def delete(self, deletion: Deletion) -> list[LedgerEntry]:
        """Take threads out, all or none, and keep of each an entry in the store's own ledger.

        Raises:
            UnknownThread: one is not there.
            UsageError: a fork of one, or a thread inside one, would stay behind.
            ThreadBusy: a living holder has one, or one runs or waits; not with `force`.
            StaleWriter: one has moved since; not with `force`.
        """

    def store_ledger(self, newest: int | None = None) -> list[LedgerEntry]:
        """What was taken out of the store, oldest first: entries of kind "delete" in a chain of their own.

        Args:
            newest: only so many of the newest; None for all.
        """

    def size(self, thread_id: str) -> ThreadSize:
        """What a thread's own rows fill; raises `UnknownThread`."""

    def space(self) -> Space:
        """What the store takes on the disk; nothing for one in memory."""

    def vacuum(self) -> Space:
        """Give unused space back, drop graphs that no thread names; what it takes now.

        Raises:
            StoreUnusable: the store is in use, read-only or full.
        """

    def close(self) -> None:
        """Release files and handles."""


_PAGE = 256


def new_thread_id(store: Store, stem: str) -> str:
    """A name nobody uses yet: stem, day and number, as in "demo-2026-11-21-2"."""
    from datetime import date

    day = f"{stem}-{date.today().isoformat()}"
    number = 1
    while store.info(f"{day}-{number}") is not None:
        number += 1
    return f"{day}-{number}"


def all_threads(
    store: Store, query: str = "", within: str | None = None, *, waiting: bool = False
) -> Iterator[ThreadSummary]:
    """The threads of a whole list of `Store.threads`, read a page at a time."""
    last: ThreadSummary | None = None
    while page := store.threads(query, _PAGE, last, within, waiting=waiting):
        yield from page
        last = page[-1]
