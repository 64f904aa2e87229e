"""What a thread has used and where it stands, as data (SPEC 5)."""

from __future__ import annotations

from typing import Any

import msgspec

from hitl_tui.engine.graphs.compensation import RollbackEntry
from hitl_tui.engine.log.records import Limits, Status
from hitl_tui.engine.thread.session import Session
from hitl_tui.engine.undo.undo_order import rollback_entries


class RunInfo(msgspec.Struct, frozen=True):
    """The run's own record, the fields of seed 003.

    Durations in microseconds, times in microseconds since the epoch, cost in US dollars
    (a lower bound where `cost_known` is False); `rollback` is what can be undone, last one first.
    """

    thread_id: str
    graph_name: str
    graph_digest: str
    invocation: int
    goal: Any
    constraints: Any
    status: Status
    reason: str
    iteration_count: int
    limits: Limits
    active: int
    retry_count: int
    visited_nodes: tuple[str, ...]
    tokens_in: int
    tokens_out: int
    cost: float
    cost_known: bool
    created_at: int
    updated_at: int
    rollback: tuple[RollbackEntry, ...] = ()


def run_info(session: Session) -> RunInfo:
    """The record of a thread's run."""
    cursor, info = session.cursor, session.info
    return RunInfo(
        thread_id=info.thread_id,
        graph_name=info.graph_name,
        graph_digest=info.graph_digest,
        invocation=cursor.invocation,
        goal=cursor.goal,
        constraints=cursor.constraints,
        status=cursor.status,
        reason=cursor.reason,
        iteration_count=cursor.iteration,
        limits=cursor.limits,
        active=cursor.active,
        retry_count=cursor.retries,
        visited_nodes=tuple(cursor.visits),
        tokens_in=cursor.tokens_in,
        tokens_out=cursor.tokens_out,
        cost=cursor.cost,
        cost_known=cursor.cost_known,
        created_at=info.created_at,
        updated_at=cursor.updated_at,
        rollback=rollback_entries(session.store, cursor),
    )
