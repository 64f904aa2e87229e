"""Small graphs with a map or a parallel in the middle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.engine.log.events import Event
from hitl_tui.engine.log.outcomes import BranchOutcome
from hitl_tui.engine.runner import GraphRunner

CHANNELS = {
    "items": Channel([], reducer="overwrite"),
    "plan": Channel({"steps": []}, reducer="overwrite"),
    "log": Channel([], reducer="append"),
    "found": Channel([], reducer="extend"),
    "last": Channel(None, reducer="overwrite"),
    "total": Channel(0, reducer="sum"),
}


def mapped(node: Callable[..., Any], store: Any = None, **options: Any) -> GraphRunner:
    """START -> scan (a map over `items`) -> END."""
    return (
        StateGraph(CHANNELS)
        .add_map("scan", node=node, **{"over": "items", **options})
        .add_edge(START, "scan")
        .add_edge("scan", END)
        .compile(checkpointer=store)
    )


def grouped(store: Any = None, *, group: dict[str, Any] | None = None, **nodes: Any) -> GraphRunner:
    """START -> group (a parallel of the given nodes) -> END."""
    graph = StateGraph(CHANNELS)
    for name, node in nodes.items():
        graph.add_node(name, node)
    graph.add_parallel("group", list(nodes), **(group or {}))
    return graph.add_edge(START, "group").add_edge("group", END).compile(checkpointer=store)


def outcomes(runner: GraphRunner, thread: str = "t") -> list[BranchOutcome]:
    """What became of the branches of the newest step."""
    return list(runner.history(thread, limit=1)[0].branches)


def statuses(runner: GraphRunner, thread: str = "t") -> dict[str, str]:
    """path -> status of the branches of the newest step."""
    return {one.path: one.status for one in outcomes(runner, thread)}


class Events:
    """The events of a run, to be given as `on_event`."""

    def __init__(self) -> None:
        self.all: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.all.append(event)

    def of(self, *kinds: type) -> list[Any]:
        return [event for event in self.all if isinstance(event, kinds)]
