"""Nodes of a graph file: agents, Python functions, gates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from hitl_tui.agents.turns import channel_name
from hitl_tui.engine.channels.state import WorkflowState
from hitl_tui.engine.graphs.compiled import NodeFunction
from hitl_tui.engine.graphs.graph import StateGraph
from hitl_tui.engine.graphs.retry import RetryPolicy
from hitl_tui.engine.nodes.attempt import NodeConfig
from hitl_tui.engine.nodes.results import NodeResult
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.loading import positions
from hitl_tui.loading.graphfile.context import Context
from hitl_tui.loading.graphfile.functions import find_function
from hitl_tui.loading.graphfile.prompts import STATE, build_prompt, read_json
from hitl_tui.loading.graphfile.shape import MapTable, NodeTable, RetryTable
from hitl_tui.workflows.asking import ask

_KINDS = ("agent", "function", "gate")
_ENVELOPE = {"status", "text", "state_updates"}
_ENVELOPE_FORM = 'answer with {"state_updates": {"channel": value}}, and text and status if you like'
_WHOLE_STATE = f"{{{STATE}}}"

Read = Callable[[str], NodeResult]


def add_nodes(context: Context, graph: StateGraph) -> None:
    """Add every node that is sound to the graph."""
    for name, table in context.file.nodes.items():
        path: positions.Path = ("nodes", name)
        built = build_node(context, path, table)
        if built is not None:
            function, options = built
            with context.problems.at(path):
                graph.add_node(name, function, **options)


def build_node(
    context: Context, path: positions.Path, table: NodeTable
) -> tuple[NodeFunction, dict[str, Any]] | None:
    """A node's function and its options as `add_node` takes them; None where a problem is noted."""
    before = len(context.problems)
    reads = context.readable((*path, "reads"), table.reads)
    writes = context.writable((*path, "writes"), table.writes)
    function = _function(context, table, path, reads, writes)
    if function is None or len(context.problems) > before:
        return None
    options = {
        "reads": reads,
        "writes": writes,
        "retry": _retry(table.retry),
        "timeout": None if table.timeout is UNSET else table.timeout,
        "external": table.external,
        "on_taint": table.on_taint,
    }
    return function, options


def _function(
    context: Context,
    table: NodeTable,
    path: positions.Path,
    reads: tuple[str, ...],
    writes: tuple[str, ...] | None,
) -> NodeFunction | None:
    kinds = [kind for kind in _KINDS if getattr(table, kind) not in ("", UNSET)]
    if len(kinds) != 1:
        found = f"it has {' and '.join(kinds)}" if kinds else "it doesn't say what it does"
        context.problems.add(path, found, "a node has one of agent, function and gate")
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
    return _nothing


def _nothing(_state: WorkflowState) -> None:
    """A gate node: the question after it does the work."""


def _agent_node(
    context: Context,
    table: NodeTable,
    path: positions.Path,
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
    told = writes if writes is None else tuple(channel for channel in writes if channel != turns)
    read = _reader(context, table, path, told)

    async def run(state: WorkflowState, config: NodeConfig) -> NodeResult:
        # A fresh chat: an agent sees what the node reads, whatever it was asked before (SPEC 14).
        reply = await ask(config.agents[name].fresh(), prompt.render(state, config.item))
        return read(reply)

    return run


def _history(context: Context, agent: str) -> str | None:
    """The channel that an agent writes its turns to by itself."""
    table = context.file.agents.get(agent)
    try:
        return channel_name(table.history or None, agent) if table else None
    except UsageError:
        return None  # told with the agent


def _reader(context: Context, table: NodeTable, path: positions.Path, writes: tuple[str, ...] | None) -> Read:
    """What turns a reply into updates."""
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
    """A reply as the envelope of seed 001."""
    given = _json(reply)
    if not isinstance(given, dict) or not given or given.keys() - _ENVELOPE:
        raise HitlError(f"its reply is no envelope: {_shown(reply)}", _ENVELOPE_FORM)
    updates, text, status = (given.get(key) for key in ("state_updates", "text", "status"))
    if not isinstance(updates, dict | None) or not isinstance(text, str | None):
        raise HitlError(f"its reply is no envelope: {_shown(reply)}", _ENVELOPE_FORM)
    return NodeResult(updates or {}, text, "completed" if status is None else str(status))


def _json(reply: str) -> Any:
    try:
        return read_json(reply)
    except ValueError as error:
        raise HitlError(
            f"its reply is no JSON ({error}): {_shown(reply)}",
            "tell it in the prompt to answer in JSON alone",
        ) from None


def _shown(reply: str) -> str:
    return repr(reply if len(reply) <= 120 else f"{reply[:119]}…")


def _retry(given: int | RetryTable) -> RetryPolicy:
    if isinstance(given, int):
        return RetryPolicy(max_attempts=given)
    return RetryPolicy(given.max_attempts, given.wait, given.backoff, given.jitter)
