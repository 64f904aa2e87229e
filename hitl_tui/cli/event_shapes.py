"""The events of a run as documents: `{"kind": "event", "event": name, ...}`."""

from __future__ import annotations

from typing import Any

from hitl_tui.cli import shapes
from hitl_tui.engine import events as ev


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
        case _:
            return _work(one)


def _work(one: ev.Event) -> tuple[str, dict[str, Any]]:
    """What a node does while it runs, and what concerns the thread as a whole."""
    match one:
        case ev.NodeStarted():
            at = shapes.time(one.at)
            return "node_started", {"node": one.node, "step": one.step, "attempt": one.attempt, "at": at}
        case ev.TextStreamed():
            return "text", {"node": one.node, "agent": one.agent, "text": one.text}
        case ev.ModelCalled():
            return "model_called", {
                "node": one.node,
                "agent": one.agent,
                "model": one.model,
                "tokens_in": one.tokens_in,
                "tokens_out": one.tokens_out,
                "cost": one.cost,
                "duration": one.duration / 1e6,
            }
        case ev.NodeRetrying():
            return "node_retrying", {
                "node": one.node,
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
    return "other", {}


_PROGRESS: dict[type, str] = {
    ev.RunStarted: "run_started",
    ev.RunEnded: "run_ended",
    ev.ProgressChanged: "progress",
}
