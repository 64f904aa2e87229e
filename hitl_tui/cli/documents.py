"""The documents of `--json`, version 1, events included: each is one object on one line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hitl_tui.drivers.protocol import Unfinished
from hitl_tui.engine.graph.description import EdgeInfo, GraphInfo, NodeInfo
from hitl_tui.engine.log import events as ev
from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate, Progress
from hitl_tui.engine.log.outcomes import BranchOutcome, ToolUse
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.signing import SignedDecision
from hitl_tui.engine.log.taint import Taint
from hitl_tui.engine.log.threads import Owner, ThreadSummary
from hitl_tui.errors import ExitCode, HitlError

VERSION = 1
PRIVATE_TEXT = "[private]"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def document(kind: str, **fields: Any) -> dict[str, Any]:
    """A document of a kind."""
    return {"hitl_tui": VERSION, "kind": kind, **fields}


def to_json(value: Mapping[str, Any]) -> str:
    """One line of ASCII, so that no byte of it can steer a terminal."""
    # DEL is ASCII, and the one control character that JSON leaves as it is.
    return json.dumps(value, ensure_ascii=True, default=_other).replace("\x7f", "\\u007f")


def to_text(value: Any) -> str:
    """A value as JSON that is read: letters of all languages stay, so that it is not yet harmless."""
    return json.dumps(value, ensure_ascii=False, default=_other)


def _other(value: Any) -> Any:
    if value is PRIVATE:
        return PRIVATE_TEXT
    if isinstance(value, bytes):
        return sha(value)
    return str(value)


def time(at: int | None) -> str | None:
    """Microseconds since the epoch as ISO 8601."""
    if at is None:
        return None
    try:
        moment = _EPOCH + timedelta(microseconds=at)
    except OverflowError:
        return None
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def sha(digest: bytes) -> str | None:
    """A hash as text, None for none."""
    return f"sha256:{digest.hex()}" if digest else None


def has_secrets(graph: GraphInfo) -> bool:
    """Whether a graph has private channels; then a state hash would tell of them."""
    return any(channel.visibility == "private" for channel in graph.channels)


def error_document(error: HitlError) -> dict[str, Any]:
    """What went wrong."""
    return document(
        "error",
        error=type(error).__name__,
        title=error.title,
        message=error.message,
        hint=error.hint,
        details=error.details,
        exit_code=int(error.exit_code),
    )


def summary(one: ThreadSummary) -> dict[str, Any]:
    """A thread in a list."""
    info = one.info
    return {
        "thread": info.thread_id,
        "graph": info.graph_name,
        "status": one.status,
        "reason": one.reason,
        "step": one.head,
        "next": one.next_node,
        "waiting_for": one.waiting_for or None,
        "waiting_since": time(one.waiting_since),
        "last_writer": one.last_writer or None,
        "held_by": one.held_by,
        "parent": info.parent,
        "fork_step": info.fork_step if info.parent else None,
        "owner": owner(info.owner),
        "inside": one.inside,
        "created_at": time(info.created_at),
        "updated_at": time(one.updated_at),
    }


def owner(one: Owner | None) -> dict[str, Any] | None:
    """The thread and the node that the thread of a subgraph's run runs for, None for other threads."""
    return {"thread": one.thread_id, "node": one.node} if one else None


def standing(progress: Progress) -> dict[str, Any]:
    """Where a thread stands."""
    error = progress.error
    return {
        "status": progress.status,
        "reason": progress.reason,
        "step": progress.head,
        "next": progress.next_node,
        "invocation": progress.invocation,
        "iteration": progress.iteration,
        "tokens_in": progress.tokens_in,
        "tokens_out": progress.tokens_out,
        "cost": progress.cost,
        "cost_known": progress.cost_known,
        "active": progress.active / 1e6,
        "pending": [request(one) for one in progress.pending],
        "error": error
        and {
            "node": error.node,
            "attempt": error.attempt,
            "title": error.title,
            "message": error.message,
            "hint": error.hint,
            "channel": error.channel or None,
        },
    }


def signed_decision(one: SignedDecision) -> dict[str, Any]:
    """Who has signed a decision."""
    return {
        "n": one.n,
        "decision": one.kind,
        "step": one.step,
        "request": one.request,
        "actor": one.actor,
        "account": one.account,
        "at": time(one.at),
        "signature": one.found.verdict,
        "signer": one.found.signer or None,
        "key": one.found.key or None,
        "thread": one.thread,
    }


def request(one: Request) -> dict[str, Any]:
    """What waits for a human: `choices` are the allowed answers, `step` is what an answer names."""
    return {
        "id": one.id,
        "request_kind": one.kind,
        "node": one.node,
        "when": one.when,
        "step": one.step,
        "title": one.title,
        "payload": one.payload,
        "subject": one.subject,
        "schema": one.schema,
        "choices": [{"id": each.id, "label": each.label, "text": each.text} for each in one.choices],
        "recommended": one.recommended,
        "breakpoint": one.breakpoint,
        "reviewers": list(one.reviewers),
        "quorum": one.quorum,
        "signed": one.signed,
        "votes": [
            {"actor": vote.actor, "answer": vote.answer, "note": vote.note, "at": time(vote.at)}
            for vote in one.votes
        ],
        "deadline": time(one.deadline),
        "risk": one.risk,
        "policy": one.policy or None,
        "asked_at": time(one.asked_at),
        "path": one.path or None,
        "thread": one.thread or None,
    }


def checkpoint(one: Checkpoint, secret: bool) -> dict[str, Any]:
    """A committed step."""
    return {
        "step": one.step,
        "thread": one.thread_id,
        "source": one.source,
        "node": one.node or None,
        "position": one.position,
        "status": one.status,
        "reason": one.reason,
        "invocation": one.invocation,
        "iteration": one.iteration,
        "attempt": one.attempt,
        "duration": one.duration / 1e6,
        "tokens_in": one.tokens_in,
        "tokens_out": one.tokens_out,
        "cost": one.cost,
        "state_hash": PRIVATE_TEXT if secret else sha(one.state_hash),
        "at": time(one.at),
        "actor": one.actor,
        "note": one.note,
        "decision": one.decision,
        "text": one.text,
        "branches": [branch(each) for each in one.branches],
        "tainted": [taint(each) for each in one.tainted],
        "read": list(one.read),
        "calls": [tool_call(each) for each in one.calls],
    }


def tool_call(one: ToolUse) -> dict[str, Any]:
    """A call of a tool as the step keeps it; long arguments are text, cut."""
    return {
        "agent": one.agent,
        "tool": one.tool,
        "arguments": one.arguments,
        "result": one.result,
        "error": one.error,
        "duration": one.duration / 1e6,
        "attempt": one.attempt,
        "path": one.path or None,
    }


def branch(one: BranchOutcome) -> dict[str, Any]:
    """What became of a branch of a step."""
    return {
        "path": one.path,
        "name": one.name,
        "index": one.index,
        "status": one.status,
        "error": one.error.message if one.error else None,
        "attempts": one.attempts,
        "duration": one.duration / 1e6,
        "overridden": list(one.overridden),
        "thread": one.thread or None,
    }


def update(one: AppliedUpdate) -> dict[str, Any]:
    """A channel's way through its reducer."""
    private = one.visibility == "private"
    return {
        "channel": one.channel,
        "op": one.op,
        "reducer": one.reducer,
        "source": one.source,
        "before": PRIVATE_TEXT if private else one.before,
        "update": PRIVATE_TEXT if private else one.update,
        "after": PRIVATE_TEXT if private else one.after,
        "changed": PRIVATE_TEXT if private else one.changed,
        "actor": one.actor,
        "note": one.note,
        "path": one.path or None,
        "tainted": one.tainted,
        "lineage": one.lineage
        and {
            "sources": list(one.lineage.sources),
            "channels": list(one.lineage.channels),
            "cleared": one.lineage.cleared,
        },
    }


def taint(one: Taint) -> dict[str, Any]:
    """A tainted channel: since when, by whom, and what from outside is in it."""
    return {"channel": one.channel, "since": one.step, "node": one.node, "sources": list(one.sources)}


def updates(some: Iterable[AppliedUpdate]) -> list[dict[str, Any]]:
    """The updates of a step, in the order in which they were reduced."""
    return [update(one) for one in some]


def decision(one: LedgerEntry, secret: bool) -> dict[str, Any]:
    """An entry of the decision ledger."""
    return {
        "n": one.n,
        "decision": one.kind,
        "step": one.step,
        "request": one.request_id,
        "actor": one.actor,
        "account": one.account,
        "signature": one.signature or None,
        "note": one.note,
        "seen": PRIVATE_TEXT if secret and one.seen else sha(one.seen),
        "data": one.data,
        "at": time(one.at),
    }


def result(
    thread_id: str, progress: Progress, state: Mapping[str, Any], code: ExitCode, **more: Any
) -> dict[str, Any]:
    """What a command left behind."""
    return document(
        "result", thread=thread_id, **standing(progress), state=dict(state), exit_code=int(code), **more
    )


def graph(info: GraphInfo) -> dict[str, Any]:
    """A graph as declared."""
    return document(
        "graph",
        name=info.name,
        digest=f"sha256:{info.digest}",
        nodes=[node(one) for one in info.nodes],
        edges=[edge(one) for one in info.edges],
        channels=[
            {
                "name": one.name,
                "type": one.type,
                "reducer": one.reducer,
                "visibility": one.visibility,
                "description": one.description,
                "schema": dict(one.schema),
            }
            for one in info.channels
        ],
        inputs=[
            {"name": one.name, "channel": one.channel, "label": one.label, "example": one.example}
            for one in info.inputs
        ],
    )


def edge(one: EdgeInfo) -> dict[str, Any]:
    """An arrow of a graph; the label is the routing key, "" for a fixed edge."""
    return {"source": one.source, "target": one.target, "label": one.label}


def node(one: NodeInfo) -> dict[str, Any]:
    """A node as declared; what a map, a parallel or a subgraph is made of under `inside`."""
    known = {
        "name": one.name,
        "kind": one.kind,
        "reads": list(one.reads),
        "writes": list(one.writes),
        "external": one.external or None,
        "on_taint": one.on_taint,
        "attempts": one.attempts,
        "timeout": one.timeout,
    }
    return known if one.kind == "node" else {**known, "inside": _inside(one)}


def _inside(one: NodeInfo) -> dict[str, Any]:
    if one.graph is not None:
        inner = one.graph
        return {
            "graph": inner.name,
            "inputs": dict(one.inputs),
            "outputs": dict(one.outputs),
            "nodes": [node(each) for each in inner.nodes],
            "edges": [edge(each) for each in inner.edges],
        }
    return {
        "over": one.over or None,
        "join": one.join,
        "max_concurrent": one.max_concurrent,
        "max_items": one.max_items,
        "on_error": one.on_error,
        "members": [node(member) for member in one.members],
    }


def unfinished(one: Unfinished | None) -> dict[str, Any] | None:
    """What is kept of a node with branches, or a subgraph, at which a thread was put down."""
    if one is None:
        return None
    kept = [branch(each) for each in one.outcomes]
    return {
        "node": one.node,
        "step": one.step,
        "total": one.total,
        "branches": kept,
        "thread": one.child or None,
    }


def listed(kind: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """A document that is a list; the list has the document's own name."""
    return document(kind, **{kind: list(rows)}, **more)


def event(thread_id: str, one: ev.Event, secret: bool) -> dict[str, Any]:
    """One event; `secret` where the graph has private channels, so that hashes are left out."""
    name, fields = _named(one, secret)
    return document("event", thread=thread_id, event=name, **fields)


def _named(one: ev.Event, secret: bool) -> tuple[str, dict[str, Any]]:
    match one:
        case ev.RunStarted() | ev.RunEnded() | ev.ProgressChanged():
            return _PROGRESS[type(one)], standing(one.progress)
        case ev.StepCommitted():
            step = checkpoint(one.checkpoint, secret)
            return "step_committed", {"checkpoint": step, "updates": updates(one.updates)}
        case ev.LedgerWritten():
            return "decision", decision(one.entry, secret)
        case ev.AttemptFailed():
            error = one.error
            return "node_failed", {"node": error.node, "attempt": error.attempt, "message": error.message}
        case ev.BranchStarted() | ev.BranchEnded() | ev.BranchWaits() | ev.ChildMoved():
            return _inside_event_shapes(one)
        case _:
            return _work(one)


def _inside_event_shapes(
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
                "at": time(one.at),
            }
        case ev.BranchEnded():
            outcome = branch(one.outcome)
            child = outcome.pop("thread")
            return "branch_ended", {"node": one.node, **outcome, "child": child, "at": time(one.at)}
        case ev.BranchWaits():
            return "branch_waits", {"node": one.node, "path": one.path, "title": one.title}
    child = {"thread": one.thread_id, **standing(one.progress)}
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
            at = time(one.at)
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
