"""A graph that waits for a graph inside it, which asks a person about its draft."""

from __future__ import annotations

from typing import Any

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, StateGraph
from hitl_tui.stores import Checkpointer


def asking(store: Checkpointer, **terms: Any) -> GraphRunner:
    """A runner of the outer graph, with other terms of its gate."""
    gate = Gate("draft", "Print this?", [GateChoice("print", "print it", "a")], subject="text", **terms)
    editor = (
        StateGraph({"text": Channel("")}, name="editor")
        .add_node("draft", lambda state: {"text": "a draft"})
        .add_edge(START, "draft")
        .add_edge("draft", END)
        .compile(checkpointer=store, interrupt_after=[gate])
    )
    return (
        StateGraph({"article": Channel("")}, name="desk")
        .add_subgraph("editor", editor, inputs={}, outputs={"text": "article"})
        .add_edge(START, "editor")
        .add_edge("editor", END)
        .compile(checkpointer=store)
    )
