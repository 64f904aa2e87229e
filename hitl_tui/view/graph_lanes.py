"""Draws a graph as a column of nodes with lanes for its jumps, narrow enough for a side pane.

Nodes stand in the order of the run, one below the other.  An edge to the next node runs straight
down; every other edge leaves to the right and comes back on a lane, one lane for each target.
The result is rows of (text, role) runs; roles are names that the graph pane has styles for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hitl_tui.drivers.protocol import EdgeInfo
from hitl_tui.engine.graphs.description import NodeKind
from hitl_tui.engine.log.records import END, START
from hitl_tui.engine.reports.looks import Look
from hitl_tui.view.cells import cells, cut
from hitl_tui.view.graph_list import NO_KINDS, Picture, Run, plain_list, stop_glyph, words
from hitl_tui.view.graph_order import order_nodes

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_JOINTS = {
    _UP: "│", _DOWN: "│", _UP | _DOWN: "│", _LEFT: "─", _RIGHT: "─", _LEFT | _RIGHT: "─",
    _DOWN | _RIGHT: "╭", _DOWN | _LEFT: "╮", _UP | _RIGHT: "╰", _UP | _LEFT: "╯",
    _UP | _DOWN | _RIGHT: "├", _UP | _DOWN | _LEFT: "┤", _DOWN | _LEFT | _RIGHT: "┬",
    _UP | _LEFT | _RIGHT: "┴", 15: "┼",
}  # fmt: skip


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


@dataclass
class _Place:
    """Where a node is on the grid: the rows where lanes come in and go out, and its right edge."""

    row: int
    enter: int
    leave: int
    right: int


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
    boxed = _Canvas(order, edges, look, width, kinds, boxes=True)
    if boxed.fits and boxed.height <= height:
        return boxed.picture()
    slim = _Canvas(order, edges, look, width, kinds, boxes=False)
    return slim.picture() if slim.fits else plain_list(order, edges, look, width, kinds)


class _Canvas:
    """A grid of characters with a role each, and the layout that is drawn on it."""

    def __init__(
        self,
        order: list[str],
        edges: Sequence[EdgeInfo],
        look: Look,
        width: int,
        kinds: Mapping[str, NodeKind],
        *,
        boxes: bool,
    ) -> None:
        self.order = order
        self.look = look
        self.kinds = kinds
        self.width = width
        self.boxes = boxes
        self.place = {name: index for index, name in enumerate(order)}
        self.labels: dict[tuple[str, str], list[str]] = defaultdict(list)
        for edge in edges:
            self.labels[edge.source, edge.target] += [words(edge.label)] if edge.label else []
        pairs = list(dict.fromkeys((edge.source, edge.target) for edge in edges))
        self.straight = {pair for pair in pairs if self.place[pair[1]] == self.place[pair[0]] + 1}
        self.jumps = [pair for pair in pairs if pair not in self.straight]
        self.entered = {target for _, target in self.jumps}
        longest = max((cells(words(name)) + self._extra(name) for name in order), default=0)
        self.inner = min(longest, max(6, width - 6))
        self.spine = 2 + self.inner // 2 + 1 if boxes else 1
        # The box behind the first of a stack takes a column more.
        self.stacked = int(boxes and "map" in kinds.values())
        self.right = self.inner + 4 + self.stacked if boxes else self.inner + 3
        self.places = self._rows()
        self.lanes = self._lanes()
        self.cells: dict[tuple[int, int], Run] = {}
        self.bits: dict[tuple[int, int], tuple[int, str, str]] = {}

    def _extra(self, name: str) -> int:
        count = self.look.visits.get(name, 0)
        note = self.look.notes.get(name, "")
        counted = len(f" ×{count}") if count and not self.boxes else 0
        counted += len(self._kind_word(name)) + 1 if self._kind_word(name) else 0
        return counted + (cells(note) + 1 if note else 0)

    def _kind_word(self, name: str) -> str:
        """What a node is made of where no shape tells it."""
        kind = self.kinds.get(name, "node")
        return "" if self.boxes or kind == "node" else kind

    @property
    def height(self) -> int:
        return max((place.leave for place in self.places.values()), default=0) + 1

    @property
    def fits(self) -> bool:
        last = max(self.lanes.values(), default=-1)
        return self.right + 2 * (last + 1) + 1 <= self.width

    @property
    def gap(self) -> int:
        """Cells between nodes and lanes: wider where there is room for it and the labels."""
        last = max(self.lanes.values(), default=-1)
        usual = 4 if self.right + 2 * (last + 1) + 12 <= self.width else 2
        long = {pair: cells(", ".join(labels)) for pair, labels in self.labels.items()}
        crossed = [pair for pair in self.straight if self._crossed(self._label_row(pair[0]))]
        beside = max((long.get(pair, 0) for pair in crossed), default=0)
        beyond = max((long.get(pair, 0) for pair in self.jumps), default=0)
        wanted = self.spine + 3 + beside - self.right
        return max(usual, min(wanted, self.width - self.right - 2 * last - 2 - beyond))

    def _label_row(self, source: str) -> int:
        return self.places[source].row + (3 if self._tall(source) else 1)

    def _crossed(self, row: int) -> bool:
        """True if a lane passes beside that row."""
        ends = ((self.places[one].leave, self.places[other].enter) for one, other in self.jumps)
        return any(min(pair) <= row <= max(pair) for pair in ends)

    def _rows(self) -> dict[str, _Place]:
        places: dict[str, _Place] = {}
        row = 0
        for name in self.order:
            tall = self.boxes and name not in (START, END)
            middle = row + 1 if tall else row
            entered = name in self.entered
            leave = middle + 1 if entered else middle
            own = self.inner + 4 + (self.kinds.get(name) == "map")
            right = own if tall else self.spine + len(name) // 2 + 1 if self.boxes else self.right
            places[name] = _Place(row, middle, leave, right)
            row += 4 if tall else 2
        return places

    def _lanes(self) -> dict[str, int]:
        """The lane of each target that is jumped to: short ones inside, none over another."""
        spans: dict[str, tuple[int, int]] = {}
        for source, target in self.jumps:
            rows = (self.places[source].leave, self.places[target].enter)
            low, high = spans.get(target, rows)
            spans[target] = (min(low, *rows), max(high, *rows))
        lanes: dict[str, int] = {}
        for target, (low, high) in sorted(spans.items(), key=lambda item: item[1][1] - item[1][0]):
            busy = {lanes[other] for other in lanes if spans[other][0] <= high and low <= spans[other][1]}
            lanes[target] = next(lane for lane in range(len(spans)) if lane not in busy)
        return lanes

    def picture(self) -> Picture:
        """Draw everything and hand out the rows."""
        for pair in sorted(self.jumps, key=lambda pair: pair in self.look.taken):
            self._jump(*pair)
        for (x, y), (bits, role, _) in self.bits.items():
            self.cells[x, y] = (_JOINTS[bits], role)
        for pair in self.jumps:
            self._arrow(*pair)
        for pair in self.straight:
            self._straight(*pair)
        for name in self.order:
            self._node(name)
        for target in self.lanes:
            self._lane_label(target)
        rows = tuple(self._row(y) for y in range(self.height))
        return Picture(rows, {name: place.enter for name, place in self.places.items()})

    def _role(self, pair: tuple[str, str]) -> str:
        return "route" if pair in self.look.taken else "edge"

    def _lane_x(self, target: str) -> int:
        return self.right + 2 * self.lanes[target] + self.gap

    def _jump(self, source: str, target: str) -> None:
        x, role = self._lane_x(target), self._role((source, target))
        start, end = self.places[source].leave, self.places[target].enter
        for column in range(self.places[source].right + 1, x):
            self._bit(column, start, _LEFT | _RIGHT, role, target)
        for column in range(self.places[target].right + 1, x):
            self._bit(column, end, _LEFT | _RIGHT, role, target)
        low, high = sorted((start, end))
        for row in range(low, high + 1):
            bits = (_UP if row > low else 0) | (_DOWN if row < high else 0)
            self._bit(x, row, bits | (_LEFT if row in (start, end) else 0), role, target)

    def _bit(self, x: int, y: int, bits: int, role: str, group: str) -> None:
        old, old_role, old_group = self.bits.get((x, y), (0, role, group))
        if old and old_group != group and not (bits & 12 and old & 12):
            # Lanes that cross without touching: the vertical one stays whole.
            bits, role, group = (bits, role, group) if bits & 3 else (old, old_role, old_group)
        else:
            bits |= old
            role = "route" if "route" in (role, old_role) else role
        self.bits[x, y] = (bits, role, group)

    def _arrow(self, source: str, target: str) -> None:
        place = self.places[target]
        taken = any((other, target) in self.look.taken for other, aim in self.jumps if aim == target)
        self.cells[place.right + 1, place.enter] = ("◀", "route" if taken else "edge")

    def _straight(self, source: str, target: str) -> None:
        top = self._label_row(source)
        role = self._role((source, target))
        self._put(self.spine, top, "│", role)
        label = ", ".join(self.labels[source, target])
        if label:
            room = self.right - self.spine - 2 if self.entered else self.width - self.spine - 2
            free = self._free(self.spine + 2, top, self.width)
            self._put(self.spine + 2, top, cut(label, max(room, free)), role if role == "route" else "label")

    def _free(self, x: int, y: int, limit: int) -> int:
        count = 0
        while x + count < limit and (x + count, y) not in self.cells:
            count += 1
        return count - 1 if x + count < limit else count

    def _tall(self, name: str) -> bool:
        return self.boxes and name not in (START, END)

    def _node(self, name: str) -> None:
        place = self.places[name]
        here = name == self.look.current
        count = self.look.visits.get(name, 0)
        index = self.place[name]
        role = "current" if here else "visited" if count else "node"
        if not self._tall(name):
            self._slim_node(name, place, role)
            return
        frame = "current" if here else "route" if count else "edge"
        above = index > 0 and (self.order[index - 1], name) in self.straight
        below = index + 1 < len(self.order) and (name, self.order[index + 1]) in self.straight
        span = self.inner + 2
        line = _FRAMES[self.kinds.get(name, "node")]
        top, bottom = (
            list(left + line.across * span + right)
            for left, right in ((line.top[0], line.top[1:]), (line.bottom[0], line.bottom[1:]))
        )
        if above:
            top[self.spine - 1] = "▼"
        if below:
            bottom[self.spine - 1] = line.down
        out = any(source == name for source, _ in self.jumps)
        if out and place.leave > place.enter:
            bottom[-1] = line.corner_out
        self._put(1, place.row, "".join(top), frame)
        side = line.out if out and place.leave == place.enter else line.side
        side = line.side * (len(line.top) - 2) + side
        note = self.look.notes.get(name, "")
        text = ("▶" if here else " ") + cut(words(name), self.inner - (cells(note) + 1 if note else 0))
        text += f" {note}" if note else ""
        self._put(1, place.enter, line.side, frame)
        self._put(1, place.enter, stop_glyph(self.look, name), "break")
        self._put(2, place.enter, text + " " * (span - cells(text)), role)
        self._put(2 + span, place.enter, side, frame)
        self._put(1, place.row + 2, "".join(bottom), frame)
        if count:
            text = f"×{count}"
            self._put(max(0, self.spine - 1 - len(text)), place.row + 3, text, "count")

    def _slim_node(self, name: str, place: _Place, role: str) -> None:
        here = name == self.look.current
        if self.boxes:
            self._put(self.spine - len(name) // 2, place.row, name, "current" if here else "end")
            return
        count = self.look.visits.get(name, 0)
        dot = "▶" if here else "●" if count else "○"
        text = cut(words(name), self.inner - self._extra(name))
        self._put(1, place.row, dot, role)
        self._put(2, place.row, stop_glyph(self.look, name), "break")
        self._put(3, place.row, text, "end" if name in (START, END) and not here else role)
        note = self.look.notes.get(name, "")
        parts = (self._kind_word(name), f"×{count}" if count else "", note)
        after = " ".join(part for part in parts if part)
        if after:
            self._put(4 + cells(text), place.row, after, "count")

    def _lane_label(self, target: str) -> None:
        """A lane with one source says its routing key where there is room beside it."""
        sources = [source for source, aim in self.jumps if aim == target]
        label = ", ".join(self.labels[sources[0], target]) if len(sources) == 1 else ""
        if not label:
            return
        x = self._lane_x(target)
        low, high = sorted((self.places[sources[0]].leave, self.places[target].enter))
        for row in sorted(range(low + 1, high), key=lambda row: abs(row - (low + high) // 2)):
            room = self._free(x + 2, row, self.width)
            if room >= min(cells(label), 4) and (x + 1, row) not in self.cells:
                role = self._role((sources[0], target))
                self._put(x + 2, row, cut(label, room), role if role == "route" else "label")
                return

    def _put(self, x: int, y: int, text: str, role: str) -> None:
        """Write from a cell on; a wide character takes two, a mark stays with what it stands on."""
        for char in text:
            wide = cells(char)
            if wide:
                self.cells[x, y] = (char, role)
                if wide > 1:
                    self.cells[x + 1, y] = ("", role)
                x += wide
            elif (x - 1, y) in self.cells:
                before = x - 1 if self.cells[x - 1, y][0] else x - 2
                self.cells[before, y] = (self.cells[before, y][0] + char, role)

    def _row(self, y: int) -> tuple[Run, ...]:
        runs: list[Run] = []
        blank = (" ", "edge")
        for x in range(self.width):
            char, role = self.cells.get((x, y), blank)
            if runs and runs[-1][1] == role:
                runs[-1] = (runs[-1][0] + char, role)
            else:
                runs.append((char, role))
        return tuple(runs)
