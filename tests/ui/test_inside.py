"""Inside a node on screen: branches as a list, the thread of a subgraph as a run of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from hitl_tui import MemoryCheckpointer
from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.drivers.replay import ReplayDriver
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.stores import Checkpointer
from hitl_tui.ui.app import HitlApp, Look, Start
from tests.support import nested
from tests.ui.harness import Clock, Desk


@asynccontextmanager
async def real(make: Any, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Desk]:
    """The app on a real run of a graph in memory."""
    store: Checkpointer = MemoryCheckpointer()
    runner: GraphRunner = make(store)
    bench = nested.Bench(store, runner)
    driver = await bench.thread()

    async def open_driver() -> tuple[Hub, Driver]:
        return bench.hub, driver

    app = HitlApp(Start(open_driver, "anna", None, False), Look())
    async with app.run_test(size=size, notifications=True) as pilot:
        it = Desk(app, pilot, cast(ReplayDriver, driver), Clock())
        await it.until(lambda: app.run_screen is not None and app.screen is app.run_screen, "the run screen")
        it.run.clock = it.clock
        await it.shows("READY")
        yield it
    await bench.hub.close()


async def test_the_branches_of_a_step_open_as_a_list_and_esc_closes_it():
    async with real(nested.settled) as it:
        await it.press("c")
        await it.shows("DONE", "✔ scan[0]", "✗ scan[1]", "overwritten by scan[2]")
        await it.press("N")
        await it.shows("scan, step 1: 2 of 3 done, 1 failed", "“ants”", "they sting", "looking at ants")
        await it.press("f")
        await it.shows("looking at bees", "ValueError: they sting")
        await it.press("escape")
        await it.shows("Timeline")


async def test_enter_at_the_shown_step_opens_it_too():
    async with real(nested.settled, size=(80, 24)) as it:
        await it.press("c")
        await it.shows("DONE")
        await it.press("enter")
        await it.shows("scan, step 1: 2 of 3 done, 1 failed")


async def test_a_branch_that_asks_is_decided_from_the_list():
    def node(_state: Any, config: Any) -> dict[str, Any]:
        return {"found": config.interrupt("May I?")} if config.item != "bees" else {"found": "bees"}

    async with real(lambda store: nested.mapped(store, node)) as it:
        await it.press("s")
        await it.shows("WAITING", "1/3 ‖2", "1 more after it")
        await it.press("N", "down", "down")
        await it.shows("scan[2] asks")
        await it.press("enter")
        await it.shows("Your decision", "2 of 2")


async def test_a_graph_pane_tells_what_the_chosen_node_is_made_of():
    async with real(nested.team) as it:
        it.run.query_one("#graph").focus()
        await it.shows("graph inner", "task → question", "draft → results")


async def test_the_card_of_a_parent_names_the_thread_and_the_node_that_ask():
    async with real(nested.team) as it:
        await it.press("c")
        await it.shows("Your decision", "is it good?", "node write of thread t/team#1", "all about moss")


async def test_a_child_opens_as_a_run_of_its_own_with_the_way_back():
    async with real(lambda store: nested.team(store, deeper=True)) as it:
        await it.press("s")
        await it.shows("WAITING")
        await it.press("N")
        await it.shows("t › team#1", "inside team of t")
        await it.press("N")
        await it.shows("t › team#1 › desk#1", "all about moss")
        await it.press("backspace")
        await it.shows("inside team of t")
        await it.press("escape")
        await it.gone("inside team of t")
        await it.shows("outer")


async def test_a_child_that_ends_on_its_own_lets_its_parent_go_on():
    async with real(nested.team) as it:
        await it.press("s")
        await it.shows("WAITING")
        await it.press("N")
        await it.shows("t › team#1")
        session = it.run.session
        assert session is not None
        request = session.requests[0]
        await session.driver.answer(request.id, "ok", step=request.step, actor="anna")
        await it.shows("the end is next")
        await it.press("c")
        await it.shows("DONE")
        await it.press("escape")
        await it.shows("PAUSED", "outer")
        await it.press("c")
        await it.shows("DONE", "reached the end")
