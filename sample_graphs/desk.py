"""A subgraph that asks a person.

    hitl-tui run sample_graphs/desk.py
    hitl-tui run sample_graphs/desk.py --headless --thread d

The graph `editor` drafts a text and asks a person about it. `desk` runs it as one node, in its own thread
(`d/editor#1`), and waits for the decision. Decide in `d`, or in `d/editor#1`, where you can also edit the
draft.
"""

from __future__ import annotations

from typing import Any

from hitl_tui import (
    END,
    START,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    MemoryCheckpointer,
    StateGraph,
    WorkflowState,
)


def draft(state: WorkflowState) -> dict[str, Any]:
    """Write something about the topic, with the wish if there is one."""
    wish = f" ({state['wish']})" if state["wish"] else ""
    return {"text": f"All about {state['topic']}{wish}.", "approved": False, "wish": ""}


def editor(store: Any) -> GraphRunner:
    """Return the inner graph: draft until it is approved."""
    gate = Gate(
        "draft",
        "Print this?",
        [
            GateChoice("print", "print it", "a", values={"approved": True}),
            GateChoice("again", "write it again", "r", "required", lambda _state, text: {"wish": text}),
        ],
        subject="text",
        recommended="print",
    )
    return (
        StateGraph(
            {"topic": Channel(""), "text": Channel(""), "wish": Channel(""), "approved": Channel(False)},
            name="editor",
        )
        .add_node("draft", draft)
        .add_edge(START, "draft")
        .add_conditional_edge("draft", lambda s: s["approved"], {"true": END, "false": "draft"})
        .compile(checkpointer=store, interrupt_after=[gate])
    )


def build(checkpointer: Any = None) -> GraphRunner:
    """Return the outer graph: run the editor, then print the article."""
    store = checkpointer or MemoryCheckpointer()
    return (
        StateGraph({"topic": Channel("closures"), "article": Channel(""), "output": Channel("")}, name="desk")
        .add_subgraph("editor", editor(store), inputs={"topic": "topic"}, outputs={"text": "article"})
        .add_node("print", lambda state: {"output": state["article"].upper()})
        .add_edge(START, "editor")
        .add_edge("editor", "print")
        .add_edge("print", END)
        .compile(checkpointer=store)
    )


graph = build()
