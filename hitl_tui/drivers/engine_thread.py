"""The engine thread of a driver: its event loop, and quick nodes that run between the loop's turns."""

from __future__ import annotations

import asyncio
import threading
import time
from asyncio.events import _set_running_loop
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from inspect import CORO_CLOSED, CORO_CREATED, getcoroutinestate
from types import coroutine
from typing import Any, Final, TypeVar

from hitl_tui.engine.nodes.calling import Job
from hitl_tui.errors import HitlError

R = TypeVar("R")
Resume = Callable[[], Any]
"""Continues a coroutine up to what it waits for next, as `send` does."""

_PATIENCE: Final = 0.02
"""Seconds between checks whether a job blocks the loop."""
_TURN: Final = 0.02
"""Seconds for which quick nodes run one after another before the loop gets its turn."""


class EngineThread:
    """An event loop on a daemon thread; it never keeps the process alive.

    Jobs of the driven coroutine run in this thread too, but between two turns of the loop. A slow job
    keeps the thread for itself, and another thread continues the loop.
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.stopped = False
        self._name = name
        self._ended = False
        self._asked = False
        """Whether somebody waits for a turn of the loop."""
        self._driven: _Driven | None = None
        self._next: Job | None = None
        self._between = False
        """The loop has stopped, or is about to, for the next job and those that may follow."""
        self._at_work: Job | None = None
        self._lock = threading.Lock()
        self._jobs = threading.Event()
        self._deputy: threading.Thread | None = None
        self._start(self._run)

    async def call(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the engine's loop, and await it on the caller's loop."""
        return await asyncio.wrap_future(self.submit(work))

    def submit(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Submit a coroutine; the returned future may be waited for in any thread.

        Raises:
            HitlError: the thread has been stopped: nobody would ever answer.
        """
        if self.stopped:
            work.close()
            raise HitlError("the thread has been closed", "open it again")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        self._asked = True
        return future

    def drive(self, work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        """Make a task of a coroutine that may `await` jobs, replacing the last one; called on the loop."""
        driven = self._driven = _Driven(work, self._stop_for)
        driven.loop, driven.task = self.loop, self.loop.create_task(driven.run(), context=driven.context)
        return driven.task

    def takes_jobs(self) -> bool:
        """Whether the calling code is driven, so that it may `await` a job."""
        return self._driven is not None and self._driven.at_work

    def stop(self) -> None:
        """End the loop once its current work is done."""
        self.stopped = True
        self.loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self._ended = True
        self._jobs.set()
        self.loop.stop()

    def _stop_for(self, job: Job) -> None:
        self._next, self._between = job, True
        if self._deputy is None:
            self._deputy = self._start(self._stand_by)
        if not self._jobs.is_set():
            self._jobs.set()
        self.loop.stop()

    def _start(self, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, name=self._name, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        """Run the loop in this thread until it ends, or until another thread has taken it over."""
        while not self._ended:
            self._between = self._asked = False
            self.loop.run_forever()
            if self._between and self._driven and not self._run_jobs(self._driven):
                return
        self._refuse_the_last()
        self.loop.close()

    def _refuse_the_last(self) -> None:
        """Cancel coroutines that were submitted as the loop ended: somebody may wait for them."""
        self._turn()
        for task in asyncio.all_tasks(self.loop):
            work = task.get_coro()
            if isinstance(work, Coroutine) and getcoroutinestate(work) == CORO_CREATED:
                task.cancel()
        self._turn()

    def _turn(self) -> None:
        """Let the loop do what is ready, and no more."""
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def _run_jobs(self, driven: _Driven) -> bool:
        """Run jobs, one after the other, until the loop has its turn; False if the loop was taken over."""
        end = time.perf_counter() + _TURN
        job, self._next = self._next, None
        wait = driven.wait
        while job is not None and wait is not None and not wait.cancelled():
            self._at_work = job
            now = job.run()
            with self._lock:
                taken_over = self._at_work is not job  # the thread that took over may run a job of its own
                if not taken_over:
                    self._at_work = None
            if taken_over:
                with suppress(RuntimeError):  # the loop is closed, so nobody waits for it any more
                    self.loop.call_soon_threadsafe(driven.resume, wait)
                return False
            if self._asked or now > end:
                driven.resume(wait)
                return True
            job = driven.go_on(wait)
        return True

    def _stand_by(self) -> None:
        """Take over the loop once a job takes long; nothing is checked while there are no jobs."""
        while self._jobs.wait() and not self._ended:
            self._jobs.clear()
            job = self._at_work
            time.sleep(_PATIENCE)
            with self._lock:
                held_up = job is not None and self._at_work is job
                if held_up:
                    self._at_work = self._deputy = None
            if held_up:
                self._run()
                return
            if self._between or self._ended:
                self._jobs.set()


class _Driven:
    """A coroutine that a task runs as usual, but for whose jobs the loop is stopped.

    Between two turns of the loop it continues from one job to the next: a turn for each would cost as much
    as a quick node.
    """

    loop: asyncio.AbstractEventLoop
    task: asyncio.Task[Any]

    def __init__(self, work: Coroutine[Any, Any, Any], stop_for: Callable[[Job], None]) -> None:
        self.context: Context = copy_context()
        self._work = work
        self._stop_for = stop_for
        self.wait: asyncio.Future[Resume] | None = None
        """The future it waits for while its jobs are done; cancelled once nobody waits for them."""
        self.at_work = False
        """Whether its own code runs, not that of another task; asking for the current task costs more."""

    async def run(self) -> Any:
        """Run the coroutine; this is what the task runs."""
        return await self._steps()

    @coroutine
    def _steps(self) -> Generator[Any, Any, Any]:
        work = self._work
        resume: Resume = partial(work.send, None)
        while True:
            self.at_work = True
            try:
                yielded = resume()
            except StopIteration as end:
                return end.value
            finally:
                self.at_work = False
            try:
                if isinstance(yielded, Job):
                    self.wait = asyncio.get_running_loop().create_future()
                    self._stop_for(yielded)
                    resume = yield from self.wait
                else:
                    resume = partial(work.send, (yield yielded))
            except BaseException as error:
                # It may have ended between the turns, before somebody cancelled the task.
                ended = getcoroutinestate(work) == CORO_CLOSED
                resume = self.wait.result() if self.wait and ended else partial(work.throw, error)

    def resume(self, wait: asyncio.Future[Resume], how: Resume | None = None) -> None:
        """Let the task continue with what was done between the turns; by itself after a finished job.

        Args:
            wait: what it waited for; a cancelled wait has no effect on what it waits for now.
            how: what to continue with.
        """
        if not wait.done():
            wait.set_result(how or partial(self._work.send, None))

    def go_on(self, wait: asyncio.Future[Resume]) -> Job | None:
        """Continue up to the next job; None if it waits for something that needs the loop."""
        task, loop = self.task, self.loop
        _set_running_loop(loop)
        _enter_task(loop, task)
        self.at_work = True
        try:
            yielded = self.context.run(self._work.send, None)
        except BaseException as error:
            self.resume(wait, partial(_raise, error))
            return None
        finally:
            self.at_work = False
            _leave_task(loop, task)
            _set_running_loop(None)
        if isinstance(yielded, Job):
            return yielded
        self.resume(wait, lambda: yielded)
        return None


def _raise(error: BaseException) -> Any:
    raise error
