"""Draws a graph as a column of nodes with lanes for its jumps, narrow enough for a side pane.

Nodes stand in the order of the run, one below the other.  An edge to the next node runs straight
down; every other edge leaves to the right and comes back on a lane, one lane for each target.
The result is rows of (text, role) runs; roles are names that the graph pane has styles for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hitl_tui.drivers.protocol import EdgeInfo
from hitl_tui.engine.graphs.description import NodeKind
from hitl_tui.engine.log.records import END, START
from hitl_tui.engine.reports.looks import Look
from hitl_tui.view.cells import cells, cut
from hitl_tui.view.graph_grid import DOWN, LEFT, RIGHT, UP, Grid
from hitl_tui.view.graph_layout import Layout, Place
from hitl_tui.view.graph_list import NO_KINDS, Picture, plain_list, stop_glyph, words
from hitl_tui.view.graph_order import order_nodes


@dataclass(frozen=True)
class _Frame:
    """The characters of a box: its corners from left to right, its sides, and where ways leave it."""

    top: str
    across: str
    bottom: str
    side: str
    down: str
    out: str
    corner_out: str


_PLAIN = _Frame("╭╮", "─", "╰╯", "│", "┬", "├", "┴")
_FRAMES: Mapping[NodeKind, _Frame] = {
    "node": _PLAIN,
    "map": replace(_PLAIN, top="╭╮╮", bottom="╰╯╯"),
    "parallel": _Frame("┎┒", "─", "┖┚", "┃", "┬", "┠", "┸"),
    "subgraph": _Frame("╔╗", "═", "╚╝", "║", "╤", "╟", "╩"),
}


def draw(
    edges: Sequence[EdgeInfo],
    nodes: Iterable[str],
    look: Look,
    width: int,
    height: int,
    *,
    kinds: Mapping[str, NodeKind] = NO_KINDS,
) -> Picture:
    """The picture in `width` columns: boxes where the height allows them, else one row a node.

    A map is a stack of boxes, a parallel a box with heavy sides, a subgraph one with a double border; in rows
    a word says it.  Where there are more lanes than fit, a plain list of nodes and where they lead.
    """
    order = order_nodes(edges, nodes)
    boxed = Layout(order, edges, look, width, kinds, boxes=True)
    if boxed.fits and boxed.height <= height:
        return _Drawing(boxed, look, kinds).picture()
    slim = Layout(order, edges, look, width, kinds, boxes=False)
    if slim.fits:
        return _Drawing(slim, look, kinds).picture()
    return plain_list(order, edges, look, width, kinds)


class _Drawing:
    """A layout drawn on a grid."""

    def __init__(self, layout: Layout, look: Look, kinds: Mapping[str, NodeKind]) -> None:
        self._layout = layout
        self._look = look
        self._kinds = kinds
        self._grid = Grid()

    def picture(self) -> Picture:
        """Draw everything and hand out the rows."""
        layout = self._layout
        for pair in sorted(layout.jumps, key=lambda pair: pair in self._look.taken):
            self._jump(*pair)
        self._grid.draw_lines()
        for target in layout.entered:
            self._arrow(target)
        for pair in layout.straight:
            self._straight(*pair)
        for name in layout.order:
            self._node(name)
        for target in layout.lanes:
            self._lane_label(target)
        rows = tuple(self._grid.row(y, layout.width) for y in range(layout.height))
        return Picture(rows, {name: place.enter for name, place in layout.places.items()})

    def _role(self, pair: tuple[str, str]) -> str:
        return "route" if pair in self._look.taken else "edge"

    def _jump(self, source: str, target: str) -> None:
        """A line out of a node, along the lane to another and into that."""
        places, line = self._layout.places, self._grid.line
        x, role = self._layout.lane_x(target), self._role((source, target))
        start, end = places[source].leave, places[target].enter
        for column in range(places[source].right + 1, x):
            line(column, start, LEFT | RIGHT, role, target)
        for column in range(places[target].right + 1, x):
            line(column, end, LEFT | RIGHT, role, target)
        low, high = sorted((start, end))
        for row in range(low, high + 1):
            sides = (UP if row > low else 0) | (DOWN if row < high else 0)
            line(x, row, sides | (LEFT if row in (start, end) else 0), role, target)

    def _arrow(self, target: str) -> None:
        """The head of the lines that jump to a node."""
        place = self._layout.places[target]
        taken = any((source, aim) in self._look.taken for source, aim in self._layout.jumps if aim == target)
        self._grid.put(place.right + 1, place.enter, "◀", "route" if taken else "edge")

    def _straight(self, source: str, target: str) -> None:
        """The line down to the next node, with its label."""
        layout = self._layout
        top = layout.label_row(source)
        role = self._role((source, target))
        self._grid.put(layout.spine, top, "│", role)
        label = ", ".join(layout.labels[source, target])
        if label:
            x = layout.spine + 2
            room = (layout.right if layout.entered else layout.width) - x
            free = self._grid.room(x, top, layout.width)
            self._grid.put(x, top, cut(label, max(room, free)), role if role == "route" else "label")

    def _node(self, name: str) -> None:
        layout, place = self._layout, self._layout.places[name]
        here = name == self._look.current
        count = self._look.visits.get(name, 0)
        role = "current" if here else "visited" if count else "node"
        if not layout.is_box(name):
            self._slim_node(name, place, role)
            return
        self._frame(name, place, "current" if here else "route" if count else "edge")
        note = self._look.notes.get(name, "")
        text = ("▶" if here else " ") + cut(words(name), layout.inner - (cells(note) + 1 if note else 0))
        text += f" {note}" if note else ""
        self._grid.put(1, place.enter, stop_glyph(self._look, name), "break")
        self._grid.put(2, place.enter, text + " " * (layout.inner + 2 - cells(text)), role)
        if count:
            text = f"×{count}"
            self._grid.put(max(0, layout.spine - 1 - len(text)), place.row + 3, text, "count")

    def _frame(self, name: str, place: Place, role: str) -> None:
        """The box around a node, with where ways come in and go out."""
        layout = self._layout
        index = layout.index[name]
        above = index > 0 and (layout.order[index - 1], name) in layout.straight
        below = index + 1 < len(layout.order) and (name, layout.order[index + 1]) in layout.straight
        out = any(source == name for source, _ in layout.jumps)
        line = _FRAMES[self._kinds.get(name, "node")]
        span = layout.inner + 2
        top, bottom = (
            list(left + line.across * span + right)
            for left, right in ((line.top[0], line.top[1:]), (line.bottom[0], line.bottom[1:]))
        )
        if above:
            top[layout.spine - 1] = "▼"
        if below:
            bottom[layout.spine - 1] = line.down
        if out and place.leave > place.enter:
            bottom[-1] = line.corner_out
        side = line.out if out and place.leave == place.enter else line.side
        self._grid.put(1, place.row, "".join(top), role)
        self._grid.put(1, place.enter, line.side, role)
        self._grid.put(2 + span, place.enter, line.side * (len(line.top) - 2) + side, role)
        self._grid.put(1, place.row + 2, "".join(bottom), role)

    def _slim_node(self, name: str, place: Place, role: str) -> None:
        here = name == self._look.current
        if self._layout.boxes:
            self._grid.put(self._layout.spine - len(name) // 2, place.row, name, "current" if here else "end")
            return
        count = self._look.visits.get(name, 0)
        dot = "▶" if here else "●" if count else "○"
        text = cut(words(name), self._layout.inner - self._layout.extra(name))
        self._grid.put(1, place.row, dot, role)
        self._grid.put(2, place.row, stop_glyph(self._look, name), "break")
        self._grid.put(3, place.row, text, "end" if name in (START, END) and not here else role)
        note = self._look.notes.get(name, "")
        parts = (self._layout.kind_word(name), f"×{count}" if count else "", note)
        after = " ".join(part for part in parts if part)
        if after:
            self._grid.put(4 + cells(text), place.row, after, "count")

    def _lane_label(self, target: str) -> None:
        """A lane with one source says its routing key where there is room beside it."""
        sources = [source for source, aim in self._layout.jumps if aim == target]
        label = ", ".join(self._layout.labels[sources[0], target]) if len(sources) == 1 else ""
        if not label:
            return
        x = self._layout.lane_x(target)
        ends = sorted((self._layout.places[sources[0]].leave, self._layout.places[target].enter))
        middle = sum(ends) // 2
        for row in sorted(range(ends[0] + 1, ends[1]), key=lambda row: abs(row - middle)):
            room = self._grid.room(x + 2, row, self._layout.width)
            if room >= min(cells(label), 4) and self._grid.is_free(x + 1, row):
                role = self._role((sources[0], target))
                self._grid.put(x + 2, row, cut(label, room), role if role == "route" else "label")
                return
