"""A graph as an SVG picture: nodes in the order of the run, jumps on lanes beside them, the way taken marked.

The colours follow the reader's light or dark mode; all text is escaped and free of control characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from hitl_tui.engine.description import GraphInfo
from hitl_tui.engine.drawing import Look
from hitl_tui.engine.records import END, START
from hitl_tui.view.cells import cells
from hitl_tui.view.graph_lanes import order_nodes
from hitl_tui.view.sanitise import sanitise_line

_CHAR: Final = 8.4
_HIGH: Final = 38
_STEP: Final = 84
_LANE: Final = 26
_EDGE: Final = 24
_LONGEST: Final = 60
_STYLE: Final = """
svg { --ink: #24292f; --quiet: #8c959f; --ground: #ffffff; --box: #f6f8fa; --way: #0969da; --here: #bf8700; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e6edf3; --quiet: #6e7681; --ground: #0d1117; --box: #161b22; --way: #58a6ff;
        --here: #e3b341; }
}
.ground { fill: var(--ground); }
text { font: 14px ui-monospace, Menlo, Consolas, monospace; fill: var(--ink); }
.label, .count { font-size: 12px; fill: var(--quiet); }
.node { fill: var(--box); stroke: var(--quiet); stroke-width: 1.2; }
.visited { stroke: var(--way); stroke-width: 2; }
.current { stroke: var(--here); stroke-width: 3; }
.edge { fill: none; stroke: var(--quiet); stroke-width: 1.2; }
.taken { stroke: var(--way); stroke-width: 2.4; }
.head { fill: var(--quiet); }
.head.taken { fill: var(--way); stroke: none; }
""".strip()


def graph_svg(graph: GraphInfo, look: Look | None = None) -> str:
    """The picture as a whole SVG document.

    Args:
        look: what a run has made of the graph; None for none.
    """
    return _Svg(graph, look or Look()).document()


class _Svg:
    def __init__(self, graph: GraphInfo, look: Look) -> None:
        self.graph = graph
        self.look = look
        self.order = order_nodes(graph.edges, [node.name for node in graph.nodes])
        self.place = {name: at for at, name in enumerate(self.order)}
        self.labels: dict[tuple[str, str], list[str]] = {}
        for edge in graph.edges:
            label = self.labels.setdefault((edge.source, edge.target), [])
            label += [_words(edge.label)] if edge.label else []
        self.straight = [pair for pair in self.labels if self.place[pair[1]] == self.place[pair[0]] + 1]
        self.jumps = [pair for pair in self.labels if pair not in self.straight]
        longest = max((cells(_words(name)) for name in self.order), default=4)
        self.wide = longest * _CHAR + 44
        self.right = _EDGE + self.wide
        self.lanes = _lanes(self.jumps, self.place)

    def document(self) -> str:
        """All parts, edges below nodes."""
        lanes = max(self.lanes.values(), default=-1) + 1
        texts = [", ".join(self.labels[pair]) for pair in self.labels]
        beside = max((cells(text) for text in texts), default=0) * 7.4 + 16
        width = round(self.right + lanes * _LANE + beside + _EDGE)
        height = round(len(self.order) * _STEP + _EDGE)
        name = quoteattr(_words(self.graph.name))
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label={name}>',
            f"<title>{escape(_words(self.graph.name))}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="ground" width="{width}" height="{height}"/>',
            *(part for pair in self.straight for part in self._straight(pair)),
            *(part for pair in self.jumps for part in self._jump(pair)),
            *(part for node in self.order for part in self._node(node)),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _top(self, name: str) -> float:
        return _EDGE + self.place[name] * _STEP

    def _taken(self, pair: tuple[str, str]) -> str:
        return " taken" if pair in self.look.taken else ""

    def _node(self, name: str) -> list[str]:
        top, count = self._top(name), self.look.visits.get(name, 0)
        state = " current" if name == self.look.current else " visited" if count else ""
        round_ = _HIGH / 2 if name in (START, END) else 8
        middle = _EDGE + self.wide / 2
        mark = "▶ " if name == self.look.current else ""
        parts = [
            f'<rect class="node{state}" x="{_EDGE}" y="{top:g}" width="{self.wide:g}" height="{_HIGH}" '
            f'rx="{round_:g}"/>',
            f'<text x="{middle:g}" y="{top + 24:g}" text-anchor="middle">{mark}{escape(_words(name))}</text>',
        ]
        if count:
            parts.append(f'<text class="count" x="{_EDGE + 4}" y="{top + _HIGH + 16:g}">×{count}</text>')
        return parts

    def _straight(self, pair: tuple[str, str]) -> list[str]:
        taken, x = self._taken(pair), _EDGE + self.wide / 2
        top, bottom = self._top(pair[0]) + _HIGH, self._top(pair[1])
        return [
            f'<path class="edge{taken}" d="M{x:g} {top:g}V{bottom - 6:g}"/>',
            f'<path class="head{taken}" d="M{x:g} {bottom:g}l-5 -9h10z"/>',
            *self._label(pair, x + 8, (top + bottom) / 2 + 4),
        ]

    def _jump(self, pair: tuple[str, str]) -> list[str]:
        taken, lane = self._taken(pair), self.right + 14 + self.lanes[pair] * _LANE
        start, end = self._top(pair[0]) + _HIGH * 0.72, self._top(pair[1]) + _HIGH * 0.3
        way = f"M{self.right:g} {start:g}H{lane:g}V{end:g}H{self.right + 8:g}"
        return [
            f'<path class="edge{taken}" d="{way}"/>',
            f'<path class="head{taken}" d="M{self.right:g} {end:g}l9 -5v10z"/>',
            *self._label(pair, lane + 6, (start + end) / 2 + 4),
        ]

    def _label(self, pair: tuple[str, str], x: float, y: float) -> list[str]:
        words = ", ".join(self.labels[pair])
        return [f'<text class="label" x="{x:g}" y="{y:g}">{escape(words)}</text>'] if words else []


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


def _words(text: str) -> str:
    return sanitise_line(text, _LONGEST)
