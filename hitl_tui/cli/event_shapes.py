"""The events of a run as documents: `{"kind": "event", "event": name, ...}`."""

from __future__ import annotations

from typing import Any

from hitl_tui.cli import shapes
from hitl_tui.engine.log import events as ev


def event(thread_id: str, one: ev.Event, secret: bool) -> dict[str, Any]:
    """One event; `secret` where the graph has private channels, so that hashes are left out."""
    name, fields = _named(one, secret)
    return shapes.document("event", thread=thread_id, event=name, **fields)


def _named(one: ev.Event, secret: bool) -> tuple[str, dict[str, Any]]:
    match one:
        case ev.RunStarted() | ev.RunEnded() | ev.ProgressChanged():
            return _PROGRESS[type(one)], shapes.standing(one.progress)
        case ev.StepCommitted():
            step = shapes.checkpoint(one.checkpoint, secret)
            return "step_committed", {"checkpoint": step, "updates": shapes.updates(one.updates)}
        case ev.LedgerWritten():
            return "decision", shapes.decision(one.entry, secret)
        case ev.NodeFailed():
            error = one.error
            return "node_failed", {"node": error.node, "attempt": error.attempt, "message": error.message}
        case ev.BranchStarted() | ev.BranchEnded() | ev.BranchWaits() | ev.ChildMoved():
            return _inside(one)
        case _:
            return _work(one)


def _inside(
    one: ev.BranchStarted | ev.BranchEnded | ev.BranchWaits | ev.ChildMoved,
) -> tuple[str, dict[str, Any]]:
    """What the branches of a node do, and the thread of a subgraph."""
    match one:
        case ev.BranchStarted():
            fields = {"name": one.name, "index": one.index, "total": one.total, "attempt": one.attempt}
            return "branch_started", {
                "node": one.node,
                "path": one.path,
                **fields,
                "at": shapes.time(one.at),
            }
        case ev.BranchEnded():
            outcome = shapes.branch(one.outcome)
            child = outcome.pop("thread")
            return "branch_ended", {"node": one.node, **outcome, "child": child, "at": shapes.time(one.at)}
        case ev.BranchWaits():
            return "branch_waits", {"node": one.node, "path": one.path, "title": one.title}
    child = {"thread": one.thread_id, **shapes.standing(one.progress)}
    return "child_moved", {
        "node": one.node,
        "path": one.path,
        "running": one.running or None,
        "child": child,
    }


def _work(one: ev.Event) -> tuple[str, dict[str, Any]]:
    """What a node does while it runs, and what concerns the thread as a whole."""
    match one:
        case ev.NodeStarted():
            at = shapes.time(one.at)
            return "node_started", {"node": one.node, "step": one.step, "attempt": one.attempt, "at": at}
        case ev.TextStreamed():
            return "text", {"node": one.node, "path": one.path or None, "agent": one.agent, "text": one.text}
        case ev.ModelCalled():
            return "model_called", {
                "node": one.node,
                "path": one.path or None,
                "agent": one.agent,
                "model": one.model,
                "tokens_in": one.tokens_in,
                "tokens_out": one.tokens_out,
                "cost": one.cost,
                "duration": one.duration / 1e6,
            }
        case ev.ToolCalled():
            return "tool_called", {
                "node": one.node,
                "path": one.path or None,
                "agent": one.agent,
                "tool": one.tool,
                "arguments": one.arguments,
                "result": one.result,
                "error": one.error,
                "duration": one.duration / 1e6,
            }
        case ev.NodeRetrying():
            return "node_retrying", {
                "node": one.node,
                "path": one.path or None,
                "attempt": one.attempt,
                "max_attempts": one.max_attempts,
                "wait": one.wait,
                "error": one.error,
            }
        case ev.AttemptDropped():
            return "attempt_dropped", {"node": one.node, "attempt": one.attempt, "why": one.why}
        case ev.ThreadForked():
            return "forked", {"child": one.child, "step": one.step}
        case ev.HolderChanged():
            return "holder_changed", {"held_by": one.holder or None}
        case ev.LimitNear():
            fields = {"percent": one.percent, "used": one.used, "allowed": one.allowed}
            return "limit_near", {"limit": one.limit, **fields}
        case ev.TaintRead():
            return "taint_read", {"node": one.node, "channels": [taint.channel for taint in one.tainted]}
    return "other", {}


_PROGRESS: dict[type, str] = {
    ev.RunStarted: "run_started",
    ev.RunEnded: "run_ended",
    ev.ProgressChanged: "progress",
}
