"""Maps and subgraphs in a driver: side by side, given up and paused as a whole."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.engine.commands import CancelAttempt, Pause, Run, Start
from hitl_tui.engine.log.events import BranchEnded, BranchStarted
from tests.drivers.conftest import Bench
from tests.support.spec import spec
from tests.support.workers import until

pytestmark = spec("7")

CHANNELS = {"items": Channel(["a", "b", "c"], reducer="overwrite"), "log": Channel([], reducer="append")}


def mapped(bench: Bench, node: Any) -> Any:
    graph = StateGraph(CHANNELS).add_map("scan", over="items", node=node)
    return graph.add_edge(START, "scan").add_edge("scan", END).compile(checkpointer=bench.store)


def nested(bench: Bench, *nodes: Any) -> Any:
    inner = StateGraph({"log": Channel([], reducer="append")})
    names = [f"n{place}" for place in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        inner.add_node(name, node)
    for source, target in zip([START, *names], [*names, END], strict=True):
        inner.add_edge(source, target)
    graph = StateGraph(CHANNELS).add_subgraph("team", inner, inputs={}, outputs={"log": "log"})
    return graph.add_edge(START, "team").add_edge("team", END).compile(checkpointer=bench.store)


async def test_async_branches_run_side_by_side_on_one_loop(bench: Bench) -> None:
    here, loops = [], set()
    all_here: list[asyncio.Event] = []

    async def node(_state: Any, config: Any) -> dict[str, Any]:
        if not all_here:
            all_here.append(asyncio.Event())
        here.append(config.item)
        loops.add(id(asyncio.get_running_loop()))
        if len(here) == 3:
            all_here[0].set()
        await all_here[0].wait()
        return {"log": config.item}

    watcher = await bench.watch(mapped(bench, node))
    await watcher.driver.execute(Start({}))
    assert (await watcher.run()).values["log"] == ["a", "b", "c"]
    assert len(loops) == 1
    assert len(watcher.events_of(BranchStarted)) == len(watcher.events_of(BranchEnded)) == 3


async def test_cancelling_a_map_ends_every_branch(bench: Bench) -> None:
    released = threading.Event()
    stopped: list[str] = []
    started = threading.Barrier(4, timeout=20)

    async def waits() -> None:
        await asyncio.get_running_loop().run_in_executor(None, started.wait)
        await asyncio.Event().wait()

    async def node(_state: Any, config: Any) -> dict[str, Any]:
        if released.is_set():
            return {"log": config.item}
        try:
            await waits()
        except asyncio.CancelledError:
            stopped.append(config.item)
            raise
        return {}

    watcher = await bench.watch(mapped(bench, node))
    await watcher.driver.execute(Start({}))
    await watcher.driver.execute(Run())
    await asyncio.to_thread(started.wait)
    await watcher.driver.execute(CancelAttempt())
    view = await watcher.until(lambda view: view.progress.status == "waiting")
    assert (view.progress.head, view.progress.reason) == (0, "paused")
    released.set()
    assert (await watcher.run()).values["log"] == ["a", "b", "c"]
    # They end on a loop of their own, for which nobody waits.
    await asyncio.to_thread(until, lambda: sorted(stopped) == ["a", "b", "c"], "every branch has ended")


async def test_cancelling_a_subgraph_leaves_its_thread_where_it_was(bench: Bench) -> None:
    entered, released = threading.Event(), threading.Event()
    ran: list[str] = []

    def first(_state: Any) -> dict[str, Any]:
        ran.append("first")
        return {"log": "first"}

    async def second(_state: Any) -> dict[str, Any]:
        ran.append("second")
        entered.set()
        if not released.is_set():
            await asyncio.Event().wait()
        return {"log": "second"}

    watcher = await bench.watch(nested(bench, first, second))
    await watcher.driver.execute(Start({}))
    await watcher.driver.execute(Run())
    await asyncio.to_thread(entered.wait)
    await watcher.driver.execute(CancelAttempt())
    await watcher.until(lambda view: view.progress.status == "waiting")
    child = bench.store.cursor("t/team#1")
    assert child is not None
    assert (child.status, child.reason, child.head) == ("waiting", "paused", 1)
    released.set()
    assert (await watcher.run()).values["log"] == [["first", "second"]]
    assert ran == ["first", "second", "second"]


async def test_pausing_stops_at_the_next_node_of_the_subgraph(bench: Bench) -> None:
    entered, released = threading.Event(), threading.Event()

    def first(_state: Any) -> dict[str, Any]:
        entered.set()
        released.wait()
        return {"log": "first"}

    watcher = await bench.watch(nested(bench, first, lambda _state: {"log": "second"}))
    await watcher.driver.execute(Start({}))
    await watcher.driver.execute(Run())
    await asyncio.to_thread(entered.wait)
    await watcher.driver.execute(Pause())
    released.set()
    view = await watcher.until(lambda view: view.progress.status == "waiting")
    assert view.progress.reason == "paused"
    child = bench.store.cursor("t/team#1")
    assert child is not None
    assert (child.status, child.head) == ("waiting", 1)
    assert (await watcher.run()).values["log"] == [["first", "second"]]
