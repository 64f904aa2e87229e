"""A job that was given up and comes back late has no say in what runs since."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

import pytest

from hitl_tui.drivers.engine_thread import EngineThread
from hitl_tui.engine.nodes.calling import Job


@pytest.fixture
def engine() -> Iterator[EngineThread]:
    thread = EngineThread("engine")
    yield thread
    thread.stop()


class Held:
    """A job that holds its thread until it is let go."""

    def __init__(self) -> None:
        self.started, self._go = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self) -> None:
        self._thread = threading.current_thread()
        self.started.set()
        self._go.wait(10)

    def come_back(self) -> None:
        """Let it go, and wait until its thread has nothing more to do."""
        self._go.set()
        assert self._thread
        self._thread.join(10)
        assert not self._thread.is_alive()


def job(work: Callable[[], Any]) -> Job:
    return Job(work, (), set())


async def driving(engine: EngineThread, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return engine.drive(work)


async def give_up(engine: EngineThread, held: Held, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    task = await engine.call(driving(engine, work))
    await asyncio.to_thread(held.started.wait, 10)
    engine.loop.call_soon_threadsafe(task.cancel)
    return task


async def answer(task: asyncio.Task[Any]) -> Any:
    return await task


async def test_the_loop_continues_if_a_job_returns_while_the_next_one_runs(engine: EngineThread) -> None:
    held = Held()

    async def first() -> None:
        await job(held)

    async def second() -> str:
        await job(held.come_back)
        await job(lambda: None)
        return "done"

    given_up = await give_up(engine, held, first())
    with pytest.raises(asyncio.CancelledError):
        await engine.call(answer(given_up))
    task = await engine.call(driving(engine, second()))
    assert await asyncio.wait_for(engine.call(answer(task)), 10) == "done"


async def test_what_waits_for_its_next_job_is_not_woken_by_the_one_before(engine: EngineThread) -> None:
    held = Held()

    def next_one() -> str:
        held.come_back()
        engine.submit(asyncio.sleep(0)).result(10)  # a turn of the loop, which another thread goes on with
        return "the next one's"

    async def work() -> Any:
        try:
            await job(held)
        except asyncio.CancelledError:
            return await job(next_one)

    task = await give_up(engine, held, work())
    assert await asyncio.wait_for(engine.call(answer(task)), 10) == "the next one's"


def test_jobs_submitted_while_the_thread_ends_are_done_or_cancelled() -> None:
    async def one() -> int:
        return 1

    for _ in range(100):
        engine = EngineThread("engine")
        asked = [engine.submit(one()) for _ in range(3)]
        engine.stop()
        for future in asked:
            with suppress(CancelledError):
                assert future.result(timeout=10) == 1
