"""The list of threads as the first screen: no thread is opened behind it, and it stays beneath them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from textual.strip import Strip

from hitl_tui import END, START, Channel, SQLiteCheckpointer, StateGraph
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.protocol import Hub
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.screens import threads as threads_screen
from hitl_tui.ui.screens.queue import QueueScreen
from hitl_tui.ui.screens.threads import ThreadList, ThreadsScreen
from hitl_tui.ui.theme import Look
from tests.stores.test_sqlite import run_sql
from tests.ui.harness import Screen, booted


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with three threads."""
    store = tmp_path / "runs.db"
    threads(store, "old", "middle", "new")
    return store


def graph() -> StateGraph:
    flow = StateGraph({"n": Channel(0)}, name="count")
    flow.add_node("count", lambda state: {"n": state["n"] + 1})
    return flow.add_edge(START, "count").add_edge("count", END)


def threads(path: Path, *names: str) -> None:
    with closing(SQLiteCheckpointer(path)) as store:
        runner: GraphRunner = graph().compile(checkpointer=store)
        for name in names:
            runner.invoke({}, thread_id=name)


@asynccontextmanager
async def listed(path: Path, look: Look | None = None) -> AsyncIterator[Screen]:
    """The app on the threads of a store."""
    store = SQLiteCheckpointer(path)
    hub = LocalHub(store, lambda info: graph().compile(checkpointer=store))

    async def open_hub() -> Hub:
        return hub

    app = HitlApp(AppStart(None, "anna", open_hub=open_hub), look or Look(""))
    async with booted(app) as pilot:
        screen = Screen(app, pilot)
        await screen.shows("middle", "Open")
        yield screen
    await hub.close()


@pytest.mark.slow
async def test_enter_shows_the_selected_thread_of_which_nothing_was_opened_before(path: Path) -> None:
    async with listed(path) as it:
        assert it.app.run_screen is None
        assert isinstance(it.app.screen, ThreadsScreen)
        await it.press("down", "enter")
        await it.shows("thread middle", "Channels at step 1")
        await it.press("t")
        await it.shows("open now")
        await it.press("escape", "escape", "escape")
        await it.shows("thread middle")


@pytest.mark.slow
async def test_the_way_back_leads_to_the_newest_thread(path: Path) -> None:
    async with listed(path) as it:
        await it.press("escape")
        await it.shows("thread new")


@pytest.mark.slow
async def test_help_and_palette_are_there_and_q_asks_nothing(path: Path) -> None:
    async with listed(path, Look("", keys={"no.such": "x"})) as it:
        await it.shows("no.such")
        await it.press("question_mark")
        await it.shows("Keys, words and signs")
        await it.press("escape", "ctrl+p")
        await it.shows("Up  (↑)")
        await it.press("escape", "ctrl+q")
        await it.until(lambda: not it.app.is_running)
    assert it.app.return_value is not None
    assert it.app.return_value.thread_id == ""


@pytest.mark.slow
async def test_it_comes_back_where_a_thread_has_gone_or_is_damaged(path: Path) -> None:
    async with listed(path) as it:
        run_sql(path, "PRAGMA foreign_keys = OFF", "UPDATE cursor SET body = 'x' WHERE thread = 3")
        await it.press("enter")
        await it.shows("can't be opened", "Back")
        await it.press("escape")
        await it.shows("middle", "Open")
        run_sql(path, "PRAGMA foreign_keys = OFF", "DELETE FROM thread WHERE id = 'middle'")
        await it.press("down", "enter")
        await it.shows("there is no thread 'middle'", "Search")
        await it.press("down", "enter")
        await it.shows("thread old")


@pytest.mark.slow
async def test_the_queue_of_what_waits_comes_up_over_the_newest_thread(path: Path) -> None:
    async with listed(path) as it:
        await it.press("w")
        await it.until(lambda: isinstance(it.app.screen, QueueScreen), "the queue")
        await it.press("escape")
        await it.shows("thread new")


async def test_the_first_frame_has_its_columns_where_they_stay(path: Path) -> None:
    threads(path, "one-with-a-longer-name")
    painted: list[str] = []

    class Watched(ThreadList):
        def render_line(self, y: int) -> Strip:
            strip = super().render_line(y)
            if y == 0:
                painted.append(strip.text)
            return strip

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads_screen, "ThreadList", Watched)
        async with listed(path) as it:
            await it.press("down")
            await it.until(lambda: painted)
    assert len(set(painted)) == 1


async def test_a_late_refresh_at_exit_finds_no_screen(path: Path) -> None:
    async with listed(path) as it:
        app = it.app
    assert not app.screen_stack
    app._look_around()
