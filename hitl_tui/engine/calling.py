"""Calling user code: async functions on the loop, sync ones inline or in threads that can be left.

A thread can't be killed, so a sync node that is given up goes on in a daemon thread whose result
nobody waits for; daemon threads never keep the process alive.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

Job = tuple[Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class SyncCaller:
    """Runs sync functions for an event loop: one idle daemon thread is kept for the next call."""

    def __init__(self) -> None:
        self._idle: list[queue.SimpleQueue[Job | None]] = []

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function in a thread, with the caller's context variables."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        context = copy_context()
        jobs = self._idle.pop() if self._idle else self._start_thread()
        jobs.put((lambda: context.run(function, *args), loop, future))
        try:
            return await future
        finally:
            if future.done() and not future.cancelled():
                self._idle.append(jobs)
            else:
                jobs.put(None)

    def close(self) -> None:
        """Let idle threads end."""
        while self._idle:
            self._idle.pop().put(None)

    @staticmethod
    def _start_thread() -> queue.SimpleQueue[Job | None]:
        jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        threading.Thread(target=_work, args=(jobs,), name="hitl-tui node", daemon=True).start()
        return jobs


def _work(jobs: queue.SimpleQueue[Job | None]) -> None:
    while job := jobs.get():
        function, loop, future = job
        result: Any = None
        error: BaseException | None = None
        try:
            result = function()
        except StopIteration as raised:  # a future refuses it, and would never be done
            error = RuntimeError("StopIteration was raised")
            error.__cause__ = raised
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(_settle, future, result, error)
        except RuntimeError:  # the loop has closed: nobody waits for this any more
            return
        del job, function, future, result, error


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class TookTooLong(TimeoutError):
    """The time for a call was over; a `TimeoutError` of the called function itself is another one."""


async def call(
    function: Callable[..., Any], args: tuple[Any, ...], threads: SyncCaller | None, timeout: float | None
) -> Any:
    """Call a node's function, sync or async.

    Args:
        threads: where sync functions run; None runs them inline unless there is a timeout.
        timeout: seconds; a sync function that takes longer is left behind in its thread.

    Raises:
        TookTooLong: it took longer.
    """
    try:
        async with asyncio.timeout(timeout) as scope:
            return await _call(function, args, threads, in_thread=bool(threads or timeout))
    except TimeoutError:
        if scope.expired():
            raise TookTooLong from None
        raise


async def _call(
    function: Callable[..., Any], args: tuple[Any, ...], threads: SyncCaller | None, *, in_thread: bool
) -> Any:
    if inspect.iscoroutinefunction(function) or not in_thread:
        result = function(*args)
    elif threads:
        result = await threads.call(function, *args)
    else:
        own = SyncCaller()
        try:
            result = await own.call(function, *args)
        finally:
            own.close()
    return await result if inspect.isawaitable(result) else result
