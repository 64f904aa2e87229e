"""Maps, parallels and subgraphs of a graph file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import UNSET

from hitl_tui.engine.graphs.graph import StateGraph
from hitl_tui.engine.graphs.work import Join, quorum
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.loading import positions
from hitl_tui.loading.graphfile.context import Context
from hitl_tui.loading.graphfile.functions import find_file
from hitl_tui.loading.graphfile.nodes import build_node
from hitl_tui.loading.graphfile.shape import SubgraphTable

Load = Callable[[Path], GraphRunner]


def add_composed(context: Context, graph: StateGraph, load: Load) -> None:
    """Add every map, parallel and subgraph that is sound to the graph.

    Args:
        load: makes the runner of another graph file; raises where it is this one, or one around it.
    """
    _check_names(context)
    _add_maps(context, graph)
    _add_parallels(context, graph)
    for name, table in context.file.subgraphs.items():
        _add_subgraph(context, graph, name, table, load)


def _check_names(context: Context) -> None:
    file = context.file
    tables: dict[str, Iterable[str]] = {
        "nodes": file.nodes,
        "maps": file.maps,
        "parallels": file.parallels,
        "subgraphs": file.subgraphs,
    }
    seen: dict[str, str] = {}
    for kind, names in tables.items():
        for name in names:
            if name in seen:
                context.problems.add(
                    (kind, name), f"there is [{seen[name]}.{name}] already", "give each its own name"
                )
            seen.setdefault(name, kind)


def _add_maps(context: Context, graph: StateGraph) -> None:
    for name, table in context.file.maps.items():
        path: positions.Path = ("maps", name)
        known = context.check_channel((*path, "over"), table.over.partition(".")[0])
        if table.gate is not UNSET:
            context.problems.add((*path, "gate"), "a map has no gate", "let the node after it ask")
            continue
        built = build_node(context, path, table)
        if built is None or not known:
            continue
        function, options = built
        with context.problems.at(path):
            graph.add_map(
                name,
                over=table.over,
                node=function,
                join=_join(table.join),
                on_error=table.on_error,
                max_concurrent=table.max_concurrent,
                max_items=table.max_items,
                **options,
            )


def _add_parallels(context: Context, graph: StateGraph) -> None:
    file = context.file
    for name, table in file.parallels.items():
        path: positions.Path = ("parallels", name)
        before = len(context.problems)
        for number, member in enumerate(table.nodes):
            where = (*path, "nodes", number)
            if member not in file.nodes:
                context.problems.unknown(where, "node", member, file.nodes)
            elif file.nodes[member].gate is not UNSET:
                context.problems.add(where, f"{member!r} is a gate", "put it before or after the parallel")
            elif context.member_of(member) != name:
                context.problems.add(
                    where, f"{member!r} is in the parallel {context.member_of(member)!r}, too"
                )
        if len(context.problems) == before:
            with context.problems.at(path):
                graph.add_parallel(
                    name,
                    table.nodes,
                    join=_join(table.join),
                    on_error=table.on_error,
                    max_concurrent=None if table.max_concurrent is UNSET else table.max_concurrent,
                )


def _add_subgraph(context: Context, graph: StateGraph, name: str, table: SubgraphTable, load: Load) -> None:
    path: positions.Path = ("subgraphs", name)
    for channel in table.inputs:
        context.check_channel((*path, "inputs", channel), channel.partition(".")[0])
    for inner, channel in table.outputs.items():
        context.check_channel((*path, "outputs", inner), channel)
    with context.problems.at((*path, "graph")):
        runner = load(find_file(table.graph, context.directory))
        for option, names in (("inputs", table.inputs.values()), ("outputs", table.outputs)):
            for inner in names:
                if inner not in runner.graph.channels:
                    known = runner.graph.channels
                    context.problems.unknown((*path, option), f"channel in {table.graph}", inner, known)
        graph.add_subgraph(name, runner, inputs=table.inputs, outputs=table.outputs, on_taint=table.on_taint)


def _join(given: str | int) -> Join:
    return quorum(given) if isinstance(given, int) else "first" if given == "first" else "all"
