"""A trip of three bookings, each with what takes it back; the world outside is a list of what was done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_tui import END, START, Channel, GraphRunner, NodeResult, RetryPolicy, StateGraph
from hitl_tui.engine.graph.compensation import RollbackEntry
from hitl_tui.stores import Checkpointer

PLACES = ("flight", "hotel", "car")


class World:
    """What handlers did, in order; `broken` handlers raise."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.configs: list[Any] = []
        self.broken: set[str] = set()

    def handler(self, place: str) -> Any:
        def undo(state: Any, config: Any, args: Any) -> dict[str, Any]:
            self.calls.append((place, args))
            self.configs.append(config)
            if place in self.broken:
                raise RuntimeError(f"{place} is down")
            return {"log": f"undo {place}", "booked": {place: None}}

        return undo


def book(place: str) -> Any:
    def node(state: Any, config: Any) -> NodeResult:
        ref = f"{place}-{config.iteration}"
        return NodeResult(
            {"log": f"book {place}", "booked": {place: ref}},
            compensation=(f"cancel_{place}", {"ref": ref}),
        )

    return node


def graph(world: World, *, without: str = "", retry: RetryPolicy | None = None) -> StateGraph:
    made = StateGraph(
        {"log": Channel([], reducer="append"), "booked": Channel({}, reducer="merge")}, name="trip"
    )
    for place in PLACES:
        made.add_node(place, book(place))
        if place != without:
            made.add_compensation(f"cancel_{place}", world.handler(place), retry=retry)
    for source, target in zip([START, *PLACES], [*PLACES, END], strict=True):
        made.add_edge(source, target)
    return made


def trip(store: Checkpointer, world: World, **options: Any) -> GraphRunner:
    """Three bookings in a row; the options are those of `graph`."""
    return graph(world, **options).compile(checkpointer=store)


def booked(store: Checkpointer, world: World, **options: Any) -> GraphRunner:
    """A trip whose thread "t" is booked."""
    runner = trip(store, world, **options)
    runner.invoke(thread_id="t")
    return runner


def states(entries: tuple[RollbackEntry, ...]) -> Mapping[str, str]:
    return {entry.node: entry.state for entry in entries}
