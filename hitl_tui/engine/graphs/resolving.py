"""From the nodes of a graph to its steps: parallels get their members, subgraphs their graphs (SPEC 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hitl_tui.engine.channels.channel import RUN_INPUTS
from hitl_tui.engine.graphs.work import FanOutWork, SubgraphWork, kind_of
from hitl_tui.engine.log.taint import OnTaint
from hitl_tui.errors import GraphInvalid

if TYPE_CHECKING:
    from hitl_tui.engine.graphs.compiled import Node


def resolve(
    nodes: Mapping[str, Node],
    members: Mapping[str, tuple[str, ...]],
    ends: set[str],
    subgraphs: Mapping[str, SubgraphWork],
    channels: Mapping[str, Any],
) -> dict[str, Node]:
    """The steps of a graph: parallels with their members inside, subgraphs with their graphs.

    Args:
        ends: the nodes that edges and routes name.

    Raises:
        GraphInvalid: a member is unknown, has edges, is in two parallels or has branches itself.
    """
    group_of: dict[str, str] = {}
    for group, names in members.items():
        for one in names:
            if one not in nodes:
                raise GraphInvalid(
                    f"parallel {group!r} names an unknown node {one!r}", f"nodes: {', '.join(nodes)}"
                )
            if one in group_of:
                raise GraphInvalid(f"node {one!r} is in the parallels {group_of[one]!r} and {group!r}")
            if nodes[one].work or one in members or one in subgraphs:
                raise GraphInvalid(
                    f"parallel {group!r}: {one!r} is a {kind_of(nodes[one].work) or 'subgraph'} itself",
                    "its nodes are plain ones; put the map or the subgraph before or after it",
                )
            if one in ends:
                raise GraphInvalid(
                    f"node {one!r} is in the parallel {group!r} and has an edge",
                    f"let the edge lead to or from {group!r}",
                )
            group_of[one] = group
    steps = {}
    for name, node in nodes.items():
        if name in subgraphs:
            steps[name] = _subgraph_node(node, subgraphs[name], channels)
        elif name in members and isinstance(node.work, FanOutWork):
            steps[name] = _parallel_node(node, node.work, tuple(nodes[one] for one in members[name]))
        elif name not in group_of:
            if isinstance(node.work, FanOutWork):
                _check_channel(f"map {name!r}: over", node.work.over.partition(".")[0], channels)
            steps[name] = node
    return steps


def _parallel_node(node: Node, work: FanOutWork, members: tuple[Node, ...]) -> Node:
    reads = [one.reads for one in members]
    writes = [one.writes for one in members]
    policies: list[OnTaint] = ["allow", "warn", "approve", "block"]
    # The strictest of them stands before all, since they run at once.
    strictest = max((one.on_taint for one in members), key=policies.index)
    work = replace(work, members=members)
    return replace(node, reads=_union(reads), writes=_union(writes), on_taint=strictest, work=work)


def _subgraph_node(node: Node, work: SubgraphWork, channels: Mapping[str, Any]) -> Node:
    where = f"subgraph {node.name!r}"
    for parent, child in work.inputs:
        _check_channel(
            f"{where}: inputs",
            parent.partition(".")[0],
            (*channels, *RUN_INPUTS),
            "inputs goes from this graph's channel to the inner one's; this graph's ",
        )
        _check_channel(f"{where}: inputs, inside", child, (*work.graph.channels, *RUN_INPUTS))
    for child, parent in work.outputs:
        _check_channel(f"{where}: outputs, inside", child, work.graph.channels)
        _check_channel(f"{where}: outputs", parent, channels)
    _keep_private(where, work, channels)
    reads = tuple(name for name, _ in work.inputs if name not in RUN_INPUTS)
    return replace(node, reads=reads, writes=tuple(dict.fromkeys(to for _, to in work.outputs)), work=work)


def _keep_private(where: str, work: SubgraphWork, channels: Mapping[str, Any]) -> None:
    """Refuse to copy what is private here into what is public there (SPEC 8)."""
    inside: Mapping[str, Any] = work.graph.channels
    ways = (
        ("inputs", work.inputs, channels, "", inside, " inside"),
        ("outputs", work.outputs, inside, " inside", channels, ""),
    )
    for option, pairs, known, here, others, there in ways:
        for path, target in pairs:
            source = path.partition(".")[0]
            leaks = source in known and known[source].visibility == "private"
            if leaks and (target not in others or others[target].visibility != "private"):
                raise GraphInvalid(
                    f"{where}: {option} copy the private channel {source!r}{here} into the public "
                    f"{target!r}{there}",
                    f'declare {target!r}{there} with visibility="private", too'
                    if target in others
                    else f"copy it into a channel{there} that is private",
                )


def _union(lists: Sequence[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    known = [names for names in lists if names is not None]
    if len(known) < len(lists):
        return None
    return tuple(dict.fromkeys(name for names in known for name in names))


def _check_channel(
    where: str, name: str, known: Mapping[str, Any] | Sequence[str], direction: str = ""
) -> None:
    if name not in known:
        raise GraphInvalid(
            f"{where}: there is no channel {name!r}", f"{direction}channels: {', '.join(known)}"
        )
