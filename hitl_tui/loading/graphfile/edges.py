"""Edges, routes, and what ends a run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from hitl_tui.engine.channels.state import WorkflowState
from hitl_tui.engine.graphs import termination
from hitl_tui.engine.graphs.compiled import RouteFunction
from hitl_tui.engine.graphs.graph import StateGraph
from hitl_tui.engine.graphs.termination import Termination
from hitl_tui.engine.graphs.topology import check_topology
from hitl_tui.engine.log.records import END, START
from hitl_tui.errors import GraphInvalid
from hitl_tui.loading import positions
from hitl_tui.loading.graphfile.context import Context
from hitl_tui.loading.graphfile.functions import find_function
from hitl_tui.loading.graphfile.shape import RouteTable, TextMatchTable

_OTHERS = "*"


def add_edges(context: Context, graph: StateGraph) -> None:
    """Add edges and routes, and check the shape they make."""
    problems = context.problems
    for number, edge in enumerate(context.file.edges):
        path: positions.Path = ("edges", number)
        known = context.check_node((*path, "from"), edge.source, [START])
        if context.check_node((*path, "to"), edge.to, [END]) and known:
            with problems.at(path):
                graph.add_edge(edge.source, edge.to)
    for number, route in enumerate(context.file.routes):
        path = ("routes", number)
        known = context.check_node((*path, "from"), route.source)
        for key, target in route.map.items():
            known = context.check_node((*path, "map", key), target, [END]) and known
        function = _route_function(context, route, path)
        if function is not None and known:
            with problems.at(path):
                graph.add_conditional_edge(route.source, function, route.map)
    if not any(problems.under((part,)) for part in ("edges", "routes")):
        _check_shape(context)


def build_termination(context: Context) -> Termination | None:
    """The conditions of [termination], combined."""
    table = context.file.termination
    conditions: list[Termination] = []
    if table.max_turns is not UNSET:
        conditions.append(termination.max_turns(table.max_turns))
    if table.cost_limit is not UNSET:
        conditions.append(termination.cost_limit(table.cost_limit))
    if isinstance(table.text_match, TextMatchTable):
        path = ("termination", "text_match")
        context.check_channel((*path, "channel"), table.text_match.channel)
        with context.problems.at((*path, "pattern")):
            conditions.append(termination.text_match(table.text_match.pattern, table.text_match.channel))
    if not conditions:
        return None
    combined = conditions[0]
    for condition in conditions[1:]:
        combined = combined & condition if table.combine == "all" else combined | condition
    return combined


def _route_function(context: Context, route: RouteTable, path: positions.Path) -> RouteFunction | None:
    if bool(route.channel) == bool(route.function):
        context.problems.add(path, "it needs one of channel and function", "one of them picks the way on")
        return None
    if route.channel:
        context.check_channel((*path, "channel"), route.channel.partition(".")[0])
        return _by_value(route.channel, frozenset(route.map))
    with context.problems.at((*path, "function")):
        return _by_function(find_function(route.function, context.directory), frozenset(route.map))
    return None


def _by_value(channel: str, keys: frozenset[str]) -> RouteFunction:
    return lambda state: _key(state[channel], keys)


def _by_function(function: Callable[[WorkflowState], Any], keys: frozenset[str]) -> RouteFunction:
    return lambda state: _key(function(state), keys)


def _key(value: Any, keys: frozenset[str]) -> str:
    """A value as a key of the map: text without the space around it, everything else as JSON."""
    key = value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _OTHERS if key not in keys and _OTHERS in keys else key


def _check_shape(context: Context) -> None:
    file = context.file
    edges = [(edge.source, edge.to) for edge in file.edges]
    routes: dict[str, dict[str, str]] = {}
    for route in file.routes:
        routes.setdefault(route.source, {}).update(route.map)
    ends_otherwise = any(
        value is not UNSET
        for value in (file.termination.max_turns, file.termination.cost_limit, file.termination.text_match)
    )
    try:
        check_topology(context.steps, edges, routes, ends_otherwise)
    except GraphInvalid as error:
        context.problems.add(_place(context, error.message), error.message, error.hint)


def _place(context: Context, message: str) -> positions.Path:
    """Where in the file a problem of the shape is best mended."""
    named = [name for name in re.findall(r"'([^']*)'", message) if name in context.steps]
    if named and "edge" not in message:
        tables = ("nodes", "maps", "parallels", "subgraphs")
        return (next(table for table in tables if named[0] in getattr(context.file, table)), named[0])
    source = named[0] if named else START
    numbers = [number for number, edge in enumerate(context.file.edges) if edge.source == source]
    return ("edges", numbers[-1]) if numbers else ("edges",)
