"""Why a channel is tainted: what brought it in, and through which nodes it came.

Specified in docs/spec/data.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from hitl_tui.engine.log.records import UpdateRecord
from hitl_tui.engine.log.units import Maybe, about


class Arrival(msgspec.Struct, frozen=True):
    """One way by which taint came into a channel.

    Args:
        path: the branch of a map or a parallel, "" for a plain node.
        sources: what the node brought in from outside itself.
        channels: the tainted channels it had read.
    """

    channel: Annotated[str, about("The channel.")]
    step: Annotated[int, about("The step.")]
    node: Annotated[Maybe, about("The node that wrote it.")]
    path: Annotated[Maybe, about("The branch.")]
    sources: Annotated[tuple[str, ...], about("What it brought in itself.")]
    channels: Annotated[tuple[str, ...], about("The tainted channels that it read.")]


def lineage(records: Iterable[UpdateRecord], channel: str) -> tuple[Arrival, ...]:
    """Everything that tainted a channel since it was last cleared, and what tainted that, oldest first.

    Args:
        records: those of the thread up to the step in question.
    """
    arrivals: dict[str, list[Arrival]] = {}
    for record in records:
        cause = record.lineage
        if cause is None:
            continue
        ways = arrivals.setdefault(record.channel, [])
        if cause.cleared:
            # What was written from it before keeps this part of its past, so it is not forgotten.
            ways.append(Arrival(record.channel, record.step, "", "", (), ()))
        else:
            ways.append(
                Arrival(record.channel, record.step, record.node, record.path, cause.sources, cause.channels)
            )
    reached: dict[tuple[str, int, str], Arrival] = {}
    wanted = [(channel, None)] if channel in arrivals else []
    todo: list[tuple[str, int | None]] = [*wanted]
    while todo:
        name, before = todo.pop()
        for way in _since_cleared(arrivals.get(name, ()), before):
            key = (way.channel, way.step, way.path)
            if key not in reached:
                reached[key] = way
                todo += [(source, way.step) for source in way.channels]
    return tuple(sorted(reached.values(), key=lambda way: (way.step, way.channel != channel, way.channel)))


def _since_cleared(ways: Iterable[Arrival], before: int | None) -> list[Arrival]:
    """A channel's arrivals before a step (None: all) that its last clearing has not undone."""
    arrivals: list[Arrival] = []
    for way in ways:
        if before is not None and way.step >= before:
            break
        if way.node or way.sources or way.channels:
            arrivals.append(way)
        else:
            arrivals.clear()
    return arrivals
