"""Where a graph's nodes stand in a column, and on which lanes beside it the jumps between them run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hitl_tui.drivers.protocol import EdgeInfo
from hitl_tui.engine.graphs.description import NodeKind
from hitl_tui.engine.log.records import END, START
from hitl_tui.engine.reports.looks import Look
from hitl_tui.view.cells import cells
from hitl_tui.view.graph_list import words


@dataclass
class Place:
    """Where a node is on the grid: the rows where lanes come in and go out, and its right edge."""

    row: int
    enter: int
    leave: int
    right: int


class Layout:
    """Rows and columns of everything, in cells.

    Args:
        order: the nodes, in the order of the run.
        width: columns there are; it may take more, see `fits`.
        kinds: what nodes are made of, where they aren't plain.
        boxes: nodes as boxes; else one row each.
    """

    def __init__(
        self,
        order: Sequence[str],
        edges: Sequence[EdgeInfo],
        look: Look,
        width: int,
        kinds: Mapping[str, NodeKind],
        *,
        boxes: bool,
    ) -> None:
        self.order = order
        self.width = width
        self.boxes = boxes
        self._look = look
        self._kinds = kinds
        self.index = {name: index for index, name in enumerate(order)}
        self.labels: dict[tuple[str, str], list[str]] = defaultdict(list)
        for edge in edges:
            self.labels[edge.source, edge.target] += [words(edge.label)] if edge.label else []
        pairs = list(dict.fromkeys((edge.source, edge.target) for edge in edges))
        self.straight = {pair for pair in pairs if self.index[pair[1]] == self.index[pair[0]] + 1}
        self.jumps = [pair for pair in pairs if pair not in self.straight]
        self.entered = {target for _, target in self.jumps}
        longest = max((cells(words(name)) + self.extra(name) for name in order), default=0)
        self.inner = min(longest, max(6, width - 6))
        self.spine = 2 + self.inner // 2 + 1 if boxes else 1
        # The box behind the first of a stack takes a column more.
        stacked = int(boxes and "map" in kinds.values())
        self.right = self.inner + 4 + stacked if boxes else self.inner + 3
        self.places = self._rows()
        self.lanes = self._lanes()

    def extra(self, name: str) -> int:
        """Cells that a node takes beside its name: what it is, how often it ran, a note."""
        count = self._look.visits.get(name, 0)
        note = self._look.notes.get(name, "")
        counted = len(f" ×{count}") if count and not self.boxes else 0
        counted += len(self.kind_word(name)) + 1 if self.kind_word(name) else 0
        return counted + (cells(note) + 1 if note else 0)

    def kind_word(self, name: str) -> str:
        """What a node is made of where no shape tells it."""
        kind = self._kinds.get(name, "node")
        return "" if self.boxes or kind == "node" else kind

    def is_box(self, name: str) -> bool:
        """Whether a node is a box."""
        return self.boxes and name not in (START, END)

    @property
    def height(self) -> int:
        """Rows that it takes, with those of a last box below its name: its edge, and how often it ran."""
        last = self.order[-1] if self.order else ""
        below = (3 if self._look.visits.get(last) else 2) if self.is_box(last) else 0
        rows = (max(place.leave, place.row + below * (name == last)) for name, place in self.places.items())
        return max(rows, default=0) + 1

    @property
    def fits(self) -> bool:
        """Whether the lanes find room in the width."""
        return self._columns + 1 <= self.width

    @property
    def _columns(self) -> int:
        return self.right + 2 * (max(self.lanes.values(), default=-1) + 1)

    def lane_x(self, target: str) -> int:
        """The column of the lane to a node."""
        return self.right + 2 * self.lanes[target] + self._gap

    @cached_property
    def _gap(self) -> int:
        """Cells between nodes and lanes: wider where there is room for it and the labels."""
        usual = 4 if self._columns + 12 <= self.width else 2
        long = {pair: cells(", ".join(labels)) for pair, labels in self.labels.items()}
        crossed = [pair for pair in self.straight if self._crossed(self.label_row(pair[0]))]
        beside = max((long.get(pair, 0) for pair in crossed), default=0)
        beyond = max((long.get(pair, 0) for pair in self.jumps), default=0)
        wanted = self.spine + 3 + beside - self.right
        return max(usual, min(wanted, self.width - self._columns - beyond))

    def label_row(self, source: str) -> int:
        """The row below a node, where the label of the way to the next one stands."""
        return self.places[source].row + (3 if self.is_box(source) else 1)

    def _crossed(self, row: int) -> bool:
        """True if a lane passes beside that row."""
        ends = ((self.places[one].leave, self.places[other].enter) for one, other in self.jumps)
        return any(min(pair) <= row <= max(pair) for pair in ends)

    def _rows(self) -> dict[str, Place]:
        places: dict[str, Place] = {}
        row = 0
        for name in self.order:
            tall = self.is_box(name)
            middle = row + 1 if tall else row
            leave = middle + 1 if name in self.entered else middle
            own = self.inner + 4 + (self._kinds.get(name) == "map")
            right = own if tall else self.spine + len(name) // 2 + 1 if self.boxes else self.right
            places[name] = Place(row, middle, leave, right)
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
