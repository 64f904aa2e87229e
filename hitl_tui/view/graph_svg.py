"""Paints a graph's layout as SVG: each kind of node has its own shape, taken edges are marked.

The colours follow the reader's light or dark mode; all text is escaped and free of control characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from hitl_tui.engine.graph.description import GraphInfo, NodeInfo
from hitl_tui.engine.graph.drawing import HERE, WAY, RunMarks, parts_of
from hitl_tui.engine.log.records import END, START
from hitl_tui.view.cells import cells
from hitl_tui.view.graph_layers import Size
from hitl_tui.view.graph_layout import Air, Box, EdgePath, Point, lay_out, run_order
from hitl_tui.view.graph_text import edge_labels
from hitl_tui.view.sanitise import sanitise_line

_CELL: Final = 8.5
_ROW: Final = 10.0
_MARGIN: Final = 24.0
_AIR: Final = Air(rows=2, label=4, head=2)
_WIDEST: Final = 120
"""Most cells of a picture, unless one of its boxes is wider."""
_PLAIN: Final = 4
_TWO_LINES: Final = 6
_MEMBERS: Final = 4
_SMALL: Final = 7.3 / _CELL
"""Width of a small letter in cells."""
_BEHIND: Final = _CELL
"""How far the boxes of a stack are shifted up and to the right."""
_INSIDE: Final = 46.0
"""Distance from a box's top to the picture inside it."""
_LONGEST: Final = 60
_LIGHT: Final = f"""
svg {{ --ink: #24292f; --quiet: #8c959f; --ground: #ffffff; --box: #f6f8fa; --way: {WAY}; --here: {HERE}; }}
""".strip()
_STYLE: Final = """
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
.edge { fill: none; stroke: var(--quiet); stroke-width: 1.2; stroke-linejoin: round; }
.taken { stroke: var(--way); stroke-width: 2.4; }
.head { fill: var(--quiet); }
.head.taken { fill: var(--way); stroke: none; }
""".strip()


def graph_svg(graph: GraphInfo, look: RunMarks | None = None, *, expand: bool = False) -> str:
    """Return the graph as an SVG document.

    A map is a stack of boxes, a parallel a box with sides, a subgraph a box with a double border.

    Args:
        look: the state of a run, to mark on the graph; None for none.
        expand: draw the contents of subgraphs and parallels inside their boxes.
    """
    picture = _SvgPicture(graph, look or RunMarks(), expand)
    name, width, height = words(graph.name), round(picture.width), round(picture.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label={quoteattr(name)}>',
        f"<title>{escape(name)}</title>",
        f"<style>{_LIGHT}\n{_STYLE}</style>",
        f'<rect class="ground" width="{width}" height="{height}"/>',
        *picture.parts(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def words(text: str) -> str:
    """Sanitise the name of a node or an edge."""
    return sanitise_line(text, _LONGEST)


class _SvgPicture:
    """One graph, with the pictures of the graphs inside its boxes; its measures are pixels."""

    def __init__(self, graph: GraphInfo, look: RunMarks, expand: bool) -> None:
        self._look = look
        self._nodes = {node.name: node for node in graph.nodes}
        order = run_order(graph.edges, self._nodes)
        self._members = {
            name: tuple(words(member.name) for member in node.members)
            for name, node in self._nodes.items()
            if expand and node.members
        }
        self._made = {name: self._made_of(node) for name, node in self._nodes.items()}
        self._inside = {
            name: _SvgPicture(node.graph, look.inside.get(name, RunMarks()), expand)
            for name, node in self._nodes.items()
            if expand and node.graph is not None
        }
        sizes = {name: self._size(name) for name in order}
        # Boxes without a picture are all as wide as the widest of them.
        plain = max((size.width for name, size in sizes.items() if name not in self._inside), default=0)
        for name, size in sizes.items():
            # The shifted boxes of a stack belong to it.
            width = max(size.width, plain)
            stacked = int(self._kind(name) == "map")
            sizes[name] = Size(width + stacked, size.height + stacked, width // 2, enter=2 + stacked)
        labels = edge_labels(graph.edges)
        widest = max((size.width for size in sizes.values()), default=0)
        layout = lay_out(order, labels, sizes, max(_WIDEST, widest + 40), _AIR)
        layout = layout or lay_out(order, labels, sizes, None, _AIR)
        assert layout is not None  # without a limit everything fits
        self._layout = layout
        self.width = layout.width * _CELL + 2 * _MARGIN
        self.height = layout.height * _ROW + 2 * _MARGIN

    def _made_of(self, node: NodeInfo) -> str:
        """Return a box's second line, a summary of its contents."""
        made_of = parts_of(node)
        if node.kind == "subgraph":
            made_of = f"graph {made_of}"
        elif node.members and node.name not in self._members:
            made_of = f"{', '.join(words(member.name) for member in node.members)} {made_of}"
        return words(made_of)

    def _size(self, name: str) -> Size:
        made_of, inside = self._made.get(name, ""), self._inside.get(name)
        members = self._members.get(name, ())
        widths = [cells(words(name)) + 5.0, cells(made_of) * _SMALL + 5]
        widths.append(sum(cells(member) * _SMALL + 3.4 for member in members) + 3)
        height = _TWO_LINES if made_of else _PLAIN
        if members:
            height += _MEMBERS
        if inside is not None:
            widths.append(inside.width / _CELL + 2)
            height += ceil(inside.height / _ROW)
        return Size(ceil(max(widths)), height, 0)

    def _kind(self, name: str) -> str:
        node = self._nodes.get(name)
        return node.kind if node else "node"

    def parts(self) -> list[str]:
        """All parts: lines below boxes, labels and the pictures inside above them."""
        routes = sorted(self._layout.routes, key=lambda route: route.pair in self._look.taken)
        parts = [part for route in routes for part in self._edge(route)]
        for box in self._layout.boxes.values():
            parts += self._box(box)
        return parts + [part for route in routes for part in self._label(route)]

    @staticmethod
    def _at(point: Point) -> tuple[float, float]:
        """The middle of a cell."""
        return _MARGIN + (point[0] + 0.5) * _CELL, _MARGIN + (point[1] + 0.5) * _ROW

    def _edge(self, route: EdgePath) -> list[str]:
        """Draw a line with its arrow head, from border to border of the boxes."""
        taken = " taken" if route.pair in self._look.taken else ""
        points = [self._at(point) for point in route.points]
        points[0] = self._border(route.source, points[0], points[1])
        x, y = points[-1] = self._border(route.target, points[-1], points[-2])
        from_left, from_right = points[-2][0] < x, points[-2][0] > x
        if from_left or from_right:
            way = -1 if from_left else 1
            head, points[-1] = f"M{x:g} {y:g}l{9 * way} -5v10z", (x + 8 * way, y)
        else:
            head, points[-1] = f"M{x:g} {y:g}l-5 -9h10z", (x, y - 8)
        return [f'<path class="edge{taken}" d="{_path(points)}"/>', f'<path class="head{taken}" d="{head}"/>']

    def _border(
        self, name: str, end: tuple[float, float], before: tuple[float, float]
    ) -> tuple[float, float]:
        """Return where a line that comes from `before` meets a box."""
        left, top, width, height = self._frame(self._layout.boxes[name])
        depth = _BEHIND if self._kind(name) == "map" else 0
        if before[0] != end[0]:
            return (left if before[0] < end[0] else left + width + depth), end[1]
        return end[0], (top - depth if before[1] < end[1] else top + height)

    def _frame(self, box: Box) -> tuple[float, float, float, float]:
        """Return left, top, width and height of a box, without the stacked ones behind it."""
        depth = _BEHIND if self._kind(box.name) == "map" else 0
        left, top = _MARGIN + box.x * _CELL, _MARGIN + box.y * _ROW + depth
        return left, top, box.width * _CELL - depth, box.height * _ROW - depth

    def _label(self, route: EdgePath) -> list[str]:
        if not route.label:
            return []
        x, y = self._at(route.label_at)
        return [f'<text class="label" x="{x - _CELL / 2:g}" y="{y + 12:g}">{escape(route.label)}</text>']

    def _box(self, box: Box) -> list[str]:
        """Draw a node's box with its contents."""
        name, look, frame = box.name, self._look, self._frame(box)
        left, top, width, height = frame
        count = look.visits.get(name, 0)
        state = " current" if look.is_current(name) else " visited" if count else ""
        kind, inside, made_of = self._kind(name), self._inside.get(name), self._made.get(name, "")
        round_ = height / 2 if name in (START, END) else 8
        parts = [_rect(frame, state, round_, depth) for depth in (_BEHIND, _BEHIND / 2) if kind == "map"]
        parts.append(_rect(frame, f"{state} open" if inside else state, round_))
        if kind == "subgraph":
            inner = (left + 4, top + 4, width - 8, height - 8)
            parts.append(_rect(inner, f"{state} inner", round_ - 3))
        if kind == "parallel":
            sides = (left + 8, left + width - 8)
            parts += [f'<path class="node inner{state}" d="M{x:g} {top:g}v{height:g}"/>' for x in sides]
        mark = "▶ " if look.is_current(name) else ""
        parts.append(_text("", left + width / 2, top + 25, f"{mark}{words(name)}"))
        if made_of:
            parts.append(_text("made", left + width / 2, top + 43, made_of))
        parts += _member_boxes(self._members.get(name, ()), frame)
        if count:
            parts.append(f'<text class="count" x="{left + 4:g}" y="{top + height + 16:g}">×{count}</text>')
        if inside is not None:
            x, y = left + (width - inside.width) / 2, top + _INSIDE
            parts += [f'<g transform="translate({x:g} {y:g})">', *inside.parts(), "</g>"]
        return parts


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A line along columns and rows."""
    (x, y), *others = points
    parts = [f"M{x:g} {y:g}"]
    for to_x, to_y in others:
        parts.append(f"V{to_y:g}" if to_x == x else f"H{to_x:g}")
        x, y = to_x, to_y
    return "".join(parts)


def _rect(frame: tuple[float, float, float, float], more: str, round_: float, out: float = 0) -> str:
    left, top, width, height = frame
    return (
        f'<rect class="node{more}" x="{left + out:g}" y="{top - out:g}" width="{width:g}" '
        f'height="{height:g}" rx="{round_:g}"/>'
    )


def _text(role: str, x: float, y: float, text: str) -> str:
    role = f' class="{role}"' if role else ""
    return f'<text{role} x="{x:g}" y="{y:g}" text-anchor="middle">{escape(text)}</text>'


def _member_boxes(members: Sequence[str], frame: tuple[float, float, float, float]) -> list[str]:
    """The nodes of a parallel beside each other."""
    wide = [(cells(member) * _SMALL + 2.4) * _CELL for member in members]
    x = frame[0] + (frame[2] - sum(wide) - 8 * max(len(wide) - 1, 0)) / 2
    y = frame[1] + 54
    parts = []
    for member, width in zip(members, wide, strict=True):
        parts.append(_rect((x, y, width, 30), " open", 6))
        parts.append(_text("made", x + width / 2, y + 20, member))
        x += width + 8
    return parts
