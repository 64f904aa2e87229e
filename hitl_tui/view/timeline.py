"""The checkpoint timeline: this thread's line on top, the rest of its family as branches below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hitl_tui.drivers.protocol import Relative
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.run_view import RunView
from hitl_tui.view.spans import Line

Place = tuple[str, int]
Direction = Literal["left", "right", "up", "down"]


@dataclass(frozen=True, slots=True)
class Hit:
    """Cells x0 (included) to x1 (not) of a row that stand for a step."""

    row: int
    x0: int
    x1: int
    place: Place


@dataclass(frozen=True, slots=True)
class TimelineLayout:
    """Rows to draw (the first carries the step numbers) and where each step is in them.

    `hidden` counts the lines of the family that don't reach into the shown steps.
    """

    rows: tuple[Line, ...]
    hits: tuple[Hit, ...]
    selected: Hit | None
    head: Hit | None
    hidden: int

    def at(self, row: int, x: int) -> Place | None:
        """The step under a cell, for the mouse."""
        return next((hit.place for hit in self.hits if hit.row == row and hit.x0 <= x < hit.x1), None)


def layout(
    view: RunView,
    family: Sequence[Relative],
    selected: Place | None,
    width: int,
    glyphs: Glyphs = UNICODE,
) -> TimelineLayout:
    """Lay out the steps around the selected one (None: the head) in `width` cells."""
    raise NotImplementedError


def neighbours(view: RunView, family: Sequence[Relative], place: Place, direction: Direction) -> Place:
    """The step one key press away; the same place where there is none."""
    raise NotImplementedError
