"""Writes a recorded step as a pytest: the state before it, recorded replies, and the expected result.

All recorded values are written as literals. The test runs only the graph that the log names.
"""

from __future__ import annotations

import pprint
import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from hitl_tui.engine.graph.description import GraphInfo, NodeInfo
from hitl_tui.engine.log.outcomes import ErrorInfo, StreamedText, ToolUse
from hitl_tui.engine.log.records import END, Checkpoint, UpdateRecord, next_of, tool_of
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import WITHIN
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread.logged import LoggedThread, defaults_of
from hitl_tui.engine.thread.rebuild import next_value, state_at, update_of
from hitl_tui.engine.thread.run_inputs import inputs_at, inputs_at_steps
from hitl_tui.engine.thread.session import first_input
from hitl_tui.errors import UsageError

_WIDTH = 96
_MADE_BY = {"human": "a person", "input": "an input", "fork": "a fork", "rollback": "a rollback"}


class _Step(NamedTuple):
    """A run of a node, committed or failed.

    Attributes:
        point: its checkpoint; None if it failed.
        error: why it failed.
    """

    thread: LoggedThread
    number: int
    node: NodeInfo
    attempt: int
    streamed: Sequence[StreamedText]
    calls: Sequence[ToolUse]
    point: Checkpoint | None = None
    error: ErrorInfo | None = None


class PrivateInTest(UsageError):
    """A test would have private values, which nobody has asked for."""


class GraphUnnamed(UsageError):
    """A thread's record does not say where its graph is."""


def step_test(
    store: Store, thread_id: str, step: int | None = None, *, graph: str = "", private: bool = False
) -> str:
    """Return the text of a test file.

    Args:
        step: None for the newest one, or for the failed run of a node after it; that one also has the number
            after the newest.
        graph: names the graph, if the thread's record does not.
        private: whether the text may have values of private channels.

    Raises:
        UnknownThread, LogCorrupt: there is no such thread, or its log was changed.
        UsageError: there is no such step, or no test can be made of it; says why.
    """
    thread = LoggedThread.checked(store, thread_id)
    found = _step(store, thread, step)
    place = _graph_of(thread, graph)
    defaults = defaults_of(thread.declared)
    before = state_at(store, thread_id, found.number - 1, defaults)
    records = list(store.records(thread_id, found.number, found.number)) if found.point else []
    given = inputs_at(found.number, inputs_at_steps(store.ledger(thread_id)), thread.cursor)
    hidden = _hidden(found, before, defaults, records, given["private_context"])
    if hidden and not private:
        raise PrivateInTest(
            f"step {found.number} may use what is private: {', '.join(sorted(hidden))}",
            "--private writes it into the test; the ledger notes that",
        )
    secret = _private(thread.declared) if not private else set()
    state = {name: thaw(value) for name, value in before.items() if name not in secret}
    updates, tool_updates = _updates(records, before)
    arguments = {
        "context": thaw(given["context"]) or None,
        "goal": thaw(given["goal"]),
        "constraints": thaw(given["constraints"]),
        "given": _given(store, found, defaults, secret),
        "replies": _replies(found),
        "tools": _tools(found, tool_updates),
        "thread_id": thread_id,
        "iteration": _iteration(found),
    }
    body = _call(found.node.name, {name: value for name, value in arguments.items() if value is not None})
    return _file(found, place, state, body, (updates, _leads_to(store, found)))


def _step(store: Store, thread: LoggedThread, step: int | None) -> _Step:
    """Return the wanted run of a node; raises `UsageError` if there is none."""
    cursor = thread.cursor
    error = cursor.error if (cursor.status, cursor.reason) == ("failed", "node_error") else None
    if error and error.node and step in (None, cursor.head + 1):
        if "hitl_tui.errors.ModelFailed" in error.details:
            raise UsageError(
                f"node {error.node!r} failed because of its model, which no recorded answer shows",
                "make a test of a step that it committed",
            )
        node = _node(thread.declared, error.node, cursor.head + 1)
        return _Step(thread, cursor.head + 1, node, error.attempt, cursor.streamed, cursor.calls, error=error)
    number = cursor.head if step is None else step
    point = store.checkpoint(thread.thread_id, number)
    if point is None:
        raise UsageError(f"thread {thread.thread_id!r} has no step {number}", f"its newest is {cursor.head}")
    if point.source in _MADE_BY:
        raise UsageError(
            f"step {number} was made by {_MADE_BY[point.source]}: no node ran, so there is nothing to test",
            "name a step of a node",
        )
    node = _node(thread.declared, point.node, number)
    _refuse_questions(store, point)
    return _Step(thread, number, node, point.attempt, point.streamed, point.calls, point)


def _node(graph: GraphInfo, name: str, step: int) -> NodeInfo:
    node = graph.node(name)
    if node is None:
        raise UsageError(f"the graph no longer has a node {name!r}", "make a test of a later step")
    if node.kind != "node":
        raise UsageError(
            f"step {step} is a {node.kind} of several runs, not one run of a node",
            "make a test of a step in the thread inside it"
            if node.kind == "subgraph"
            else "test the node it runs with hitl_tui.testing.run_node",
        )
    return node


def _refuse_questions(store: Store, point: Checkpoint) -> None:
    for entry in store.ledger(point.thread_id):
        asked = (
            entry.kind == "request" and entry.step == point.step - 1 and entry.data.get("when") == "inside"
        )
        payload = entry.data.get("payload") if asked else None
        approval = isinstance(payload, Mapping) and payload.get("type") == "tool_approval"
        if asked and not approval and entry.data.get("node") == point.node:
            raise UsageError(
                f"node {point.node!r} asked a person in step {point.step}, whose answer no test gives",
                "make a test of another step",
            )


def _graph_of(thread: LoggedThread, graph: str) -> tuple[str, Mapping[str, Any]]:
    """Return the name of the graph, and its options."""
    source = thread.info.source
    if source.get(WITHIN):
        raise UsageError(
            f"thread {thread.thread_id!r} ran inside a node of another graph", "make a test of its node there"
        )
    place = graph or source.get("graph")
    if not isinstance(place, str):
        raise GraphUnnamed(
            f"thread {thread.thread_id!r} does not say where its graph is", "name it: --graph file.py:name"
        )
    options = source.get("options", {})
    return place, {} if graph or not isinstance(options, Mapping) else options


def _private(graph: GraphInfo) -> set[str]:
    return {channel.name for channel in graph.channels if channel.visibility == "private"}


def _hidden(
    step: _Step,
    before: Mapping[str, Any],
    defaults: Mapping[str, Any],
    records: Sequence[UpdateRecord],
    context: Collection[str],
) -> set[str]:
    """Return the private values that can't be left out: the node may read them, or has written them."""
    reads = {name.partition(".")[0] for name in step.node.reads}
    read = step.point.read if step.point else ()
    if reads == {"*"}:
        reads = {name.partition(".")[0] for name in read} if read else set(before)
    wrote = {record.channel for record in records}
    private = _private(step.thread.declared)
    used = {name for name in private & reads if before.get(name) != defaults.get(name)} | private & wrote
    return used | {f"context.{name}" for name in context}


def _updates(
    records: Sequence[UpdateRecord], before: Mapping[str, Any]
) -> tuple[list[tuple[str, Any]], dict[str, list[tuple[str, Any]]]]:
    """Return all updates in their order, and those of tools by tool."""
    values, updates = dict(before), []
    tools: dict[str, list[tuple[str, Any]]] = {}
    for record in records:
        update = record.channel, thaw(update_of(record, values.get(record.channel)))
        values[record.channel] = next_value(record, values.get(record.channel))
        updates.append(update)
        if tool := tool_of(record.path):
            tools.setdefault(tool, []).append(update)
    return updates, tools


def _given(
    store: Store, step: _Step, defaults: dict[str, Any], secret: Collection[str]
) -> dict[str, Any] | None:
    """Return the first entries that the run's input put into list channels."""
    given = {}
    for name, value in defaults.items():
        if isinstance(value, list) and name not in secret:
            first = first_input(store, step.thread.thread_id, name, step.number - 1, defaults)
            if first and first.given is not None:
                given[name] = thaw(first.given)
    return given or None


def _iteration(step: _Step) -> int:
    return step.point.iteration if step.point else step.thread.cursor.iteration + 1


class _Code(str):
    """Python source text, which `repr` does not quote."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _replies(step: _Step) -> dict[str, list[Any]] | None:
    """Return the replies of each agent's model, in the attempt that was committed."""
    replies: dict[str, list[Any]] = {}
    for writer in step.streamed:
        # An agent's thinking is a separate text without replies.
        if not writer.replies or writer.attempt != step.attempt or writer.path:
            continue
        text = writer.text + writer.end
        if writer.left_out or sum(length for length, _ in writer.replies) != len(text):
            raise UsageError(
                f"agent {writer.agent!r} wrote more in step {step.number} than the log has kept",
                "record a cassette instead: run --record FILE",
            )
        calls = _calls_of(step, writer.agent)
        said = replies.setdefault(writer.agent, [])
        for length, count in writer.replies:
            part, text = text[:length], text[length:]
            made = [_Code(f"ToolCall({use.tool!r}, {thaw(use.arguments)!r})") for use in islice(calls, count)]
            said.append([part, *made] if part and made else made or part)
    return replies or None


def _calls_of(step: _Step, agent: str) -> Iterator[ToolUse]:
    return (use for use in step.calls if use.agent == agent and use.attempt == step.attempt)


def _tools(step: _Step, updates: Mapping[str, Sequence[tuple[str, Any]]]) -> dict[str, list[Any]] | None:
    """Return the results of the calls of each tool."""
    left = {tool: list(made) for tool, made in updates.items()}
    tools: dict[str, list[Any]] = {}
    for use in step.calls:
        if use.attempt != step.attempt or use.path:
            continue
        waiting = left.get(use.tool, [])
        own, left[use.tool] = waiting[: use.updates], waiting[use.updates :]
        facts = {"result": use.result, "error": use.error, "updates": own or None}
        said = ", ".join(f"{name}={fact!r}" for name, fact in facts.items() if fact is not None)
        plain = use.result is not None and not own
        tools.setdefault(use.tool, []).append(use.result if plain else _Code(f"ToolResult({said})"))
    return tools or None


def _leads_to(store: Store, step: _Step) -> str:
    """Return the node that came next, "" if it is not known."""
    if step.point is None:
        return ""
    known = next_of(step.point.position)
    if known:
        return known
    cursor = step.thread.cursor
    if step.number == cursor.head:
        return END if cursor.status == "completed" else ""
    after = store.checkpoint(step.thread.thread_id, step.number + 1)
    same = after and after.invocation == step.point.invocation and after.source not in _MADE_BY
    return after.node if after and same else ""


# -- the text ---------------------------------------------------------------------------------------


def _literal(value: Any) -> str:
    return pprint.pformat(value, width=_WIDTH, sort_dicts=False)


def _assigned(name: str, value: Any, end: str = "") -> str:
    lines = _literal(value).split("\n")
    return "\n".join([f"{name}{lines[0]}", *(" " * len(name) + line for line in lines[1:])]) + end


def _call(node: str, arguments: Mapping[str, Any]) -> str:
    lines = ["open_graph(GRAPH, **OPTIONS),", f"{node!r},", "STATE,"]
    lines += [_assigned(f"{name}=", value, ",") for name, value in arguments.items()]
    return "run_node(\n" + textwrap.indent("\n".join(lines), "    ") + "\n)"


def _docstring(text: str) -> str:
    plain = text.isprintable() and not {'"', "\\"} & set(text)
    return f'"""{text}"""' if plain else repr(text)


def _file(
    step: _Step,
    place: tuple[str, Mapping[str, Any]],
    state: Mapping[str, Any],
    call: str,
    expected: tuple[Sequence[tuple[str, Any]], str],
) -> str:
    (graph, options), (updates, leads_to) = place, expected
    where = f"{step.thread.thread_id}@{step.number}"
    name = re.sub(r"\W+", "_", step.node.name, flags=re.ASCII).strip("_") or "node"
    if not options:
        call = call.replace("open_graph(GRAPH, **OPTIONS)", "open_graph(GRAPH)", 1)
    testing = [word for word in ("ToolResult",) if f"{word}(" in call]
    lines = [_docstring(f"Node {step.node.name!r} in {where}, as hitl-tui recorded it."), ""]
    lines += ["import pytest", ""] if step.error else []
    known = [word for word, used in (("NodeFailed", step.error), ("ToolCall", "ToolCall(" in call)) if used]
    lines += [f"from hitl_tui import {', '.join(known)}"] if known else []
    lines += [f"from hitl_tui.testing import {', '.join([*testing, 'open_graph', 'run_node'])}", ""]
    lines += [_assigned("GRAPH = ", graph)]
    lines += [_assigned("OPTIONS = ", thaw(dict(options)))] if options else []
    lines += [_assigned("STATE = ", dict(state)), "", "", f"def test_{name}_in_step_{step.number}():"]
    if step.error:
        body = [f"with pytest.raises(NodeFailed) as failed:\n{textwrap.indent(call, '    ')}"]
        body += [_assigned("assert ", _cause(step.error), " in failed.value.message")]
    else:
        body = [f"step = {call}", _assigned("assert step.updates == ", list(updates))]
        body += [f"assert step.next_node == {leads_to!r}"] if leads_to else []
        body += ["assert step.left == {}"] if "replies=" in call or "tools=" in call else []
    return "\n".join([*lines, textwrap.indent("\n".join(body), "    "), ""])


def _cause(error: ErrorInfo) -> str:
    """Return why the node failed, without its name, its attempt and the number of attempts."""
    message = error.message.partition(f"attempt {error.attempt}: ")[2] or error.message
    return re.sub(r" \(after \d+ attempts\)$", "", message)
