"""The read-only inputs of a run, goal and constraints: as they stand, and as they stood (SPEC 3, 11)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from hitl_tui.engine.channels.channel import RUN_INPUTS
from hitl_tui.engine.channels.values import freeze
from hitl_tui.engine.log.records import Cursor, LedgerEntry

INPUT = "input"
"""The kind of the ledger's entries that say what was given."""


def frozen(cursor: Cursor) -> Cursor:
    """A cursor from a store, with inputs that no node can change."""
    if cursor.goal is None and cursor.constraints is None:
        return cursor
    return replace(cursor, goal=freeze(cursor.goal), constraints=freeze(cursor.constraints))


def given_at_steps(ledger: Iterable[LedgerEntry]) -> dict[int, dict[str, Any]]:
    """What was given, by the step it came with; of several threads of a family, as a fork's ledger has it."""
    return {entry.step: freeze(dict(entry.data)) for entry in ledger if entry.kind == INPUT}


def as_of(step: int, given: dict[int, dict[str, Any]], now: Cursor) -> dict[str, Any]:
    """Goal and constraints as they stood at a step of a thread.

    Args:
        given: from `given_at_steps`; without any the thread has kept what it has `now` all the time.
    """
    if not given:
        return {name: getattr(now, name) for name in RUN_INPUTS}
    found = dict.fromkeys(RUN_INPUTS)
    for at, values in given.items():
        if at <= step:
            found.update(values)
    return found
