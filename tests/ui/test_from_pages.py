"""The keys of the queue and of the decisions work on every page; a header shows no thread nobody opened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.loading.sources import reopen_graph
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.screens.queue import QueueScreen
from tests.support import rich_queue
from tests.ui.harness import Screen, booted

pytestmark = pytest.mark.slow


@pytest.fixture
def two(tmp_path: Path) -> SQLiteCheckpointer:
    """A store in which two threads wait."""
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    rich_queue.fill(store, rich_queue.TWELVE[6:8])
    return store


@asynccontextmanager
async def listing(store: SQLiteCheckpointer) -> AsyncIterator[Screen]:
    """The app with the list of threads as its first screen."""
    hub = LocalHub(store, lambda info: reopen_graph(info.thread_id, info.source, store))

    async def open_hub() -> LocalHub:
        return hub

    app = HitlApp(AppStart(None, "tester", open_hub=open_hub))
    try:
        async with booted(app, size=(120, 40)) as pilot:
            it = Screen(app, pilot)
            await it.shows("2 threads")
            yield it
    finally:
        await hub.close()


async def test_the_queue_and_the_decisions_open_from_the_first_list_and_from_pages(
    two: SQLiteCheckpointer,
) -> None:
    async with listing(two) as it:
        await it.press("f12")
        await it.shows("What fills the store")
        await it.press("Q")
        await it.shows("2 WAIT FOR YOU", "2, live")
        await it.press("enter")
        await it.shows("Your answer")
        await it.press("escape", "f12")
        await it.until(lambda: it.app.screen is not it.run, "the page")
        await it.press("Q")
        await it.until(lambda: isinstance(it.app.screen, QueueScreen), "the queue")
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run, "the run screen")
        await it.press("f12")
        await it.until(lambda: it.app.screen is not it.run, "the page")
        await it.press("ctrl+d")
        await it.shows("decided")


async def test_the_header_shows_no_thread_that_was_never_opened(two: SQLiteCheckpointer) -> None:
    async with listing(two) as it:
        await it.press("Q")
        await it.shows("2 WAIT FOR YOU", "2, live")
        assert "WAITING" not in it.text()
        await it.press("w")
        await it.shows("2 threads")
        assert "WAITING" not in it.text()
        await it.press("enter")
        await it.shows("WAITING")
