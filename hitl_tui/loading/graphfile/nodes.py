"""Builds the nodes of a graph file: agents, Python functions, gates, maps, parallels, subgraphs."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET

from hitl_tui.agents.turns import channel_name
from hitl_tui.engine.graph.builder import StateGraph
from hitl_tui.engine.graph.compiled import Join, NodeFunction, quorum
from hitl_tui.engine.graph.retry import RetryPolicy
from hitl_tui.engine.nodes.attempt import NodeConfig, state_block
from hitl_tui.engine.nodes.results import NodeResult
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.channel import RUN_INPUTS
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.loading import toml
from hitl_tui.loading.graphfile.decode import FileContext
from hitl_tui.loading.graphfile.functions import find_file, find_function
from hitl_tui.loading.graphfile.shape import MapTable, NodeTable, SubgraphTable
from hitl_tui.workflows.parts import ask

STATE = "workflow_state"
ITEM = "item"
CONTEXT = "context"
_FENCE = "```"
_LETTERS = f"{string.ascii_letters}{string.digits}_"

_PLACEHOLDER = re.compile(r"\{\{([A-Za-z][\w.-]*)\}\}|\{([A-Za-z][\w.-]*)\}")


class Prompt:
    """Template of a prompt: `{channel}` is replaced by a value, `{workflow_state}` by all values read.

    Other braces are kept, so that a prompt can show JSON.
    """

    def __init__(self, template: str, *, of_map: bool = False, of_context: bool = True) -> None:
        self._template = template
        self._special = {ITEM: of_map, CONTEXT: of_context}

    @property
    def names(self) -> list[str]:
        """Return the names of the channels and leaves that it shows, in order."""
        placeholders = (match[2] for match in _PLACEHOLDER.finditer(self._template))
        return [name for name in placeholders if name and name != STATE and not self._is(name)]

    def _is(self, name: str) -> bool:
        """Whether a name belongs to the item or the context instead of a channel."""
        head, dot, _ = name.partition(".")
        return self._special.get(head, False) and bool(dot or head == ITEM)

    def render(self, state: WorkflowState, config: NodeConfig) -> str:
        """Fill in the template; a value that looks like a placeholder is not replaced again."""

        def fill(match: re.Match[str]) -> str:
            if match[1]:
                return f"{{{match[1]}}}"
            if self._is(match[2]):
                of_item = match[2].partition(".")[0] == ITEM
                return _as_text(_leaf(config.item if of_item else config.context, match[2]))
            return state_block(state) if match[2] == STATE else _as_text(state[match[2]])

        return _PLACEHOLDER.sub(fill, self._template)


def _leaf(item: Any, name: str) -> Any:
    for part in name.split(".")[1:]:
        try:
            item = item[int(part)] if isinstance(item, list) else item[part]
        except (KeyError, IndexError, TypeError, ValueError):
            of_item = name.partition(".")[0] == ITEM
            hint = "look at the items of the map" if of_item else "give it to the run: --context NAME=VALUE"
            raise HitlError(f"the {name.partition('.')[0]} has nothing at {{{name}}}", hint) from None
    return item


def build_prompt(
    context: FileContext, path: toml.KeyPath, template: str, reads: Sequence[str], *, of_map: bool = False
) -> Prompt:
    """Return the prompt of a node, after checking every placeholder against the node's `reads`.

    Args:
        of_map: whether `{item}` is a branch's item, and `{item.key}` a part of it.  `{context.key}` is a
            value of the context unless a channel has that name.
    """
    private = frozenset(name for name, channel in context.bound.items() if channel.visibility == "private")
    prompt = Prompt(template, of_map=of_map, of_context=CONTEXT not in context.bound)
    for name in dict.fromkeys(prompt.names):
        channel = name.partition(".")[0]
        if channel in RUN_INPUTS or not context.check_channel(path, channel):
            continue
        if not ({name, channel} & set(reads) or ("*" in reads and channel not in private)):
            context.problems.add(
                path, f"it shows {{{name}}}, which is not among the node's reads", f"add {channel!r} to reads"
            )
    return prompt


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read_json(reply: str) -> Any:
    """Parse the JSON of a model's reply, with or without a code fence; raises `ValueError`."""
    head, _, body = reply.strip().partition("\n")
    label = head.removeprefix(_FENCE)
    fenced = label != head and body.endswith(_FENCE) and not label.strip(_LETTERS).strip()
    try:
        return json.loads(body.removesuffix(_FENCE) if fenced else reply)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


_KINDS = ("agent", "function", "gate")
_ENVELOPE = {"status", "text", "state_updates"}
_ENVELOPE_FORM = 'answer with {"state_updates": {"channel": value}}, and text and status if you like'
_WHOLE_STATE = f"{{{STATE}}}"

Read = Callable[[str], NodeResult]


def add_nodes(context: FileContext, graph: StateGraph) -> None:
    """Add all valid nodes to the graph."""
    for name, table in context.file.nodes.items():
        path: toml.KeyPath = ("nodes", name)
        built = build_node(context, path, table)
        if built is not None:
            function, options = built
            with context.problems.at(path):
                graph.add_node(name, function, **options)


def build_node(
    context: FileContext, path: toml.KeyPath, table: NodeTable
) -> tuple[NodeFunction, dict[str, Any]] | None:
    """Return a node's function and options for `add_node`; None if the node has problems."""
    before = len(context.problems)
    reads = context.readable((*path, "reads"), table.reads)
    writes = context.writable((*path, "writes"), table.writes)
    function = _function(context, table, path, reads, writes)
    if function is None or len(context.problems) > before:
        return None
    given = table.retry
    retry = (
        RetryPolicy(max_attempts=given)
        if isinstance(given, int)
        else RetryPolicy(given.max_attempts, given.wait, given.backoff, given.jitter, given.overlap)
    )
    options = {
        "reads": reads,
        "writes": writes,
        "retry": retry,
        "timeout": None if table.timeout is UNSET else table.timeout,
        "external": table.external,
        "on_taint": table.on_taint,
    }
    return function, options


def _function(
    context: FileContext,
    table: NodeTable,
    path: toml.KeyPath,
    reads: tuple[str, ...],
    writes: tuple[str, ...] | None,
) -> NodeFunction | None:
    kinds = [kind for kind in _KINDS if getattr(table, kind) not in ("", UNSET)]
    if len(kinds) != 1:
        problem = f"it has {' and '.join(kinds)}" if kinds else "it doesn't say what it does"
        context.problems.add(path, problem, "a node has one of agent, function and gate")
        return None
    if kinds != ["agent"] and (table.answer is not UNSET or table.prompt != _WHOLE_STATE):
        key = "prompt" if table.prompt != _WHOLE_STATE else "answer"
        context.problems.add((*path, key), "only a node with an agent has it")
    if table.agent:
        return _agent_node(context, table, path, reads, writes)
    if table.function:
        with context.problems.at((*path, "function")):
            return find_function(table.function, context.directory)
        return None
    return lambda state: None  # a gate node: its request does the work


def _agent_node(
    context: FileContext,
    table: NodeTable,
    path: toml.KeyPath,
    reads: tuple[str, ...],
    writes: tuple[str, ...] | None,
) -> NodeFunction:
    name = table.agent
    if name not in context.file.agents:
        context.problems.unknown((*path, "agent"), "agent", name, context.file.agents)
    if not reads and table.prompt == _WHOLE_STATE:
        context.problems.add(
            path, "it asks nothing: it has neither reads nor a prompt", "give it one of them"
        )
    prompt = build_prompt(context, (*path, "prompt"), table.prompt, reads, of_map=isinstance(table, MapTable))
    turns = _history(context, name)
    written = writes if writes is None else tuple(channel for channel in writes if channel != turns)
    read = _reader(context, table, path, written)

    async def run(state: WorkflowState, config: NodeConfig) -> NodeResult:
        # A new chat: an agent sees only what the node reads, not its earlier turns.
        reply = await ask(config.agents[name].fresh(), prompt.render(state, config))
        return read(reply)

    return run


def _history(context: FileContext, agent: str) -> str | None:
    """Return the channel to which an agent writes its turns."""
    table = context.file.agents.get(agent)
    try:
        return channel_name(table.history or None, agent) if table else None
    except UsageError:
        return None  # reported with the agent


def _reader(
    context: FileContext, table: NodeTable, path: toml.KeyPath, writes: tuple[str, ...] | None
) -> Read:
    """Return a function that turns a reply into updates."""
    single = writes[0] if writes is not None and len(writes) == 1 else None
    form = ("text" if single else "envelope") if table.answer is UNSET else table.answer
    if writes == ():
        context.problems.add(path, "its answer goes nowhere", 'name a channel, as in writes = ["draft"]')
    elif single is None and form != "envelope":
        context.problems.add(
            (*path, "answer"), f"{form} needs one channel in writes", 'or say answer = "envelope"'
        )
    if form == "text":
        return lambda reply: NodeResult({single or "": reply})
    if form == "json":
        return lambda reply: NodeResult({single or "": _json(reply)})
    return _read_envelope


def _read_envelope(reply: str) -> NodeResult:
    """Return the envelope that a reply holds as JSON."""
    given = _json(reply)
    if not isinstance(given, dict) or not given or given.keys() - _ENVELOPE:
        raise HitlError(f"its reply is not an envelope: {_shown(reply)}", _ENVELOPE_FORM)
    updates, text, status = (given.get(key) for key in ("state_updates", "text", "status"))
    if not isinstance(updates, dict | None) or not isinstance(text, str | None):
        raise HitlError(f"its reply is not an envelope: {_shown(reply)}", _ENVELOPE_FORM)
    return NodeResult(updates or {}, text, "completed" if status is None else str(status))


def _json(reply: str) -> Any:
    try:
        return read_json(reply)
    except ValueError as error:
        raise HitlError(
            f"its reply is not JSON ({error}): {_shown(reply)}",
            "say in the prompt that it must answer with JSON only",
        ) from None


def _shown(reply: str) -> str:
    return repr(reply if len(reply) <= 120 else f"{reply[:119]}…")


Load = Callable[[Path], GraphRunner]


def add_composed(context: FileContext, graph: StateGraph, load: Load) -> None:
    """Add all valid maps, parallels and subgraphs to the graph.

    Args:
        load: makes a runner of another graph file; raises an error if that contains this one.
    """
    _check_names(context)
    _add_maps(context, graph)
    _add_parallels(context, graph)
    for name, table in context.file.subgraphs.items():
        _add_subgraph(context, graph, name, table, load)


def _check_names(context: FileContext) -> None:
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


def _add_maps(context: FileContext, graph: StateGraph) -> None:
    for name, table in context.file.maps.items():
        path: toml.KeyPath = ("maps", name)
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


def _add_parallels(context: FileContext, graph: StateGraph) -> None:
    file = context.file
    for name, table in file.parallels.items():
        path: toml.KeyPath = ("parallels", name)
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


def _add_subgraph(
    context: FileContext, graph: StateGraph, name: str, table: SubgraphTable, load: Load
) -> None:
    path: toml.KeyPath = ("subgraphs", name)
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
