"""What a run spends: model calls and active time, added up in the cursor (SPEC 5)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hitl_tui.engine.outcomes import ModelUse
from hitl_tui.engine.records import Cursor


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
