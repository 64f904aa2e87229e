"""Explains why a channel is tainted: which source brought it in, and through which nodes it came.

Specified in docs/spec/data.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from hitl_tui.engine.log.records import UpdateRecord
from hitl_tui.engine.log.units import Maybe, about


class Arrival(msgspec.Struct, frozen=True):
    """One step by which taint came into a channel.

    Args:
        path: the branch of a map or a parallel, "" for a plain node.
        sources: the sources of untrusted data that the node itself used.
        channels: the tainted channels that it had read.
    """

    channel: Annotated[str, about("The channel.")]
    step: Annotated[int, about("The step.")]
    node: Annotated[Maybe, about("The node that wrote it.")]
    path: Annotated[Maybe, about("The branch.")]
    sources: Annotated[tuple[str, ...], about("The untrusted sources that the node itself used.")]
    channels: Annotated[tuple[str, ...], about("The tainted channels that it had read.")]


def lineage(records: Iterable[UpdateRecord], channel: str) -> tuple[Arrival, ...]:
    """Return all that tainted a channel since it was last cleared, and what tainted that, oldest first.

    Args:
        records: those of the thread up to the step in question.
    """
    arrivals: dict[str, list[Arrival]] = {}
    for record in records:
        cause = record.lineage
        if cause is None:
            continue
        found = arrivals.setdefault(record.channel, [])
        if cause.cleared:
            # Channels written from it before keep this part of their history.
            found.append(Arrival(record.channel, record.step, "", "", (), ()))
        else:
            found.append(
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


def _since_cleared(found: Iterable[Arrival], before: int | None) -> list[Arrival]:
    """Return a channel's arrivals before a step (None: all) since it was last cleared."""
    arrivals: list[Arrival] = []
    for way in found:
        if before is not None and way.step >= before:
            break
        if way.node or way.sources or way.channels:
            arrivals.append(way)
        else:
            arrivals.clear()
    return arrivals
