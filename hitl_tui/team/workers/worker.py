"""A worker: takes threads that may go on and advances each to its next stop (docs/team.md, "Workers")."""

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
"""Seconds between looks for jobs that nobody tells of: those whose time has come, or whose thread is free."""
_NEVER: Final = 1e9
_LONGEST_WAIT: Final = 60.0
_AGAIN: Final = 0.5
_CONNECT: Final = 1.0
"""Seconds after which a connection is asked for anew: the server may have come back."""
_TRIES: Final = 120
_TAKE: Final = "SELECT * FROM take_job(%(queues)s, %(worker)s)"
_FINISH: Final = (
    "DELETE FROM procrastinate_jobs WHERE id = %(id)s AND status = 'doing' "
    "AND worker_id = %(worker)s AND attempts = %(attempts)s"
)
_LET_GO: Final = 5.0
"""Seconds within which a run that was given up gives its thread back."""

What = Literal["run", "expire", "nothing"]


def what_to_do(cursor: Cursor, version: int, now: int) -> What:
    """What a worker does with a thread that is the workers'.

    Args:
        version: the version of the cursor when the job was made.
        now: microseconds since the epoch, by the store's clock.
    """
    if cursor.status in ("completed", "cancelled"):
        return "nothing"
    if cursor.status == "failed":
        # Tried again where somebody wants that, not where it failed since.
        return "run" if cursor.version == version else "nothing"
    if any(request.due(now) for request in cursor.pending):
        return "expire"
    if any(request.breakpoint for request in cursor.pending) or cursor.reason == "limit":
        return "nothing"
    return "run"


def wait_before(tries: int) -> float:
    """Seconds until a job is tried again that was put off so many times before."""
    return float(min(2**tries, _LONGEST_WAIT))


class _Manager(JobManager):
    """The queue as one worker sees it, which outlives its connections.

    Jobs that are done are deleted, and only those that are still the worker's that did them.

    Args:
        registered: is told the number that the worker is given, before it takes a job.
        give_back: queues again what a worker (its number) has but for the jobs that it runs (their ids).
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
            # What it gave with an answer that was lost is nobody's.
            self._in_doubt = True
            _tell_away(error)
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
                _tell_away(error)
            await asyncio.sleep(_AGAIN)

    async def finish_job(self, job: QueuedJob, status: Status, delete_job: bool) -> None:
        try:
            # Of what was broken off as the worker ended: whoever comes next queues it again.
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


def _tell_away(error: Exception) -> None:
    log.warning("the queue can't be reached: %s", error.__cause__ or error)


class Worker:
    """Advances threads of a store.

    Args:
        runners: the graphs that it has, and runs no others.
        concurrency: how many threads it runs at once.
        grace: seconds that a node may take on once the worker is to stop.
        tell: is told in words what it does.
    """

    def __init__(
        self,
        store: Checkpointer,
        jobs: PostgresJobs,
        runners: Mapping[str, GraphRunner],
        *,
        concurrency: int,
        grace: float,
        tell: Callable[[str], object],
        observe: Observe | None = None,
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._runners = runners
        self._concurrency = concurrency
        self._grace = grace
        self._tell = tell
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
            tell=tell,
        )

    def stop(self) -> None:
        """Take no more threads, and leave those that run at their next step; on the event loop.

        Asked again, it gives up at once what runs: nodes have no more time.
        """
        if self._stopping.is_set():
            self._at_once.set()
            self._tell("gives up what runs")
            return
        self._stopping.set()
        self._tell("takes no more threads, and stops once its nodes have ended")
        self._keeper.stopping = True
        if self._fetcher is not None:
            self._fetcher.stop()

    async def run(self) -> None:
        """Work until `stop`; begins again where the connection was lost."""
        self._keeper.begin()
        try:
            while not self._stopping.is_set():
                try:
                    await self._fetch()
                except (ConnectorException, psycopg.Error, StoreUnusable) as error:
                    _tell_away(error)
                if not self._stopping.is_set():
                    await asyncio.sleep(_AGAIN)
        finally:
            await asyncio.to_thread(self._keeper.end)
            await self._hub.close()

    async def _fetch(self) -> None:
        app = App(connector=PsycopgConnector())
        app.job_manager = _Manager(app.connector, self._keeper.take, self._jobs.give_back)
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
            # However slow: a pool that is given up takes the connection with it that comes late.
            await pool.wait(PATIENCE)
            self._fetcher = Fetcher(
                app,
                queues=sorted({digest[:DIGEST] for digest in self._runners}),
                concurrency=self._concurrency,
                fetch_job_polling_interval=_POLL,
                install_signal_handlers=False,
                delete_jobs="always",
                # The keeper does both; nodes are reached by a pause.
                update_heartbeat_interval=_NEVER,
                stalled_worker_timeout=_NEVER,
                abort_job_polling_interval=_NEVER,
            )
            if not self._stopping.is_set():
                self._tell(f"takes threads, {self._concurrency} at once")
                await self._fetcher.run()

    async def _advance_job(self, _context: JobContext, /, thread: str, version: int, **rest: Any) -> None:
        # It may be given a thread that it still runs, having been taken for dead meanwhile.
        async with self._turns.setdefault(thread, asyncio.Lock()):
            await self._advance_or_put_off(thread, version, int(rest.get("tries") or 0))

    async def _advance_or_put_off(self, thread: str, version: int, tries: int) -> None:
        """What a job does: it puts the thread off where it can't advance it, and is done either way."""
        why: str | None = None
        while True:
            try:
                why = why or await self._advance(thread, version)
                if why is None:
                    await asyncio.to_thread(self._jobs.settle, thread)
                else:
                    await self._put_off(thread, tries, why)
                return
            except UnknownThread:
                return
            except NotAllowed as error:
                why = error.message
            except StoreUnusable as error:
                # The job is this worker's as long as it lives, so nothing is lost by waiting for the store.
                self._tell(f"{thread}: {error.message}")
                if self._stopping.is_set():
                    raise
                await asyncio.sleep(_POLL)
            except Exception as error:
                if not isinstance(error, HitlError):
                    log.exception("thread %s could not be advanced", thread)
                why = error.message if isinstance(error, HitlError) else f"{type(error).__name__}: {error}"

    async def _put_off(self, thread_id: str, tries: int, why: str) -> None:
        delay = 0.0 if self._stopping.is_set() else wait_before(tries)
        await asyncio.to_thread(self._jobs.put, thread_id, delay, tries + 1, why)
        self._tell(f"{thread_id}: {why}; {f'again in {delay:g} s' if delay else 'left to others'}")

    async def _advance(self, thread_id: str, version: int) -> str | None:
        """Advance a thread to its next stop; says why it has to be tried again, None where it has not."""
        cursor = await asyncio.to_thread(self._store.cursor, thread_id)
        if cursor is None:
            return None
        what = what_to_do(cursor, version, self._store.now())
        if what == "nothing":
            return None
        if what == "run" and (why := await asyncio.to_thread(missing_answer, self._store, cursor)):
            return f"not continued: {why}; look at it with verify --strict"
        try:
            async with self._hub.borrow(thread_id) as driver:
                if what == "expire":
                    assert isinstance(driver, LocalDriver)
                    await driver.expire()
                else:
                    self._tell(f"{thread_id}: goes on from step {max(cursor.head, 0)}")
                    await self._run_to_stop(driver)
        except ThreadBusy as error:
            return error.message
        now = await asyncio.to_thread(self._store.cursor, thread_id)
        if now is None or what == "expire":
            return None
        if now.status == "running":
            return "its run broke off"
        if self._stopping.is_set() and (now.status, now.reason) == ("waiting", "paused"):
            return "its worker was stopped"
        self._tell(f"{thread_id}: {now.status}{f' ({now.reason})' if now.reason else ''} at step {now.head}")
        return None

    async def _run_to_stop(self, driver: Driver) -> None:
        """Run a thread until it stops by itself, or because the worker does."""
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
            await asyncio.wait([ended], timeout=_LET_GO)
        ended.cancel()

    def _build(self, info: ThreadInfo) -> GraphRunner:
        """The graph of a thread, of those that this worker was given."""
        cursor = self._store.cursor(info.thread_id)
        digest = (cursor.graph if cursor else "") or info.graph_digest
        runner = self._runners.get(digest)
        if runner is None:
            raise UsageError(
                f"this worker has no graph {info.graph_name} {digest[:12]}", "give it with --graph"
            )
        return runner


def graphs_of(runners: Mapping[str, GraphRunner]) -> tuple[HandedGraph, ...]:
    """What a worker says of its graphs."""
    return tuple(HandedGraph(runner.graph.name, digest[:DIGEST]) for digest, runner in runners.items())
