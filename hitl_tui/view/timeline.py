"""The checkpoint timeline: this thread's line on top, the rest of its family as branches below.

    0        1         2          3         4
    ○ input ─● worker ─● advisor ─● worker ─◉ advisor ‖ you            closure-explainer
                       ╰──────────✎ you ────● worker ✔ end           closure-explainer-b

A step of every thread stands in the column of its number, so that forks can be compared.  Only the
steps around the selected one are laid out, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from hitl_tui.drivers.protocol import Relative
from hitl_tui.view.branches import Branch, Direction, Lines, Place, family_lines, neighbours
from hitl_tui.view.canvas import Canvas
from hitl_tui.view.cells import cells, cut_start
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.run_view import RunView
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import Line, Role
from hitl_tui.view.step_cell import StepCell, step_cell

__all__ = ["Direction", "Hit", "Place", "TimelineLayout", "layout", "neighbours"]

_NAME: Final = 24
_NAMES_FROM: Final = 100
_BEFORE_NAME: Final = 2
_SHORTEST_NAME: Final = 8
_LONG_MARKERS_FROM: Final = 100
_GAP: Final = 3
_ROOM: Final = 20
_LINES: Final = 64


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
    lines = family_lines(view, family)
    top = lines.branches[0]
    if top.head < 0 or width < 1:
        return TimelineLayout((), (), None, None, 0)
    chosen = lines.home(selected) if selected else (0, top.head)
    drawing = _Drawing(lines, chosen, width, glyphs)
    drawing.draw(chosen[1] if selected else None)
    hits = drawing.hits
    return TimelineLayout(
        rows=drawing.canvas.lines(),
        hits=tuple(hits.values()),
        selected=hits.get(chosen) if selected else None,
        head=hits.get((0, top.head)),
        hidden=len(lines.branches) - len(drawing.rows),
    )


class _Drawing:
    """One layout in the making: first which steps and lines fit, then where everything goes."""

    def __init__(self, lines: Lines, chosen: tuple[int, int], width: int, glyphs: Glyphs) -> None:
        self.lines = lines
        self.glyphs = glyphs
        self.last = max(branch.head for branch in lines.branches)
        self.cells: dict[tuple[int, int], StepCell] = {}
        self.hits: dict[tuple[int, int], Hit] = {}
        self.names = self._names(width)
        self.edge = width - self.names
        self.margin = 0
        columns = self._columns(chosen[1], self.edge)
        self.long = width >= _LONG_MARKERS_FROM
        if len(columns) <= self.last:
            margin = cells(self._earlier(self.last)) + 1
            self.margin = margin if self.edge - 2 * margin >= _ROOM else 0
            columns = self._columns(chosen[1], self.edge - 2 * self.margin - 1)
        after = self.margin
        self.first, self.final = min(columns), max(columns)
        if not self.first:
            self.margin = 0
        steps = range(self.first, self.final + 1)
        offsets = accumulate((columns[step] for step in steps), initial=self.margin)
        self.x = dict(zip(steps, offsets, strict=False))
        self.end = min(self.x[self.final] + columns[self.final] - 1, self.edge - after)
        self.rows = {line: row for row, line in enumerate(self._visible(chosen[0]), 1)}
        self.canvas = Canvas(len(self.rows) + 1, width)

    def _names(self, width: int) -> int:
        """The room kept for thread names at the right; where it is narrow they take what is left over."""
        longest = max(cells(_name(branch)) for branch in self.lines.branches[:_LINES])
        return longest + _BEFORE_NAME if width >= _NAMES_FROM else 0

    def _cell(self, line: int, step: int) -> StepCell:
        key = line, step
        if key not in self.cells:
            self.cells[key] = step_cell(self.lines.branches[line], step, line == 0, self.glyphs)
        return self.cells[key]

    def _columns(self, chosen: int, room: int) -> dict[int, int]:
        """The widths of as many columns around the chosen step as there is room for."""
        columns = {chosen: self._width(chosen)}
        left = room + _GAP - columns[chosen]
        sides = [(chosen, -1), (chosen, 1)]
        while sides:
            at, way = sides.pop(0)
            step = at + way
            width = self._width(step) if 0 <= step <= self.last else left + 1
            if width <= left:
                columns[step] = width
                left -= width
                sides.append((step, way))
        return columns

    def _width(self, step: int) -> int:
        branches = self.lines.branches[:_LINES]
        widths = (self._cell(line, step).width for line, branch in enumerate(branches) if branch.covers(step))
        return max(*widths, len(str(step)), 1) + _GAP

    def _visible(self, chosen: int) -> list[int]:
        """The lines that reach into the shown steps: the first ones, and the chosen one in any case."""
        reaching = [
            line
            for line, branch in enumerate(self.lines.branches)
            if line == 0 or (branch.start <= self.final and branch.head >= self.first)
        ]
        return [line for at, line in enumerate(reaching) if at < _LINES or line == chosen]

    def draw(self, chosen: int | None) -> None:
        """Put everything on the canvas; the number of the step that is travelled to stands in brackets."""
        self._draw_numbers(chosen)
        for line, row in self.rows.items():
            branch = self.lines.branches[line]
            self._draw_way(line, row, branch)
            for step in range(max(branch.start, self.first), min(branch.head, self.final) + 1):
                self._draw_step(line, row, step)
        self._draw_descents()
        for line, row in self.rows.items():
            self._draw_name(row, self.lines.branches[line])

    def _earlier(self, n: int) -> str:
        return f"{self.glyphs.earlier} {n:,} earlier" if self.long else self.glyphs.earlier

    def _draw_numbers(self, chosen: int | None) -> None:
        if self.margin:
            self._put(0, 0, self._earlier(self.first), "dim")
        for step, x in self.x.items():
            if step == chosen:
                self._put(0, max(x - 1, 0), f"[{step}]", "title")
            else:
                self._put(0, x, str(step), "dim")
        if self.final < self.last and self.end < self.edge:
            count = f"{self.last - self.final:,} later " if self.long else ""
            self._put(0, self.end + 1, count + self.glyphs.later, "dim")

    def _draw_name(self, row: int, branch: Branch) -> None:
        name = _name(branch)
        used = self.canvas.end(row)
        room = self.canvas.width - used - _BEFORE_NAME
        if room >= min(cells(name), _SHORTEST_NAME):
            # The ends of names tell forks apart.
            shown = cut_start(name, room, self.glyphs.ellipsis)
            self.canvas.put(row, self.canvas.width - cells(shown), shown, "name" if row == 1 else "dim")

    def _draw_way(self, line: int, row: int, branch: Branch) -> None:
        """What leads to a line's first shown step: from before the window, or from where it goes off."""
        if branch.start < self.first or (line and branch.start == self.first):
            self._fill(row, 0, self.margin)
        elif line:
            joint = self.x[branch.start - 1]
            self._fill(row, joint + 1, self.x[branch.start])

    def _draw_step(self, line: int, row: int, step: int) -> None:
        cell = self._cell(line, step)
        x = self.x[step]
        at = self._put(row, x, cell.glyph, cell.glyph_role)
        if cell.label:
            at = self._put(row, at + 1, cell.label, cell.label_role)
        if cell.tail:
            at = self._put(row, at + 1, cell.tail, cell.tail_role)
        if x < self.edge:
            self.hits[line, step] = Hit(row, x, min(at, self.edge), self.lines.place(line, step))
        if step < self.lines.branches[line].head:
            self._fill(row, at + 1, self.x.get(step + 1, self.end))

    def _draw_descents(self) -> None:
        """The ways down from a line to those that go off it, the lowest one last."""
        taken: set[tuple[int, int]] = set()
        for line, row in reversed(self.rows.items()):
            branch = self.lines.branches[line]
            if line == 0 or branch.start <= self.first or branch.parent not in self.rows:
                continue
            x = self.x[branch.start - 1]
            taken.add((row, x))
            below = (row + 1, x) in taken
            self._put(row, x, self.glyphs.tee if below else self.glyphs.corner, "dim")
            for between in range(row - 1, self.rows[branch.parent], -1):
                if (between, x) in taken or self._starts_at(between, branch):
                    break
                taken.add((between, x))
                self._put(between, x, self.glyphs.down, "dim")

    def _starts_at(self, row: int, other: Branch) -> bool:
        """True if the line in that row goes off where the other one does."""
        line = next(line for line, at in self.rows.items() if at == row)
        branch = self.lines.branches[line]
        return branch.parent == other.parent and branch.start == other.start

    def _put(self, row: int, x: int, text: str, role: Role) -> int:
        return self.canvas.put(row, x, text, role, self.edge)

    def _fill(self, row: int, x: int, end: int) -> None:
        if end > x:
            self._put(row, x, self.glyphs.across * (end - x), "dim")


def _name(branch: Branch) -> str:
    return cut_start(sanitise(branch.thread_id, multiline=False), _NAME)
