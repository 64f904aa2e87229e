"""Small graphs for tests: one node, a chain of nodes, a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.channel import BoundChannel, bind

Node = Callable[..., Any]


def bound(channel: Channel, name: str = "c") -> BoundChannel:
    """A channel with a name, ready to take updates."""
    return bind({name: channel})[name]


def chain(
    channels: Mapping[str, Channel], *nodes: Node, name: str = "graph", **node_options: Any
) -> StateGraph:
    """Nodes n1, n2, … one after the other; the options are those of every node."""
    graph = StateGraph(channels, name=name)
    names = [f"n{place}" for place in range(1, len(nodes) + 1)]
    for node_name, node in zip(names, nodes, strict=True):
        graph.add_node(node_name, node, **node_options)
    for source, target in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(source, target)
    return graph


def one_node(channels: Mapping[str, Channel], node: Node, **node_options: Any) -> GraphRunner:
    """A runner of a single node "n1", without a store."""
    return chain(channels, node, **node_options).compile()


def returning(updates: Any) -> Node:
    """A node that returns the same thing each time."""
    return lambda state, config: updates


def loop(
    channels: Mapping[str, Channel], node: Node, again: Callable[[Any], bool], **options: Any
) -> GraphRunner:
    """A node "n1" that runs again as long as `again(state)` is true; the options are those of compile."""
    return (
        StateGraph(channels)
        .add_node("n1", node)
        .add_edge(START, "n1")
        .add_conditional_edge("n1", lambda s: "again" if again(s) else "done", {"again": "n1", "done": END})
        .compile(**options)
    )


def counting(channel: str = "n") -> Node:
    """A node that adds 1 to a sum channel."""
    return lambda state, config: {channel: 1}
