"""The thread of a driver's engine: its event loop, and quick nodes between the turns of that."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from hitl_tui.engine.nodes.calling import Job
from hitl_tui.errors import HitlError

R = TypeVar("R")

_PATIENCE: Final = 0.02
"""Seconds between looks at whether a job holds the loop up."""


class EngineThread:
    """An event loop on a daemon thread; it never keeps the process alive.

    Jobs run between two turns of the loop, in its own thread.  One that takes longer keeps that thread for
    itself: the loop does not run meanwhile, so that another thread can go on with it.
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.stopped = False
        self._name = name
        self._ended = False
        self._job: Job | None = None
        self._lock = threading.Lock()
        self._at_work: Job | None = None
        """The job that the loop waits for."""
        self._jobs = threading.Event()
        self._deputy: threading.Thread | None = None
        self._start(self._run)

    async def call(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the engine's loop and wait for it on the caller's."""
        return await asyncio.wrap_future(self.submit(work))

    def submit(self, work: Coroutine[Any, Any, R]) -> Future[R]:
        """Hand a coroutine over; the future may be waited for from any thread.

        Raises:
            HitlError: the thread has been stopped: nobody would ever answer.
        """
        if self.stopped:
            work.close()
            raise HitlError("the thread has been closed", "open it again")
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def between(self, job: Job) -> bool:
        """Run a job after this turn of the loop; False where another one is to be run then.  On the loop."""
        if self._job is not None:
            return False
        self._job = job
        if self._deputy is None:
            self._deputy = self._start(self._stand_by)
        if not self._jobs.is_set():
            self._jobs.set()
        self.loop.stop()
        return True

    def stop(self) -> None:
        """End the loop once it has done what it is doing."""
        self.stopped = True
        self.loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self._ended = True
        self._jobs.set()
        self.loop.stop()

    def _start(self, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, name=self._name, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        """Run the loop in this thread until it ends, or until another thread has gone on with it."""
        while not self._ended:
            self.loop.run_forever()
            # In this order: the deputy sees a job until it is over.
            self._at_work = job = self._job
            self._job = None
            if job is None:
                continue
            settle = job.run()
            with self._lock:
                ours, self._at_work = self._at_work is job, None
            if not ours:
                job.hand_over(settle)
                return
            settle()
        self.loop.close()

    def _stand_by(self) -> None:
        """Go on with the loop once a job takes long; nothing is looked at while there are no jobs."""
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
            if self._at_work or self._job:
                self._jobs.set()
