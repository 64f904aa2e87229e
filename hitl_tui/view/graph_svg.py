"""A graph as an SVG picture: nodes in the order of the run, jumps on lanes beside them, the way taken marked.

The colours follow the reader's light or dark mode; all text is escaped and free of control characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from hitl_tui.engine.graphs.description import GraphInfo
from hitl_tui.engine.reports.looks import Look
from hitl_tui.view.cells import cells
from hitl_tui.view.graph_boxes import STACKED, Box, box_parts, inner_top, words
from hitl_tui.view.graph_order import order_nodes

_GAP: Final = 46
_LANE: Final = 26
_EDGE: Final = 24
_LABEL_CHAR: Final = 7.4
_STYLE: Final = """
svg { --ink: #24292f; --quiet: #8c959f; --ground: #ffffff; --box: #f6f8fa; --way: #0969da; --here: #bf8700; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e6edf3; --quiet: #6e7681; --ground: #0d1117; --box: #161b22; --way: #58a6ff;
        --here: #e3b341; }
}
.ground { fill: var(--ground); }
text { font: 14px ui-monospace, Menlo, Consolas, monospace; fill: var(--ink); }
.label, .count, .made { font-size: 12px; fill: var(--quiet); }
.node { fill: var(--box); stroke: var(--quiet); stroke-width: 1.2; }
.inner { fill: none; }
.open { fill: var(--ground); }
.visited { stroke: var(--way); stroke-width: 2; }
.current { stroke: var(--here); stroke-width: 3; }
.edge { fill: none; stroke: var(--quiet); stroke-width: 1.2; }
.taken { stroke: var(--way); stroke-width: 2.4; }
.head { fill: var(--quiet); }
.head.taken { fill: var(--way); stroke: none; }
""".strip()


def graph_svg(graph: GraphInfo, look: Look | None = None, *, expand: bool = False) -> str:
    """The picture as a whole SVG document.

    A map is a stack of boxes, a parallel a box with sides, a subgraph a box with a double border.

    Args:
        look: what a run has made of the graph; None for none.
        expand: draw what subgraphs and parallels are made of, inside their boxes.
    """
    picture = _Picture(graph, look or Look(), expand)
    name, width, height = words(graph.name), round(picture.width), round(picture.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label={quoteattr(name)}>',
        f"<title>{escape(name)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{width}" height="{height}"/>',
        *picture.parts(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class _Picture:
    """One graph: its own boxes and ways, and the pictures of the graphs inside its boxes."""

    width: float
    height: float

    def __init__(self, graph: GraphInfo, look: Look, expand: bool) -> None:
        self.look = look
        self.order = order_nodes(graph.edges, [node.name for node in graph.nodes])
        self.place = {name: at for at, name in enumerate(self.order)}
        self.labels: dict[tuple[str, str], list[str]] = {}
        for edge in graph.edges:
            label = self.labels.setdefault((edge.source, edge.target), [])
            label += [words(edge.label)] if edge.label else []
        self.straight = [pair for pair in self.labels if self.place[pair[1]] == self.place[pair[0]] + 1]
        self.jumps = [pair for pair in self.labels if pair not in self.straight]
        self.inside: dict[str, _Picture] = {}
        self.boxes: dict[str, Box] = {}
        for name in self.order:
            node = graph.node(name)
            if expand and node is not None and node.graph is not None:
                self.inside[name] = _Picture(node.graph, look.inside.get(name, Look()), expand)
            within = self.inside.get(name)
            room = (within.width, within.height) if within else (0.0, 0.0)
            self.boxes[name] = Box.of(name, node, room, expand=expand)
        self._place_boxes()
        self.lanes = _lanes(self.jumps, self.place)
        self.width = self._reach() + _EDGE

    def _place_boxes(self) -> None:
        """One below the other, in the middle."""
        # Boxes that hold no picture are as wide as the widest of them.
        plain = max((box.width for box in self.boxes.values() if not box.room[0]), default=0.0)
        for box in self.boxes.values():
            box.width = max(box.width, plain)
        self.wide = max((box.width for box in self.boxes.values()), default=0.0)
        self.right = _EDGE + self.wide + STACKED
        self.middle = _EDGE + self.wide / 2
        top = float(_EDGE)
        for box in self.boxes.values():
            box.left, box.top = self.middle - box.width / 2, top + box.above
            top = box.bottom + _GAP
        self.height = top - _GAP + _EDGE

    def _reach(self) -> float:
        """How far boxes, lanes and labels go to the right."""
        below = max((cells(", ".join(self.labels[pair])) for pair in self.straight), default=0)
        reach = self.middle + below * _LABEL_CHAR + 16
        if self.jumps:
            said = max(cells(", ".join(self.labels[pair])) for pair in self.jumps)
            lanes = max(self.lanes.values()) + 1
            reach = max(reach, self.right + lanes * _LANE + said * _LABEL_CHAR + 16)
        return max(self.right, reach)

    def parts(self) -> list[str]:
        """All parts, edges below nodes, pictures inside above the boxes they are in."""
        parts = [part for pair in self.straight for part in self._straight(pair)]
        parts += [part for pair in self.jumps for part in self._jump(pair)]
        for name, box in self.boxes.items():
            state, count = "", self.look.visits.get(name, 0)
            state = " current" if name == self.look.current else " visited" if count else ""
            parts += box_parts(box, state, count)
            picture = self.inside.get(name)
            if picture is not None:
                left = box.left + (box.width - picture.width) / 2
                inner = picture.parts()
                parts += [f'<g transform="translate({left:g} {box.top + inner_top(box):g})">', *inner, "</g>"]
        return parts

    def _taken(self, pair: tuple[str, str]) -> str:
        return " taken" if pair in self.look.taken else ""

    def _straight(self, pair: tuple[str, str]) -> list[str]:
        taken, x = self._taken(pair), self.middle
        top, bottom = self.boxes[pair[0]].bottom, self.boxes[pair[1]].enter
        return [
            f'<path class="edge{taken}" d="M{x:g} {top:g}V{bottom - 6:g}"/>',
            f'<path class="head{taken}" d="M{x:g} {bottom:g}l-5 -9h10z"/>',
            *self._label(pair, x + 8, (top + bottom) / 2 + 4),
        ]

    def _jump(self, pair: tuple[str, str]) -> list[str]:
        taken, lane = self._taken(pair), self.right + 14 + self.lanes[pair] * _LANE
        source, target = self.boxes[pair[0]], self.boxes[pair[1]]
        start, end = source.top + source.height * 0.72, target.top + target.height * 0.3
        way = f"M{source.right:g} {start:g}H{lane:g}V{end:g}H{target.right + 8:g}"
        return [
            f'<path class="edge{taken}" d="{way}"/>',
            f'<path class="head{taken}" d="M{target.right:g} {end:g}l9 -5v10z"/>',
            *self._label(pair, lane + 6, (start + end) / 2 + 4),
        ]

    def _label(self, pair: tuple[str, str], x: float, y: float) -> list[str]:
        said = ", ".join(self.labels[pair])
        return [f'<text class="label" x="{x:g}" y="{y:g}">{escape(said)}</text>'] if said else []


def _lanes(jumps: Sequence[tuple[str, str]], place: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """A lane for each jump: short ones inside, none over another."""
    lanes: dict[tuple[str, str], int] = {}
    spans = {
        pair: (min(place[pair[0]], place[pair[1]]), max(place[pair[0]], place[pair[1]])) for pair in jumps
    }
    for pair in sorted(jumps, key=lambda one: spans[one][1] - spans[one][0]):
        low, high = spans[pair]
        busy = {lanes[other] for other in lanes if spans[other][0] <= high and low <= spans[other][1]}
        lanes[pair] = next(lane for lane in range(len(jumps)) if lane not in busy)
    return lanes
