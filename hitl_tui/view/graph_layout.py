"""Lays out the nodes, edges and labels of a graph in layers, for all painters.

The run's order breaks cycles: an edge to an earlier node is a back edge. Nodes are in layers, and all
other edges go down through them; edges over several layers share trunks if they can still be told apart.
Layers are sorted for few crossings, and hold as few nodes as the width requires. Back edges run on lanes
beside everything (Sugiyama's method, with lanes). All measures are cells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.graph.description import EdgeInfo
from hitl_tui.engine.log.records import END, START
from hitl_tui.view.cells import cells, cut
from hitl_tui.view.graph_lanes import Lane, lanes_of
from hitl_tui.view.graph_layers import Item, Layers, Pair, Size, levels
from hitl_tui.view.graph_tracks import Link, Tracks

Point = tuple[int, int]
_FAR: Final = 100_000
"""Columns from here on stand for lanes, whose columns are assigned last."""
Space = Literal["wide", "narrow", "tight"]
"""Where labels of lanes go: all outside, some inside, or wherever there is room, cut if necessary."""
_LEAST_LABEL: Final = 5
_TRIES: Final = 2
_SHRINKS: Final = 4


class Box(msgspec.Struct, frozen=True):
    """A node in the picture: its upper left cell and its size."""

    name: str
    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """Its last column."""
        return self.x + self.width - 1

    @property
    def bottom(self) -> int:
        """Its last row."""
        return self.y + self.height - 1

    def __contains__(self, point: Point) -> bool:
        return self.x <= point[0] <= self.right and self.y <= point[1] <= self.bottom


class EdgePath(msgspec.Struct, frozen=True):
    """An edge in the picture.

    Args:
        points: its corners from the border of the source's box to that of the target's, both included.
        label: its label as far as there is room, "" for none.
        label_at: the first cell of the label.
    """

    source: str
    target: str
    points: tuple[Point, ...]
    label: str = ""
    label_at: Point = (0, 0)

    @property
    def pair(self) -> Pair:
        """Its source and its target."""
        return self.source, self.target


class Layout(msgspec.Struct, frozen=True):
    """Positions of all parts of a picture; its upper left cell is (0, 0)."""

    boxes: Mapping[str, Box]
    routes: tuple[EdgePath, ...]
    width: int
    height: int
    crossings: int


def run_order(edges: Sequence[EdgeInfo], nodes: Iterable[str] = ()) -> list[str]:
    """Order the nodes from START to END so that most edges point down."""
    after: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        if edge.target not in after[edge.source]:
            after[edge.source].append(edge.target)
    seen: set[str] = set()
    done: list[str] = []
    roots = [START, *nodes, *after]
    for root in roots:
        stack = [(root, iter(reversed(after.get(root, ()))))] if root not in seen else []
        seen.add(root)
        while stack:
            node, rest = stack[-1]
            target = next((name for name in rest if name not in seen), None)
            if target is None:
                done.append(node)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(reversed(after.get(target, ())))))
    known = {name for edge in edges for name in (edge.source, edge.target)} | set(nodes)
    middle = [name for name in reversed(done) if name in known and name not in (START, END)]
    return [START] * (START in known) + middle + [END] * (END in known)


class Air(msgspec.Struct, frozen=True):
    """The space between the parts of a picture.

    Args:
        rows: those below nodes, before edges turn.
        label: those of a label.
        head: those above nodes, after edges turned.
    """

    rows: int = 1
    label: int = 1
    head: int = 0


USUAL: Final = Air()


def lay_out(
    order: Sequence[str],
    labels: Mapping[Pair, str],
    sizes: Mapping[str, Size],
    width: int | None = None,
    air: Air = USUAL,
) -> Layout | None:
    """Return the layout with the fewest crossings that fits; None if none does.

    Args:
        order: the nodes in the order of the run.
        labels: the labels of the edges, "" for none.
        width: the available cells, None for no limit.
    """
    if not order:
        return Layout({}, (), 0, 0, 0)
    room = width or _FAR
    if max(size.width for size in sizes.values()) > room:
        return None
    best: Layout | None = None
    graph = _Graph(order, labels, sizes, air)
    tries = 0
    for cap in range(graph.widest(room), 0, -1):
        if tries >= _TRIES and cap > 1:
            continue
        drawn = _layout(graph, room, cap)
        if drawn is not None:
            tries += 1
            best = drawn if best is None or drawn.crossings < best.crossings else best
        if best is not None and not best.crossings:
            return best
    for limit in (2 * _LEAST_LABEL, _LEAST_LABEL):
        if best is None:
            short = {pair: cut(label, limit) for pair, label in labels.items()}
            best = _layout(_Graph(order, short, sizes, air), room, 1)
    return best


def crossed_cells(routes: Iterable[EdgePath]) -> set[Point]:
    """Return the cells in which a line crosses another one; lines that turn there meet instead."""
    across: set[Point] = set()
    down: set[Point] = set()
    turns: set[Point] = set()
    for route in routes:
        points = route.points
        turns.update(points)
        for (x1, y1), (x2, y2) in pairwise(points):
            if y1 == y2:
                across.update((x, y1) for x in range(min(x1, x2) + 1, max(x1, x2)))
            else:
                down.update((x1, y) for y in range(min(y1, y2) + 1, max(y1, y2)))
    return (across & down) - turns


class _Graph(msgspec.Struct, frozen=True, dict=True):
    """The graph to lay out."""

    order: Sequence[str]
    labels: Mapping[Pair, str]
    sizes: Mapping[str, Size]
    air: Air

    @cached_property
    def forward(self) -> dict[Pair, str]:
        """The edges that lead down in the order of the run."""
        index = {name: at for at, name in enumerate(self.order)}
        return {pair: label for pair, label in self.labels.items() if index[pair[0]] < index[pair[1]]}

    def widest(self, room: int) -> int:
        """The maximum number of nodes that fit beside each other in a layer."""
        layers: dict[int, list[int]] = defaultdict(list)
        for name, level in levels(self.order, self.forward, len(self.order)).items():
            layers[level].append(self.sizes[name].width + 2)
        most = 1
        for widths in layers.values():
            used = accumulate(sorted(widths))
            most = max(most, sum(width <= room + 2 for width in used))
        return most


def _layout(graph: _Graph, room: int, cap: int) -> Layout | None:
    """Return the layout with at most `cap` nodes in a layer, None if it does not fit."""
    forward = graph.forward
    back = {pair: label for pair, label in graph.labels.items() if pair not in forward}
    layers = Layers(graph.order, forward, graph.sizes, cap)
    least = layers.least_width
    if least > room:
        return None
    layers.reduce_crossings()
    lanes = lanes_of(layers, back, graph.sizes)
    inner = room
    cramped: Layout | None = None
    for _ in range(_SHRINKS):
        layers.place(inner)
        picture = _Picture(graph, layers, lanes, room)
        drawn = picture.layout("wide") or picture.layout("narrow")
        if drawn is not None:
            return drawn
        cramped = picture.layout("tight") or cramped
        if inner <= least:
            break
        inner = max(least, layers.width - max(picture.over, 1))
    return cramped


class _Picture:
    """Combines layers and lanes to a layout."""

    def __init__(self, graph: _Graph, layers: Layers, lanes: Sequence[Lane], room: int) -> None:
        self._layers = layers
        self._lanes = lanes
        self._labels = graph.labels
        self._sizes = graph.sizes
        self._room = room
        self.over = 0
        self._far = {
            lane: (2 * _FAR + at) * (1 if lane.side == "right" else -1)
            for at, lane in enumerate(sorted(lanes, key=lambda lane: lane.last - lane.first))
        }
        self._columns: dict[int, int] = {}
        count = len(layers.rows)
        self._tracks = [Tracks(self._links(at)) for at in range(count + 1)]
        self._stack(graph.air)
        self.boxes = {name: self._boxed(item) for name, item in layers.nodes.items()}
        self._entered = {(lane.target, lane.side) for lane in lanes if not lane.from_above}

    def _boxed(self, item: Item) -> Box:
        size = self._sizes[item.node]
        return Box(item.node, item.x - item.before, self._tops[item.layer], size.width, size.height)

    def _links(self, at: int) -> list[Link]:
        """Return the links in the tracks above a layer."""
        links: list[Link] = []
        if at:
            for item in self._layers.rows[at - 1]:
                links += [Link(item, down, item.bottom, down.top) for down in item.downs]
        nodes = self._layers.nodes
        for lane in self._lanes:
            for (source, _), below in lane.exits.items():
                if below and nodes[source].layer == at - 1:
                    links.append(self._exit(lane, nodes[source]))
            if lane.from_above and lane.first == at:
                links.append(self._entry(lane, nodes[lane.target]))
        return links

    def _exit(self, lane: Lane, item: Item) -> Link:
        return Link(item, lane, item.bottom, self._far[lane], to_above=True)

    def _entry(self, lane: Lane, item: Item) -> Link:
        return Link(lane, item, self._far[lane], item.top, from_above=False)

    def _stack(self, air: Air) -> None:
        """Assign rows to each layer and the tracks above it."""
        self._tops: list[int] = []
        self._bottoms: list[int] = []
        self._track_rows: list[int] = []
        y = 0
        for at, tracks in enumerate(self._tracks):
            row = self._layers.rows[at] if at < len(self._layers.rows) else []
            labels = bool(row) and not any(item.node for item in row)
            after_nodes = at > 0 and any(item.node for item in self._layers.rows[at - 1])
            stub = air.rows if after_nodes and row and (tracks.count or not labels) else 0
            stub = stub or int(after_nodes and not row and tracks.count > 0)
            self._track_rows.append(y + stub)
            y += stub + tracks.count + (air.head if at and (stub or tracks.count) else 0)
            if not row:
                break
            self._tops.append(y)
            y += air.label if labels else max(self._sizes[item.node].height for item in row if item.node)
            self._bottoms.append(y - 1)
        self._height = y

    def layout(self, space: Space) -> Layout | None:
        """Return the layout with (0, 0) in the upper left corner; None if it does not fit."""
        down = [self._down(pair) for pair in self._layers.chains]
        back = self._back(down, space)
        if back is None:
            return None
        routes = {route.pair: route for route in (*down, *back)}
        said = [(route.label_at[0], cells(route.label)) for route in routes.values() if route.label]
        columns = [x for route in routes.values() for x, _ in route.points]
        columns += [x for x, _ in said] + [x + count - 1 for x, count in said]
        columns += [x for box in self.boxes.values() for x in (box.x, box.right)]
        first, width = min(columns), max(columns) - min(columns) + 1
        self.over = width - self._room
        if self.over > 0:
            return None
        moved = tuple(_moved(routes[pair], -first) for pair in self._labels)
        boxes = {name: replace(box, x=box.x - first) for name, box in self.boxes.items()}
        return Layout(boxes, moved, width, self._height, len(crossed_cells(moved)))

    def _corners(self, at: int, link: Link) -> list[Point]:
        return [(x, self._track_rows[at] + track) for x, track in self._tracks[at].corners(link)]

    def _down(self, pair: Pair) -> EdgePath:
        """Return the path of an edge down through the layers."""
        chain = self._layers.chains[pair]
        points = [(chain[0].bottom, self.boxes[pair[0]].bottom)]
        label_at = (0, 0)
        for upper, lower in pairwise(chain):
            points += self._corners(lower.layer, Link(upper, lower, upper.bottom, lower.top))
            if lower.label:
                label_at = (lower.x + 2, self._tops[lower.layer])
        points.append((chain[-1].top, self._tops[chain[-1].layer]))
        return EdgePath(*pair, _corners_only(points), self._labels[pair], label_at)

    def _back(self, routes: Sequence[EdgePath], space: Space) -> list[EdgePath] | None:
        """Return the edges on lanes, each beside everything in its rows; None if a label has no room."""
        edges = _Edges(self.boxes.values(), routes)
        rows = {lane: self._rows_of(lane) for lane in self._lanes}
        busy = {self._enters(lane) for lane in self._lanes}
        busy |= {self._leaves(lane, pair) for lane in self._lanes for pair in lane.exits}
        done: list[tuple[int, EdgePath]] = []
        sides: set[str] = set()
        for lane in sorted(self._lanes, key=lambda lane: rows[lane][1] - rows[lane][0]):
            right = lane.side == "right"
            gap = 4 if space == "wide" and lane.side not in sides else 2
            sides.add(lane.side)
            x = edges.beyond(*rows[lane], right=right, gap=gap)
            for pair in lane.exits:
                route = EdgePath(*pair, self._on_lane(lane, pair, x))
                edges.add(route)
                if self._labels[pair] and space != "tight":
                    beside = _label_rows(route, x, busy)
                    route = self._labelled(route, x, beside, edges, right=right, inside=space == "narrow")
                    edges.add_label(route)
                done.append((x, route))
        if space != "tight":
            return None if edges.overrun else [route for _, route in done]
        return self._squeezed(done, busy, edges)

    def _labelled(
        self, route: EdgePath, x: int, rows: Sequence[int], edges: _Edges, *, right: bool, inside: bool
    ) -> EdgePath:
        """Return a back edge with its label outside its lane, or `inside` of it if there is room."""
        label = self._labels[route.pair]
        count = cells(label)
        row = edges.inside(x, rows, count, right=right) if inside else None
        after = right == (row is None)
        at = x + 2 if after else x - 1 - count
        return replace(route, label=label, label_at=(at, rows[0] if row is None else row))

    def _squeezed(
        self, routes: Sequence[tuple[int, EdgePath]], busy: Set[int], edges: _Edges
    ) -> list[EdgePath] | None:
        """Place labels of back edges where there is most room, cut if necessary."""
        labelled: list[EdgePath] = []
        for x, route in routes:
            label = self._labels[route.pair]
            shown = route
            if label:
                place = edges.free(x, _label_rows(route, x, busy), cells(label), self._room)
                if place is None:
                    return None
                at, row, count = place
                shown = replace(route, label=cut(label, count), label_at=(at, row))
                edges.add_label(shown)
            labelled.append(shown)
        return labelled

    def _leaves(self, lane: Lane, pair: Pair) -> int:
        """Return the row in which an edge goes to its lane."""
        box, size = self.boxes[pair[0]], self._sizes[pair[0]]
        if lane.exits[pair]:
            item = self._layers.nodes[pair[0]]
            return self._corners(item.layer + 1, self._exit(lane, item))[-1][1]
        row = box.y + size.enter
        if (pair[0], lane.side) not in self._entered:
            return row
        # Lanes go up from here; a lane that enters here goes down.
        return row + 1 if pair[0] == pair[1] else row - 1

    def _enters(self, lane: Lane) -> int:
        """Return the row in which a lane leads to its node."""
        if lane.from_above:
            return self._corners(lane.first, self._entry(lane, self._layers.nodes[lane.target]))[0][1]
        return self.boxes[lane.target].y + self._sizes[lane.target].enter

    def _rows_of(self, lane: Lane) -> tuple[int, int]:
        rows = [self._enters(lane), *(self._leaves(lane, pair) for pair in lane.exits)]
        return min(rows), max(rows)

    def _on_lane(self, lane: Lane, pair: Pair, x: int) -> tuple[Point, ...]:
        """Return the corners of a back edge whose lane is at a column."""
        right = lane.side == "right"
        source, target = self.boxes[pair[0]], self.boxes[pair[1]]
        points: list[Point] = []
        if lane.exits[pair]:
            item = self._layers.nodes[pair[0]]
            points = [(item.bottom, source.bottom)]
            points += self._corners(item.layer + 1, self._exit(lane, item))
        else:
            points = [(source.right if right else source.x, self._leaves(lane, pair))]
        points = [*points, (x, self._leaves(lane, pair)), (x, self._enters(lane))]
        if lane.from_above:
            item = self._layers.nodes[pair[1]]
            points += [*self._corners(lane.first, self._entry(lane, item)), (item.top, target.y)]
        else:
            points.append((target.right if right else target.x, self._enters(lane)))
        return _corners_only([(x if abs(column) >= _FAR else column, row) for column, row in points])


class _Edges:
    """Occupied places, while lanes are added beside them."""

    def __init__(self, boxes: Iterable[Box], routes: Iterable[EdgePath]) -> None:
        self._spans: dict[int, tuple[int, int]] = {}
        self._cells: set[Point] = set()
        self._labels: set[Point] = set()
        self.overrun = False
        for box in boxes:
            for y in range(box.y, box.bottom + 1):
                self._fill(y, box.x, box.right)
        for route in routes:
            self.add(route)

    def add(self, route: EdgePath) -> None:
        """Mark an edge and its label as placed; `overrun` reports if it runs over an earlier label."""
        for (x1, y1), (x2, y2) in pairwise(route.points):
            for y in range(min(y1, y2), max(y1, y2) + 1):
                line = self._fill(y, min(x1, x2), max(x1, x2))
                self.overrun = self.overrun or not self._labels.isdisjoint(line)
        if route.label:
            self.add_label(route)

    def add_label(self, route: EdgePath) -> None:
        """Mark the label of a placed edge as used."""
        x, y = route.label_at
        self._labels.update(self._fill(y, x, x + cells(route.label) - 1))

    def _fill(self, y: int, first: int, last: int) -> list[Point]:
        low, high = self._spans.get(y, (first, last))
        self._spans[y] = (min(low, first), max(high, last))
        filled = [(x, y) for x in range(first, last + 1)]
        self._cells.update(filled)
        return filled

    def beyond(self, first: int, last: int, *, right: bool, gap: int) -> int:
        """Return the column of a lane that is `gap` cells beside everything in its rows."""
        spans = [self._spans[y] for y in range(first, last + 1) if y in self._spans]
        return max(high for _, high in spans) + gap if right else min(low for low, _ in spans) - gap

    def free(self, x: int, rows: Sequence[int], wanted: int, room: int) -> tuple[int, int, int] | None:
        """Return a free place for a label beside a lane: column, row and cells; None if there is none."""
        left = min(low for low, _ in self._spans.values())
        right = max(high for _, high in self._spans.values())
        best: tuple[int, int, int] | None = None
        for row in rows:
            after = self._run(x + 1, row, 1, left + room - 1, wanted + 2)
            after = after if after > wanted or x + 1 + after == left + room else after - 1
            before = self._run(x - 1, row, -1, right - room + 1, wanted + 2) - 1
            for count, outside in ((after - 1, True), (before - 1, False)):
                shown = min(count, wanted)
                if best is None or shown > best[2]:
                    best = (x + 2 if outside else x - 1 - shown, row, shown)
            if best and best[2] == wanted:
                return best
        return best if best and best[2] >= min(wanted, _LEAST_LABEL - 1) else None

    def inside(self, x: int, rows: Sequence[int], wanted: int, *, right: bool) -> int | None:
        """Return the row in which a label fits between a lane and the rest, None if there is none."""
        step = -1 if right else 1
        limit = x + step * (wanted + 2)
        return next((y for y in rows if self._run(x + step, y, step, limit, wanted + 2) == wanted + 2), None)

    def _run(self, x: int, y: int, step: int, limit: int, most: int) -> int:
        count = 0
        while count < most and (x, y) not in self._cells and (x <= limit if step > 0 else x >= limit):
            count += 1
            x += step
        return count


def _label_rows(route: EdgePath, x: int, busy: Set[int]) -> list[int]:
    """Yield the rows beside a back edge's lane, best first for its label; lines cross the `busy` ones."""
    on_lane = [y for column, y in route.points if column == x]
    first, last = min(on_lane), max(on_lane)
    middle = (first + last) / 2
    return sorted({*range(first + 1, last)} - busy, key=lambda y: (abs(y - middle), y)) or [last]


def _corners_only(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the corners of a line, without points on straight parts."""
    kept: list[Point] = []
    for point in points:
        if kept and kept[-1] == point:
            continue
        if len(kept) > 1 and (
            kept[-2][0] == kept[-1][0] == point[0] or kept[-2][1] == kept[-1][1] == point[1]
        ):
            kept.pop()
        kept.append(point)
    return tuple(kept)


def _moved(route: EdgePath, by: int) -> EdgePath:
    x, y = route.label_at
    return replace(route, points=tuple((x + by, y) for x, y in route.points), label_at=(x + by, y))
