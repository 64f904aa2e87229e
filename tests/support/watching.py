"""Someone who looks at a driver as a screen does: a snapshot, then events folded onto it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from hitl_tui.drivers.protocol import Driver, Stamped
from hitl_tui.engine.commands import Run, Step
from hitl_tui.engine.log.events import RunEnded
from hitl_tui.view.run_view import RunView, fold, is_gap, open_view

PATIENCE = 60.0
"""Seconds after which a wait for an event counts as one that never comes."""

COMPARED = ("progress", "values", "checkpoints", "head_updates", "ledger", "error", "parent", "thread_id")


class Watcher:
    """The view of one driver, kept up to date; `seen` are all events, `resyncs` the snapshots taken anew."""

    def __init__(self, driver: Driver, view: RunView) -> None:
        self.driver = driver
        self.view = view
        self.seen: list[Stamped] = []
        self.resyncs = 0

    @classmethod
    async def open(cls, driver: Driver) -> Watcher:
        return cls(driver, open_view(await driver.snapshot()))

    def events_of(self, kind: type) -> list[Any]:
        return [stamped.event for stamped in self.seen if isinstance(stamped.event, kind)]

    async def look(self) -> RunView:
        """The view with all there is by now."""
        events = self.driver.events(self.view.last_event)
        if is_gap(self.view, events):
            self.resyncs += 1
            self.view = open_view(await self.driver.snapshot())
            events = self.driver.events(self.view.last_event)
        self.seen += events
        self.view = fold(self.view, events)
        return self.view

    async def until(self, reached: Callable[[RunView], Any]) -> RunView:
        async with asyncio.timeout(PATIENCE):
            while not reached(await self.look()):
                await self.driver.changed(self.view.last_event)
        return self.view

    async def run(self, **options: Any) -> RunView:
        """Run until the run has ended."""
        return await self._ended(lambda: self.driver.execute(Run(**options)))

    async def step(self, **options: Any) -> RunView:
        """Run one node."""
        return await self._ended(lambda: self.driver.execute(Step(**options)))

    async def _ended(self, command: Callable[[], Awaitable[None]]) -> RunView:
        await self.driver.snapshot()  # an earlier run has told its end by then
        await self.look()
        ends = len(self.events_of(RunEnded))
        await command()
        return await self.until(lambda _: len(self.events_of(RunEnded)) > ends)

    async def check(self) -> RunView:
        """What was folded is what a fresh snapshot shows, and no number is missing."""
        # The snapshot comes first: what led to it has been told by then.
        fresh = open_view(await self.driver.snapshot())
        view = await self.look()
        for name in COMPARED:
            assert getattr(view, name) == getattr(fresh, name), name
        numbers = [stamped.number for stamped in self.seen]
        if numbers and not self.resyncs:
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        return view


class Blocker:
    """Keeps a node busy until it is released; the test's event loop can wait until the node is in it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._entered = asyncio.Event()
        self._released = threading.Event()

    def sleep(self) -> None:
        """Block as `time.sleep` does."""
        self._enter()
        assert self._released.wait(PATIENCE)

    def burn(self) -> None:
        """Use all of a core."""
        self._enter()
        while not self._released.is_set():
            sum(range(1000))

    async def entered(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._entered.wait()

    def release(self) -> None:
        self._released.set()

    def _enter(self) -> None:
        self._loop.call_soon_threadsafe(self._entered.set)
