"""Builds the edges, routes, gates, limits and end conditions of a graph file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Mapping
from typing import Any

from msgspec import UNSET

from hitl_tui.engine.graph import termination
from hitl_tui.engine.graph.builder import StateGraph, check_topology
from hitl_tui.engine.graph.compiled import RouteFunction
from hitl_tui.engine.graph.functions import takes_second
from hitl_tui.engine.graph.gates import Gate, GateChoice, TextUse, check_escalation
from hitl_tui.engine.graph.termination import Termination
from hitl_tui.engine.log.records import END, START, Limits
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.errors import GraphInvalid
from hitl_tui.loading import toml
from hitl_tui.loading.graphfile.decode import FileContext, Problems
from hitl_tui.loading.graphfile.functions import find_function
from hitl_tui.loading.graphfile.shape import (
    ChoiceTable,
    GateTable,
    InterruptsTable,
    LimitsTable,
    RouteTable,
    TerminationTable,
    TextMatchTable,
)

_OTHERS = "*"


def add_edges(context: FileContext, graph: StateGraph) -> None:
    """Add edges and routes to the graph, and check its structure."""
    problems = context.problems
    for number, edge in enumerate(context.file.edges):
        path: toml.KeyPath = ("edges", number)
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


def build_limits(table: LimitsTable) -> Limits:
    """Return the `Limits` that the table `[limits]` of a graph file declares."""
    return Limits(
        table.max_iterations,
        None if table.max_tokens is UNSET else table.max_tokens,
        None if table.max_cost_usd is UNSET else table.max_cost_usd,
        None if table.max_seconds is UNSET else table.max_seconds,
        table.on_unknown_price,
    )


CheckChannel = Callable[[toml.KeyPath, str], object]
"""A function that adds a problem if a place names an unknown channel."""


def build_termination(
    table: TerminationTable, problems: Problems, check_channel: CheckChannel
) -> Termination | None:
    """Return the combined conditions of [termination]."""
    conditions: list[Termination] = []
    if table.max_turns is not UNSET:
        conditions.append(termination.max_turns(table.max_turns))
    if table.cost_limit is not UNSET:
        conditions.append(termination.cost_limit(table.cost_limit))
    if isinstance(table.text_match, TextMatchTable):
        path = ("termination", "text_match")
        check_channel((*path, "channel"), table.text_match.channel)
        with problems.at((*path, "pattern")):
            conditions.append(termination.text_match(table.text_match.pattern, table.text_match.channel))
    if not conditions:
        return None
    combined = conditions[0]
    for condition in conditions[1:]:
        combined = combined & condition if table.combine == "all" else combined | condition
    return combined


def _route_function(context: FileContext, route: RouteTable, path: toml.KeyPath) -> RouteFunction | None:
    if bool(route.channel) == bool(route.function):
        context.problems.add(path, "it needs one of channel and function", "one of them picks the way on")
        return None
    if route.channel:
        context.check_channel((*path, "channel"), route.channel.partition(".")[0])
        return lambda state: _key(state[route.channel], route.map)
    with context.problems.at((*path, "function")):
        function = find_function(route.function, context.directory)
        if takes_second(function, "config"):
            return lambda state, config: _key(function(state, config), route.map)
        return lambda state: _key(function(state), route.map)
    return None


def _key(value: Any, keys: Container[str]) -> str:
    """Return a value as a key of the route's map: text stripped, everything else as JSON."""
    key = value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _OTHERS if key not in keys and _OTHERS in keys else key


def _check_shape(context: FileContext) -> None:
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


def _place(context: FileContext, message: str) -> toml.KeyPath:
    """Return the place in the file where a problem of the structure is best fixed."""
    named = [name for name in re.findall(r"'([^']*)'", message) if name in context.steps]
    if named and "edge" not in message:
        tables = ("nodes", "maps", "parallels", "subgraphs")
        return (next(table for table in tables if named[0] in getattr(context.file, table)), named[0])
    source = named[0] if named else START
    numbers = [number for number, edge in enumerate(context.file.edges) if edge.source == source]
    return ("edges", numbers[-1]) if numbers else ("edges",)


def build_gate(context: FileContext, node: str, table: GateTable, path: toml.KeyPath) -> Gate | None:
    """Return the gate at `node`; None if it has problems, which are added to the file's."""
    before = len(context.problems)
    if table.subject:
        context.check_channel((*path, "subject"), table.subject)
    for number, name in enumerate(table.show):
        _check_shown(context, (*path, "show", number), name)
    for number, name in enumerate(table.binds):
        if name.partition(".")[0] not in table.show:
            context.problems.unknown((*path, "binds", number), "shown channel", name, table.show)
    deadline = None if table.deadline is UNSET else table.deadline
    escalate_after = None if table.escalate_after is UNSET else table.escalate_after
    with context.problems.at((*path, "escalate_to" if table.escalate_to else "escalate_after")):
        check_escalation(table.reviewers, table.escalate_to, escalate_after, deadline)
    ids = [choice.id for choice in table.choices]
    for key in ("recommended", "on_timeout"):
        named = getattr(table, key)
        if named and named not in ids:
            context.problems.unknown((*path, key), "choice", named, ids)
    if table.reviewers and table.quorum > len(table.reviewers):
        context.problems.add((*path, "quorum"), f"there are only {len(table.reviewers)} reviewers")
    choices = [
        _choice(context, choice, (*path, "choices", number)) for number, choice in enumerate(table.choices)
    ]
    if len(context.problems) > before:
        return None
    with context.problems.at((*path, "choices")):
        return Gate(
            node,
            title=table.title,
            choices=choices,
            subject=table.subject or None,
            payload=(lambda state: {name: state[name] for name in table.show}) if table.show else None,
            recommended=table.recommended or None,
            reviewers=tuple(table.reviewers),
            quorum=table.quorum,
            one_account=table.one_account,
            logins=tuple(table.logins),
            signed=table.signed,
            four_eyes=table.four_eyes,
            rubric=tuple(table.rubric),
            second_reading=table.second_reading,
            deadline=deadline,
            on_timeout=table.on_timeout or None,
            escalate_to=tuple(table.escalate_to),
            escalate_after=escalate_after,
            risk=table.risk,
            binds=tuple(table.binds),
        )
    return None


def build_interrupts(context: FileContext) -> tuple[list[str | Gate], list[str | Gate]]:
    """Return the stops before and after nodes, including gate nodes."""
    before = _stops(context, context.file.interrupts, "before")
    after = _stops(context, context.file.interrupts, "after")
    gated = {entry.node for entry in after if isinstance(entry, Gate)}
    for name, table in context.file.nodes.items():
        if table.gate is UNSET:
            continue
        path = ("nodes", name, "gate")
        if name in gated:
            context.problems.add(path, "there is another gate after this node", "see [interrupts] after")
        if gate := build_gate(context, name, table.gate, path):
            after.append(gate)
    return before, after


def _stops(context: FileContext, table: InterruptsTable, key: str) -> list[str | Gate]:
    given = getattr(table, key)
    stops: list[str | Gate] = []
    seen: set[str] = set()
    for number, entry in enumerate([given] if isinstance(given, str) else given):
        path = ("interrupts", key) if isinstance(given, str) else ("interrupts", key, number)
        name = entry if isinstance(entry, str) else entry.node
        if name != "*" and not context.check_node(path, name):
            continue
        if name in seen:
            context.problems.add(path, f"it names {name!r} twice", "keep one")
        seen.add(name)
        stop = entry if isinstance(entry, str) else build_gate(context, name, entry, path)
        if stop is not None:
            stops.append(stop)
    # The last entry for a node wins in the engine, so gates come after "*".
    return sorted(stops, key=lambda stop: isinstance(stop, Gate))


def _choice(context: FileContext, table: ChoiceTable, path: toml.KeyPath) -> GateChoice:
    for name, value in table.set.items():
        where = (*path, "set", name)
        if context.check_channel(where, name) and name in context.bound:
            with context.problems.at(where):
                context.bound[name].replace(value)
    if table.words and context.check_channel((*path, "words"), table.words) and table.words in table.set:
        context.problems.add((*path, "words"), f"set gives {table.words!r} a value already", "keep one")
    text: TextUse = ("required" if table.words else "optional") if table.text is UNSET else table.text

    def with_words(_state: WorkflowState, words: str) -> Mapping[str, Any]:
        return {**table.set, table.words: words}

    values = with_words if table.words else table.set
    return GateChoice(table.id, table.label or table.id, table.key, text, values)


def _check_shown(context: FileContext, path: toml.KeyPath, name: str) -> None:
    if not context.check_channel(path, name.partition(".")[0]):
        return
    channel = context.bound.get(name.partition(".")[0])
    if channel is not None and channel.visibility == "private":
        context.problems.add(path, f"channel {name!r} is private", "a question is kept and shown in the open")
