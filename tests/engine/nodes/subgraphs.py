"""Graphs inside graphs: one that drafts an answer, and one around it."""

from __future__ import annotations

from typing import Any

from hitl_tui import END, START, Channel, Gate, GateChoice, StateGraph
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.stores import Checkpointer

OUTER = {
    "task": Channel("", reducer="overwrite"),
    "notes": Channel([], reducer="append"),
    "answer": Channel("", reducer="overwrite"),
    "again": Channel(0, reducer="sum"),
    "results": Channel([], reducer="append"),
}
INNER = {
    "question": Channel("", reducer="overwrite"),
    "seen": Channel([], reducer="append"),
    "draft": Channel("", reducer="overwrite"),
}


def inner(*nodes: Any) -> StateGraph:
    """A graph of one node after the other: n1, n2, …; by default n1 drafts an answer to the question."""
    graph = StateGraph(INNER, name="inner")
    functions = nodes or (lambda s: {"draft": f"re: {s['question']}"},)
    names = [f"n{place}" for place in range(1, len(functions) + 1)]
    for name, node in zip(names, functions, strict=True):
        graph.add_node(name, node)
    for source, target in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(source, target)
    return graph


def outer(graph: Any, store: Any = None, *, times: int = 1, **options: Any) -> GraphRunner:
    """START -> team (the subgraph) -> after -> END, `times` times."""
    return (
        StateGraph(OUTER, name="outer")
        .add_subgraph(
            "team",
            graph,
            inputs={"task": "question", "notes": "seen"},
            outputs={"draft": "results"},
        )
        .add_node("after", lambda s: {"again": 1, "answer": (s["results"] or [""])[-1]})
        .add_edge(START, "team")
        .add_edge("team", "after")
        .add_conditional_edge("after", lambda s: s["again"] < times, {"true": "team", "false": END})
        .compile(checkpointer=store, **options)
    )


def gated(store: Checkpointer) -> GraphRunner:
    """A subgraph that asks a human about its draft."""
    gate = Gate(
        "n1",
        "is it good?",
        [GateChoice("ok", "good"), GateChoice("redo", "write", values=lambda _s, words: {"draft": words})],
        subject="draft",
    )
    return outer(inner().compile(checkpointer=store, interrupt_after=[gate]), store)


def two_deep(store: Checkpointer) -> GraphRunner:
    """A graph in a graph in a graph; the innermost asks a human."""
    deep = inner(lambda _s, c: {"draft": c.interrupt("deep?")})
    middle = (
        StateGraph(INNER, name="middle")
        .add_subgraph("deep", deep, inputs={"question": "question"}, outputs={"draft": "draft"})
        .add_edge(START, "deep")
        .add_edge("deep", END)
    )
    return outer(middle, store)
