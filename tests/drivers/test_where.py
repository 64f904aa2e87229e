"""Where a running node is can be seen while it goes on."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, StateGraph
from hitl_tui.engine.commands import Start
from tests.drivers.conftest import Bench

_go_on = threading.Event()
_begun = threading.Event()


def blocking(state: Any) -> dict[str, int]:
    item = {"id": 17}
    _begun.set()
    _go_on.wait(20)
    return {"n": item["id"]}


async def awaiting(state: Any) -> dict[str, int]:
    item = {"id": 17}
    _begun.set()
    await asyncio.to_thread(_go_on.wait, 20)
    return {"n": item["id"]}


def graph_of(node: Any) -> GraphRunner:
    graph = StateGraph({"n": Channel(0), "key": Channel("s3cret-value", visibility="private")})
    return graph.add_node("work", node).add_edge(START, "work").add_edge("work", END).compile()


@pytest.mark.parametrize("node", [blocking, awaiting])
async def test_a_running_node_shows_its_line_and_locals_and_continues(bench: Bench, node: Any) -> None:
    _go_on.clear()
    _begun.clear()
    watcher = await bench.watch(graph_of(node))
    await watcher.driver.execute(Start({}))
    run = asyncio.ensure_future(watcher.run())
    try:
        assert await asyncio.to_thread(_begun.wait, 20)
        (frames,) = await watcher.driver.where("work")
        assert await watcher.driver.where("other") == ()
    finally:
        _go_on.set()
    view = await run
    assert view.values["n"] == 17
    mine = next(frame for frame in frames if frame.file)
    assert mine.function.startswith(node.__name__)
    assert ("item", "{'id': 17}") in [(value.name, value.text) for value in mine.values]
    assert "s3cret" not in repr(frames)
    assert await watcher.driver.where("work") == ()
