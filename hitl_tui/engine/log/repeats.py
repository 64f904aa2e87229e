"""Nodes that would run again after a step in a fork, or when a node is retried."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hitl_tui.engine.log.units import Duration, Maybe, about


class NodeRepeat(msgspec.Struct, frozen=True):
    """A node that would run again."""

    node: Annotated[str, about("The node.")]
    runs: Annotated[int, about("How often it ran after that step; 0 where it only failed or comes next.")]
    outside: Annotated[
        tuple[str, ...],
        about("How it is known to reach outside, in words, as `calls send_mail`; empty where it does not."),
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
    nodes: Annotated[tuple[NodeRepeat, ...], about("The nodes, in the order in which they ran first.")]
    decisions: Annotated[
        int, about("Decisions and edits of people behind the step, which do not come along.")
    ] = 0
    changed: Annotated[
        tuple[str, ...], about("What is not as it was when the steps ran: nodes, ways on, channels.")
    ] = ()
    unknown: Annotated[Maybe, about("Why not everything could be compared.")] = ""
    rerouted: Annotated[bool, about("Whether the way on after the step is chosen anew.")] = False
    tokens_in: Annotated[int, about("Tokens sent the last time.")] = 0
    tokens_out: Annotated[int, about("Tokens written the last time.")] = 0
    cost: Annotated[float, about("US dollars the last time.")] = 0.0
    cost_known: Annotated[bool, about("Whether all prices are known; else the cost is at least that.")] = True
    duration: Annotated[Duration, about("Seconds the last time.")] = 0

    @property
    def outside(self) -> tuple[NodeRepeat, ...]:
        """The nodes that are known to have side effects."""
        return tuple(repeat for repeat in self.nodes if repeat.outside)
