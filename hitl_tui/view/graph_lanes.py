"""Chooses the side of a graph's layers on which each back edge runs, and how it leaves its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from hitl_tui.view.graph_layers import Item, Layers, Pair, Size

Side = Literal["left", "right"]
_LEFT: Final = 0.3
"""The cost of a lane on the left: readers look for loops on the right."""
_NEW: Final = 0.5
_TURN: Final = 0.5
_FORK: Final = 0.4


class Lane(msgspec.Struct, eq=False):
    """A lane for back edges to one node on one side; a labelled edge has its own lane.

    Args:
        from_above: whether they enter the node from above, not from the side.
        shared: whether other edges may join.
        exits: of each edge, whether it leaves its node below, not to the side.
        first, last: the layers between which it runs.
    """

    target: str
    side: Side
    from_above: bool
    shared: bool
    exits: dict[Pair, bool] = {}
    first: int = 0
    last: int = 0


class _LaneChoice(msgspec.Struct, frozen=True):
    cost: float
    side: Side
    from_above: bool
    below: bool
    lane: Lane | None


def lanes_of(layers: Layers, back: Mapping[Pair, str], sizes: Mapping[str, Size]) -> list[Lane]:
    """Return lanes for back edges with few crossings; short edges are placed first."""
    nodes = layers.nodes
    lanes: list[Lane] = []

    def length(pair: Pair) -> int:
        return nodes[pair[0]].layer - nodes[pair[1]].layer

    for pair in sorted(back, key=length):
        choices = [_lane_choice(layers, lanes, sizes, pair, side, shared=not back[pair]) for side in _SIDES]
        best = min(choices, key=lambda choice: choice.cost)
        lane = best.lane
        if lane is None:
            lane = Lane(pair[1], best.side, best.from_above, not back[pair], first=nodes[pair[1]].layer)
            lanes.append(lane)
        lane.exits[pair] = best.below
        lane.last = max(lane.last, nodes[pair[0]].layer)
    return lanes


_SIDES: Final[tuple[Side, ...]] = ("right", "left")


def _lane_choice(
    layers: Layers, lanes: Sequence[Lane], sizes: Mapping[str, Size], pair: Pair, side: Side, *, shared: bool
) -> _LaneChoice:
    source, target = layers.nodes[pair[0]], layers.nodes[pair[1]]
    mine = [lane for lane in lanes if lane.side == side]
    lane = next((lane for lane in mine if shared and lane.shared and lane.target == pair[1]), None)
    exit_cost, below = _leave(layers, source, side, mine, sizes[pair[0]])
    enter_cost, above = _enter(layers, target, side, mine, sizes[pair[1]])
    if pair[0] == pair[1] and sizes[pair[0]].height == 1:
        exit_cost, below = exit_cost + _TURN, True
    cost = exit_cost + _LEFT * (side == "left")
    cost += 0 if lane else enter_cost + _NEW
    cost += sum(
        (other.first < at < other.last)
        for other in mine
        if other is not lane
        for at in (source.layer, target.layer)
    )
    return _LaneChoice(cost, side, above, below, lane)


def _beyond(layers: Layers, item: Item, side: Side) -> list[Item]:
    row = layers.rows[item.layer]
    return row[item.place + 1 :] if side == "right" else row[: item.place]


def _leave(layers: Layers, item: Item, side: Side, lanes: Sequence[Lane], size: Size) -> tuple[float, bool]:
    """Return the cost of leaving a node, and whether the edge leaves it below."""
    beyond = _beyond(layers, item, side)
    downs = {down for other in beyond for down in other.downs}
    below = min(sum(1 for other in beyond if other.downs), len(downs)) + _TURN + _FORK * bool(item.downs)
    taken = size.height == 1 and any(lane.target == item.node and not lane.from_above for lane in lanes)
    if taken or any(other.node for other in beyond):
        return below, True
    return (below, True) if below < len(beyond) else (len(beyond), False)


def _enter(layers: Layers, item: Item, side: Side, lanes: Sequence[Lane], size: Size) -> tuple[float, bool]:
    """Return the cost of entering a node, and whether the edge enters it from above."""
    beyond = _beyond(layers, item, side)
    ups = {up for other in beyond for up in other.ups}
    above = min(sum(1 for other in beyond if other.ups), len(ups)) + _TURN
    taken = size.height == 1 and any(
        pair[0] == item.node and not below for lane in lanes for pair, below in lane.exits.items()
    )
    if taken or any(other.node for other in beyond):
        return above, True
    return (above, True) if above < len(beyond) else (len(beyond), False)
