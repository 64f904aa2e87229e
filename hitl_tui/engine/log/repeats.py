"""Nodes that would run again after a step in a fork, or when a node is retried."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hitl_tui.engine.log.units import Duration, Maybe, about


class NodeRepeat(msgspec.Struct, frozen=True):
    """A node that would run again."""

    node: Annotated[str, about("The node.")]
    runs: Annotated[int, about("How often it ran after that step; 0 if it only failed or comes next.")]
    outside: Annotated[
        tuple[str, ...],
        about("Its known side effects as text, such as `calls send_mail`; empty for none."),
    ]


class Repeats(msgspec.Struct, frozen=True):
    """Nodes that would run again after a step, with what they used last time.

    It is no promise: with another state the routes may lead elsewhere.

    Args:
        rerouted: whether the route after the step is chosen again.
        cost: a lower bound if `cost_known` is False.
    """

    step: Annotated[int, about("The last step that is kept.")]
    head: Annotated[int, about("The newest step of the thread.")]
    nodes: Annotated[tuple[NodeRepeat, ...], about("The nodes, in the order they first ran.")]
    decisions: Annotated[
        int, about("Human decisions and edits after the step; they are not carried over.")
    ] = 0
    changed: Annotated[
        tuple[str, ...], about("What has changed since the steps ran: nodes, routes, channels.")
    ] = ()
    unknown: Annotated[Maybe, about("Why not everything could be compared.")] = ""
    rerouted: Annotated[bool, about("Whether the route after the step is chosen again.")] = False
    tokens_in: Annotated[int, about("Tokens sent last time.")] = 0
    tokens_out: Annotated[int, about("Tokens written last time.")] = 0
    cost: Annotated[float, about("US dollars last time.")] = 0.0
    cost_known: Annotated[
        bool, about("Whether all prices are known; otherwise the cost is a lower bound.")
    ] = True
    duration: Annotated[Duration, about("Seconds last time.")] = 0

    @property
    def outside(self) -> tuple[NodeRepeat, ...]:
        """The nodes that are known to have side effects."""
        return tuple(repeat for repeat in self.nodes if repeat.outside)
