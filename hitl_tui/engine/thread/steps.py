"""What a step is made of, and its records and its checkpoint (SPEC 10)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hitl_tui.engine.channels.canonical import state_hash
from hitl_tui.engine.channels.changes import Change
from hitl_tui.engine.channels.state import LiveState
from hitl_tui.engine.log.outcomes import BranchOutcome, Compensation, ModelUse, ToolUse
from hitl_tui.engine.log.records import Checkpoint, Cursor, Source, UpdateRecord
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.spending import cost_of


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What happened in a step, besides its changes.

    Attributes:
        source: who made it.
        node: the node that ran, "" for the input and for humans.
        decision: the id of the choice that made it, where it is a human's answer.
        text: what the node said.
        duration: microseconds.
        uses, calls: what its agents asked of models and tools, in failed attempts, too.
        read: what the node read, where that was noted.
    """

    source: Source
    node: str = ""
    attempt: int = 1
    actor: str | None = None
    note: str | None = None
    decision: str | None = None
    text: str | None = None
    duration: int = 0
    uses: tuple[ModelUse, ...] = ()
    calls: tuple[ToolUse, ...] = ()
    branches: tuple[BranchOutcome, ...] = ()
    read: tuple[str, ...] = ()
    compensations: tuple[Compensation, ...] = ()


def records_of(step: Step, cursor: Cursor, changes: Sequence[Change], at: int) -> tuple[UpdateRecord, ...]:
    """The records of a step's changes, behind those that `cursor`, the one before the step, tells of.

    Args:
        at: microseconds since the epoch.
    """
    return journal.write_records(
        cursor,
        changes,
        step=cursor.head + 1,
        node=step.node,
        source=step.source,
        at=at,
        attempt=step.attempt,
        actor=step.actor,
        note=step.note,
    )


def checkpoint_of(
    step: Step, cursor: Cursor, state: LiveState, records: int, *, parent_thread: str, at: int
) -> Checkpoint:
    """The checkpoint of a step.

    Args:
        cursor: the one after the step, whose head and last record are still those before it.
        records: how many the step has.
        parent_thread: the thread of the step before.
        at: microseconds since the epoch.
    """
    number, uses = cursor.head + 1, step.uses
    # By place, in the order of its fields: finding so many by their names takes ten times as long.
    return Checkpoint(
        cursor.thread_id,
        number,
        parent_thread if number else None,
        number - 1,
        step.source,
        step.node,
        cursor.position,
        cursor.status,
        cursor.reason,
        cursor.invocation,
        cursor.iteration,
        step.attempt,
        step.duration,
        sum([use.tokens_in for use in uses]),
        sum([use.tokens_out for use in uses]),
        cost_of(uses),
        state_hash(state.digests),
        cursor.last_seq + 1,
        cursor.last_seq + records,
        at,
        step.actor,
        step.note,
        step.decision,
        step.text,
        uses,
        step.branches,
        tuple(state.taint.values()) if state.taint else (),
        step.read,
        step.compensations,
        step.calls,
    )
