"""One attempt at a node: call it, read its answer, reduce its updates (SPEC 5, 6)."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from hitl_tui.engine.graph.compensation import check_compensation
from hitl_tui.engine.graph.compiled import CompiledGraph, Node
from hitl_tui.engine.graph.functions import raised_at
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.nodes.activity import MISSING, Activity, AttemptCancelled, begin_work, end_work
from hitl_tui.engine.nodes.calling import SyncCaller, TookTooLong, call
from hitl_tui.engine.nodes.results import NodeResult, checked
from hitl_tui.engine.state.changes import Change, reduce_calls, reduce_updates
from hitl_tui.engine.state.channel import RUN_INPUTS
from hitl_tui.engine.state.frozen import freeze
from hitl_tui.engine.state.state import LiveState, undeclared
from hitl_tui.engine.state.values import keepable
from hitl_tui.engine.state.workflow_state import NotedState, StateView, WorkflowState
from hitl_tui.engine.thread.interrupts import ANSWER, InterruptRaised, inside_request, with_schema
from hitl_tui.engine.thread.taint_policy import check_source, mark
from hitl_tui.errors import HitlError, ModelFailed, NodeFailed, UndeclaredChannel, WriteDenied, in_words

if TYPE_CHECKING:
    from hitl_tui.engine.nodes.frames import Masks

_encode = msgspec.json.Encoder().encode
# JSON means the same with these escaped, and no text in it can then open or close a tag.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def state_block(state: WorkflowState) -> str:
    """The channels that a node reads as a block for a model's prompt, one line each.

    Channels named in `reads`, dotted entries as they are named; of undeclared reads and "*" the public
    ones: a private channel goes to a model by name only.  Putting a channel in the block reads it.
    """
    lines = [_line(state, name) for name in _named(state)]
    return "\n".join(("<workflow_state>", *lines, "</workflow_state>"))


def _named(state: WorkflowState) -> list[str]:
    reads = ("*",) if state.reads is None else state.reads
    names: dict[str, None] = {}
    for entry in reads:
        if entry == "*":
            names.update(dict.fromkeys(name for name in state if state.visibility(name) == "public"))
        else:
            names[entry] = None
    return list(names)


def _line(state: WorkflowState, name: str) -> str:
    from html import escape

    body = _encode(state[name]).decode().translate(_ESCAPES)
    channel = name.partition(".")[0]
    tainted = "true" if state.is_tainted(channel) else "false"
    purpose = state.description(channel)
    described = f' description="{_attribute(purpose)}"' if purpose else ""
    return (
        f'<channel name="{escape(name)}"{described} visibility="{state.visibility(channel)}" '
        f'tainted="{tainted}">{body}</channel>'
    )


def _attribute(text: str) -> str:
    """A text as the value of an attribute, in one line."""
    from html import escape

    return escape(" ".join(text.split()))


class ItemPlace(NamedTuple):
    """The item of a branch and its place in the list."""

    item: Any
    place: int


class NodeConfig:
    """What a node gets as its second argument.

    Attributes:
        agents: as given to `compile`.
        item, index: of a branch of a map: its item and the item's place, from 0; in a parallel the
            node's place in the list (SPEC 7).
    """

    item: Any = None
    index: int | None = None

    def __init__(
        self, agents: Mapping[str, Any], cursor: Cursor, activity: Activity, clock: Callable[[], int]
    ) -> None:
        self.agents = agents
        self._cursor = activity.cursor = cursor
        self._activity = activity
        self._clock = clock
        self._asked = 0
        activity.interrupt = self.interrupt

    @property
    def thread_id(self) -> str:
        """The thread that runs."""
        return self._cursor.thread_id

    @property
    def invocation(self) -> int:
        """The number of the thread's invocation, from 1."""
        return self._cursor.invocation

    @property
    def iteration(self) -> int:
        """The number of the node's run in the invocation, from 1."""
        return self._cursor.iteration + 1

    @property
    def attempt(self) -> int:
        """The number of the attempt at this run of the node, from 1."""
        return self._activity.attempt

    @property
    def context(self) -> Mapping[str, Any]:
        """What the invocation was begun with besides its input, read-only; {} where nothing was."""
        return self._cursor.context

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this run of the node, for calls to the outside.

        Humans' steps meanwhile, as edits while it waits, do not change it.
        """
        cursor = self._cursor
        text = f"{cursor.thread_id}\0{cursor.invocation}\0{self.iteration}\0{self._activity.node}"
        if self._activity.path:
            text += f"\0{self._activity.path}"
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]

    @property
    def cancelled(self) -> bool:
        """True once this attempt was given up; a long loop should look and return."""
        return self._activity.cancelled

    def first_input(self, channel: str) -> Any:
        """The first entry that the input of this invocation put into a list channel, as a task in `messages`.

        As it stands there now, an edit included; as it was given, from the log, once a bounded channel has
        dropped it.  Where this input gave nothing for the channel, that of an earlier one; None without any.

        Raises:
            ReadDenied: the node may not read the channel.
        """
        state = self._activity.state
        if state is not None:
            state.get(channel)
        return self._activity.first_input(channel)

    def emit(self, text: str) -> None:
        """Stream a piece of text to whoever watches."""
        self._activity.text(text)

    def state_block(self) -> str:
        """The channels in the node's `reads` as one block for an agent's prompt (SPEC 8).

        No value can close the block's tags; a private channel is in it only if `reads` names it.
        """
        state = self._activity.state
        return "" if state is None else state_block(state)

    def taint(self, source: str) -> None:
        """Say that something from outside went into what this node writes (SPEC 8).

        Args:
            source: where it came from, in a word or two: "web", "mail of a customer".
        """
        self._activity.taint(check_source(source))

    def interrupt(self, request: Any, *, response_schema: Any = None, key: str = "") -> Any:
        """Ask a human and return the answer.

        The node stops here, and restarts from its top once there is an answer; answers of earlier
        calls in the same node are served by order (SPEC 11).

        Title, payload and answer are public, whatever the node read to make them: screens, events, the
        ledger and exports have them as given.  To ask about a private channel name it as the `subject`:
        it then shows as [private], and whoever decides may reveal it, which is logged.

        Args:
            request: any JSON to show, or a mapping with `kind` (approve, edit, choose, ask) and any of
                title, payload, subject (a channel), choices, schema, reviewers, quorum, one_account, logins,
                signed, deadline (seconds), on_timeout, escalate_to, escalate_after (seconds).  A payload in
                the shape of Agent Inbox or LangChain's middleware is answered in that shape.
            response_schema: what the answer must be: a JSON Schema, type or pydantic model.
            key: names the question where the order of questions may differ between runs of the node,
                as where agents work at the same time; the answer then is served by this name.
        """
        if response_schema is not None:
            request = with_schema(request, response_schema)
        order = -1
        if key:
            answer = self._activity.memory.recall(f"{ANSWER}{key}")
            if answer is not MISSING:
                return answer
        else:
            order = self._asked
            self._asked += 1
            if order < len(self._cursor.answers):
                return freeze(self._cursor.answers[order])
        node, path, now = self._activity.node, self._activity.path, self._clock()
        raise InterruptRaised(inside_request(self._cursor, node, order, request, now, key=key, path=path))


async def run_attempt(
    graph: CompiledGraph,
    node: Node,
    state: LiveState,
    cursor: Cursor,
    activity: Activity,
    *,
    agents: Mapping[str, Any],
    clock: Callable[[], int],
    threads: SyncCaller | None,
    place: ItemPlace | None = None,
) -> tuple[NodeResult, list[Change]]:
    """Run a node once and reduce what it returns; nothing is written down.

    Raises:
        NodeFailed: the node raised, timed out or broke its contract; `__cause__` has the error.
        InterruptRaised: the node asks a human.
    """
    view = activity.state = _view(graph, node, state, cursor, activity)
    config = NodeConfig(agents, cursor, activity, clock)
    activity.check_updates = partial(_checked_updates, graph, node, state)
    if node.external:
        activity.taint(node.external)
    if place is not None:
        config.item, config.index = place
    args = (view, config) if node.takes_config else (view,)
    token = begin_work(activity)
    try:
        function = node.function
        if activity.on_return is not None:
            from hitl_tui.engine.nodes.frames import noting_return

            function = noting_return(function, activity.on_return, masks_of(graph, state))
        if threads is not None or node.timeout is not None:
            answer = await call(function, args, threads, node.timeout)
        elif type(answer := function(*args)) is not dict and inspect.isawaitable(answer):
            answer = await answer
        result = as_result(answer, node.name)
        changes = _changes(graph, node, state, result.updates, activity, step=cursor.head + 1)
        if result.compensation is not None:
            check_compensation(result.compensation, graph.compensations)
        return result, changes
    except BaseException as error:
        activity.undo()
        if isinstance(error, InterruptRaised):
            await activity.settled()
        if isinstance(error, _PASSES):
            raise
        if isinstance(error, asyncio.CancelledError) and _given_up(activity):
            raise
        raise _failure(node, activity, error, masks_of(graph, state)) from error
    finally:
        end_work(activity, token)


def _view(
    graph: CompiledGraph, node: Node, state: LiveState, cursor: Cursor, activity: Activity
) -> WorkflowState:
    """What the node reads of the state, and what it has read where somebody wants to know."""
    extras = cursor.run_inputs
    if state.taint:
        activity.note_reads()
    if activity.read is None:
        return StateView(state.values, graph.channels, node.reads, extras)
    return NotedState(
        state.values, graph.channels, node.reads, extras, noted=activity.read, taint=state.taint
    )


def _changes(
    graph: CompiledGraph,
    node: Node,
    state: LiveState,
    given: Mapping[str, Any],
    activity: Activity,
    *,
    step: int,
) -> list[Change]:
    """What a node's updates change: within its writes, reduced, and tainted by what it read."""
    updates: Iterable[tuple[str, Any]] = given.items()
    if activity.added:
        updates = (*_entries(activity.added, graph, state), *updates)
    if activity.added or node.writes is not None or not all(map(graph.channels.__contains__, given)):
        _check_writes(node, graph, updates)
    changes = (
        reduce_calls(state, graph.channels, [*activity.updated, ("", updates)])
        if activity.updated
        else reduce_updates(state, graph.channels, updates)
    )
    if not (state.taint or node.external or activity.tainted_by):
        return changes
    sources, read = activity.tainted_by, activity.read or ()
    return mark(changes, node, step, sources=sources, read=read, taint=state.taint)


def _checked_updates(
    graph: CompiledGraph, node: Node, state: LiveState, updates: Iterable[tuple[str, Any]]
) -> list[tuple[str, Any]]:
    """Updates of a tool as they are kept, if the node may make them; raises as its own would."""
    given = list(updates)
    _check_writes(node, graph, given)
    return [(change.channel.name, change.update) for change in reduce_updates(state, graph.channels, given)]


def as_result(answer: Any, node: str) -> NodeResult:
    """What a node returned, as the envelope; None and {} are no update."""
    if isinstance(answer, NodeResult):
        return checked(answer, node)
    if answer is None:
        return NodeResult()
    if isinstance(answer, (dict, Mapping)):  # a dict is told sooner by itself
        return NodeResult(answer)
    pieces = "; to stream text, call config.emit(text) instead of yield" if _yields(answer) else ""
    raise HitlError(
        f"node {node!r} returned {in_words(answer)}",
        f"return a dict of channel updates, a NodeResult or None{pieces}",
    )


def _yields(answer: Any) -> bool:
    return inspect.isgenerator(answer) or inspect.isasyncgen(answer)


def _entries(
    added: Mapping[str, Sequence[Any]], graph: CompiledGraph, state: LiveState
) -> Iterator[tuple[str, Any]]:
    """Entries that agents add to list channels, as updates in the way of each channel's reducer."""
    for name, entries in added.items():
        channel = graph.channels.get(name)
        kind = channel.reducer.kind if channel else None
        if kind == "element":
            yield from ((name, entry) for entry in entries)
        elif kind == "replace":
            yield name, [*(state.values[name] or ()), *entries]
        else:
            yield name, list(entries)


def _check_writes(node: Node, graph: CompiledGraph, updates: Iterable[tuple[str, Any]]) -> None:
    for name, _ in updates:
        if name in RUN_INPUTS:
            raise undeclared(name, graph.channels)
        if name not in graph.channels:
            from difflib import get_close_matches

            close = get_close_matches(str(name), graph.channels, 1)
            raise UndeclaredChannel(
                f"it writes {name!r}, which is no channel of the graph",
                f"did you mean {close[0]!r}?" if close else f"channels: {', '.join(graph.channels)}",
            )
        if node.writes is not None and name not in node.writes:
            raise WriteDenied(
                f"it writes {name!r}, which is not among its writes ({', '.join(node.writes) or 'none'})",
                f"add {name!r} to writes=[...] of the node",
            )


_PASSES = (InterruptRaised, AttemptCancelled, KeyboardInterrupt, SystemExit, GeneratorExit)
"""What is no failure of the node: it asks, it was given up, or the program ends."""


def _given_up(activity: Activity) -> bool:
    """Whether it is from outside that a node is cancelled, rather than by what it awaits."""
    task = asyncio.current_task()
    return activity.cancelled or task is None or task.cancelling() > 0


def _words_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:
        return f"(its text can't be told: {type(broken).__name__})"


def masks_of(graph: CompiledGraph, state: LiveState) -> Masks:
    """What a state keeps private, and no frame may show."""
    from hitl_tui.engine.nodes.frames import NO_MASKS, Masks

    private = [name for name, channel in graph.channels.items() if channel.visibility == "private"]
    return Masks({name: state.values.get(name) for name in private}) if private else NO_MASKS


def _failure(node: Node, activity: Activity, error: BaseException, masks: Masks) -> NodeFailed:
    from hitl_tui.engine.nodes.frames import frames_of, place_of

    if isinstance(error, HitlError):
        cause, hint = error.message, error.hint
    elif isinstance(error, asyncio.CancelledError):
        cause, hint = "CancelledError", "something that it awaited was cancelled"
    elif isinstance(error, TookTooLong):
        cause, hint = (
            f"it took longer than {node.timeout:g} s",
            "raise the node's timeout, or look why it hangs",
        )
    else:
        cause, hint = f"{type(error).__name__}: {_words_of(error)}", ""
    if not isinstance(error, (ModelFailed, TookTooLong)) and (place := raised_at(error)):
        hint = f"{hint}; at {place}" if hint else f"at {place}"
    where = f"branch {activity.path!r}" if activity.path else f"node {node.name!r}"
    frames = () if isinstance(error, (ModelFailed, TookTooLong)) else frames_of(error, masks)
    return NodeFailed(
        keepable(f"{where}, attempt {activity.attempt}: {cause}"),
        keepable(hint),
        node=node.name,
        attempt=activity.attempt,
        details=keepable("".join(traceback.format_exception(error))),
        channel=error.channel if isinstance(error, HitlError) else "",
        frames=frames or place_of(node.function),
    )
