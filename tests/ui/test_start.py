"""A thread of any known graph is started from the lists, with the form of its input."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.config import trust_file
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.loading.known import KnownGraphs
from hitl_tui.loading.sources import open_graph, reopen_graph
from hitl_tui.loading.trust import Trust
from hitl_tui.ui.app import AppStart, HitlApp
from tests.support import rich_queue
from tests.ui.harness import Screen, booted


@asynccontextmanager
async def app_on(store: SQLiteCheckpointer, first: str) -> AsyncIterator[Screen]:
    trust = Trust(trust_file(), str(store.path))
    hub = LocalHub(
        store,
        lambda info: reopen_graph(info.thread_id, info.source, store, trust=trust),
        known=KnownGraphs(store, trust),
    )

    async def open_driver() -> Any:
        return hub, await hub.open(first)

    app = HitlApp(AppStart(open_driver, "tester"))
    try:
        async with booted(app) as pilot:
            it = Screen(app, pilot)
            await it.until(
                lambda: app.run_screen is not None and app.screen is app.run_screen, "the run screen"
            )
            yield it
    finally:
        await hub.close()


@pytest.fixture
def store(tmp_path: Path) -> SQLiteCheckpointer:
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    rich_queue.fill(store, rich_queue.TWELVE[6:])
    return store


@pytest.mark.parametrize("keys", [("t", "n"), ("Q", "n"), ("ctrl+n",)])
@pytest.mark.slow
async def test_a_new_thread_of_a_graph_of_the_store_begins_with_its_input(
    store: SQLiteCheckpointer, keys: tuple[str, ...]
) -> None:
    async with app_on(store, "memo-42") as it:
        for key in keys:
            await it.press(key)
            await it.until(lambda: it.app.screen is not it.run, "another screen")
        await it.shows("Known graphs", "as thread mail-bot-", "a sample")
        await it.press(*"order asks")
        await it.shows("no graph matches")
        await it.write("planner")
        await it.shows("as thread plan-trip")
        await it.press("enter")
        await it.shows("A new thread of planner begins with", "What is it about?")
        await it.press(*"a cruise", "enter")
        await it.until(lambda: it.session.thread_id.startswith("planner-"), "the new thread")
        await it.until(lambda: bool(it.session.view.checkpoints), "its input")
        assert it.session.view.values["log"] == ["a cruise"]
        name = it.session.thread_id
        info = store.info(name)
        assert info is not None
        assert str(info.source["graph"]).endswith("queue_graphs.py:planner")


@pytest.mark.slow
async def test_a_sample_is_there_and_leaving_its_form_shows_the_thread_before(
    store: SQLiteCheckpointer,
) -> None:
    async with app_on(store, "memo-42") as it:
        await it.press("ctrl+n")
        await it.shows("as thread")
        await it.press(*"sequential")
        await it.shows("1 graph", "a sample")
        await it.press("enter")
        await it.shows("A new thread of sequential begins with")
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run, "the run screen")
        await it.shows("memo-42")
        assert all(not row.info.thread_id.startswith("sequential") for row in store.threads())


@pytest.mark.slow
async def test_a_graph_that_nobody_trusts_is_asked_about_and_nothing_of_it_runs(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    graph = tmp_path / "planted.py"
    graph.write_text(
        f"from pathlib import Path\nPath({str(ran)!r}).touch()\n"
        f"from tests.support.queue_graphs import review as build\n"
    )
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    rich_queue_file = f"{rich_queue.GRAPHS}:review"
    runner = open_graph(rich_queue_file, store)
    runner.source = {"graph": f"{graph}:build", "options": {}}
    await runner.ainvoke({}, thread_id="t")
    async with app_on(store, "t") as it:
        await it.press("ctrl+n")
        await it.shows("as thread t")
        await it.press("enter")
        await it.shows("planted.py")
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run, "the run screen")
        assert not ran.exists()
        assert it.session.thread_id == "t"
