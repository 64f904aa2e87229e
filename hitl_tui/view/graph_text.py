"""Paints a graph's layout in a terminal: rows of (text, role) runs, which the graph pane styles.

Nodes are boxes if there is room, else a row each; if no layout fits, a list names each node's destinations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.graph.description import EdgeInfo, NodeKind
from hitl_tui.engine.graph.drawing import RunMarks
from hitl_tui.engine.log.records import END, START
from hitl_tui.view.cells import cells, cut
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.graph_layers import Pair, Size
from hitl_tui.view.graph_layout import Box, EdgePath, Layout, crossed_cells, lay_out, run_order
from hitl_tui.view.sanitise import sanitise_line

Run = tuple[str, str]
"""A text and its role."""
NO_KINDS: Final[Mapping[str, NodeKind]] = {}
_LONGEST: Final = 80
_MOST: Final = 60
"""Most nodes for which a picture is clearer than a list."""
_ALIKE: Final = 5
_MARGIN: Final = 1
_COUNT: Final = 4
"""Cells reserved for how often a node ran, if that is in its row."""
_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_JOINTS: Final = {
    _UP: "│", _DOWN: "│", _UP | _DOWN: "│", _LEFT: "─", _RIGHT: "─", _LEFT | _RIGHT: "─",
    _DOWN | _RIGHT: "╭", _DOWN | _LEFT: "╮", _UP | _RIGHT: "╰", _UP | _LEFT: "╯",
    _UP | _DOWN | _RIGHT: "├", _UP | _DOWN | _LEFT: "┤", _DOWN | _LEFT | _RIGHT: "┬",
    _UP | _LEFT | _RIGHT: "┴", 15: "┼",
}  # fmt: skip


class _Frame(msgspec.Struct, frozen=True):
    """The characters of a box: its corners, its sides, and where edges leave it."""

    top: str
    across: str
    bottom: str
    side: str
    down: str
    right: str
    left: str


_PLAIN: Final = _Frame("╭╮", "─", "╰╯", "│", "┬", "├", "┤")
_FRAMES: Final[Mapping[NodeKind, _Frame]] = {
    "node": _PLAIN,
    "map": replace(_PLAIN, top="╭╮╮", bottom="╰╯╯"),
    "parallel": _Frame("┎┒", "─", "┖┚", "┃", "┬", "┠", "┨"),
    "subgraph": _Frame("╔╗", "═", "╚╝", "║", "╤", "╟", "╢"),
}


class Picture(msgspec.Struct, frozen=True):
    """Rows to show, the row of each node's name, and what was laid out; None for the plain list."""

    rows: tuple[tuple[Run, ...], ...]
    node_rows: Mapping[str, int]
    layout: Layout | None = None

    @property
    def plain(self) -> bool:
        """Whether it is the list."""
        return self.layout is None


def draw(
    edges: Sequence[EdgeInfo],
    nodes: Iterable[str],
    look: RunMarks,
    width: int,
    height: int,
    *,
    kinds: Mapping[str, NodeKind] = NO_KINDS,
) -> Picture:
    """Draw a graph in `width` columns: with boxes if the height allows, else a row per node, else as a list.

    A map is a stack of boxes, a parallel a box with heavy sides, a subgraph one with a double border; in rows
    a word says it.
    """
    names = tuple(nodes)
    known = tuple(sorted((name, kind) for name, kind in kinds.items() if kind != "node"))
    notes = tuple(sorted((name, cells(note) + 1) for name, note in look.notes.items() if note))
    for boxed in (True, False):
        layout = text_layout(tuple(edges), names, known, notes, width - _MARGIN, boxed=boxed)
        if layout is not None:
            picture = _Painter(layout, look, dict(known), width, boxed=boxed).picture()
            if len(picture.rows) <= height or not boxed:
                return picture
    return plain_list(run_order(edges, names), edges, look, width, kinds)


@lru_cache(64)
def text_layout(
    edges: tuple[EdgeInfo, ...],
    nodes: tuple[str, ...],
    kinds: tuple[tuple[str, NodeKind], ...],
    notes: tuple[tuple[str, int], ...],
    width: int,
    *,
    boxed: bool,
) -> Layout | None:
    """Return the layout in terminal cells, None if none fits; cached, as a run repaints it often.

    Args:
        kinds: the kinds of nodes that aren't plain.
        notes: the extra cells beside the names of nodes.
    """
    order = run_order(edges, nodes)
    if len(order) > _MOST or width < 1:
        return None
    labels = edge_labels(edges)
    kind, extra = dict(kinds), dict(notes)
    most = max(4, width - 6)
    sizes = {}
    lengths = [cells(words(name)) + extra.get(name, 0) for name in order if name not in (START, END)]
    # Boxes of similar width get the same width.
    least = max(lengths) if lengths and max(lengths) - min(lengths) <= _ALIKE else 0
    for name in order:
        length = cells(words(name)) + extra.get(name, 0)
        if not boxed:
            length = (
                2
                + length
                + _COUNT * (name not in (START, END))
                + (len(kind[name]) + 1 if name in kind else 0)
            )
            sizes[name] = Size(min(length, width), 1, 0, wide=False, enter=0)
        elif name in (START, END):
            sizes[name] = Size(length, 1, length // 2, wide=False, enter=0)
        else:
            length = min(max(length, least), most) + 4
            sizes[name] = Size(length + (kind.get(name) == "map"), 3, length // 2)
    return lay_out(order, labels, sizes, width)


def edge_labels(edges: Iterable[EdgeInfo]) -> dict[Pair, str]:
    """Return the edges with their labels: all routing keys with the same destination."""
    labels: dict[Pair, list[str]] = {}
    for edge in edges:
        labels.setdefault((edge.source, edge.target), []).extend([words(edge.label)] if edge.label else [])
    return {pair: ", ".join(dict.fromkeys(said)) for pair, said in labels.items()}


def plain_list(
    order: Sequence[str],
    edges: Sequence[EdgeInfo],
    look: RunMarks,
    width: int,
    kinds: Mapping[str, NodeKind] = NO_KINDS,
) -> Picture:
    """Return a row for each node, with its destinations."""
    labels = edge_labels(edges)
    rows: list[tuple[Run, ...]] = []
    places: dict[str, int] = {}
    for name in order:
        places[name] = len(rows)
        here = look.is_current(name)
        count = f" {kinds[name]}" if kinds.get(name, "node") != "node" else ""
        count += f" ×{look.visits[name]}" if look.visits.get(name) else ""
        count += f" {look.notes[name]}" if look.notes.get(name) else ""
        mark = ("▶" if here else " ") + (stop_glyph(look, name) or " ")
        name_role = "current" if here else "visited" if look.visits.get(name) else "node"
        head = mark + cut(words(name), max(width - 2 - cells(count), 1))
        rows.append(((head, name_role), (cut(count, max(width - cells(head), 0)), "count")))
        for (source, target), label in labels.items():
            if source == name:
                role = "route" if (source, target) in look.taken else "edge"
                rows.append((("    " + _destination(label, words(target), width - 4), role),))
    return Picture(tuple(rows), places)


def _destination(label: str, target: str, room: int) -> str:
    """Return an edge's label and destination in so many cells; the label is cut first."""
    if not label:
        return cut(f"→ {target}", room)
    shown = cut(f"→ {target}", max(room - cells(label) - 1, room // 2))
    return f"{cut(label, room - cells(shown) - 1)} {shown}"


def stop_glyph(look: RunMarks, name: str) -> str:
    """Return the glyph of the breakpoints at a node, "" for none."""
    stops = look.breakpoints.get(name)
    return "" if stops is None else UNICODE.breakpoint if stops else UNICODE.logpoint


def words(text: str) -> str:
    """Sanitise the name of a node or an edge."""
    return sanitise_line(text, _LONGEST)


class _Painter:
    """Paints the characters of a layout."""

    def __init__(
        self, layout: Layout, look: RunMarks, kinds: Mapping[str, NodeKind], width: int, *, boxed: bool
    ) -> None:
        self._layout = layout
        self._look = look
        self._kinds = kinds
        self._width = width
        self._boxed = boxed
        self._cells: dict[tuple[int, int], Run] = {}
        self._beside_labels: set[tuple[int, int]] = set()
        """Cells in which a count would look like that of an edge, or of the node named by its label."""

    def picture(self) -> Picture:
        """Paint everything and return the rows."""
        self._lines()
        for box in self._layout.boxes.values():
            if self._is_boxed(box.name):
                self._box(box)
            else:
                self._row_node(box)
        for route in self._layout.routes:
            self._ends(route)
        for route in self._layout.routes:
            if route.label:
                (x, y), room = route.label_at, cells(route.label)
                self._put(x, y, route.label, self._role(route, "label"))
                self._beside_labels |= {(at, y) for at in range(x + room, self._width)}
        for box in self._layout.boxes.values():
            self._count(box)
            self._stop(box)
        rows = tuple(self._row(y) for y in range(self._height()))
        return Picture(
            rows, {name: self._name_row(box) for name, box in self._layout.boxes.items()}, self._layout
        )

    def _is_boxed(self, name: str) -> bool:
        return self._boxed and name not in (START, END)

    def _name_row(self, box: Box) -> int:
        return box.y + 1 if self._is_boxed(box.name) else box.y

    def _height(self) -> int:
        return max((y for _, y in self._cells), default=-1) + 1

    def _role(self, route: EdgePath, otherwise: str = "edge") -> str:
        return "route" if route.pair in self._look.taken else otherwise

    def _lines(self) -> None:
        """Draw all edges; at a crossing the vertical line stays whole."""
        crossed = crossed_cells(self._layout.routes)
        sides: dict[tuple[int, int], int] = {}
        taken: set[tuple[int, int]] = set()
        for route in self._layout.routes:
            for at, side in _steps(route):
                if at not in crossed or side & (_UP | _DOWN):
                    sides[at] = sides.get(at, 0) | side
                    if route.pair in self._look.taken:
                        taken.add(at)
        for at, side in sides.items():
            self._cells[at] = (_JOINTS[side], "route" if at in taken else "edge")

    def _box(self, box: Box) -> None:
        """Draw the frame of a node, and its name."""
        name, look = box.name, self._look
        here, count = look.is_current(name), look.visits.get(name, 0)
        frame = _FRAMES[self._kinds.get(name, "node")]
        role = "current" if here else "route" if count else "edge"
        inner = box.width - len(frame.top)
        self._put(box.x, box.y, frame.top[0] + frame.across * inner + frame.top[1:], role)
        self._put(box.x, box.y + 1, frame.side, role)
        self._put(box.x + 1 + inner, box.y + 1, frame.side * (len(frame.top) - 1), role)
        self._put(box.x, box.y + 2, frame.bottom[0] + frame.across * inner + frame.bottom[1:], role)
        note = look.notes.get(name, "")
        text = cut(words(name), inner - 2 - (cells(note) + 1 if note else 0)) + (f" {note}" if note else "")
        text = ("▶" if here else " ") + text
        role = "current" if here else "visited" if count else "node"
        self._put(box.x + 1, box.y + 1, text + " " * (inner - cells(text)), role)

    def _row_node(self, box: Box) -> None:
        """Draw a node that has one row, without a box."""
        name, look = box.name, self._look
        here, count = look.is_current(name), look.visits.get(name, 0)
        role = "current" if here else "visited" if count else "end" if name in (START, END) else "node"
        if self._boxed:
            self._put(box.x, box.y, name, role)
            return
        dot = "▶" if here else "●" if count else "○"
        self._put(box.x, box.y, dot, role)
        self._put(box.x + 1, box.y, " ", role)
        parts = (self._kinds.get(name, ""), f"×{count}" if count else "", look.notes.get(name, ""))
        after = "".join(f" {part}" for part in parts if part)
        text = cut(words(name), max(box.width - 2 - cells(after), 1))
        self._put(box.x + 2, box.y, text, role)
        self._put(box.x + 2 + cells(text), box.y, cut(after, box.width - 2 - cells(text)), "count")

    def _stop(self, box: Box) -> None:
        """Draw the breakpoint at a node: on its frame, or left of a row, if no edge enters there."""
        if stop := stop_glyph(self._look, box.name):
            beside = 0 if self._is_boxed(box.name) else 1 if (box.x - 1, box.y) in self._cells else -1
            self._put(box.x + beside, self._name_row(box), stop, "break")

    def _ends(self, route: EdgePath) -> None:
        """Draw where an edge leaves one node and enters another."""
        source, target = self._layout.boxes[route.source], self._layout.boxes[route.target]
        (x, y), (x2, y2) = route.points[0], route.points[-1]
        sideways = len(route.points) > 1 and route.points[1][1] == y
        if self._is_boxed(source.name):
            frame = _FRAMES[self._kinds.get(source.name, "node")]
            self._put(x, y, self._out(source, frame, (x, y), sideways=sideways), self._cells[x, y][1])
        if len(route.points) > 1 and route.points[-2][1] == y2:
            role = self._role(route)
            head = (x2 + 1, y2, "◀") if x2 == target.right else (x2 - 1, y2, "▶")
            if self._cells.get((head[0], head[1]), ("", ""))[1] != "route":
                self._put(*head, role)
        elif self._is_boxed(target.name):
            self._put(x2, y2, "▼", self._cells[x2, y2][1])

    @staticmethod
    def _out(box: Box, frame: _Frame, at: tuple[int, int], *, sideways: bool) -> str:
        if not sideways:
            return frame.down
        if at[1] == box.y:
            return "┬"
        if at[1] == box.bottom:
            return "┴"
        return frame.right if at[0] == box.right else frame.left

    def _count(self, box: Box) -> None:
        """Draw how often a node ran: below its box, left of its outgoing edge."""
        count = self._look.visits.get(box.name, 0)
        if not count or not self._is_boxed(box.name):
            return
        text = f"×{count}"
        pins = [route.points[0][0] for route in self._layout.routes if route.source == box.name]
        pin = next((x for x in pins if box.x < x < box.right), box.x + box.width // 2)
        at, row = max(box.x, pin - 1 - len(text)), box.bottom + 1
        for x in (at, *range(box.x, box.right - len(text) + 1)):
            around = [(x + by, row) for by in range(-1, len(text) + 1)]
            if not any(cell in self._cells or cell in self._beside_labels for cell in around):
                at = x
                break
        else:
            at, row = max(box.x + 1, box.right - len(text)), box.bottom
        self._put(at, row, text, "count")

    def _put(self, x: int, y: int, text: str, role: str) -> None:
        """Write text from a cell on; a wide character takes two cells, a combining mark none."""
        for char in text:
            wide = cells(char)
            if wide:
                self._cells[x, y] = (char, role)
                if wide > 1:
                    self._cells[x + 1, y] = ("", role)
                x += wide
            elif (x - 1, y) in self._cells:
                before = x - 1 if self._cells[x - 1, y][0] else x - 2
                self._cells[before, y] = (self._cells[before, y][0] + char, role)

    def _row(self, y: int) -> tuple[Run, ...]:
        """Return a row as runs of one role each."""
        runs: list[Run] = [("", "edge")]
        for x in range(-_MARGIN, self._width - _MARGIN):
            char, role = self._cells.get((x, y), (" ", "edge"))
            if runs[-1][1] == role:
                runs[-1] = (runs[-1][0] + char, role)
            else:
                runs.append((char, role))
        return tuple(runs)


def _steps(route: EdgePath) -> list[tuple[tuple[int, int], int]]:
    """Return the cells of an edge between its two boxes, with the sides at which it leaves each."""
    steps: list[tuple[tuple[int, int], int]] = []
    points = route.points
    for at, ((x1, y1), (x2, y2)) in enumerate(pairwise(points)):
        dx, dy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
        ahead = _RIGHT if dx > 0 else _LEFT if dx < 0 else _DOWN if dy > 0 else _UP
        back = {_RIGHT: _LEFT, _LEFT: _RIGHT, _DOWN: _UP, _UP: _DOWN}[ahead]
        length = abs(x2 - x1) + abs(y2 - y1)
        steps += [((x1 + dx * n, y1 + dy * n), ahead | back) for n in range(1, length)]
        if at:
            steps.append(((x1, y1), ahead))
        if at + 2 < len(points):
            steps.append(((x2, y2), back))
    return steps
