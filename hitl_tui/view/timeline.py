"""The timeline of checkpoints: a thread's family as a tree, each fork below the line it branches off from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final, Literal

import msgspec

from hitl_tui.drivers.protocol import Relative
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry, Status
from hitl_tui.engine.log.requests import Request
from hitl_tui.view.cells import Canvas, cells, cut, cut_middle, thread_name
from hitl_tui.view.failed_branches import failures_in
from hitl_tui.view.format import HUMAN, person, writer
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.notes import noted_steps
from hitl_tui.view.run_view import RunView, find_step
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role

Place = tuple[str, int]
Direction = Literal["left", "right", "up", "down"]


class ThreadLine(msgspec.Struct, frozen=True):
    """One line: the steps `start` to `head` of a thread, branching off line `parent` at step `start - 1`.

    `sources` hold its checkpoints, each up to a step. `voted` says that the viewer has voted on all its
    requests. `answered` says, by step, who answered what its node asked. `noted` are the steps with notes.
    """

    thread_id: str
    parent: int
    start: int
    head: int
    status: Status
    reason: str
    next_node: str
    sources: tuple[tuple[int, tuple[Checkpoint, ...]], ...]
    voted: bool = False
    answered: Mapping[int, str] = {}
    noted: frozenset[int] = frozenset()

    def covers(self, step: int) -> bool:
        """Whether the line has a step."""
        return self.start <= step <= self.head

    def find(self, step: int) -> Checkpoint | None:
        """Return the checkpoint of a step of this line, None if it isn't loaded."""
        if not self.covers(step):
            return None
        candidates = (find_step(checkpoints, step) for last, checkpoints in self.sources if step <= last)
        return next((checkpoint for checkpoint in candidates if checkpoint), None)


class ThreadLines(msgspec.Struct, frozen=True):
    """All lines of a family in drawing order, the oldest ancestor's first, and the line of each step.

    Args:
        open: the line of the open thread.
        shared: by the line of an ancestor, the last step that the open thread shares with it.
    """

    branches: tuple[ThreadLine, ...]
    index: Mapping[str, int]
    open: int
    shared: Mapping[int, int]

    def home(self, place: Place) -> tuple[int, int]:
        """Return the line and step at which a place is shown; the nearest one if it has none."""
        thread_id, step = place
        line = self.index.get(thread_id, self.open)
        while line and step < self.branches[line].start:
            line = self.branches[line].parent
        branch = self.branches[line]
        return line, min(max(step, branch.start), max(branch.head, branch.start))

    def place(self, line: int, step: int) -> Place:
        """Return the place of a step of a line; a shared step belongs to the open thread."""
        return self.branches[self.open if self.shares(line, step) else line].thread_id, step

    def shares(self, line: int, step: int) -> bool:
        """Whether a step of an ancestor is also one of the open thread."""
        return step <= self.shared.get(line, -1)


def family_lines(view: RunView, family: Sequence[Relative], me: str = "") -> ThreadLines:
    """Return the lines of the open thread and its relatives, each below the one it was forked from.

    Args:
        me: the viewer.
    """
    relatives = {relative.thread_id: relative for relative in family if relative.thread_id != view.thread_id}
    leaves = _ancestors(view, relatives)
    root = next(reversed(leaves), view.thread_id)
    starts = {name: relative.fork_step + 1 for name, relative in relatives.items()}
    # A fork that has run nothing yet has the position of the step that it begins after.
    starts[view.thread_id] = max(min(view.fork_step + 1, view.progress.head), 0)
    starts[root] = 0
    parents = {name: relative.parent or "" for name, relative in relatives.items()}
    parents[view.thread_id] = view.parent or ""
    children: dict[str, list[str]] = {}
    for name in parents.keys() - {root}:
        parent = parents[name]
        # A fork from a step that its parent shares branches off the line that has that step.
        while parent in starts and starts[name] <= starts[parent] and parent != root:
            parent = parents[parent]
        children.setdefault(parent, []).append(name)

    branches: list[ThreadLine] = []
    index: dict[str, int] = {}

    def add(name: str, parent: int) -> None:
        index[name] = parent
        if name == view.thread_id or starts[name] <= relatives[name].summary.head:
            index[name] = len(branches)
            branches.append(
                _open_line(view, parent, starts[name], me)
                if name == view.thread_id
                else _branch(view, relatives[name], parent, starts[name], leaves.get(name, -1))
            )
        for child in sorted(children.pop(name, ()), key=lambda child: (-starts[child], child)):
            add(child, index[name])

    add(root, 0)
    shared = {index[name]: last for name, last in leaves.items()}
    return ThreadLines(tuple(branches), index, index[view.thread_id], shared)


def _ancestors(view: RunView, relatives: Mapping[str, Relative]) -> dict[str, int]:
    """Return the last step that the open thread shares with each of its ancestors."""
    leaves: dict[str, int] = {}
    parent, step = view.parent, view.fork_step
    while parent is not None and parent in relatives and parent not in leaves:
        leaves[parent] = step
        step = min(step, relatives[parent].fork_step)
        parent = relatives[parent].parent
    return leaves


def _open_line(view: RunView, parent: int, start: int, me: str) -> ThreadLine:
    progress = view.progress
    # If no node is to blame, as when the store is unavailable, none is named.
    at_fault = progress.status != "failed" or view.error is None or bool(view.error.node)
    return ThreadLine(
        thread_id=view.thread_id,
        parent=parent,
        start=start,
        head=progress.head,
        status=progress.status,
        reason=progress.reason,
        next_node=(view.running_node or progress.next_node or "") if at_fault else "",
        sources=((progress.head, view.checkpoints),),
        voted=_has_voted_on_all(progress.pending, me),
        answered=_answered_inside(view.ledger),
        noted=noted_steps(view.ledger),
    )


def _answered_inside(ledger: Sequence[LedgerEntry]) -> Mapping[int, str]:
    """Return by step who answered the requests made by its node."""
    inside = {
        entry.request_id
        for entry in ledger
        if entry.kind == "request" and isinstance(entry.data, Mapping) and entry.data.get("when") == "inside"
    }
    answers = (
        entry for entry in ledger if entry.kind in ("answer", "timeout") and entry.request_id in inside
    )
    return {entry.step + 1: sanitise_line(person(entry.actor, entry.made_by), _LABEL) for entry in answers}


def _has_voted_on_all(requests: Sequence[Request], me: str) -> bool:
    if not requests:
        return False
    from hitl_tui.engine.thread.interrupts import has_voted

    return all(has_voted(request, me) for request in requests)


def _branch(view: RunView, relative: Relative, parent: int, start: int, shared: int) -> ThreadLine:
    summary = relative.summary
    return ThreadLine(
        thread_id=relative.thread_id,
        parent=parent,
        start=start,
        head=summary.head,
        status=summary.status,
        reason=summary.reason,
        next_node=summary.next_node or "",
        sources=((shared, view.checkpoints), (summary.head, relative.checkpoints)),
        noted=frozenset(step for step in noted_steps(view.ledger) if step <= shared),
    )


def neighbours(view: RunView, family: Sequence[Relative], place: Place, direction: Direction) -> Place:
    """Return the step one key press away; the same place if there is none."""
    lines = family_lines(view, family)
    line, step = lines.home(place)
    branch = lines.branches[line]
    if direction == "left":
        if step > branch.start or not line:
            return lines.place(line, max(step - 1, branch.start))
        return lines.place(branch.parent, step - 1)
    if direction == "right":
        if lines.shares(line, step):
            return lines.place(*lines.home((view.thread_id, step + 1)))
        return lines.place(line, min(step + 1, branch.head))
    other = min(max(line + (1 if direction == "down" else -1), 0), len(lines.branches) - 1)
    bounds = lines.branches[other]
    return lines.place(other, min(max(step, bounds.start), bounds.head))


_LABEL: Final = 18


class StepCell(msgspec.Struct, frozen=True):
    """A step as drawn; texts are sanitised and short."""

    glyph: str
    glyph_role: Role
    label: str
    label_role: Role = "plain"
    tail: str = ""
    tail_role: Role = "dim"

    @property
    def width(self) -> int:
        """The cells it takes, with a blank between its parts."""
        return sum(1 + cells(part) for part in (self.glyph, self.label, self.tail) if part) - 1


def step_cell(branch: ThreadLine, step: int, is_open: bool, glyphs: Glyphs) -> StepCell:
    """Return the cell of a step; `is_open` says that it is on the open thread's line."""
    checkpoint = branch.find(step)
    glyph, role = _glyph(checkpoint, glyphs)
    label = _label(checkpoint, glyphs, branch.answered.get(step, ""), noted=step in branch.noted)
    if step != branch.head:
        return StepCell(glyph, role, label, "human" if role == "human" else "plain")
    tail, tail_role = _tail(branch, glyphs)
    if is_open:
        head_role = (
            "accent" if branch.status == "pending" else "ok" if branch.status == "running" else tail_role
        )
        return StepCell(glyphs.head, head_role, label, "title", tail, tail_role)
    return StepCell(glyph, role, label, "human" if role == "human" else "plain", tail, tail_role)


def _glyph(checkpoint: Checkpoint | None, glyphs: Glyphs) -> tuple[str, Role]:
    if checkpoint is None:
        return glyphs.dot, "dim"
    if checkpoint.source == "input":
        return glyphs.input, "ok"
    if checkpoint.decision is not None:
        return glyphs.done, "human"
    if checkpoint.source == "rollback":
        return glyphs.cancelled, "human"
    if checkpoint.source in ("human", "fork"):
        return glyphs.edit, "human"
    return (glyphs.failed, "error") if failures_in(checkpoint) else (glyphs.node, "ok")


def _label(checkpoint: Checkpoint | None, glyphs: Glyphs, answered: str, *, noted: bool) -> str:
    mark = f" {glyphs.note}" if noted else ""
    if checkpoint is None:
        return glyphs.ellipsis + mark
    label = writer(checkpoint)
    if checkpoint.decision is not None:
        label = f"{sanitise_line(checkpoint.decision, _LABEL)} by {label}"
    elif checkpoint.source == "human" or (checkpoint.source == "fork" and checkpoint.actor):
        label = f"by {label}"
    elif answered and checkpoint.source == "node":
        label = f"{label} ({answered})"
    failed = failures_in(checkpoint)
    marks = (f" {glyphs.failed}{failed}" if failed else "") + mark
    return cut(label, _LABEL - len(marks), glyphs.ellipsis) + marks


def _tail(branch: ThreadLine, glyphs: Glyphs) -> tuple[str, Role]:
    node = cut(sanitise_line(branch.next_node, _LABEL), _LABEL, glyphs.ellipsis)
    match branch.status:
        case "completed":
            return f"{glyphs.done} end", "ok"
        case "waiting":
            if branch.voted:
                return f"{glyphs.waiting} others", "dim"
            paused = branch.reason in ("paused", "limit")
            return f"{glyphs.waiting} {branch.reason if paused else HUMAN}", "accent"
        case "failed":
            return " ".join(part for part in (glyphs.failed, node, "failed") if part), "error"
        case "cancelled":
            return f"{glyphs.cancelled} cancelled", "dim"
        case "running":
            return f"{glyphs.running} {node}".rstrip(), "node"
    return "", "dim"


_NAME: Final = 24
_NAMES_FROM: Final = 100
_BEFORE_NAME: Final = 2
_SHORTEST_NAME: Final = 8
_LONG_MARKERS_FROM: Final = 100
_GAP: Final = 3
_ROOM: Final = 20
_LINES: Final = 64


class Hit(msgspec.Struct, frozen=True):
    """Cells x0 (included) to x1 (excluded) of a row that belong to a step."""

    row: int
    x0: int
    x1: int
    place: Place


class TimelineLayout(msgspec.Struct, frozen=True):
    """Rows to draw (the first has the step numbers) and the place of each step in them.

    `hidden` counts the lines of the family that don't reach into the shown steps.
    """

    rows: tuple[Line, ...]
    hits: tuple[Hit, ...]
    selected: Hit | None
    head: Hit | None
    hidden: int

    def at(self, row: int, x: int) -> Place | None:
        """Return the step under a cell, for the mouse."""
        return next((hit.place for hit in self.hits if hit.row == row and hit.x0 <= x < hit.x1), None)


def layout(
    view: RunView,
    family: Sequence[Relative],
    selected: Place | None,
    width: int,
    glyphs: Glyphs = UNICODE,
    *,
    me: str = "",
    whole: bool = False,
) -> TimelineLayout:
    """Lay out the steps around the selected one (None: the head) in `width` cells.

    With `whole`, lines outside the shown steps also have a row, which says where they branch off.
    """
    lines = family_lines(view, family, me)
    newest = lines.open, view.progress.head
    if view.progress.head < 0 or width < 1:
        return TimelineLayout((), (), None, None, 0)
    chosen = lines.home(selected) if selected else newest
    drawing = _Drawing(lines, chosen, width, glyphs, whole)
    drawing.draw(chosen[1] if selected else None)
    hits = drawing.hits
    return TimelineLayout(
        rows=drawing.canvas.lines(),
        hits=tuple(hits.values()),
        selected=hits.get(chosen) if selected else None,
        head=hits.get(newest),
        hidden=len(lines.branches) - len(drawing.rows),
    )


class _Drawing:
    """Computes a layout: first which steps and lines fit, then where everything goes."""

    def __init__(
        self, lines: ThreadLines, chosen: tuple[int, int], width: int, glyphs: Glyphs, whole: bool
    ) -> None:
        self.lines = lines
        self.glyphs = glyphs
        self.last = max(branch.head for branch in lines.branches)
        self.cells: dict[tuple[int, int], StepCell] = {}
        self.hits: dict[tuple[int, int], Hit] = {}
        longest = max(cells(_name(branch)) for branch in lines.branches[:_LINES])
        # The room for thread names at the right; on narrow screens they take what is left.
        self.names = longest + _BEFORE_NAME if width >= _NAMES_FROM else 0
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
        self.rows = {line: row for row, line in enumerate(self._visible(chosen[0], whole), 1)}
        self.canvas = Canvas(len(self.rows) + 1, width)

    def _cell(self, line: int, step: int) -> StepCell:
        key = line, step
        if key not in self.cells:
            self.cells[key] = step_cell(self.lines.branches[line], step, line == self.lines.open, self.glyphs)
        return self.cells[key]

    def _columns(self, chosen: int, room: int) -> dict[int, int]:
        """Return the widths of as many columns around the selected step as there is room for."""
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

    def _visible(self, chosen: int, whole: bool) -> list[int]:
        """Return the lines that reach into the shown steps, or all; the selected one is always included."""
        shown = [line for line in range(len(self.lines.branches)) if whole or self._reaches(line)]
        return [line for at, line in enumerate(shown) if at < _LINES or line in (chosen, self.lines.open)]

    def _reaches(self, line: int) -> bool:
        return line == self.lines.open or self._is_shown(line)

    def _is_shown(self, line: int) -> bool:
        """Whether a step of a line is among the shown ones."""
        branch = self.lines.branches[line]
        return branch.start <= self.final and branch.head >= self.first

    def draw(self, chosen: int | None) -> None:
        """Draw everything on the canvas; the step that is being moved to has its number in brackets."""
        self._draw_numbers(chosen)
        for line, row in self.rows.items():
            branch = self.lines.branches[line]
            if not self._is_shown(line):
                self._draw_elsewhere(line, row, branch)
                continue
            self._draw_way(line, row, branch)
            for step in range(max(branch.start, self.first), min(branch.head, self.final) + 1):
                self._draw_step(line, row, step)
        self._draw_descents()
        for line, row in self.rows.items():
            self._draw_name(row, self.lines.branches[line], "name" if line == self.lines.open else "dim")

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

    def _draw_name(self, row: int, branch: ThreadLine, role: Role) -> None:
        name = _name(branch)
        used = self.canvas.end(row)
        room = self.canvas.width - used - _BEFORE_NAME
        if room >= min(cells(name), _SHORTEST_NAME):
            # The ends of names distinguish forks.
            shown = cut_middle(name, room, self.glyphs.ellipsis)
            self.canvas.put(row, self.canvas.width - cells(shown), shown, role)

    def _draw_way(self, line: int, row: int, branch: ThreadLine) -> None:
        """Draw what leads to a line's first shown step: from before the window, or from its branch point."""
        if branch.start < self.first or (line and branch.start == self.first):
            self._fill(row, 0, self.margin)
        elif line:
            joint = self.x[branch.start - 1]
            self._fill(row, joint + 1, self.x[branch.start])

    def _draw_elsewhere(self, line: int, row: int, branch: ThreadLine) -> None:
        """Draw a line outside the shown steps: where it branches off, and how far it goes."""
        parts = f"differs after {branch.start - 1:,}, " if line else ""
        words = f"{parts}ends at {branch.head:,}"
        if branch.head < self.first:
            self._put(row, 0, f"{self.glyphs.earlier} {words}", "dim")
        else:
            said = f"{words} {self.glyphs.later}"
            self._put(row, max(self.edge - cells(said), 0), said, "dim")

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
        """Draw the connections from a line down to its forks, the lowest one last."""
        taken: set[tuple[int, int]] = set()
        for line, row in reversed(self.rows.items()):
            branch = self.lines.branches[line]
            known = branch.parent in self.rows and branch.start in self.x
            if line == 0 or branch.start <= self.first or not known:
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

    def _starts_at(self, row: int, other: ThreadLine) -> bool:
        """Whether the line in a row branches off where the other one does."""
        line = next(line for line, at in self.rows.items() if at == row)
        branch = self.lines.branches[line]
        return branch.parent == other.parent and branch.start == other.start

    def _put(self, row: int, x: int, text: str, role: Role) -> int:
        return self.canvas.put(row, x, text, role, self.edge)

    def _fill(self, row: int, x: int, end: int) -> None:
        if end > x:
            self._put(row, x, self.glyphs.across * (end - x), "dim")


def _name(branch: ThreadLine) -> str:
    return thread_name(branch.thread_id, _NAME)
