"""The functions of the counter: a node gets the state and returns the updates of channels."""

from __future__ import annotations

from typing import Any

from hitl_tui import WorkflowState


def increment(state: WorkflowState) -> dict[str, Any]:
    """Add one."""
    count = state["count"] + 1
    return {"count": count, "log": f"counted to {count}"}


def is_done(state: WorkflowState) -> str:
    """Return "again" until the limit is reached."""
    return "done" if state["count"] >= state["limit"] else "again"
