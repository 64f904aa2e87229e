"""Builds a runner from a graph file; checks every part first, so that errors list all problems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hitl_tui.engine.graph.builder import DEFAULT_OUTPUT, StateGraph
from hitl_tui.engine.graph.description import InputField
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.errors import GraphInvalid, HitlError, UsageError
from hitl_tui.given_files import real_path
from hitl_tui.loading.graphfile.agents import Models, build_agents, check_secrets
from hitl_tui.loading.graphfile.channels import build_channels
from hitl_tui.loading.graphfile.decode import FileContext, Problems, decode
from hitl_tui.loading.graphfile.edges import add_edges, build_interrupts, build_limits, build_termination
from hitl_tui.loading.graphfile.functions import find_function
from hitl_tui.loading.graphfile.nodes import add_composed, add_nodes
from hitl_tui.loading.graphfile.shape import GraphFile
from hitl_tui.loading.graphfile.workflows import WORKFLOWS, build_workflow
from hitl_tui.loading.toml import TomlFile, read_toml
from hitl_tui.stores import MemoryCheckpointer


def load_graph_file(path: Path, store: Store, models: Models, around: tuple[Path, ...] = ()) -> GraphRunner:
    """Return a runner of the graph that a TOML file describes.

    Args:
        around: the files that contain it as a subgraph, outermost first.

    Raises:
        UsageError: the file can't be read, or is no TOML.
        GraphInvalid: lists every problem with file, line, table and key.
    """
    toml = read_toml(path)
    problems = Problems(toml)
    check_secrets(toml.values, problems)
    file = decode(toml.values, GraphFile, problems)
    problems.check()
    assert file is not None
    if file.graph.workflow:
        runner = _workflow(file, toml, store, models, problems)
    else:
        runner = _graph(file, toml, store, models, problems, around=around)
    problems.check()
    assert runner is not None
    return runner


def _workflow(
    file: GraphFile, toml: TomlFile, store: Store, models: Models, problems: Problems
) -> GraphRunner | None:
    agents = build_agents(file, models, problems, real_path(toml.path).parent)
    runner = build_workflow(file, agents, store, real_path(toml.path).parent, problems)
    if runner is None:
        return None
    graph = msgspec.structs.replace(runner.graph, name=file.graph.name or runner.graph.name)
    if file.graph.output != DEFAULT_OUTPUT:
        if file.graph.output not in graph.channels:
            problems.unknown(("graph", "output"), "channel", file.graph.output, graph.channels)
        graph = msgspec.structs.replace(graph, output=file.graph.output)
    graph = msgspec.structs.replace(graph, private_context=tuple(file.graph.private_context))
    return GraphRunner(graph, store)


def _inner(path: Path, store: Store, models: Models, around: tuple[Path, ...]) -> GraphRunner:
    """Return a runner of a graph file that another one uses as a subgraph."""
    if path in around:
        raise GraphInvalid(f"{path.name} is a subgraph of itself", "break the cycle")
    return load_graph_file(path, store, models, around)


def _graph(
    file: GraphFile,
    toml: TomlFile,
    store: Store,
    models: Models,
    problems: Problems,
    *,
    around: tuple[Path, ...],
) -> GraphRunner | None:
    directory = real_path(toml.path).parent
    channels, bound = build_channels(file.channels, directory, problems)
    context = FileContext(file, directory, problems, tuple(file.channels), bound)
    if not context.steps:
        problems.add(
            (), "it has no nodes", f'add [nodes.NAME], or [graph] workflow = "{next(iter(WORKFLOWS))}"'
        )
    if file.options:
        problems.add(("options",), "it goes with a ready-made workflow only", "remove it")
    agents = build_agents(file, models, problems, real_path(toml.path).parent)
    graph = StateGraph(channels, name=file.graph.name or toml.path.stem)
    add_nodes(context, graph)
    _add_compensations(context, graph)
    inside = (*around, real_path(toml.path))
    add_composed(context, graph, lambda path: _inner(path, store, models, inside))
    if context.steps:
        add_edges(context, graph)
    before, after = build_interrupts(context)
    termination = build_termination(file.termination, problems, context.check_channel)
    inputs = _inputs(context)
    if file.graph.output != DEFAULT_OUTPUT:
        context.check_channel(("graph", "output"), file.graph.output)
    problems.check()
    try:
        return graph.compile(
            checkpointer=store,
            agents=agents,
            interrupt_before=before,
            interrupt_after=after,
            termination=termination,
            limits=build_limits(file.limits),
            inputs=inputs,
            output=file.graph.output,
            private_context=file.graph.private_context,
        )
    except HitlError as error:
        problems.add(("graph",), error.message, error.hint, error.details)
        return None


def _add_compensations(context: FileContext, graph: StateGraph) -> None:
    for name, function in context.file.compensations.items():
        with context.problems.at(("compensations", name)):
            graph.add_compensation(name, find_function(function, context.directory))


def _inputs(context: FileContext) -> list[InputField]:
    fields = []
    for name, table in context.file.inputs.items():
        channel = table.channel or name
        context.check_channel(("inputs", name, "channel"), channel)
        fields.append(InputField(name, channel, table.label or name, table.example))
    return fields


_FORCED = ("model", "api_base", "max_tokens")
_DEFAULTED = ("model", "api_base")
_FALLBACK = tuple(f"default_{name}" for name in _DEFAULTED)


def open_graph_file(
    path: Path, options: Mapping[str, Any], defaults: Mapping[str, Any]
) -> tuple[GraphRunner, dict[str, Any]]:
    """Return a runner of a graph file, and the options that build the same graph again.

    Args:
        options: `model`, `api_base` and `max_tokens` override those of every agent; `default_model`
            and `default_api_base` are for agents without their own.
        defaults: `model` and `api_base` for agents without their own, and `checkpointer`.

    Raises:
        UsageError: an unknown option, or the file can't be read.
        GraphInvalid: lists every problem of the file.
    """
    unknown = [name for name in options if name not in _FORCED + _FALLBACK]
    if unknown:
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in unknown)
        raise UsageError(f"{path.name} takes no {listed}", f"it takes {', '.join(_FORCED)}")
    fallback = {f"default_{name}": defaults[name] for name in _DEFAULTED if defaults.get(name)}
    given = fallback | {name: value for name, value in options.items() if value}
    store = defaults.get("checkpointer")
    runner = load_graph_file(path, MemoryCheckpointer() if store is None else store, Models(**given))
    return runner, given
