"""One attempt at a node: call it, check its result, reduce its updates.

Specified in docs/spec/graphs.md.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.graph.compensation import check_compensation
from hitl_tui.engine.graph.compiled import CompiledGraph, Node
from hitl_tui.engine.graph.functions import raised_at
from hitl_tui.engine.graph.limits import LimitStop
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.redaction import hiding
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.nodes.activity import Activity, AttemptCancelled, begin_work, end_work
from hitl_tui.engine.nodes.calling import CallTimedOut, SyncCaller, call
from hitl_tui.engine.nodes.results import NodeResult, checked
from hitl_tui.engine.state.canonical import item_hash
from hitl_tui.engine.state.changes import Change, reduce_calls, reduce_updates
from hitl_tui.engine.state.channel import RUN_INPUTS
from hitl_tui.engine.state.frozen import freeze
from hitl_tui.engine.state.state import LiveState, undeclared
from hitl_tui.engine.state.values import keepable
from hitl_tui.engine.state.workflow_state import NotedState, StateView, WorkflowState
from hitl_tui.engine.thread.binding import digests_of
from hitl_tui.engine.thread.interrupts import InterruptRaised, inside_request, with_identity, with_schema
from hitl_tui.engine.thread.private import private_values
from hitl_tui.engine.thread.taint_policy import check_source, mark
from hitl_tui.errors import (
    HitlError,
    NodeFailed,
    UndeclaredChannel,
    UsageError,
    WriteDenied,
    described_with_causes,
    in_words,
)

if TYPE_CHECKING:
    from hitl_tui.engine.nodes.frames import Masks

log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode
# JSON stays the same with these escaped, and no text in it can open or close a tag.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def state_block(state: WorkflowState) -> str:
    """Return the channels that a node reads as a block for a model's prompt, one line each.

    It has the channels in `reads`, dotted entries as they are named. For undeclared reads and "*" it has the
    public
    ones: a private channel is sent to a model only if it is named. A channel in the block counts as read.
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
    """Return a text as the value of an attribute, in one line."""
    from html import escape

    return escape(" ".join(text.split()))


class ItemPlace(NamedTuple):
    """The item of a branch and its place in the list."""

    item: Any
    place: int


_counting = threading.Lock()
"""Held while requests are counted: agents of a node may ask at the same time."""


def _streamable(text: Any) -> str:
    if not isinstance(text, str):
        hint = (
            'decode it: config.emit(piece.decode(errors="replace"))'
            if isinstance(text, bytes)
            else "give text"
        )
        raise UsageError(f"config.emit was given {in_words(text)}", hint)
    return keepable(str.__str__(text))


class NodeConfig:
    """The second argument of a node.

    Attributes:
        item, index: in a branch of a map, its item and the item's place, from 0; in a parallel, `index` is
            the node's place in the list.
    """

    item: Any = None
    index: int | None = None

    def __init__(
        self,
        agents: Mapping[str, Any],
        cursor: Cursor,
        activity: Activity,
        clock: Callable[[], int],
        *,
        graph: CompiledGraph,
        state: LiveState,
    ) -> None:
        self._agents = agents
        self._graph = graph
        self._state = state
        self._cursor = activity.cursor = cursor
        self._activity = activity
        self._clock = clock
        self._asked: dict[str, int] | None = None
        activity.interrupt = self.interrupt

    @cached_property
    def agents(self) -> Mapping[str, Any]:
        """The agents given to `compile`; the model calls of all of them are counted and limited."""
        from hitl_tui.engine.nodes.foreign_agents import metered_agents

        return metered_agents(self._agents)

    @property
    def thread_id(self) -> str:
        """The id of the thread that runs."""
        return self._cursor.thread_id

    @property
    def invocation(self) -> int:
        """The number of the thread's invocation, from 1."""
        return self._cursor.invocation

    @property
    def iteration(self) -> int:
        """The number of this node run in the invocation, from 1."""
        return self._cursor.iteration + 1

    @property
    def attempt(self) -> int:
        """The number of the attempt at this run of the node, from 1."""
        return self._activity.attempt

    @property
    def context(self) -> Mapping[str, Any]:
        """The context with which the invocation was started, read-only; {} without one."""
        return self._cursor.context

    @property
    def idempotency_key(self) -> str:
        """A key for calls to other systems that is the same for every attempt at this run of the node.

        Steps of people in between, such as edits while it waits, do not change it.
        """
        return self._activity.idempotency_key

    @property
    def cancelled(self) -> bool:
        """Whether this attempt was stopped; a long loop should check this and return."""
        return self._activity.cancelled

    def first_input(self, channel: str) -> Any:
        """Return the first entry that the input put into a list channel, such as a task in `messages`.

        It is the entry as it is now, after edits; once a bounded channel has dropped it, it is the entry as
        it was given, from the log. If this input has no entry for the channel, an earlier invocation's input
        counts; None without any.

        Raises:
            ReadDenied: the node may not read the channel.
        """
        state = self._activity.state
        if state is not None:
            state.get(channel)
        return self._activity.first_input(channel)

    def emit(self, text: str) -> None:
        """Stream a piece of text to watchers; raises `UsageError` for anything else."""
        if type(text) is not str or not text.isascii():
            text = _streamable(text)
        self._activity.text(text)

    def state_block(self) -> str:
        """Return the channels in the node's `reads` as one block for an agent's prompt.

        No value can close the block's tags; a private channel is in it only if `reads` names it.
        """
        state = self._activity.state
        return "" if state is None else state_block(state)

    def taint(self, source: str) -> None:
        """Mark that untrusted data went into what this node writes.

        Args:
            source: where it came from, in a word or two: "web", "mail of a customer".
        """
        self._activity.taint(check_source(source))

    def interrupt(
        self, request: Any, *, response_schema: Any = None, key: str = "", binds: Sequence[str] = ()
    ) -> Any:
        """Ask a person and return the answer.

        The node stops here, and runs again from its start once there is an answer. An answer applies only to
        the request that it answered: if the node asks something else then, or the subject has changed, that
        is a new request.

        Title, payload and answer are public, whatever the node read to make them: screens, events, the
        ledger and exports have them as given. To ask about a private channel, name it as the `subject`:
        it then shows as [private], and the person who decides may reveal it, which is logged.

        Args:
            request: any JSON to show, or a mapping with `kind` (approve, edit, choose, ask) and any of title,
                payload, subject (a channel), choices, schema, reviewers, quorum, one_account, logins, signed,
                four_eyes, rubric, second_reading, deadline (seconds), on_timeout, escalate_to,
                escalate_after (seconds) and binds. A payload in the format of Agent Inbox or of LangChain is
                answered in that format.
            response_schema: what the answer must be: a JSON Schema, type or pydantic model.
            key: distinguishes identical requests, for example of agents that work at the same time.
            binds: the parts of the payload that an answer is about, by name ("amount", "order.total"); all by
                default. Leave out what is never the same twice, such as a time or a random id.
        """
        asked = self._request(request, response_schema, key, binds)
        activity, answers = self._activity, self._cursor.answers
        for kept in answers:
            if kept.request_hash == asked.request_hash:
                activity.served.append(kept.request_hash)
                return freeze(kept.value)
        earlier = [kept for kept in answers if kept.key == key and kept.request_hash not in activity.served]
        raise activity.note_request(InterruptRaised(asked, earlier[-1] if earlier else None))

    def _request(self, question: Any, schema: Any, key: str, binds: Sequence[str]) -> Request:
        """Make the request for a question.

        The next identical question of this attempt is a different request.
        """
        if schema is not None:
            question = with_schema(question, schema)
        request = inside_request(
            self._cursor,
            self._activity.node,
            question,
            self._clock(),
            key=key,
            path=self._activity.path,
            binds=binds,
            digests=self._digests,
            item=b"" if self.item is None else item_hash(self.item),
        )
        first = with_identity(self._cursor, request)
        with _counting:
            asked = self._asked = self._asked or {}
            number = asked.get(first.request_hash, 0)
            asked[first.request_hash] = number + 1
        if not number:
            return first
        return with_identity(self._cursor, replace(request, terms=replace(request.terms, index=number)))

    def _digests(self, names: Sequence[str]) -> Mapping[str, bytes]:
        """Return digests of values in the state that the node runs on."""
        view = StateView(self._state.values, self._graph.channels, None, self._cursor.run_inputs)
        return digests_of(self._state, view, names)


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
    """Run a node once and reduce what it returns, without storing anything.

    Raises:
        NodeFailed: the node raised, timed out or returned something wrong; `__cause__` has the error.
        InterruptRaised: the node asks a person.
    """
    view = activity.state = _view(graph, node, state, cursor, activity)
    config = NodeConfig(agents, cursor, activity, clock, graph=graph, state=state)
    activity.check_updates = partial(_checked_updates, graph, node, state)
    if node.external:
        activity.taint(node.external)
    if place is not None:
        config.item, config.index = place
    args = (view, config) if node.takes_config else (view,)
    token = begin_work(activity)
    returned = False
    updates: Mapping[str, Any] = {}
    try:
        function = node.function
        if activity.on_return is not None:
            from hitl_tui.engine.nodes.frames import with_return_hook

            function = with_return_hook(function, activity.on_return, masks_of(graph, state))
        if threads is not None or node.timeout is not None:
            answer = await call(function, args, threads, node.timeout, activity)
            activity.code = None  # it refers to the activity: the garbage collector would have to free both
        elif type(answer := function(*args)) is not dict and inspect.isawaitable(answer):
            answer = await answer
        if activity.question is not None:
            returned = True
            raise activity.question
        if activity.limit_stop:
            raise activity.limit_stop  # the node has caught it
        result = as_result(answer, node.name)
        updates = result.updates
        changes = _changes(graph, node, state, result.updates, activity, step=cursor.head + 1)
        if result.compensation is not None:
            check_compensation(result.compensation, graph.compensations)
        return result, changes
    except BaseException as error:
        activity.undo()
        if isinstance(error, _ENDS_RUN) or (
            isinstance(error, asyncio.CancelledError) and _is_stopped_from_outside(activity)
        ):
            raise
        question = error if isinstance(error, InterruptRaised) else activity.question
        if question is not None:
            await activity.close_calls()
            if returned or _has_swallowed(error, question):
                note_caught(question, node.name)
            raise question from None
        stop = error if isinstance(error, LimitStop) else activity.limit_stop
        await _end_calls(activity, stop or error)
        if stop is not None:
            raise stop from None
        raise _failure(
            node,
            activity,
            error,
            masks_of(graph, state),
            private_values(graph, cursor, state.values, _all_updates(activity, updates)),
        ) from error
    finally:
        end_work(activity, token)


async def _end_calls(activity: Activity, error: BaseException) -> None:
    """Let the calls of a failed attempt end."""
    if isinstance(error, CallTimedOut):
        activity.cancel()  # its code may still run, and can see this
    else:
        # Wait for calls of other agents: once they are recorded, they are not made again.
        await activity.close_calls()


def _all_updates(activity: Activity, updates: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return the updates of an attempt's tools and of its node."""
    for _, pairs in activity.updated:
        yield from pairs
    if isinstance(updates, Mapping):
        yield from updates.items()


def _view(
    graph: CompiledGraph, node: Node, state: LiveState, cursor: Cursor, activity: Activity
) -> WorkflowState:
    """Return the node's view of the state, which records what it reads if that is needed."""
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
    """Return the changes by a node's updates: checked against its `writes`, reduced, tainted by its reads."""
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
    """Return the updates of a tool as they are kept; raises the errors that the node's own updates would."""
    given = list(updates)
    _check_writes(node, graph, given)
    return [(change.channel.name, change.update) for change in reduce_updates(state, graph.channels, given)]


_NO_UPDATES = NodeResult()


def as_result(answer: Any, node: str) -> NodeResult:
    """Return what a node returned as a `NodeResult`; None and {} are no update."""
    if isinstance(answer, NodeResult):
        return checked(answer, node)
    if answer is None:
        return _NO_UPDATES
    if isinstance(answer, (dict, Mapping)):  # a plain dict is the common case, and quick to check
        return replace(_NO_UPDATES, updates=answer)
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
    """Return entries that agents add to list channels as updates that fit each channel's reducer."""
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
            near = f"did you mean {close[0]!r}?" if close else f"channels: {', '.join(graph.channels)}"
            raise UndeclaredChannel(
                f"it writes {name!r}, which is not a channel of the graph", _as_envelope(updates) or near
            )
        if node.writes is not None and name not in node.writes:
            raise WriteDenied(
                f"it writes {name!r}, which is not among its writes ({', '.join(node.writes) or 'none'})",
                f"add {name!r} to writes=[...] of the node",
            )


def _as_envelope(updates: Iterable[tuple[str, Any]]) -> str:
    """What to write instead of a dict with the fields of a `NodeResult`; "" for a dict of updates."""
    given = dict(updates)
    inner = next((name for name in ("updates", "state_updates") if isinstance(given.get(name), Mapping)), "")
    if not inner:
        return ""
    fields = (f"{name}=…" for name in given if name != inner and name in NodeResult.__struct_fields__)
    return f"return {NodeResult.__name__}({', '.join(('updates={…}', *fields))})"


_ENDS_RUN = (AttemptCancelled, KeyboardInterrupt, SystemExit, GeneratorExit)
"""Not failures of the node: it was stopped, or the program ends."""
_CAUGHT: Final = (
    "The node caught this question and continued without an answer; nothing of that was saved. "
    "To fix it, let the node catch Exception only: a question is a BaseException."
)


def note_caught(question: InterruptRaised, node: str) -> None:
    """Note on a request, and in the program's log, that its node caught it."""
    asked = question.request
    question.request = replace(asked, notes=(*asked.notes, _CAUGHT))
    log.warning(
        "node %r caught its own question %r and continued; it is asked all the same", node, asked.title
    )


def _has_swallowed(error: BaseException, question: InterruptRaised) -> bool:
    """Whether a node has caught a request and then raised something else."""
    if isinstance(error, (InterruptRaised, asyncio.CancelledError, CallTimedOut)):
        return False
    return not (isinstance(error, BaseExceptionGroup) and error.subgroup(lambda each: each is question))


def _is_stopped_from_outside(activity: Activity) -> bool:
    """Whether a node was cancelled from outside, and not by something that it awaits."""
    task = asyncio.current_task()
    return activity.cancelled or task is None or task.cancelling() > 0


def masks_of(graph: CompiledGraph, state: LiveState) -> Masks:
    """Return the private values of a state, which no frame may show."""
    from hitl_tui.engine.nodes.frames import NO_MASKS, Masks

    private = [name for name, channel in graph.channels.items() if channel.visibility == "private"]
    return Masks({name: state.values.get(name) for name in private}) if private else NO_MASKS


def _failure(
    node: Node, activity: Activity, error: BaseException, masks: Masks, private: Mapping[str, Any]
) -> NodeFailed:
    from hitl_tui.engine.nodes.frames import frames_of, place_of, stack_frames

    if isinstance(error, HitlError):
        cause, hint = error.message, error.hint
    elif isinstance(error, asyncio.CancelledError):
        cause, hint = "CancelledError", "something that it awaited was cancelled"
    elif isinstance(error, CallTimedOut):
        cause, hint = (
            f"it took longer than {node.timeout:g} s",
            "raise the node's timeout, or look why it hangs",
        )
        if error.started.is_sync_running:
            hint = f"{hint}; its code still runs in its thread, as nothing can stop it there"
    else:
        cause, hint = described_with_causes(error), ""
    if not isinstance(error, CallTimedOut) and (place := raised_at(error)):
        hint = f"{hint}; at {place}" if hint else f"at {place}"
    where = f"branch {activity.path!r}" if activity.path else f"node {node.name!r}"
    frames = stack_frames(error.stack, masks) if isinstance(error, CallTimedOut) else frames_of(error, masks)
    hide = hiding(private)
    return NodeFailed(
        keepable(f"{where}, attempt {activity.attempt}: {hide(cause)}"),
        keepable(hide(hint)),
        node=node.name,
        attempt=activity.attempt,
        details=keepable(hide("".join(traceback.format_exception(error)))),
        channel=error.channel if isinstance(error, HitlError) else "",
        frames=frames or place_of(node.function, masks),
    )
