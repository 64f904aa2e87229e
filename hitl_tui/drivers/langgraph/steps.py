"""Converts a LangGraph superstep to a step: each task's writes go through the channel's operator.

The value after the last update is the checkpoint's.  Only if several tasks wrote to one channel is its
operator called, on copies, to compute the values in between.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from hitl_tui.agents.prices import TokenUse
from hitl_tui.drivers.langgraph.graph import default_of, operator_of
from hitl_tui.drivers.langgraph.pregel import Graph, Saved, TaskRun
from hitl_tui.drivers.langgraph.subgraphs import START_NODE
from hitl_tui.drivers.langgraph.values import as_json, bounded, convert, is_message
from hitl_tui.engine.graph.drawing import nodes_at_once
from hitl_tui.engine.graph.limits import UNLIMITED
from hitl_tui.engine.log.outcomes import BranchOutcome, ModelUse, StreamedText, ToolUse
from hitl_tui.engine.log.records import Cursor, MadeBy, Operation, Source
from hitl_tui.engine.state.canonical import canonical, channel_hash, extend_chain
from hitl_tui.engine.state.changes import Change
from hitl_tui.engine.state.channel import BoundChannel
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread.journal import StepFacts, with_use

RAN: Final[tuple[Source, ...]] = ("node", "map", "subgraph")
"""The sources of steps that nodes have made."""
ANOTHER: Final = "another program"
"""Who has made an edit that was not made here."""
_WRITES: Final = "$writes"
_OVERWRITE: Final = "__overwrite__"
_UNKNOWN: Final = object()
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class TaskWrite(NamedTuple):
    """One write of a task to a channel; `path` names the task's branch, "" if it is the only task."""

    channel: str
    value: Any
    path: str


def place_of(names: Iterable[str]) -> str:
    """Return the name of a superstep of these nodes, for steps and positions; "" for none."""
    return "+".join(names)


def names_in(place: str, nodes: Collection[str]) -> list[str]:
    """Return the nodes of a superstep from its name.

    Args:
        nodes: the nodes of the graph; their names may contain "+" themselves.
    """
    if not place or place in nodes:
        return [place] if place else []
    parts = place.split("+")
    if all(part in nodes for part in parts):
        return parts
    splits: list[list[str] | None] = [[]]
    for end in range(1, len(parts) + 1):
        last = ((splits[at], "+".join(parts[at:end])) for at in range(end))
        splits.append(next(([*way, name] for way, name in last if way is not None and name in nodes), None))
    return splits[-1] or parts


def position_of(saved: Saved) -> str:
    """Return the position at which a thread continues after a checkpoint."""
    place = place_of(saved.next)
    return f"node:{place}" if place else "end"


def in_order(tasks: Iterable[TaskRun]) -> list[TaskRun]:
    """Sort tasks as their writes are reduced: nodes by name, then `Send`s in the order of creation."""
    every = list(tasks)
    return sorted((task for task in every if not task.pushed), key=lambda task: task.name) + [
        task for task in every if task.pushed
    ]


def branch_path(tasks: list[TaskRun], place: int) -> str:
    """Return a task's name as a branch of its step, "" if it runs alone."""
    task = tasks[place]
    if len(tasks) == 1:
        return ""
    if task.pushed:
        return f"{task.name}[{sum(other.pushed for other in tasks[:place])}]"
    return f"{place_of(dict.fromkeys(other.name for other in tasks))}/{task.name}"


def writes_of(tasks: list[TaskRun], channels: Mapping[str, BoundChannel]) -> list[TaskWrite]:
    """Return the writes of tasks, in the order in which they are reduced."""
    writes = []
    for place, task in enumerate(tasks):
        path = branch_path(tasks, place)
        result = task.result if isinstance(task.result, Mapping) else {}
        for channel, value in result.items():
            if channel not in channels:
                continue
            several = isinstance(value, Mapping) and value.keys() == {_WRITES}
            writes += [TaskWrite(channel, each, path) for each in (value[_WRITES] if several else [value])]
    return writes


class Reduction:
    """Computes the changes that supersteps made to the channels of one graph."""

    def __init__(self, app: Graph, channels: Mapping[str, BoundChannel]) -> None:
        self._app = app
        self.channels = channels
        self._defaults = {name: default_of(app, name) for name in channels}
        self._operators = {name: operator_of(app, name) for name in channels}

    def changes(
        self, state: LiveState, before: Saved | None, after: Saved, *, edited: bool = False
    ) -> list[Change]:
        """Return the changes that led from one checkpoint to the next.

        Args:
            state: the mirror's state at `before`.
            before: None before the first checkpoint.
            edited: a person has set values, so the writes of the tasks of `before` did not count.
        """
        was, now = before.values if before else {}, after.values
        writes = writes_of(in_order(before.tasks), self.channels) if before and not edited else []
        final = {name: self._final(name, was, now, state) for name in self.channels}
        changes: list[Change] = []
        latest: dict[str, Change] = {}
        for place, write in enumerate(writes):
            last = all(later.channel != write.channel for later in writes[place + 1 :])
            earlier = latest.get(write.channel)
            held = earlier.after if earlier else state.values[write.channel]
            held_hash = earlier.after_hash if earlier else state.digests[write.channel]
            value: Any = final[write.channel]
            if not last:
                value = self._between(write.channel, held, was, writes[: place + 1])
            change = self._change(write, held, held_hash, value)
            latest[write.channel] = change
            changes.append(change)
        for name, value in final.items():
            if name not in latest and value is not state.values[name]:
                digest = channel_hash(value)
                if digest != state.digests[name]:
                    changes.append(self._set(name, state.values[name], state.digests[name], value, digest))
        return changes

    def _final(self, name: str, was: Mapping[str, Any], now: Mapping[str, Any], state: LiveState) -> Any:
        if name not in now:
            return self._defaults[name] if name in was else state.values[name]
        # The default of a server's channel is unknown: null replaces it until it is read.
        if name not in was or state.values[name] is None:
            return as_json(now[name])
        return convert(now[name], was[name], state.values[name])

    def _between(self, name: str, held: Any, was: Mapping[str, Any], writes: list[TaskWrite]) -> Any:
        """Return a channel's values between the writes of several tasks; the old value if unknown."""
        if self._operators[name] is None:
            return held
        try:
            channel = self._app.channels[name].copy()
            if name in was:
                channel.value = copy.deepcopy(was[name])
            channel.update([copy.deepcopy(write.value) for write in writes if write.channel == name])
            value = channel.get()
        except Exception:  # user code failed, or a value can't be copied
            return held
        return convert(value, was.get(name), held)

    def _change(self, write: TaskWrite, held: Any, held_hash: bytes, value: Any) -> Change:
        channel = self.channels[write.channel]
        op: Operation = "reduce"
        given = write.value
        overwritten = _overwritten(given)
        if overwritten is not _UNKNOWN:
            op, given = "set", overwritten
        replaces = op == "set" or not channel.reducer.custom
        update = value if replaces else bounded(as_json(given))
        digest = _grown(held, held_hash, value)
        data = canonical(update)
        update_hash = sha256(data).digest()
        return Change(channel, op, held, update, value, held_hash, update_hash, digest, len(data), write.path)

    def _set(self, name: str, held: Any, held_hash: bytes, value: Any, digest: bytes) -> Change:
        data = canonical(value)
        update_hash = sha256(data).digest()
        return Change(
            self.channels[name], "set", held, value, value, held_hash, update_hash, digest, len(data)
        )


def _overwritten(value: Any) -> Any:
    """Return the value of an `Overwrite`, which bypasses the operator; `_UNKNOWN` for a plain update."""
    if type(value).__name__ == "Overwrite" and hasattr(value, "value"):
        return value.value
    if isinstance(value, Mapping) and value.keys() == {_OVERWRITE}:
        return value[_OVERWRITE]
    return _UNKNOWN


def _grown(held: Any, held_hash: bytes, value: Any) -> bytes:
    """Return the hash of a value; for a list that only grew, only the new items are hashed."""
    if value is held:
        return held_hash
    lists = isinstance(value, list) and isinstance(held, list) and len(held) <= len(value)
    if lists and all(map(operator.is_, held, value)):
        return extend_chain(held_hash, value[len(held) :])
    return channel_hash(value)


def facts_of(
    before: Saved | None,
    after: Saved,
    *,
    duration: int = 0,
    streamed: tuple[StreamedText, ...] = (),
    durations: Mapping[str, int] = _NOTHING,
    attempts: Mapping[str, int] = _NOTHING,
    unkept: Iterable[ModelUse] = (),
    calls: Iterable[BranchOutcome] = (),
) -> StepFacts:
    """Return a superstep's facts besides its changes; an unknown edit counts as another program's.

    Args:
        duration: in microseconds, 0 if unknown.
        streamed: the text that it streamed.
        durations: the durations of its tasks by their ids.
        attempts: the number of attempts of tasks by their ids; 1 if not given.
        unkept: model calls whose replies no task has written.
        calls: the calls of `@task`s by its nodes.
    """
    tasks = in_order(before.tasks) if before else []
    source = source_of(before, after)
    if source in ("human", "fork", "input"):
        is_edit = source in ("human", "fork")
        actor = ANOTHER if is_edit else None
        made_by: MadeBy = "program" if is_edit else "person"
        return StepFacts(source=source, origin=after.id, duration=duration, actor=actor, made_by=made_by)
    messages = new_messages(before, tasks)
    branches = tuple(
        BranchOutcome(
            branch_path(tasks, place),
            task.name,
            place,
            "ok",
            attempts=attempts.get(task.id, 1),
            duration=durations.get(task.id, 0),
        )
        for place, task in enumerate(tasks)
        if len(tasks) > 1
    )
    return StepFacts(
        source=source,
        node=place_of(dict.fromkeys(task.name for task in tasks)),
        attempt=attempts.get(tasks[0].id, 1) if len(tasks) == 1 else 1,
        duration=duration,
        uses=(
            *(use for task, held in zip(tasks, messages, strict=True) for use in _uses(task, held)),
            *unkept,
        ),
        calls=_calls(tasks, messages, before),
        branches=(*branches, *calls),
        streamed=streamed,
        origin=after.id,
    )


def inside_of(facts: StepFacts, before: Saved, threads: Mapping[str, str]) -> StepFacts:
    """Return a superstep's facts with the threads of the subgraphs that ran in it.

    Args:
        threads: the subgraphs' threads by task.
    """
    if not threads or facts.source not in RAN:
        return facts
    tasks = in_order(before.tasks)
    own, calls = facts.branches[: len(tasks)], facts.branches[len(tasks) :]
    if len(tasks) == 1:
        name = tasks[0].name
        own = (BranchOutcome(name, name, 0, "ok", attempts=facts.attempt, duration=facts.duration),)
        calls = facts.branches
    named = tuple(
        replace(branch, thread=threads.get(task.id, "")) for branch, task in zip(own, tasks, strict=True)
    )
    source = "subgraph" if len(tasks) == 1 else facts.source
    return replace(facts, branches=(*named, *calls), source=source)


def source_of(before: Saved | None, after: Saved) -> Source:
    """Who made a checkpoint."""
    if after.source == "update":
        return "human"
    if after.source == "fork":
        return "fork"
    if before is None or [task.name for task in before.tasks] == [START_NODE]:
        return "input"
    return "map" if len(before.tasks) > 1 else "node"


def moved(cursor: Cursor, facts: StepFacts, after: Saved) -> Cursor:
    """Return the cursor after a step, which continues where the checkpoint does."""
    begins = facts.source == "input"
    ran = facts.source in RAN
    visits = cursor.visits
    if ran:
        at_once = nodes_at_once(facts.node)
        named = at_once and {branch.name for branch in facts.branches}.issuperset(at_once)
        ran_now = at_once if named else [facts.node]
        visits = {**visits, **{node: visits.get(node, 0) + 1 for node in ran_now}}
    if facts.uses or facts.duration:
        cursor = with_use(cursor, facts.uses, facts.duration)
    return replace(
        cursor,
        status="pending" if begins else "running",
        reason="",
        position=position_of(after),
        invocation=cursor.invocation + begins,
        iteration=0 if begins else cursor.iteration + ran,
        limits=UNLIMITED if begins else cursor.limits,
        visits=visits,
        attempt=1,
        branches=(),
        answers=(),
        first_call=0,
        counted=0,
        passed=(),
        uses=() if ran else cursor.uses,
        streamed=() if ran else cursor.streamed,
        pending=(),
        error=None,
    )


def messages_in(value: Any) -> list[Any]:
    """Return the messages in a task's writes."""
    if is_message(value):
        return [value]
    if isinstance(value, (list, tuple)):
        return [item for item in value if is_message(item)]
    if isinstance(value, Mapping):
        return [message for held in value.values() for message in messages_in(held)]
    return []


def new_messages(before: Saved | None, tasks: Iterable[TaskRun]) -> list[list[Any]]:
    """Return the new messages of each task: a subgraph returns the old ones too."""
    held = [messages_in(task.result) for task in tasks]
    reporting = {message.id for messages in held for message in messages if _reports_use(message)} - {None}
    if before is None or not reporting:
        return held
    known = {message.id for message in messages_in(before.values) if message.id in reporting}
    return [[message for message in messages if message.id not in known] for messages in held]


def _reports_use(message: Any) -> bool:
    """Whether a message reports a model's use or a tool's result."""
    return message.type == "tool" or bool(getattr(message, "usage_metadata", None))


_PROVIDERS: Final[Mapping[str, str]] = {
    "amazon_bedrock": "bedrock",
    "bedrock_converse": "bedrock",
    "fireworks": "fireworks_ai",
    "google_genai": "gemini",
    "google_vertexai": "vertex_ai",
    "mistralai": "mistral",
    "together": "together_ai",
}
"""LangChain's names of providers which the list of prices calls otherwise."""


def model_use(message: Any, agent: str, about: Mapping[str, Any] = _NOTHING) -> ModelUse | None:
    """Return the model call that a message answers, None if the message has no use data.

    Args:
        about: the stream's metadata of the message.
    """
    usage = getattr(message, "usage_metadata", None)
    if not usage:
        return None
    metadata: Mapping[str, Any] = getattr(message, "response_metadata", None) or {}
    model = str(metadata.get("model_name") or metadata.get("model") or about.get("ls_model_name") or "")
    provider = str(metadata.get("model_provider") or about.get("ls_provider") or "")
    provider = _PROVIDERS.get(provider, provider)
    used = _tokens(usage, str(metadata.get("service_tier") or ""))
    return ModelUse(agent, provider, model, used.read, used.written, used.cost(provider, model))


def _tokens(usage: Mapping[str, Any], tier: str) -> TokenUse:
    """Return the token counts in a message's `usage_metadata`."""
    read, written = usage.get("input_token_details") or {}, usage.get("output_token_details") or {}
    return TokenUse(
        read=int(usage.get("input_tokens") or 0),
        written=int(usage.get("output_tokens") or 0),
        cache_read=int(read.get("cache_read") or 0),
        cache_written=int(read.get("cache_creation") or 0) + int(read.get("ephemeral_5m_input_tokens") or 0),
        cached_hour=int(read.get("ephemeral_1h_input_tokens") or 0),
        audio_in=int(read.get("audio") or 0),
        reasoning=int(written.get("reasoning") or 0),
        audio_out=int(written.get("audio") or 0),
        tier=tier,
    )


def _uses(task: TaskRun, messages: Iterable[Any]) -> Iterator[ModelUse]:
    uses = (model_use(message, task.name) for message in messages)
    return (use for use in uses if use is not None)


def _calls(
    tasks: list[TaskRun], messages: Iterable[Iterable[Any]], before: Saved | None
) -> tuple[ToolUse, ...]:
    """Return the tool calls of tasks, found by the messages with their results."""
    results = [
        (place, message) for place, held in enumerate(messages) for message in held if message.type == "tool"
    ]
    if not results or before is None:
        return ()
    asked = {
        call["id"]: call["args"]
        for message in messages_in(before.values)
        for call in getattr(message, "tool_calls", None) or ()
    }
    return tuple(
        tool_use(result, asked.get(result.tool_call_id), tasks[place].name, branch_path(tasks, place))
        for place, result in results
    )


def tool_use(result: Any, arguments: Any, agent: str, path: str) -> ToolUse:
    """Return the tool call that a message holds the result of."""
    text = result.content if isinstance(result.content, str) else str(as_json(result.content))
    failed = getattr(result, "status", "success") == "error"
    return ToolUse(
        agent,
        str(result.name or ""),
        as_json(arguments),
        None if failed else text[:_KEPT],
        text[:_KEPT] if failed else None,
        path=path,
    )


_KEPT: Final = 4_000
"""Characters of a tool's result; all of it is in the messages."""
