"""The route after a step: what it returned, what it read, its code."""

from __future__ import annotations

from typing import Any

from hitl_tui import END, START, Channel, GraphRunner, StateGraph
from hitl_tui.engine.commands import Start
from hitl_tui.view.routes import lines_of_route, route_lines
from hitl_tui.view.spans import plain_text
from tests.drivers.conftest import Bench


def enough(state: Any) -> str:
    if state["n"] == 3:
        raise ValueError(state["key"])
    return "done" if state["n"] >= 2 and state["key"] else "again"


def counting() -> GraphRunner:
    graph = StateGraph({"n": Channel(0), "key": Channel("s3cret", visibility="private")})
    graph.add_node("count", lambda s: {"n": s["n"] + 1}).add_edge(START, "count")
    return graph.add_conditional_edge("count", enough, {"again": "count", "done": END}).compile()


async def test_each_step_shows_what_its_route_returned_and_read(bench: Bench) -> None:
    watcher = await bench.watch(counting())
    await watcher.driver.execute(Start({}))
    await watcher.run()
    driver = watcher.driver
    assert await driver.route(0) is None
    first, last = await driver.route(1), await driver.route(2)
    assert first is not None
    assert (first.node, first.key, first.target, first.read) == ("count", "again", "count", ("n",))
    assert last is not None
    assert (last.key, last.target, last.read, last.error) == ("done", END, ("n", "key"), "")
    shown = [plain_text(line) for line in await lines_of_route(driver, 1, 80)]
    assert shown[:3] == [
        "route after count at step 1",
        "returned        'again' → count",
        "read            n",
    ]
    assert any('return "done" if state["n"]' in line for line in shown)
    assert "has changed since" in "".join(map(plain_text, route_lines(first, 1, "other", 80)))


async def test_a_route_that_raises_is_named_without_private_values(bench: Bench) -> None:
    watcher = await bench.watch(counting())
    await watcher.driver.execute(Start({"n": 2}))
    await watcher.run()
    route = await watcher.driver.route(1)
    assert route is not None
    assert (route.key, route.error) == ("", "it raises ValueError")
    assert "s3cret" not in repr(route)
