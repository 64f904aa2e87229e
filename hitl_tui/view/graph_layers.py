"""Assigns the nodes, labels and trunks of a graph to layers, and orders and places them there."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from hitl_tui.engine.log.records import END, START
from hitl_tui.view.cells import cells

Pair = tuple[str, str]
_SWEEPS: Final = 4
_PULLS: Final = 5
_SLACK: Final = 0.01
_AXIS: Final = 0.1
_NEAR: Final = 3
_STRAIGHT: Final = 0.2


class Size(msgspec.Struct, frozen=True):
    """The size of a node in cells.

    Args:
        pin: its column at which edges come in above and go out below.
        wide: whether they may do so at its other columns, too, but the outermost.
        enter: its row at which back edges come in from the side and go out to it; one above and one below it
            are used where both is on one side.
    """

    width: int
    height: int
    pin: int
    wide: bool = True
    enter: int = 1


class Item(msgspec.Struct, eq=False):
    """A node, a label or a part of a trunk in a layer.

    Args:
        before, after: cells beside its pin.
        trunk: which trunk it is a part of: all edges ">" from a node, or "<" to a node.
        x: the column of its pin; `top` and `bottom` are where edges really come in and go out.
    """

    layer: int
    before: int = 0
    after: int = 0
    node: str = ""
    label: Pair | None = None
    trunk: Pair = ("", "")
    ups: list[Item] = []
    downs: list[Item] = []
    place: int = 0
    x: int = 0
    top: int = 0
    bottom: int = 0

    @property
    def is_trunk(self) -> bool:
        """Whether the item is only a line."""
        return not self.node and self.label is None


class Layers:
    """The nodes in layers, with all downward edges; labels have their own layers in between.

    Args:
        order: the nodes in the order of the run.
        labels: the downward edges with their labels.
        cap: the maximum number of nodes in a layer.
    """

    def __init__(
        self, order: Sequence[str], labels: Mapping[Pair, str], sizes: Mapping[str, Size], cap: int
    ) -> None:
        self._labels = labels
        self._sizes = sizes
        self._levels = levels(order, labels, cap)
        self.nodes: dict[str, Item] = {}
        self.chains: dict[Pair, list[Item]] = {}
        self._trunks: dict[tuple[str, str, int], Item] = {}
        switch = self._switches()
        kinds = {2 * level for level in self._levels.values()}
        kinds |= {at for pair, at in switch.items() if labels[pair]}
        self._ranks = {rank: at for at, rank in enumerate(sorted(kinds))}
        self.rows: list[list[Item]] = [[] for _ in self._ranks]
        for name in order:
            size = sizes[name]
            item = Item(self._ranks[2 * self._levels[name]], size.pin, size.width - 1 - size.pin, name)
            self.nodes[name] = item
            self.rows[item.layer].append(item)
        for pair in labels:
            self._chain(pair, switch[pair])
        for row in self.rows:
            row.sort(key=lambda item: not item.is_trunk)

    def _switches(self) -> dict[Pair, int]:
        """Return where each edge leaves its source's trunk and joins its target's."""
        far: dict[str, int] = defaultdict(int)
        for source, target in self._labels:
            if self._levels[target] - self._levels[source] > 1:
                far[f">{source}"] += 1
                far[f"<{target}"] += 1
        return {
            (source, target): 2 * self._levels[target] - 1
            if far[f">{source}"] >= far[f"<{target}"]
            else 2 * self._levels[source] + 1
            for source, target in self._labels
        }

    def _chain(self, pair: Pair, switch: int) -> None:
        """Link an edge's source with its target, through all layers between them."""
        source, target = self.nodes[pair[0]], self.nodes[pair[1]]
        chain = [source]
        for rank, at in self._ranks.items():
            if source.layer < at < target.layer:
                chain.append(self._between(pair, rank, at, switch))
        chain.append(target)
        self.chains[pair] = chain
        for upper, lower in pairwise(chain):
            if lower not in upper.downs:
                upper.downs.append(lower)
                lower.ups.append(upper)

    def _between(self, pair: Pair, rank: int, layer: int, switch: int) -> Item:
        label = self._labels[pair]
        if rank == switch and label:
            item = Item(layer, 0, 1 + cells(label), label=pair)
            self.rows[layer].append(item)
            return item
        trunk = (">", pair[0]) if rank <= switch else ("<", pair[1])
        key = (*trunk, layer)
        if key not in self._trunks:
            self._trunks[key] = Item(layer, trunk=trunk)
            self.rows[layer].append(self._trunks[key])
        return self._trunks[key]

    @property
    def least_width(self) -> int:
        """The minimum width of the widest row in cells."""
        return max(_offsets(row)[-1] + row[0].before + row[-1].after + 1 for row in self.rows)

    @property
    def width(self) -> int:
        """The width in cells as placed."""
        first = min(row[0].x - row[0].before for row in self.rows)
        return max(row[-1].x + row[-1].after for row in self.rows) - first + 1

    # The order in each layer.

    def reduce_crossings(self) -> None:
        """Sort each layer by the places of its neighbours, and keep the order with the fewest crossings."""
        self._number()
        best, least = [list(row) for row in self.rows], self._crossings()
        for sweep in range(2 * _SWEEPS):
            if not least:
                break
            down = sweep % 2 == 0
            for row in self.rows if down else reversed(self.rows):
                row.sort(key=lambda item: _middle(item.ups if down else item.downs, item.place))
                for place, item in enumerate(row):
                    item.place = place
            self._transpose()
            count = self._crossings()
            if count < least:
                best, least = [list(row) for row in self.rows], count
        self.rows = best
        self._number()

    def _number(self) -> None:
        for row in self.rows:
            for place, item in enumerate(row):
                item.place = place

    def _crossings(self) -> int:
        return sum(_inversions(row) for row in self.rows)

    def _transpose(self) -> None:
        """Swap neighbours wherever that reduces crossings."""
        for row in self.rows:
            for at in range(len(row) - 1):
                item, other = row[at], row[at + 1]
                now = _crossed(item.ups, other.ups) + _crossed(item.downs, other.downs)
                if now and now > _crossed(other.ups, item.ups) + _crossed(other.downs, item.downs):
                    row[at], row[at + 1] = other, item
                    item.place, other.place = at + 1, at

    # The columns.

    def place(self, room: int) -> None:
        """Place each item between its neighbours in `room` cells, and trunks in one column if possible."""
        least = self.least_width
        room = min(room, 8 * least)
        offsets = [_offsets(row) for row in self.rows]
        wants: dict[Item, float] = {}
        for row, steps in zip(self.rows, offsets, strict=True):
            start = (least - steps[-1]) / 2
            wants |= {item: start + step for item, step in zip(row, steps, strict=True)}
        ups = {item: [(other, _weight(other, item)) for other in item.ups] for item in wants}
        downs = {item: [(other, _weight(item, other)) for other in item.downs] for item in wants}
        both = {item: ups[item] + downs[item] for item in wants}
        pairs = list(zip(self.rows, offsets, strict=True))
        for pull in range(_PULLS):
            last = pull == _PULLS - 1
            for row, steps in pairs:
                self._settle(row, steps, wants, both if last else ups, room)
            for row, steps in reversed(pairs):
                self._settle(row, steps, wants, both if last else downs, room)
        for row, steps in pairs:
            for item, step in zip(row, steps, strict=True):
                item.x = round(wants[item] - step) + step
        self._straighten(room)
        self._choose_pins()

    def _settle(
        self,
        row: Sequence[Item],
        offsets: Sequence[int],
        wants: dict[Item, float],
        near: Mapping[Item, Sequence[tuple[Item, float]]],
        room: int,
    ) -> None:
        """Move the items of a layer as close to their neighbours as their order and the room allow."""
        axis = wants[self.rows[0][0]]
        blocks: list[tuple[float, float, int]] = []  # a place less its offset, its weight, how many items
        for item, offset in zip(row, offsets, strict=True):
            total = _AXIS if item.node else 0.001
            want = total * (axis if item.node else wants[item])
            for other, weight in near[item]:
                total += weight
                want += weight * wants[other]
            place, count = want / total - offset, 1
            while blocks and blocks[-1][0] > place:
                before, heavy, more = blocks.pop()
                place = (before * heavy + place * total) / (heavy + total)
                total, count = total + heavy, count + more
            blocks.append((place, total, count))
        low, high = row[0].before, room - 1 - row[-1].after - offsets[-1]
        at = 0
        for place, _, count in blocks:
            inside = min(max(place, low), high)
            for _ in range(count):
                wants[row[at]] = inside + offsets[at]
                at += 1

    def _straighten(self, room: int) -> None:
        """Align trunks and labels of a line in one column if their neighbours leave room."""
        done: set[Item] = set()
        for row in self.rows:
            for item in row:
                if item in done:
                    continue
                line = [item]
                while (below := _goes_on(line[-1])) is not None and below not in done:
                    line.append(below)
                done.update(line)
                self._align(line, room)

    def _align(self, line: Sequence[Item], room: int) -> None:
        """Move the items of a line into one column, or as few as their neighbours allow."""
        columns: list[int] = []
        low, high = 0, room - 1
        for item in line:
            row = self.rows[item.layer]
            least, most = item.before, room - 1 - item.after
            if item.place:
                least = row[item.place - 1].x + _apart(row[item.place - 1], item)
            if item.place + 1 < len(row):
                most = row[item.place + 1].x - _apart(item, row[item.place + 1])
            if max(low, least) > min(high, most):
                break
            low, high = max(low, least), min(high, most)
            columns.append(item.x)
        if not columns:
            return
        count, axis = len(columns), self.rows[0][0].x
        x = min(max(sorted(columns)[count // 2], low), high)
        x = axis if low <= axis <= high and abs(x - axis) <= _NEAR else x
        for item in line[:count]:
            item.x = x
        if count < len(line):
            self._align(line[count:], room)

    def _choose_pins(self) -> None:
        """Let edges enter and leave boxes at columns where they need not turn, within the box's width."""
        for row in self.rows:
            for item in row:
                item.top = item.bottom = item.x
        for row in self.rows:
            for item in row:
                if item.node and len(item.downs) == 1 and len(item.downs[0].ups) == 1 and item.downs[0].node:
                    continue
                if item.node and item.downs:
                    near = min((other.top for other in item.downs), key=lambda x: abs(x - item.x))
                    alone = len(item.downs) == len(item.downs[0].ups) == 1
                    if self._reaches(item, near) and (alone or abs(near - item.x) <= 2):
                        item.bottom = near
                    elif len(item.downs) == 1 and self._reaches(item.downs[0], item.x):
                        item.downs[0].top = item.x if len(item.downs[0].ups) == 1 else item.downs[0].top
        for row in self.rows:
            for item in row:
                if item.node and item.ups:
                    near = min((other.bottom for other in item.ups), key=lambda x: abs(x - item.x))
                    alone = len(item.ups) == len(item.ups[0].downs) == 1
                    if self._reaches(item, near) and (alone or abs(near - item.x) <= 2):
                        item.top = near

    def _reaches(self, item: Item, x: int) -> bool:
        if not item.node or not self._sizes[item.node].wide:
            return item.x == x
        return item.x - item.before < x < item.x + item.after


def levels(order: Sequence[str], edges: Mapping[Pair, str], cap: int) -> dict[str, int]:
    """Return the layer of each node: below all its predecessors, and below full layers."""
    least = dict.fromkeys(order, 1)
    after: dict[str, list[str]] = defaultdict(list)
    for source, target in edges:
        after[source].append(target)
    count: dict[int, int] = defaultdict(int)
    placed: dict[str, int] = {}
    for name in order:
        level = 0 if name == START else least[name]
        if name == END:
            level = max(placed.values(), default=0) + 1
        while count[level] >= cap:
            level += 1
        count[level] += 1
        placed[name] = level
        for target in after[name]:
            least[target] = max(least[target], level + 1)
    return placed


def _goes_on(item: Item) -> Item | None:
    """Return the item below another one in the same line."""
    for other in item.downs:
        alone = len(item.downs) == len(other.ups) == 1
        if alone or (item.is_trunk and item.trunk == other.trunk):
            return other
    return None


def _weight(item: Item, other: Item) -> float:
    """Return how strongly two items attract each other, for straight lines and labels above their node."""
    if item.layer > other.layer:
        item, other = other, item
    if item.is_trunk and other.is_trunk:
        return _STRAIGHT if item.trunk == other.trunk else _SLACK
    if item.node and other.node:
        return 1
    if item.label and other.node:
        return 4
    if item.node and other.label:
        return 4 / len(item.downs)
    if item.is_trunk and other.node:
        return 4 if len(item.downs) == 1 and item.ups[0].node else _SLACK
    if item.node and other.is_trunk:
        return 4 if len(other.ups) == 1 and other.downs[0].node else _SLACK
    return _SLACK


def _apart(item: Item, other: Item) -> int:
    """Return the distance in cells from an item's pin to the next one's."""
    gap = 2 if item.is_trunk or other.is_trunk else 3
    return item.after + gap + other.before


def _offsets(row: Sequence[Item]) -> list[int]:
    offsets = [0]
    for item, other in pairwise(row):
        offsets.append(offsets[-1] + _apart(item, other))
    return offsets


def _middle(near: Sequence[Item], otherwise: int) -> float:
    return sum(item.place for item in near) / len(near) if near else otherwise


def _crossed(left: Sequence[Item], right: Sequence[Item]) -> int:
    return sum(item.place > other.place for item in left for other in right)


def _inversions(row: Sequence[Item]) -> int:
    """Count the crossings among the links below a layer."""
    seen: list[int] = []
    count = 0
    for item in row:
        for place in sorted(other.place for other in item.downs):
            count += len(seen) - bisect_right(seen, place)
            insort(seen, place)
    return count
