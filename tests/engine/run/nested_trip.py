"""A trip of which a team books a part, and a desk in the team: flight, (hotel, (spa), taxi), car."""

from __future__ import annotations

from typing import Any

from hitl_tui import END, START, Channel, GraphRunner, StateGraph
from hitl_tui.stores import Checkpointer
from tests.engine.run.booking import World, book

TEAM, DESK = "t/team#1", "t/team#1/desk#1"


def part(
    world: World, name: str, places: list[str], inner: StateGraph | None = None, *, without: str = ""
) -> StateGraph:
    """Bookings in a row; the name of `inner`'s graph among them is where it runs.

    Args:
        without: a place whose handler is not registered.
    """
    made = StateGraph(
        {
            "log": Channel([], reducer="append"),
            "booked": Channel({}, reducer="merge"),
            "note": Channel(""),
        },
        name=name,
    )
    for place in places:
        if inner is not None and place == inner.name:
            made.add_subgraph(place, inner, inputs={"note": "note"}, outputs={"note": "note"})
        else:
            made.add_node(place, book(place))
            if place != without:
                made.add_compensation(f"cancel_{place}", world.handler(place))
    for source, target in zip([START, *places], [*places, END], strict=True):
        made.add_edge(source, target)
    return made


def whole(world: World) -> StateGraph:
    """The trip."""
    desk = part(world, "desk", ["spa"])
    team = part(world, "team", ["hotel", "desk", "taxi"], desk)
    return part(world, "trip", ["flight", "team", "car"], team)


def nested(store: Checkpointer | None, world: World, **options: Any) -> GraphRunner:
    """A runner of the trip."""
    return whole(world).compile(checkpointer=store, **options)
