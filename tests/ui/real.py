"""Running the app on a real run of a graph, and deciding there as a person does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from hitl_tui import MemoryCheckpointer
from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.stores import Checkpointer
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.theme import Look
from hitl_tui.view.review import UNDO
from tests.support import nested
from tests.support.replay_driver import ReplayDriver
from tests.ui.harness import Clock, Desk, booted


@asynccontextmanager
async def real(make: Any, size: tuple[int, int] = (120, 40), look: Look | None = None) -> AsyncIterator[Desk]:
    """The app on a real run of a graph in memory."""
    store: Checkpointer = MemoryCheckpointer()
    runner: GraphRunner = make(store)
    bench = nested.Bench(store, runner)
    driver = await bench.thread()

    async def open_driver() -> tuple[Hub, Driver]:
        return bench.hub, driver

    app = HitlApp(AppStart(open_driver, "anna", None, False), look or Look())
    async with booted(app, size=size) as pilot:
        it = Desk(app, pilot, cast(ReplayDriver, driver), Clock())
        await it.until(lambda: app.run_screen is not None and app.screen is app.run_screen, "the run screen")
        it.run.clock = it.clock
        await it.shows("READY")
        yield it
    await bench.hub.close()


async def asked(it: Desk, *words: str) -> None:
    """The card is there with these words, and the moment to read is over."""
    await it.card_listens("Your answer", *words)


async def answer(it: Desk, *keys: str) -> None:
    """Choose an answer by these keys, and let the seconds pass in which it can be taken back."""
    await it.press(*keys)
    await it.shows("send it now")
    it.clock.advance(UNDO + 0.01)
    await it.gone("send it now")
