"""Prompts that end by themselves once a deadline has answered, so that the run can continue."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress

from hitl_tui.drivers.protocol import Driver
from hitl_tui.plain.console import PromptEnded
from hitl_tui.plain.context import Context, is_timeout

_Watch = tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]


@contextmanager
def ended_by_deadline(context: Context) -> Iterator[None]:
    """Raise `PromptEnded` in the block as soon as a deadline answers.

    Only a signal ends a blocking read, so nothing is raised outside the main thread or on Windows.
    """
    pending = context.snapshot().progress.pending
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    if all(request.deadline is None for request in pending):
        yield
        return
    is_asking = True

    def end_prompt(*_: object) -> None:
        if is_asking:
            raise PromptEnded

    before = signal.signal(signal.SIGURG, end_prompt)  # a signal that is harmless if nobody handles it
    started: Future[_Watch] = Future()
    watch = threading.Thread(
        target=_watch, args=(context.driver, context.seen, started, threading.get_ident()), daemon=True
    )
    watch.start()
    try:
        yield
    finally:
        is_asking = False
        loop, task = started.result()
        with suppress(RuntimeError):  # it has ended
            loop.call_soon_threadsafe(task.cancel)
        watch.join()
        signal.signal(signal.SIGURG, before)


def _watch(driver: Driver, seen: int, started: Future[_Watch], prompting: int) -> None:
    """Send a signal to the thread that prompts once a deadline has answered."""

    async def until_answered() -> None:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        await _deadline_answered(driver, seen)
        signal.pthread_kill(prompting, signal.SIGURG)

    with suppress(asyncio.CancelledError):
        asyncio.run(until_answered())


async def _deadline_answered(driver: Driver, seen: int) -> None:
    while True:
        await driver.changed(seen)
        events = driver.events(seen)
        if not events or any(is_timeout(stamped.event) for stamped in events):
            return  # without any there is a gap, in which it may have answered
        seen = events[-1].number
