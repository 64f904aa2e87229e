"""A thread's graph as its log has it: for viewing the thread without building the graph.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from hitl_tui.engine.graph.compiled import CompiledGraph, Node, Route, SubgraphWork
from hitl_tui.engine.graph.description import EdgeInfo, GraphInfo, NodeInfo
from hitl_tui.engine.graph.retry import RetryPolicy
from hitl_tui.engine.log.records import START, Cursor, Limits
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.state.channel import BoundChannel, Channel, ChannelInfo
from hitl_tui.engine.thread.logged import logged_digest, logged_graph
from hitl_tui.errors import GraphInvalid


class RecordedGraph(CompiledGraph, frozen=True):
    """A graph that is only data: it can be drawn and knows its channels and edges, but it can't run.

    Its channels have no schema and no reducer; `info` has both as they were declared.
    """

    declared: GraphInfo | None = None
    stored_digest: str = ""

    @property
    def info(self) -> GraphInfo:
        """The graph as it was declared."""
        assert self.declared is not None
        return self.declared

    @property
    def digest(self) -> str:
        """The digest by which the log names it, "" if it names none."""
        return self.stored_digest


def recorded_graph(store: Store, info: ThreadInfo, cursor: Cursor) -> RecordedGraph:
    """Return the graph from `logged_graph`, to be used instead of a built one."""
    return graph_of_info(
        logged_graph(store, info, cursor), logged_digest(info, cursor) if cursor.version else ""
    )


def graph_of_info(info: GraphInfo, digest: str) -> RecordedGraph:
    """Return a graph that is only data, to be used instead of a built one.

    Args:
        digest: the digest by which the log names it, "" if it names none.
    """
    edges = [edge for edge in info.edges if edge.source != START]
    fixed = {edge.source: edge.target for edge in edges if not edge.label}
    return RecordedGraph(
        name=info.name,
        channels={channel.name: _channel(channel) for channel in info.channels},
        nodes={node.name: _node(node) for node in info.nodes},
        edges=fixed,
        routes={
            name: _route(edges, name) for name in dict.fromkeys(edge.source for edge in edges if edge.label)
        },
        entry=next((edge.target for edge in info.edges if edge.source == START), ""),
        before={},
        after={},
        termination=None,
        limits=Limits(),
        agents={},
        inputs=info.inputs,
        output="",
        declared=info,
        stored_digest=digest,
    )


def _channel(info: ChannelInfo) -> BoundChannel:
    # The text of a reducer may name a function: it is shown, and never imported.
    channel = Channel(
        info.default, reducer="overwrite", visibility=info.visibility, description=info.description
    )
    # Graphs of other engines may have channel names that ours may not have.
    return BoundChannel(info.name, channel, checked=False)


def _node(info: NodeInfo) -> Node:
    inside = SubgraphWork(graph_of_info(info.graph, ""), info.inputs, info.outputs) if info.graph else None
    return Node(
        name=info.name,
        function=_no_function,
        reads=_names(info.reads),
        writes=_names(info.writes),
        retry=RetryPolicy(),
        timeout=info.timeout,
        takes_config=False,
        external=info.external,
        on_taint=info.on_taint,
        work=inside,
    )


def _names(declared: tuple[str, ...]) -> tuple[str, ...] | None:
    return None if declared == ("*",) else declared


def _route(edges: Iterable[EdgeInfo], node: str) -> Route:
    return Route(_no_function, {edge.label: edge.target for edge in edges if edge.source == node})


def _no_function(*_given: Any) -> NoReturn:
    raise GraphInvalid("a graph that was read from the log runs nothing", "build it first")
