"""Assigns tracks on which edges change their column between two layers of a graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

_FORBIDDEN: Final = 1000


class Link(msgspec.Struct, frozen=True):
    """A connection between two columns, between two layers.

    Args:
        source, target: the items that it connects; links that share one of them may meet.
        start, end: their columns.
        from_above, to_above: whether source and target stand above the tracks or below them.
    """

    source: Hashable
    target: Hashable
    start: int
    end: int
    from_above: bool = True
    to_above: bool = False


class _Net(msgspec.Struct):
    """Links that share a track, with the columns at which they leave it.

    Args:
        part: 1 for the upper, 2 for the lower one where they run on two tracks, one after the other.
    """

    links: list[Link]
    part: int = 0
    ups: set[int] = set()
    downs: set[int] = set()
    track: int = 0
    first: int = 0
    last: int = 0

    def __post_init__(self) -> None:
        for link in self.links:
            (self.ups if link.from_above else self.downs).add(link.start)
            (self.ups if link.to_above else self.downs).add(link.end)
        self.bound()

    def bound(self) -> None:
        """Set its first and last column."""
        columns = self.ups | self.downs
        self.first, self.last = min(columns), max(columns)

    def cost_above(self, other: _Net) -> int:
        """Return the number of crossings if it runs above another net; very many if they would overlap."""
        if self.last < other.first or other.last < self.first:
            return 0
        if self.links is other.links:
            return _FORBIDDEN if self.part > other.part else 0
        if self.downs & other.ups:
            return _FORBIDDEN
        crossed = sum(other.first < x < other.last for x in self.downs - other.downs)
        return crossed + sum(self.first < x < self.last for x in other.ups - self.ups)


class Tracks:
    """The links between two layers, with a track for each that isn't straight.

    Links of one source share a track; links to one target do if their sources have no other links.
    """

    def __init__(self, links: Sequence[Link]) -> None:
        nets = [net for net in map(_Net, _bundles(links)) if net.first < net.last]
        self._parts: dict[Link, tuple[_Net, ...]] = {link: (net,) for net in nets for link in net.links}
        self._columns = {link.start for link in links} | {link.end for link in links}
        self._elbows: dict[Link, int] = {}
        order = _ordered(nets)
        for _ in range(len(nets)):
            bad = _conflict(order)
            if bad is None:
                break
            nets = [*(net for net in nets if net is not bad), *self._split(bad)]
            order = _ordered(nets)
        self.count = _tracks(order)

    def corners(self, link: Link) -> list[tuple[int, int]]:
        """Return where a link turns, as (column, track); empty if it is straight."""
        parts = self._parts.get(link, ())
        if len(parts) == 2:
            elbow = self._elbows[link]
            first, last = parts
            return [
                (link.start, first.track),
                (elbow, first.track),
                (elbow, last.track),
                (link.end, last.track),
            ]
        if not parts or link.start == link.end:
            return []
        return [(link.start, parts[0].track), (link.end, parts[0].track)]

    def _split(self, net: _Net) -> tuple[_Net, _Net]:
        """Split a net in two, joined in a free column: the upper and the lower part."""
        middle = (net.first + net.last) // 2
        free = next(
            x
            for by in range(len(self._columns) + net.last - net.first + 2)
            for x in (middle + by, middle - by)
            if x not in self._columns
        )
        self._columns.add(free)
        upper, lower = _Net(net.links, 1), _Net(net.links, 2)
        upper.downs, lower.ups = {free}, {free}
        upper.bound()
        lower.bound()
        for link in net.links:
            self._parts[link] = (upper, lower)
            self._elbows[link] = free
        return upper, lower


def _bundles(links: Sequence[Link]) -> list[list[Link]]:
    by_source: dict[Hashable, list[Link]] = defaultdict(list)
    by_target: dict[Hashable, list[Link]] = defaultdict(list)
    for link in links:
        by_source[link.source].append(link)
        by_target[link.target].append(link)
    bundles: list[list[Link]] = []
    joined: set[Hashable] = set()
    for group in by_source.values():
        target = group[0].target
        if len(group) == 1 and all(len(by_source[link.source]) == 1 for link in by_target[target]):
            if target not in joined:
                joined.add(target)
                bundles.append(by_target[target])
        else:
            bundles.append(group)
    return bundles


def _ordered(nets: Sequence[_Net]) -> list[_Net]:
    """Order the nets from top to bottom, so that few lines cross."""
    order: list[_Net] = []
    for net in sorted(nets, key=lambda net: (net.first, net.last)):
        above = [net.cost_above(other) for other in order]
        beneath = [other.cost_above(net) for other in order]
        costs = [sum(beneath[:at]) + sum(above[at:]) for at in range(len(order) + 1)]
        order.insert(costs.index(min(costs)), net)
    for _ in range(len(order)):
        swapped = False
        for at in range(len(order) - 1):
            upper, lower = order[at], order[at + 1]
            if lower.cost_above(upper) < upper.cost_above(lower):
                order[at], order[at + 1] = lower, upper
                swapped = True
        if not swapped:
            break
    return order


def _conflict(order: Sequence[_Net]) -> _Net | None:
    """Return a net that overlaps another one vertically, which two tracks would avoid."""
    for at, upper in enumerate(order):
        for lower in order[at + 1 :]:
            if upper.links is not lower.links and upper.downs & lower.ups:
                whole = next((net for net in (upper, lower) if not net.part), None)
                if whole is not None:
                    return whole
    return None


def _tracks(order: Sequence[_Net]) -> int:
    """Give each net the highest free track; returns the number of tracks."""
    count = 0
    for at, net in enumerate(order):
        above = (
            other.track + 1 for other in order[:at] if other.first <= net.last and net.first <= other.last
        )
        net.track = max(above, default=0)
        count = max(count, net.track + 1)
    return count
