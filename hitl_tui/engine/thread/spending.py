"""What a thread uses up: model calls and active time, added to its totals (SPEC 5)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hitl_tui.engine.log.outcomes import BranchState, ModelUse
from hitl_tui.engine.log.records import Cursor


def spent(cursor: Cursor, uses: Sequence[ModelUse], duration: int) -> Cursor:
    """The cursor with model calls and active time (microseconds) added to its totals."""
    if not uses:
        return replace(cursor, active=cursor.active + duration)
    return replace(
        cursor,
        active=cursor.active + duration,
        tokens_in=cursor.tokens_in + sum(use.tokens_in for use in uses),
        tokens_out=cursor.tokens_out + sum(use.tokens_out for use in uses),
        cost=cursor.cost + sum(use.cost or 0.0 for use in uses),
        cost_known=cursor.cost_known and all(use.cost is not None for use in uses),
    )


def cost_of(uses: Sequence[ModelUse]) -> float | None:
    """What model calls cost together, None where a price is unknown."""
    if not uses:
        return 0.0
    costs = [use.cost for use in uses]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def open_uses(cursor: Cursor) -> tuple[ModelUse, ...]:
    """Model calls that no step has yet: of attempts that failed or were given up, and of a child thread."""
    if not cursor.branches:
        return cursor.uses
    return (*cursor.uses, *(use for state in cursor.branches if state.child for use in state.child.uses))


def with_branches(cursor: Cursor, branches: tuple[BranchState, ...] = ()) -> Cursor:
    """The cursor with other branches; what a child thread used that is left behind stays counted."""
    kept = {state.child.thread_id for state in branches if state.child}
    left = [state.child for state in cursor.branches if state.child and state.child.thread_id not in kept]
    uses = (*cursor.uses, *(use for child in left for use in child.uses))
    return replace(cursor, branches=branches, uses=uses)
