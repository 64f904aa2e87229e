"""Finds the first difference between two threads: the step, who made it, and what differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Protocol

import msgspec

from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.units import about
from hitl_tui.view.diff_lines import Compared, compare_states, diff_text
from hitl_tui.view.format import writer
from hitl_tui.view.lines import name
from hitl_tui.view.spans import Line, trusted, untrusted

_CHUNK: Final = 64
"""Steps that are compared at once."""
_NAMED: Final = 4


class FirstDifference(msgspec.Struct, frozen=True):
    """The first difference between two threads."""

    step: Annotated[int, about("The first step at which the states differ.")]
    a_by: Annotated[str, about("Who wrote the step in `a`.")]
    b_by: Annotated[str, about("Who wrote the step in `b`.")]
    channels: Annotated[tuple[Compared, ...], about("The channels that differ there.")]


class History(Protocol):
    """The history of a thread, as a `Driver` has it."""

    async def history(self, before: int | None = None, limit: int = 50) -> tuple[Checkpoint, ...]: ...
    async def state_at(self, step: int) -> Mapping[str, Any]: ...


async def first_difference(a: History, b: History, last: int) -> FirstDifference | None:
    """Return the first difference of two threads, up to a step that both have; None if there is none.

    Shared steps are skipped by bisection: once checkpoints differ, all later ones do.
    """
    low, high = 0, last + 1
    while low < high:
        middle = (low + high) // 2
        points = *await a.history(middle + 1, 1), *await b.history(middle + 1, 1)
        alike = len(points) == 2 and points[0].checkpoint_hash == points[1].checkpoint_hash
        low, high = (middle + 1, high) if alike else (low, middle)
    for first in range(low, last + 1, _CHUNK):
        end = min(first + _CHUNK, last + 1)
        theirs = {point.step: point for point in await b.history(end, end - first)}
        for mine in reversed(await a.history(end, end - first)):
            other = theirs.get(mine.step)
            if other is not None and mine.state_hash != other.state_hash:
                rows = compare_states(await a.state_at(mine.step), await b.state_at(mine.step))
                changed = tuple(row for row in rows if row.change != "same")
                return FirstDifference(mine.step, writer(mine), writer(other), changed)
    return None


def first_difference_lines(difference: FirstDifference) -> list[str]:
    """Return lines about the first difference, who wrote it, and the values."""
    by = f"by {name(difference.a_by)} and by {name(difference.b_by)}"
    return [f"First difference at step {difference.step}, {by}:", *diff_text(difference.channels)]


def first_difference_row(difference: FirstDifference) -> Line:
    """Return one row about the first difference, who wrote it, and the channels."""
    names = [row.channel for row in difference.channels]
    more = f", {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        trusted(f"First difference at step {difference.step}", "accent"),
        trusted(", by ", "dim"),
        untrusted(difference.a_by, "name"),
        trusted(" and by ", "dim"),
        untrusted(difference.b_by, "name"),
        trusted(": ", "dim"),
        untrusted(", ".join(names[:_NAMED]) + more, "value"),
    )
