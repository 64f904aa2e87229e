"""Running the async core from sync code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_on(loop: asyncio.AbstractEventLoop, work: Awaitable[T]) -> T:
    """Run a part of sync code's own loop, from inside another running loop too."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return loop.run_until_complete(work)
    with ThreadPoolExecutor(1, "hitl-tui run") as pool:
        return pool.submit(loop.run_until_complete, work).result()


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run the async core from sync code, from inside a running loop too (as in a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
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
