"""A worker: runs threads that can continue, each to a stop (docs/team.md, "Run threads on workers")."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

import psycopg
from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.connector import BaseConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job as QueuedJob
from procrastinate.jobs import Status
from procrastinate.manager import JobManager, NotificationCallback
from procrastinate.worker import Worker as Fetcher
from psycopg_pool import AsyncConnectionPool

from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.local import LocalDriver, Observe
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.audit.proof import missing_answer
from hitl_tui.engine.commands import CancelAttempt, Pause, Run
from hitl_tui.engine.log.jobs import HandedGraph
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.errors import HitlError, NotAllowed, StoreUnusable, ThreadBusy, UnknownThread, UsageError
from hitl_tui.stores.base import Checkpointer
from hitl_tui.stores.postgres.jobs import DIGEST, PostgresJobs
from hitl_tui.stores.postgres.server import PATIENCE
from hitl_tui.team.workers.keeper import Keeper

log = logging.getLogger(__name__)

_POLL: Final = 0.5
"""Seconds between looks for jobs without a notification: those that are due, or whose thread is free."""
_NEVER: Final = 1e9
_LONGEST_WAIT: Final = 60.0
_AGAIN: Final = 0.5
_CONNECT: Final = 1.0
"""Seconds between attempts to connect, as the database server may be back."""
_TRIES: Final = 120
_TAKE: Final = "SELECT * FROM take_job(%(queues)s, %(worker)s)"
_FINISH: Final = (
    "DELETE FROM procrastinate_jobs WHERE id = %(id)s AND status = 'doing' "
    "AND worker_id = %(worker)s AND attempts = %(attempts)s"
)
_RELEASE: Final = 5.0
"""Seconds in which a cancelled run releases its thread."""

Task = Literal["run", "expire", "nothing"]


def task_for(cursor: Cursor, version: int, now: int) -> Task:
    """Return what a worker does with a thread that was handed to workers.

    Args:
        version: the version of the cursor when the job was made.
        now: microseconds since the epoch, by the store's clock.
    """
    if cursor.status in ("completed", "cancelled"):
        return "nothing"
    if cursor.status == "failed":
        # A person asked for a retry before this job was made; it has not failed since.
        return "run" if cursor.version == version else "nothing"
    if any(request.due(now) for request in cursor.pending):
        return "expire"
    if any(request.breakpoint for request in cursor.pending) or cursor.reason == "limit":
        return "nothing"
    return "run"


def wait_before(tries: int) -> float:
    """Return the seconds until a job that was postponed `tries` times is tried again."""
    return float(min(2**tries, _LONGEST_WAIT))


class _Manager(JobManager):
    """The job queue for one worker; it survives lost connections.

    A job is deleted when it is done, if it still belongs to the worker that did it.

    Args:
        registered: called with the worker's number before it takes a job.
        give_back: queues a worker's jobs again, except those that it runs, by their ids.
    """

    def __init__(
        self,
        connector: BaseConnector,
        registered: Callable[[int], object],
        give_back: Callable[[int, Collection[int]], object],
    ) -> None:
        super().__init__(connector)
        self._registered = registered
        self._give_back = give_back
        self._running: set[int] = set()
        self._in_doubt = False

    async def register_worker(self) -> int:
        number = await super().register_worker()
        await asyncio.to_thread(self._registered, number)
        return number

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> QueuedJob | None:
        try:
            if self._in_doubt:
                await asyncio.to_thread(self._give_back, worker_id, set(self._running))
                self._in_doubt = False
            taken = await self.connector.execute_query_all_async(_TAKE, queues=queues, worker=worker_id)
        except (ConnectorException, StoreUnusable) as error:
            # Jobs in a lost response belong to nobody.
            self._in_doubt = True
            _log_unreachable(error)
            return None
        self._running.update(row["id"] for row in taken)
        return QueuedJob.from_row(taken[0]) if taken else None

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        while True:
            try:
                await super().listen_for_jobs(on_notification=on_notification, queues=queues)
            except ConnectorException as error:
                _log_unreachable(error)
            await asyncio.sleep(_AGAIN)

    async def finish_job(self, job: QueuedJob, status: Status, delete_job: bool) -> None:
        try:
            # Another worker queues a job again that was interrupted when this worker stopped.
            if status is Status.SUCCEEDED:
                await self._finish(job)
        finally:
            self._running.discard(job.id or 0)

    async def _finish(self, job: QueuedJob) -> None:
        for _ in range(_TRIES):
            try:
                await self.connector.execute_query_async(
                    _FINISH, id=job.id, worker=job.worker_id, attempts=job.attempts
                )
                return
            except ConnectorException:
                await asyncio.sleep(_AGAIN)


def _log_unreachable(error: Exception) -> None:
    log.warning("the queue can't be reached: %s", error.__cause__ or error)


class Worker:
    """Advances threads of a store.

    Args:
        runners: the graphs that it runs, by digest.
        concurrency: how many threads it runs at once.
        grace: seconds that running nodes get to finish after `stop`.
        report: called with a line about what it does.
    """

    def __init__(
        self,
        store: Checkpointer,
        jobs: PostgresJobs,
        runners: Mapping[str, GraphRunner],
        *,
        concurrency: int,
        grace: float,
        report: Callable[[str], object],
        observe: Observe | None = None,
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._runners = runners
        self._concurrency = concurrency
        self._grace = grace
        self._report = report
        self._hub = LocalHub(store, self._build, observe=observe, asks=False)
        self._stopping = asyncio.Event()
        self._at_once = asyncio.Event()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._fetcher: Fetcher | None = None
        self._keeper = Keeper(
            store,
            jobs,
            graphs_of(runners),
            concurrency,
            report=report,
        )

    def stop(self) -> None:
        """Take no more threads and pause the running ones at their next step; call it on the event loop.

        A second call stops the running nodes at once.
        """
        if self._stopping.is_set():
            self._at_once.set()
            self._report("stopping the running nodes now")
            return
        self._stopping.set()
        self._report("taking no more threads; stopping when the running nodes have ended")
        self._keeper.stopping = True
        if self._fetcher is not None:
            self._fetcher.stop()

    async def run(self) -> None:
        """Work until `stop`; reconnect after a lost connection."""
        self._keeper.start()
        try:
            while not self._stopping.is_set():
                try:
                    await self._fetch()
                except (ConnectorException, psycopg.Error, StoreUnusable) as error:
                    _log_unreachable(error)
                if not self._stopping.is_set():
                    await asyncio.sleep(_AGAIN)
        finally:
            await asyncio.to_thread(self._keeper.stop)
            await self._hub.close()

    async def _fetch(self) -> None:
        app = App(connector=PsycopgConnector())
        app.job_manager = _Manager(app.connector, self._keeper.register, self._jobs.give_back)
        app.task(name="advance", pass_context=True)(self._advance_job)
        pool = AsyncConnectionPool(
            self._jobs.conninfo,
            min_size=1,
            max_size=3,
            open=False,
            check=AsyncConnectionPool.check_connection,
            timeout=_CONNECT,
            reconnect_timeout=_CONNECT,
        )
        async with pool, app.open_async(pool):
            # Wait long: an abandoned pool would drop a connection that comes late.
            await pool.wait(PATIENCE)
            self._fetcher = Fetcher(
                app,
                queues=sorted({digest[:DIGEST] for digest in self._runners}),
                concurrency=self._concurrency,
                fetch_job_polling_interval=_POLL,
                install_signal_handlers=False,
                delete_jobs="always",
                # The keeper does the first two; a pause reaches running nodes.
                update_heartbeat_interval=_NEVER,
                stalled_worker_timeout=_NEVER,
                abort_job_polling_interval=_NEVER,
            )
            if not self._stopping.is_set():
                self._report(f"taking threads, at most {self._concurrency} at once")
                await self._fetcher.run()

    async def _advance_job(self, _context: JobContext, /, thread: str, version: int, **rest: Any) -> None:
        # If it was taken for dead meanwhile, it can get a thread that it still runs.
        async with self._turns.setdefault(thread, asyncio.Lock()):
            await self._advance_or_postpone(thread, version, int(rest.get("tries") or 0))

    async def _advance_or_postpone(self, thread: str, version: int, tries: int) -> None:
        """Do a job: advance its thread, or postpone it if that fails. The job is done either way."""
        why: str | None = None
        while True:
            try:
                why = why or await self._advance(thread, version)
                if why is None:
                    await asyncio.to_thread(self._jobs.settle, thread)
                else:
                    await self._postpone(thread, tries, why)
                return
            except UnknownThread:
                return
            except NotAllowed as error:
                why = error.message
            except StoreUnusable as error:
                # The job stays with this worker while it lives, so it can wait for the store.
                self._report(f"{thread}: {error.message}")
                if self._stopping.is_set():
                    raise
                await asyncio.sleep(_POLL)
            except Exception as error:
                if not isinstance(error, HitlError):
                    log.exception("thread %s could not be advanced", thread)
                why = error.message if isinstance(error, HitlError) else f"{type(error).__name__}: {error}"

    async def _postpone(self, thread_id: str, tries: int, why: str) -> None:
        delay = 0.0 if self._stopping.is_set() else wait_before(tries)
        await asyncio.to_thread(self._jobs.put, thread_id, delay, tries + 1, why)
        self._report(
            f"{thread_id}: {why}; {f'trying again in {delay:g} s' if delay else 'left to other workers'}"
        )

    async def _advance(self, thread_id: str, version: int) -> str | None:
        """Advance a thread to its next stop; return why it has to be tried again, or None."""
        cursor = await asyncio.to_thread(self._store.cursor, thread_id)
        if cursor is None:
            return None
        task = task_for(cursor, version, self._store.now())
        if task == "nothing":
            return None
        if task == "run" and (why := await asyncio.to_thread(missing_answer, self._store, cursor)):
            return f"not continued: {why}; look at it with verify --strict"
        try:
            async with self._hub.borrow(thread_id) as driver:
                if task == "expire":
                    assert isinstance(driver, LocalDriver)
                    await driver.expire()
                else:
                    self._report(f"{thread_id}: continuing from step {max(cursor.head, 0)}")
                    await self._run_to_stop(driver)
        except ThreadBusy as error:
            return error.message
        now = await asyncio.to_thread(self._store.cursor, thread_id)
        if now is None or task == "expire":
            return None
        if now.status == "running":
            return "its run was interrupted"
        if self._stopping.is_set() and (now.status, now.reason) == ("waiting", "paused"):
            return "its worker was stopped"
        self._report(
            f"{thread_id}: {now.status}{f' ({now.reason})' if now.reason else ''} at step {now.head}"
        )
        return None

    async def _run_to_stop(self, driver: Driver) -> None:
        """Run a thread until it stops, or until the worker is stopped."""
        seen = (await driver.snapshot()).last_event
        await driver.execute(Run())
        ended = asyncio.create_task(driver.ended(seen))
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([ended, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not ended.done():
            await driver.execute(Pause())
            at_once = asyncio.create_task(self._at_once.wait())
            await asyncio.wait([ended, at_once], timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
            at_once.cancel()
        if not ended.done():
            await driver.execute(CancelAttempt())
            await asyncio.wait([ended], timeout=_RELEASE)
        ended.cancel()

    def _build(self, info: ThreadInfo) -> GraphRunner:
        """Return the runner of a thread's graph; raises `UsageError` if this worker lacks the graph."""
        cursor = self._store.cursor(info.thread_id)
        digest = (cursor.graph if cursor else "") or info.graph_digest
        runner = self._runners.get(digest)
        if runner is None:
            raise UsageError(
                f"this worker has no graph {info.graph_name} {digest[:12]}", "give it with --graph"
            )
        return runner


def graphs_of(runners: Mapping[str, GraphRunner]) -> tuple[HandedGraph, ...]:
    """Return how a worker registers its graphs."""
    return tuple(HandedGraph(runner.graph.name, digest[:DIGEST]) for digest, runner in runners.items())
