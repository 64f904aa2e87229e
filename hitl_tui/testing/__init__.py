"""Helpers for tests of graphs: run a node on a given state, with scripted models and tools (`hitl-tui test`).

Importing it does not import pytest; the pytest fixtures are in `hitl_tui.testing.plugin`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    from hitl_tui.agents.cassettes import ScriptedCassette
    from hitl_tui.agents.scripted import Reply
    from hitl_tui.engine.graph.compiled import CompiledGraph
    from hitl_tui.engine.runner import GraphRunner

__all__ = ["NodeRun", "ToolResult", "open_graph", "run_node", "script"]


class ToolResult(msgspec.Struct, frozen=True):
    """Outcome of one tool call in a test: a result or an error, and updates of channels.

    Attributes:
        updates: (channel, update), in order.
    """

    result: str | None = None
    error: str | None = None
    updates: Sequence[tuple[str, Any]] = ()


class NodeRun(msgspec.Struct, frozen=True):
    """Result of running a node.

    Attributes:
        updates: (channel, update) in the order of reduction, those of tools first.
        state: all channels after the updates.
        text: the text of its envelope.
        next_node: the node that the graph would run next, "END" for its end.
        left: unused replies and results of the script.
    """

    updates: list[tuple[str, Any]]
    state: dict[str, Any]
    text: str | None
    next_node: str
    left: dict[str, int]


def open_graph(spec: str, **options: Any) -> GraphRunner:
    """Load the graph of `file.py:name`, `module:attribute` or `file.toml`, on a store in memory.

    Args:
        options: for the function that builds it, or for a graph file.

    Raises:
        UsageError, GraphInvalid: there is no such graph, or it can't be built.
    """
    from hitl_tui.loading.sources import open_graph as open_source
    from hitl_tui.stores import MemoryCheckpointer

    return open_source(spec, MemoryCheckpointer(), options)


def script(
    replies: Mapping[str, Sequence[Reply]], tools: Mapping[str, Sequence[ToolResult | str]] | None = None
) -> ScriptedCassette:
    """Return a script of model replies by agent, and of tool outcomes by tool, each used one after the other.

    Agents use it within `hitl_tui.agents.cassettes.using(script)`, whatever model they have.
    """
    from hitl_tui.agents.backend import Outcome, ToolCall
    from hitl_tui.agents.cassettes import RecordedCall, ScriptedCassette

    def answer(reply: Reply) -> RecordedCall:
        parts = list(reply) if isinstance(reply, (list, tuple)) else [reply]
        text = "".join(part for part in parts if isinstance(part, str))
        calls = [part for part in parts if isinstance(part, ToolCall)]
        calls = [ToolCall(call.name, call.text, call.id) for call in calls]
        pieces = [(0, text)] if text else []
        return RecordedCall(model="", messages=[], pieces=pieces, calls=calls)

    def outcome(given: ToolResult | str) -> Outcome:
        known = ToolResult(given) if isinstance(given, str) else given
        return Outcome(None, known.result, known.error, updates=tuple(known.updates))

    return ScriptedCassette(
        {agent: [answer(reply) for reply in said] for agent, said in replies.items()},
        {tool: [outcome(result) for result in results] for tool, results in (tools or {}).items()},
    )


def run_node(
    graph: GraphRunner,
    node: str,
    state: Mapping[str, Any],
    *,
    context: Mapping[str, Any] | None = None,
    replies: Mapping[str, Sequence[Reply]] | None = None,
    tools: Mapping[str, Sequence[ToolResult | str]] | None = None,
    given: Mapping[str, Any] | None = None,
    goal: Any = None,
    constraints: Any = None,
    thread_id: str = "test",
    iteration: int = 1,
) -> NodeRun:
    """Run a plain node of a graph once, with scripted models and tools.

    Args:
        state: values by channel; other channels have their defaults.
        replies, tools: as for `script`; without `replies` agents call their own models.
        given: the initial values of list channels from the run's input (`config.first_input`).

    Raises:
        NodeFailed: as in a run, naming the node and the cause.
        UsageError: there is no such node, or it is no plain node.
    """
    from hitl_tui.agents.cassettes import using
    from hitl_tui.engine.log.records import Cursor
    from hitl_tui.engine.nodes.activity import Activity
    from hitl_tui.engine.nodes.attempt import run_attempt
    from hitl_tui.engine.run.sync import run_sync
    from hitl_tui.engine.state.changes import after, set_values
    from hitl_tui.engine.state.frozen import freeze, thaw
    from hitl_tui.engine.state.state import LiveState
    from hitl_tui.engine.thread.agent_settings import fresh_agents
    from hitl_tui.engine.thread.run_inputs import checked_context
    from hitl_tui.engine.thread.session import Session, now_us

    compiled = graph.graph
    _check_node(compiled, node)
    cursor = Cursor(
        thread_id,
        head=0,
        invocation=1,
        iteration=iteration - 1,
        goal=freeze(goal),
        constraints=freeze(constraints),
        context=checked_context(context or {}),
    )
    began = LiveState.initial(compiled.channels)
    live = after(began, set_values(began, compiled.channels, state))
    tape = script(replies or {}, tools) if replies is not None or tools else None
    activity = Activity(node, 1, None)
    activity.first_input = dict(given or {}).get
    with using(tape) if tape else nullcontext():
        result, changes = run_sync(
            run_attempt(
                compiled,
                compiled.nodes[node],
                live,
                cursor,
                activity,
                agents=fresh_agents(compiled),
                clock=now_us,
                threads=None,
            )
        )
    reached = after(live, changes)
    cursor = replace(cursor, iteration=iteration)
    session = Session(compiled, None, Session.new(compiled, None, thread_id).info, cursor, reached)
    target, ended = session.next_target(f"route:{node}", reached, cursor)
    return NodeRun(
        [(change.channel.name, thaw(change.update)) for change in changes],
        {name: thaw(value) for name, value in reached.values.items()},
        result.text,
        "END" if ended else target,
        tape.left if tape else {},
    )


def _check_node(graph: CompiledGraph, node: str) -> None:
    from hitl_tui.errors import UsageError
    from hitl_tui.suggest import did_you_mean

    known = graph.nodes.get(node)
    if known is None:
        raise UsageError(f"the graph {graph.name!r} has no node {node!r}", did_you_mean(node, graph.nodes))
    if known.work is not None:
        raise UsageError(f"node {node!r} is one of several", "run its members or the graph inside")
