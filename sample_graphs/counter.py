"""The smallest loop: count up to a limit, and note every step.

    hitl-tui run sample_graphs/counter.py --input limit=5

A graph without agents or gates can be a plain `StateGraph`; the command that runs it decides where its
threads are stored.
"""

from __future__ import annotations

from typing import Any

from hitl_tui import END, START, Channel, StateGraph, WorkflowState, append


def increment(state: WorkflowState) -> dict[str, Any]:
    """Add one."""
    count = state["count"] + 1
    return {"count": count, "log": f"counted to {count}"}


def is_done(state: WorkflowState) -> str:
    """Return "again" until the limit is reached."""
    return "done" if state["count"] >= state["limit"] else "again"


graph = (
    StateGraph(
        {
            "limit": Channel(3, schema=int, description="where to stop"),
            "count": Channel(0, schema=int),
            "log": Channel([], reducer=append()),
        },
        name="counter",
    )
    .add_node("increment", increment, reads=["count"], writes=["count", "log"])
    .add_edge(START, "increment")
    .add_conditional_edge("increment", is_done, {"again": "increment", "done": END})
)
