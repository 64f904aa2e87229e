"""Graphs for the fuzzer besides those of `queue_graphs`: failed, private, mapped, stopped by a limit."""

from __future__ import annotations

from typing import Any

from hitl_tui import (
    END,
    START,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    Limits,
    MemoryCheckpointer,
    StateGraph,
    append,
)


def _compiled(graph: StateGraph, **options: Any) -> GraphRunner:
    return graph.compile(checkpointer=MemoryCheckpointer(), **options)


def failing() -> GraphRunner:
    """Its second node fails with a cause."""

    def fail(state: Any) -> dict[str, Any]:
        try:
            raise KeyError(state["text"])
        except KeyError as error:
            raise ValueError("no price") from error

    graph = StateGraph({"text": Channel("")}, name="failing")
    graph.add_node("write", lambda state: {"text": "written"}).add_node("fail", fail)
    return _compiled(graph.add_edge(START, "write").add_edge("write", "fail").add_edge("fail", END))


def private() -> GraphRunner:
    """It asks about a private channel, at high risk."""
    choices = [GateChoice("approve", "release it", "a", values={"ok": True})]
    gate = Gate("assess", "Release this letter?", choices, subject="letter", risk="high")
    channels = {"letter": Channel("", visibility="private"), "ok": Channel(False)}
    graph = StateGraph(channels, name="private").add_node("assess", lambda state: {"letter": "Dear Dr. Roth"})
    return _compiled(graph.add_edge(START, "assess").add_edge("assess", END), interrupt_after=[gate])


def texting() -> GraphRunner:
    """It wants a text and nothing else."""

    def ask(state: Any, config: Any) -> dict[str, Any]:
        return {"answer": config.interrupt("Shall I go on?")}

    graph = StateGraph({"answer": Channel("")}, name="texting").add_node("ask", ask)
    return _compiled(graph.add_edge(START, "ask").add_edge("ask", END))


def mapped() -> GraphRunner:
    """Some branches of a map fail, one asks, and what they make is nested."""

    def work(state: Any, config: Any) -> dict[str, Any]:
        if config.index == 2:
            raise RuntimeError("no such thing")
        if config.index == 3:
            return {"out": config.interrupt("What of three?")}
        return {"out": {"id": config.item, "price": config.item * 1.5, "tags": ["a", "b"]}}

    channels = {"items": Channel([1, 2, 3, 4, 5], reducer="overwrite"), "out": Channel([], reducer=append())}
    graph = StateGraph(channels, name="mapped").add_map("work", over="items", node=work)
    return _compiled(graph.add_edge(START, "work").add_edge("work", END))


def counting() -> GraphRunner:
    """It counts until a limit stops it."""
    graph = StateGraph({"n": Channel(0, reducer="sum"), "big": Channel({})}, name="counting")
    graph.add_node("count", lambda state: {"n": 1, "big": {str(key): {"n": key} for key in range(80)}})
    graph.add_conditional_edge("count", lambda state: "count" if state["n"] < 50 else END, ["count", END])
    return _compiled(graph.add_edge(START, "count"), limits=Limits(max_iterations=6))


def done() -> GraphRunner:
    """It ends at once."""
    graph = StateGraph({"text": Channel("")}, name="done").add_node(
        "write", lambda state: {"text": "é" * 400 + "\n\n日本語 \x1b[31mred\n" * 20}
    )
    return _compiled(graph.add_edge(START, "write").add_edge("write", END))
