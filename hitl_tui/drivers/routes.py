"""The route after a step: the key that its function returns, what the function reads, and its code."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.log.outcomes import Frame
from hitl_tui.engine.log.records import START
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.units import Maybe, about
from hitl_tui.engine.state.workflow_state import NotedState
from hitl_tui.engine.thread.rebuild import state_at
from hitl_tui.engine.thread.recorded import RecordedGraph
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError


class RouteTaken(msgspec.Struct, frozen=True):
    """The result of the routing function after a step, called with the state of that step."""

    node: Annotated[str, about("The node that the route follows.")]
    key: Annotated[Maybe, about("The result of the function, as text.")] = ""
    target: Annotated[Maybe, about("The node that it leads to.")] = ""
    read: Annotated[tuple[str, ...], about("The channels that the function read.")] = ()
    error: Annotated[Maybe, about("Why it led to no node.")] = ""
    code: Annotated[Frame | None, about("The function, as it is in its file.")] = None
    loaded: Annotated[bool, about("Whether the graph is loaded, so that the function could be called.")] = (
        True
    )


def route_after(session: Session, store: Store, step: int) -> RouteTaken | None:
    """Call the route after a step; None if nothing is chosen after it.

    Routing functions only read, so calling one again changes nothing. No private value is quoted.
    """
    from hitl_tui.engine.nodes.frames import Masks, code_of

    graph = session.graph
    point = store.checkpoint(session.thread_id, step)
    if point is None:
        return None
    kind, _, name = point.position.partition(":")
    node = name if kind == "route" else START if point.source == "input" else point.node
    if kind not in ("route", "end"):
        return None
    if isinstance(graph, RecordedGraph):
        chosen = any(edge.source == node and edge.label for edge in graph.info.edges)
        return RouteTaken(node, loaded=False) if chosen else None
    if node not in graph.routes:
        return None
    values = _values(session, graph, store, step)
    read: dict[str, None] = {}
    view = NotedState(values, graph.channels, None, session.cursor.run_inputs, noted=read, taint={})
    key = target = error = ""
    try:
        key, target = graph.ask_route(node, view, session.cursor.context)
    except HitlError as failure:
        cause = failure.__cause__
        error = f"it raises {type(cause).__name__}" if cause else "it returns a key that leads nowhere"
    private = {name: each for name, each in graph.channels.items() if each.visibility == "private"}
    masks = Masks({name: [values.get(name), channel.default] for name, channel in private.items()})
    return RouteTaken(node, key, target, tuple(read), error, code_of(graph.routes[node].function, masks))


def _values(session: Session, graph: CompiledGraph, store: Store, step: int) -> dict[str, Any]:
    """Return all values at a step, private ones too: the function may read them."""
    if step == session.cursor.head:
        return dict(session.state.values)
    defaults = {name: channel.default for name, channel in graph.channels.items()}
    return {**defaults, **state_at(store, session.thread_id, step, defaults)}
