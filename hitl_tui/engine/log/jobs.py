"""Jobs: what workers are to do, and who does it (docs/team.md, "Workers").

A job is "advance a thread to its next stop".  Threads are the workers' from the moment they are handed to
them; from then on each commit that lets one go on makes a job of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Literal, Protocol

import msgspec

from hitl_tui.engine.log.units import Maybe, Time, about

JobState = Literal["queued", "later", "running"]


class WorkerJob(msgspec.Struct, frozen=True):
    """A thread that workers are to advance, or one advances now.

    Args:
        graph: name of its graph; `digest` the beginning of the graph's digest, by which workers choose.
        orphan: nobody who works has the graph.
        since: of one that runs, when it began; else when it may begin.
    """

    thread: Annotated[str, about("The thread.")]
    state: Annotated[JobState, about("Whether it waits for a worker, for its time, or runs.")]
    graph: Annotated[str, about("The name of its graph.")]
    digest: Annotated[str, about("The beginning of its graph's digest.")]
    priority: Annotated[int, about("What is higher goes first.")]
    since: Annotated[Time, about("When it was queued, is to begin, or began to run.")]
    tries: Annotated[int, about("How often it was put off.")] = 0
    why: Annotated[Maybe, about("Why it was put off, or given to another worker.")] = ""
    worker: Annotated[int | None, about("The worker that runs it.")] = None
    orphan: Annotated[bool, about("Whether no worker has its graph.")] = False


class HandedGraph(msgspec.Struct, frozen=True):
    """A graph that a worker has."""

    name: Annotated[str, about("Its name.")]
    digest: Annotated[str, about("The beginning of its digest.")]


class WorkerInfo(msgspec.Struct, frozen=True):
    """A process that advances threads.

    Args:
        heard: when it was heard of last.
        login: its user of the database.
    """

    id: Annotated[int, about("Its number.")]
    user: Annotated[str, about("Its user.")]
    host: Annotated[str, about("Its host.")]
    pid: Annotated[int, about("Its process.")]
    login: Annotated[str, about("Its user of the database.")]
    concurrency: Annotated[int, about("How many threads it runs at once.")]
    graphs: Annotated[tuple[HandedGraph, ...], about("The graphs it has.")]
    since: Annotated[Time, about("When it began.")]
    heard: Annotated[Time, about("When it was heard of last.")]
    stopping: Annotated[bool, about("Whether it takes no more threads.")] = False


class OrphanGraph(msgspec.Struct, frozen=True):
    """A graph that no worker has, and threads wait for."""

    name: Annotated[str, about("Its name.")]
    digest: Annotated[str, about("The beginning of its digest.")]
    threads: Annotated[int, about("How many threads are queued for it.")]


class AtWork(msgspec.Struct, frozen=True):
    """Who advances threads, and what is to be done, at one moment.

    Args:
        jobs: the first ones; the numbers are of all.
        now: the time of it, by the store's clock.
    """

    workers: tuple[WorkerInfo, ...]
    jobs: tuple[WorkerJob, ...]
    orphans: tuple[OrphanGraph, ...]
    running: int
    queued: int
    later: int
    now: int


class Jobs(Protocol):
    """The jobs of a store; times are by its clock."""

    def hand(self, thread_id: str, *, priority: int = 0, at: int | None = None) -> None:
        """Hand a thread to the workers, for good: it is queued now, and whenever a commit lets it go on.

        Handing it again changes its priority and its time; it is queued once all the same.

        Args:
            priority: what is higher goes first.
            at: when it may begin at the earliest; None for at once.

        Raises:
            UnknownThread: there is no such thread.
            StoreUnusable: this user may not, or the store has no tables for jobs.
        """

    def is_handed(self, thread_id: str) -> bool:
        """Whether a thread is the workers'."""

    def of_threads(self, threads: Collection[str]) -> Sequence[WorkerJob]:
        """The jobs of some threads; of two of the same thread the one that runs is the second."""

    def at_work(self, limit: int) -> AtWork:
        """The workers that were heard of, oldest first, and the first `limit` jobs.

        Those that run come first, then in the order in which they will.
        """

    def orphaned(self, threads: Collection[str]) -> Collection[str]:
        """Which of these threads are the workers', though nobody who works has their graph."""
