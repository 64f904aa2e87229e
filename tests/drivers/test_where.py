"""Where a running node is can be seen while it goes on."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, StateGraph
from hitl_tui.engine.commands import Start
from tests.drivers.conftest import Bench

_may_continue = threading.Event()
_has_started = threading.Event()


def blocking(state: Any) -> dict[str, int]:
    item = {"id": 17}
    _has_started.set()
    _may_continue.wait(20)
    return {"n": item["id"]}


async def awaiting(state: Any) -> dict[str, int]:
    item = {"id": 17}
    _has_started.set()
    await asyncio.to_thread(_may_continue.wait, 20)
    return {"n": item["id"]}


def graph_of(node: Any) -> GraphRunner:
    graph = StateGraph({"n": Channel(0), "key": Channel("s3cret-value", visibility="private")})
    return graph.add_node("work", node).add_edge(START, "work").add_edge("work", END).compile()


@pytest.mark.parametrize("node", [blocking, awaiting])
async def test_a_running_node_shows_its_line_and_locals_and_continues(bench: Bench, node: Any) -> None:
    _may_continue.clear()
    _has_started.clear()
    watcher = await bench.watch(graph_of(node))
    await watcher.driver.execute(Start({}))
    run = asyncio.ensure_future(watcher.run())
    try:
        assert await asyncio.to_thread(_has_started.wait, 20)
        (frames,) = await watcher.driver.where("work")
        assert await watcher.driver.where("other") == ()
    finally:
        _may_continue.set()
    view = await run
    assert view.values["n"] == 17
    mine = next(frame for frame in frames if frame.file)
    assert mine.function.startswith(node.__name__)
    assert ("item", "{'id': 17}") in [(value.name, value.text) for value in mine.values]
    assert "s3cret" not in repr(frames)
    assert await watcher.driver.where("work") == ()
