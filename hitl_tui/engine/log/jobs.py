"""Jobs of workers (docs/team.md, "Run threads on workers").

A job is "run a thread until it stops".  Once a thread is handed to the workers, each commit after which it
can continue queues a job for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Literal, Protocol

import msgspec

from hitl_tui.engine.log.units import Maybe, Time, about

JobState = Literal["queued", "later", "running"]


class WorkerJob(msgspec.Struct, frozen=True):
    """A job: a thread that waits for a worker, or that a worker runs.

    Args:
        graph: the name of its graph.
        digest: the beginning of the graph's digest, by which workers choose jobs.
        orphan: whether no worker has the graph.
        since: when the running job began; else the earliest time it may begin.
    """

    thread: Annotated[str, about("The thread.")]
    state: Annotated[
        JobState, about("The job's status: running, queued for a worker, or waiting for a later time.")
    ]
    graph: Annotated[str, about("The name of its graph.")]
    digest: Annotated[str, about("The beginning of the digest of its graph.")]
    priority: Annotated[int, about("The priority; higher ones run first.")]
    since: Annotated[Time, about("When it was queued, may start, or started to run.")]
    tries: Annotated[int, about("How often it was postponed.")] = 0
    why: Annotated[Maybe, about("Why it was postponed or moved to another worker.")] = ""
    worker: Annotated[int | None, about("The worker that runs it.")] = None
    orphan: Annotated[bool, about("Whether no worker has its graph.")] = False


class HandedGraph(msgspec.Struct, frozen=True):
    """A graph that a worker can run."""

    name: Annotated[str, about("The graph's name.")]
    digest: Annotated[str, about("The beginning of the graph's digest.")]


class WorkerInfo(msgspec.Struct, frozen=True):
    """A worker: a process that runs threads of a store.

    Args:
        last_seen: the time of its last sign of life.
        login: its database login.
    """

    id: Annotated[int, about("The worker's number.")]
    user: Annotated[str, about("The user who runs it.")]
    host: Annotated[str, about("The host.")]
    pid: Annotated[int, about("The process id.")]
    login: Annotated[str, about("The database login.")]
    concurrency: Annotated[int, about("How many threads it runs at once.")]
    graphs: Annotated[tuple[HandedGraph, ...], about("The graphs that it can run.")]
    since: Annotated[Time, about("When it started.")]
    last_seen: Annotated[Time, about("When it last sent a sign of life.")]
    stopping: Annotated[bool, about("Whether it is stopping and takes no more threads.")] = False


class OrphanGraph(msgspec.Struct, frozen=True):
    """A graph that queued threads need and no worker has."""

    name: Annotated[str, about("The graph's name.")]
    digest: Annotated[str, about("The beginning of the graph's digest.")]
    threads: Annotated[int, about("How many threads are queued for it.")]


class AtWork(msgspec.Struct, frozen=True):
    """Workers and jobs of a store at one moment.

    Args:
        jobs: the first jobs; `running`, `queued` and `later` count all.
        now: that moment, by the store's clock.
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
        """Hand a thread to the workers for good.

        It is queued now, and after each commit from which it can continue.  Handing it over again changes its
        priority and time, and queues no second job.

        Args:
            priority: higher numbers run first.
            at: the earliest time to begin, None for at once.

        Raises:
            UnknownThread: there is no such thread.
            StoreUnusable: this user has no right to, or the store has no tables for jobs.
        """

    def is_handed(self, thread_id: str) -> bool:
        """Whether a thread was handed to the workers."""

    def of_threads(self, threads: Collection[str]) -> Sequence[WorkerJob]:
        """Return the jobs of some threads; if a thread has two, the running one comes second."""

    def at_work(self, limit: int) -> AtWork:
        """Return the live workers, oldest first, and the first `limit` jobs.

        Running jobs come first, then the others in the order in which they will run.
        """

    def orphaned(self, threads: Collection[str]) -> Collection[str]:
        """Return the given threads that were handed to the workers although no worker has their graph."""
