"""Runs the async core from sync code, also inside a running event loop, as in a notebook."""

from __future__ import annotations

# `signal` wraps this module and converts to enums, which takes a tenth of the time of a single step.
import _signal  # type: ignore[import-not-found]
import asyncio
import atexit
import contextvars
import os
import signal
import threading
from collections.abc import Awaitable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
_SIGINT = int(signal.SIGINT)


def _on_a_loop() -> bool:
    """Whether the caller is inside a running event loop.

    A function of its own: a node's error must not be raised in an `except` block here, or it would be chained
    to that one.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def run_on(loop: asyncio.AbstractEventLoop, work: Awaitable[T]) -> T:
    """Run work on a given loop from sync code, also inside another running loop."""
    if not _on_a_loop():
        return loop.run_until_complete(work)
    with ThreadPoolExecutor(1, "hitl-tui run") as pool:
        return pool.submit(loop.run_until_complete, work).result()


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run the async core from sync code."""
    if not _on_a_loop():
        return _loop_of_thread().run(work)
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="hitl-tui run")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


class _KeptLoop:
    """The event loop of a thread that runs sync code, kept because making one takes longer than a step."""

    def __init__(self) -> None:
        self._pid = 0
        self._runner: asyncio.Runner | None = None
        self._task: asyncio.Task[Any] | None = None
        self._interrupted = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do what `asyncio.run` does, but keep the loop for the next time if nothing is left on it."""
        if self._runner is None or self._pid != os.getpid():  # a fork shares its parent's selector
            self._runner, self._pid = asyncio.Runner(), os.getpid()
        loop = contextvars.Context().run(self._runner.get_loop)  # it keeps this context
        try:
            # In a copy of the caller's current context: the runner would keep the one of its first run.
            result = self._finish(loop, loop.create_task(work))
        except BaseException:
            self.close()
            raise
        if _is_in_use(loop):
            self.close()
        return result

    def _finish(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[T]) -> T:
        """Run a task to its end; the first Ctrl-C cancels it, as in `asyncio.run`."""
        self._task, self._interrupted = task, False
        in_main = threading.current_thread() is threading.main_thread()
        catches = in_main and _signal.getsignal(_SIGINT) is signal.default_int_handler
        if catches:
            _signal.signal(_SIGINT, self._on_interrupt)
        try:
            return loop.run_until_complete(task)
        except asyncio.CancelledError:
            if self._interrupted and task.uncancel() == 0:
                raise KeyboardInterrupt from None
            raise
        finally:
            self._task = None
            if catches:
                _signal.signal(_SIGINT, signal.default_int_handler)

    def _on_interrupt(self, _signal: int, _frame: object) -> None:
        task = self._task
        if self._interrupted or task is None or task.done():
            raise KeyboardInterrupt
        self._interrupted = True
        task.cancel()
        task.get_loop().call_soon_threadsafe(lambda: None)  # wakes the loop if it waits

    def close(self) -> None:
        """Cancel what is left on the loop, and close it."""
        runner, self._runner = self._runner, None
        if runner and self._pid == os.getpid():
            runner.close()

    def __del__(self) -> None:
        self.close()


def _is_in_use(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether tasks, generators or threads are left on a loop that `asyncio.run` would end or wait for."""
    left = (getattr(loop, name, None) for name in ("_asyncgens", "_default_executor"))
    return bool(asyncio.all_tasks(loop)) or any(left)


_of_thread = threading.local()


def _loop_of_thread() -> _KeptLoop:
    kept: _KeptLoop | None = getattr(_of_thread, "loop", None)
    if kept is None:
        kept = _of_thread.loop = _KeptLoop()
        if threading.current_thread() is threading.main_thread():
            atexit.register(kept.close)
    return kept
