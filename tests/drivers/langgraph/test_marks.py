"""A superstep of LangGraph that runs several nodes marks each of them, and the edges to and from each."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.engine.commands import Start
from hitl_tui.engine.graph.drawing import marks_in_store
from hitl_tui.engine.log.events import BranchEnded
from hitl_tui.stores import open_store
from tests.support.watching import Watcher


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


def diamond() -> Any:
    graph = StateGraph(Log)
    for name in "abcd":
        graph.add_node(name, lambda state, name=name: {"log": [name]})
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("a", "c").add_edge(["b", "c"], "d")
    return graph.add_edge("d", END).compile(checkpointer=InMemorySaver())


async def test_the_failed_one_of_parallel_nodes_is_named_and_marked() -> None:
    def fails(_state: Log) -> Log:
        raise ValueError("boom")

    graph = StateGraph(Log).add_node("a", lambda state: {"log": ["a"]}).add_node("f", fails)
    graph.add_edge(START, "a").add_edge(START, "f")
    store = open_store("memory:")
    compiled = graph.compile(checkpointer=InMemorySaver())
    hub = LangGraphHub(compiled, store, name="graph", source={"graph": "app.py"})
    try:
        watcher = await Watcher.open(await hub.begin("t", "ann"))
        await watcher.driver.execute(Start({"log": []}))
        error = (await watcher.run()).error
        assert error is not None
        assert (error.node, error.message) == ("f", "node 'f' failed: ValueError: boom")
        events = {event.outcome.path: event.outcome.error for event in watcher.events_of(BranchEnded)}
        assert events["a+f/a"] is None
        assert events["a+f/f"].message == "ValueError: boom"
        look = marks_in_store(store, "t")
        assert look is not None
        assert [name for name in "af" if look.is_current(name)] == ["f"]
    finally:
        await hub.close()


async def test_parallel_nodes_are_marked_one_by_one() -> None:
    store = open_store("memory:")
    hub = LangGraphHub(diamond(), store, name="graph", source={"graph": "app.py"})
    try:
        watcher = await Watcher.open(await hub.begin("t", "ann"))
        await watcher.driver.execute(Start({"log": []}))
        await watcher.step()
        look = marks_in_store(store, "t")
        assert look is not None
        assert [name for name in "abcd" if look.is_current(name)] == ["b", "c"]
        await watcher.run()
        look = marks_in_store(store, "t")
        assert look is not None
        assert {name: look.visits.get(name) for name in "abcd"} == dict.fromkeys("abcd", 1)
        assert {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")} <= look.taken
    finally:
        await hub.close()
