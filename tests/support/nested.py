"""Graphs with a map, a parallel and subgraphs, and recordings of their runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hitl_tui import END, START, Channel, Gate, GateChoice, StateGraph, quorum
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Start
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.stores import Checkpointer

CHANNELS = {
    "items": Channel(["ants", "bees", "crabs"], reducer="overwrite"),
    "found": Channel([], reducer="append"),
    "newest": Channel("", reducer="overwrite"),
    "total": Channel(0, reducer="sum"),
}


def mapped(store: Checkpointer | None, node: Callable[..., Any], **options: Any) -> GraphRunner:
    """START -> scan (a map over `items`) -> END."""
    return (
        StateGraph(CHANNELS, name="mapped")
        .add_map("scan", node=node, **{"over": "items", **options})
        .add_edge(START, "scan")
        .add_edge("scan", END)
        .compile(checkpointer=store)
    )


def settled(store: Checkpointer | None) -> GraphRunner:
    """A map of three that needs two: the middle one fails, so both others count."""

    async def look(_state: Any, config: Any) -> Mapping[str, Any]:
        config.emit(f"looking at {config.item}")
        if config.item == "bees":
            raise ValueError("they sting")
        return {"found": config.item, "newest": config.item, "total": 1}

    return mapped(store, look, join=quorum(2))


def team(store: Checkpointer | None, *, deeper: bool = False) -> GraphRunner:
    """START -> team (a subgraph that asks about its draft) -> after -> END; `deeper` puts one more around."""
    text = Channel("", reducer="overwrite")
    gate = Gate(
        "write",
        "is it good?",
        [
            GateChoice("ok", "good", "a"),
            GateChoice("redo", "write", values=lambda _s, words: {"draft": words}),
        ],
        subject="draft",
    )

    def write(state: Any, config: Any) -> Mapping[str, Any]:
        config.emit(f"writing about {state['question']}")
        return {"draft": f"all about {state['question']}"}

    inner = (
        StateGraph({"question": text, "draft": text}, name="inner")
        .add_node("write", write)
        .add_edge(START, "write")
        .add_edge("write", END)
        .compile(checkpointer=store, interrupt_after=[gate])
    )
    graph: Any = inner
    if deeper:
        graph = (
            StateGraph({"question": text, "draft": text}, name="middle")
            .add_subgraph("desk", inner, inputs={"question": "question"}, outputs={"draft": "draft"})
            .add_edge(START, "desk")
            .add_edge("desk", END)
            .compile(checkpointer=store)
        )
    return (
        StateGraph({"task": Channel("moss"), "results": Channel([], reducer="append")}, name="outer")
        .add_subgraph("team", graph, inputs={"task": "question"}, outputs={"draft": "results"})
        .add_node("after", lambda _s: {})
        .add_edge(START, "team")
        .add_edge("team", "after")
        .add_edge("after", END)
        .compile(checkpointer=store)
    )


def chain(*nodes: Callable[..., Any]) -> StateGraph:
    """n1 -> n2 -> …, on `question` and `draft`."""
    names = [f"n{place}" for place in range(1, len(nodes) + 1)]
    graph = StateGraph({"question": Channel(""), "draft": Channel("")}, name="inner")
    for name, node in zip(names, nodes, strict=True):
        graph.add_node(name, node)
    for source, target in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(source, target)
    return graph


def around(inner: Any, store: Checkpointer | None) -> GraphRunner:
    """START -> team (a graph on `question` and `draft`) -> END."""
    return (
        StateGraph({"task": Channel("moss"), "results": Channel([], reducer="append")}, name="outer")
        .add_subgraph("team", inner, inputs={"task": "question"}, outputs={"draft": "results"})
        .add_edge(START, "team")
        .add_edge("team", END)
        .compile(checkpointer=store)
    )


def again(store: Checkpointer | None) -> GraphRunner:
    """START -> team (a subgraph that asks about its draft until it is good) -> END."""
    text = Channel("", reducer="overwrite")
    gate = Gate(
        "write",
        "is it good?",
        [GateChoice("ok", "good", "a", values={"good": True}), GateChoice("redo", "once more", "r")],
        subject="draft",
    )

    def write(state: Any) -> Mapping[str, Any]:
        return {"draft": f"{state['draft']}, again" if state["draft"] else f"all about {state['question']}"}

    inner = (
        StateGraph({"question": text, "draft": text, "good": Channel(False)}, name="inner")
        .add_node("write", write)
        .add_edge(START, "write")
        .add_conditional_edge("write", lambda s: s["good"], {"true": END, "false": "write"})
        .compile(checkpointer=store, interrupt_after=[gate])
    )
    return around(inner, store)


@dataclass
class Bench:
    """A hub on a store, with a thread of a graph in it."""

    store: Checkpointer
    runner: GraphRunner
    hub: LocalHub = field(init=False)

    def __post_init__(self) -> None:
        self.hub = LocalHub(self.store, lambda _info: self.runner)

    async def thread(self, name: str = "t", inputs: Mapping[str, Any] | None = None) -> Driver:
        """A thread of the graph, with its input."""
        driver = await self.hub.new(name, self.runner)
        await driver.execute(Start(dict(inputs or {})))
        return driver
