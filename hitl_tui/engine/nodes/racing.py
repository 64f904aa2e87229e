"""Jobs side by side: at most so many at once, until all have ended or nobody waits for the rest."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

# Seconds for jobs that were given up to tidy up; then they are left behind.
_PATIENCE = 2.0


async def race(
    entries: Iterable[T],
    run: Callable[[T], Coroutine[Any, Any, None]],
    *,
    at_once: int,
    decided: Callable[[], bool],
    give_up: Callable[[T], None],
) -> None:
    """Run entries in their order, each in a task (and so a context) of its own.

    Args:
        decided: looked at whenever one has ended; True gives up those that run and starts no more.
        give_up: called with each entry before its task is cancelled.

    Raises:
        Exception: what `run` raised; the rest is given up then, as when this itself is cancelled.
    """
    queue = deque(entries)
    running: dict[asyncio.Task[None], T] = {}
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def go_on() -> None:
        if over.done():
            return
        while queue and len(running) < at_once and not decided():
            entry = queue.popleft()
            task = loop.create_task(run(entry))
            running[task] = entry
            task.add_done_callback(ended)
        if decided() or not running:
            over.set_result(None)

    def ended(task: asyncio.Task[None]) -> None:
        del running[task]
        error = None if task.cancelled() else task.exception()
        if error is not None and not over.done():
            over.set_exception(error)
        go_on()

    try:
        go_on()
        await over
    finally:
        left = list(running.items())
        for task, entry in left:
            give_up(entry)
            task.cancel()
        if left:
            await asyncio.wait([task for task, _ in left], timeout=_PATIENCE)
