"""Describes how a changed graph differs from the one on which a thread has run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from hitl_tui.engine.graph.description import GraphInfo, NodeInfo
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.state.channel import ChannelInfo
from hitl_tui.engine.state.schema import ChannelSchema
from hitl_tui.engine.thread.logged import logged_graph
from hitl_tui.errors import HitlError

OTHER_GRAPH = "the graph has changed since this thread last ran"
OTHER_CODE = "the graph's code has changed since this thread last ran"


class Difference(msgspec.Struct, frozen=True):
    """One difference between a graph and the one on which a thread has run so far.

    Attributes:
        part: what it is about; "thread" is the thread's position.
        name: the channel or node, "" for the graph as a whole.
        words: the difference as text, such as "channel 'draft' is gone".
        blocks: the thread can't continue from its position; an edit with `as_node`, or a fork, can.
    """

    part: Literal["graph", "channel", "node", "thread"]
    name: str
    words: str
    blocks: bool = False


def differences(
    old: GraphInfo | ThreadInfo,
    new: GraphInfo,
    cursor: Cursor | None = None,
    values: Mapping[str, Any] | None = None,
) -> list[Difference]:
    """Return how `new` differs from the graph on which a thread has run; what blocks the thread comes first.

    Args:
        old: the graph as it was, or the record of a thread, which has only its name and digest ("" if its log
            has no graph).
        cursor: checked for nodes and channels that are gone.
        values: the thread's state, checked for values that no longer fit.
    """
    if isinstance(old, GraphInfo):
        differences = [*_graph(old, new), *_channels(old, new), *_nodes(old, new)]
    else:
        differences = [*_record(old, new), *_known(values or {}, new)]
    if differences:
        differences += _values(values or {}, new)
    if cursor is not None:
        differences += _position_differences(cursor, new)
    return sorted(differences, key=lambda difference: not difference.blocks)


def changes_since(store: Store, thread_id: str, graph: GraphInfo) -> tuple[str, ...]:
    """How a graph differs from the one that a thread of a store last ran on, in words."""
    info, cursor = store.info(thread_id), store.cursor(thread_id)
    if info is None or cursor is None:
        return ()
    return tuple(difference.words for difference in differences(logged_graph(store, info, cursor), graph))


def _record(old: ThreadInfo, new: GraphInfo) -> Iterator[Difference]:
    if old.graph_name != new.name:
        yield Difference("graph", "", f"the graph was called {old.graph_name!r}, now it is {new.name!r}")
    if old.graph_digest != new.digest:
        yield Difference("graph", "", OTHER_GRAPH)


def _graph(old: GraphInfo, new: GraphInfo) -> Iterator[Difference]:
    if old.name != new.name:
        yield Difference("graph", "", f"the graph was called {old.name!r}, now it is {new.name!r}")
    if old.inputs != new.inputs:
        yield Difference("graph", "", "what it asks for at the start is different")


def _known(values: Mapping[str, Any], new: GraphInfo) -> Iterator[Difference]:
    """Compare channels with those of which the thread has values."""
    names = {channel.name for channel in new.channels}
    if values:
        yield from (_gone(name) for name in values if name not in names)
        yield from (_added(channel.name) for channel in new.channels if channel.name not in values)


def _channels(old: GraphInfo, new: GraphInfo) -> Iterator[Difference]:
    before = {channel.name: channel for channel in old.channels}
    after = {channel.name: channel for channel in new.channels}
    yield from (_gone(name) for name in before if name not in after)
    yield from (_added(name) for name in after if name not in before)
    for name, channel in after.items():
        if name in before:
            yield from _channel(before[name], channel)


def _channel(old: ChannelInfo, new: ChannelInfo) -> Iterator[Difference]:
    if old.reducer != new.reducer:
        words = f"channel {new.name!r}: its reducer was {old.reducer}, now it is {new.reducer}"
        yield Difference("channel", new.name, words)
    if old.schema != new.schema:
        yield Difference("channel", new.name, f"channel {new.name!r} has another schema")
    if old.default != new.default and "private" not in (old.visibility, new.visibility):
        yield Difference("channel", new.name, f"channel {new.name!r} starts from another default")
    if old.visibility != new.visibility:
        yield Difference(
            "channel", new.name, f"channel {new.name!r} was {old.visibility}, now {new.visibility}"
        )


def _gone(name: str) -> Difference:
    return Difference("channel", name, f"channel {name!r} is gone; its value stays in the log")


def _added(name: str) -> Difference:
    return Difference("channel", name, f"channel {name!r} is new and starts at its default")


def _values(values: Mapping[str, Any], new: GraphInfo) -> Iterator[Difference]:
    for channel in new.channels:
        if values.get(channel.name) is None:
            continue
        try:
            schema = ChannelSchema(channel.name, dict(channel.schema), "whole", appends=False, picks=False)
            schema.check_value(values[channel.name])
        except HitlError as error:
            words = f"the value of channel {channel.name!r} doesn't fit its schema"
            if channel.visibility == "public":
                words += f": {error.message}"
            yield Difference("channel", channel.name, words)


def _nodes(old: GraphInfo, new: GraphInfo) -> Iterator[Difference]:
    before = {node.name: node for node in old.nodes}
    after = {node.name: node for node in new.nodes}
    yield from (Difference("node", name, f"node {name!r} is gone") for name in before if name not in after)
    yield from (Difference("node", name, f"node {name!r} is new") for name in after if name not in before)
    for name, node in after.items():
        if name in before:
            yield from _access(before[name], node)
    for name in ("START", *after):
        destinations = _destinations(new, name)
        if (name == "START" or name in before) and destinations != _destinations(old, name):
            yield Difference("node", name, f"after {name!r} it goes {_in_words(destinations)}")


def _access(old: NodeInfo, new: NodeInfo) -> Iterator[Difference]:
    for what, before, after in (("reads", old.reads, new.reads), ("writes", old.writes, new.writes)):
        if set(before) != set(after):
            now, then = (", ".join(names) or "nothing" for names in (after, before))
            yield Difference("node", new.name, f"node {new.name!r} {what} {now}, before {then}")


def _destinations(graph: GraphInfo, node: str) -> dict[str, str]:
    return {edge.label: edge.target for edge in graph.edges if edge.source == node}


def _in_words(destinations: Mapping[str, str]) -> str:
    listed = (
        f"to {target!r} on {label!r}" if label else f"to {target!r}" for label, target in destinations.items()
    )
    return ", ".join(listed) or "nowhere"


def _position_differences(cursor: Cursor, new: GraphInfo) -> Iterator[Difference]:
    kind, _, node = cursor.position.partition(":")
    nodes = {info.name for info in new.nodes}
    if kind == "node" and node not in nodes:
        yield Difference("thread", node, f"the thread continues at node {node!r}, which is gone", True)
    elif kind == "route" and not _destinations(new, node):
        words = f"the thread must choose a route after {node!r}, and no edge leads from there"
        yield Difference("thread", node, words, True)
    for request in cursor.pending:
        yield from _request_differences(request, new, nodes)


def _request_differences(request: Request, new: GraphInfo, nodes: set[str]) -> Iterator[Difference]:
    if request.node not in nodes:
        words = f"{request.title!r} waits for an answer at node {request.node!r}, which is gone"
        yield Difference("thread", request.node, words, True)
    if request.subject and request.subject not in {channel.name for channel in new.channels}:
        words = f"{request.title!r} is about channel {request.subject!r}, which is gone"
        yield Difference("thread", request.subject, words, True)
