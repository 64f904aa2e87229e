"""A running node: what it reports while it works, and which untrusted data it used.

Specified in docs/spec/graphs.md and docs/spec/threads.md.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final, NoReturn

from hitl_tui.engine.graph.limits import LimitStop
from hitl_tui.engine.log.events import Event, ModelCalled, NodeRetrying, TextStreamed
from hitl_tui.engine.log.outcomes import ESTIMATED, Frame, ModelUse, StreamedText, ToolUse
from hitl_tui.engine.log.redaction import hiding
from hitl_tui.engine.state.canonical import item_hash
from hitl_tui.engine.thread.call_log import CallLog, CallRecord, CallState

if TYPE_CHECKING:
    from hitl_tui.engine.graph.limits import Budget
    from hitl_tui.engine.log.records import Cursor
    from hitl_tui.engine.nodes.calling import StartedCode
    from hitl_tui.engine.state.workflow_state import WorkflowState
    from hitl_tui.engine.thread.interrupts import InterruptRaised


MISSING: Final = object()


enclosing_call: ContextVar[str] = ContextVar("hitl_tui_enclosing_call", default="")
"""Key of the tool call that the running code belongs to, "" outside of tools."""


class OwnAgentsCalled:
    """Whether any of our agents was called; these meter and record their own model calls."""

    yes = False


own_agents_called: ContextVar[OwnAgentsCalled | None] = ContextVar("hitl_tui_asked_within", default=None)
"""Set within the call of a user's own agent."""


class RecordedCalls:
    """Recorded calls that an attempt can use again, found by their keys. Thread-safe.

    Args:
        log: the calls of this run of the node.
    """

    def __init__(self, log: CallLog) -> None:
        self.log = log
        self._lock = threading.Lock()
        self._asked: dict[str, int] = {}

    def slot(self, key: str) -> str:
        """Return the key for the next identical call in this attempt and within the same outer call."""
        with self._lock:
            number = self._asked.get(key, 0) + 1
            self._asked[key] = number
            return f"{key}.{number}"

    def recall(self, key: str) -> Any:
        """Return the result of a completed call, or `MISSING`."""
        return self.log.value(key, MISSING)


_enclosing_futures: ContextVar[tuple[Future[None], ...]] = ContextVar("hitl_tui_within", default=())


class InFlight:
    """The calls of models and tools that one attempt is making.

    Thread-safe: its agents may run on several event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Future[None]] = set()
        self._closed = False
        self._over: Future[None] = Future()

    @asynccontextmanager
    async def call(self) -> AsyncIterator[None]:
        """Context in which a call is made and recorded; once a request was raised, no call starts.

        Raises:
            asyncio.CancelledError: a request was raised, and the attempt is over.
        """
        future: Future[None] = Future()
        if not self._begin(future):
            # Only after the attempt has ended: code that waits for this call must get the request first.
            await asyncio.shield(asyncio.wrap_future(self._over))
            raise asyncio.CancelledError
        token = _enclosing_futures.set((*_enclosing_futures.get(), future))
        try:
            yield
        finally:
            _enclosing_futures.reset(token)
            self._finish([future])

    @contextmanager
    def call_sync(self) -> Iterator[None]:
        """Like `call`, for a call that blocks its thread.

        Raises:
            AttemptCancelled: a request was raised, and the attempt is over.
        """
        future: Future[None] = Future()
        if not self._begin(future):
            raise AttemptCancelled
        token = _enclosing_futures.set((*_enclosing_futures.get(), future))
        try:
            yield
        finally:
            _enclosing_futures.reset(token)
            self._finish([future])

    def _begin(self, future: Future[None]) -> bool:
        with self._lock:
            # Calls within a running call belong to it.
            if self._closed and not self._running & set(_enclosing_futures.get()):
                return False
            self._running.add(future)
            return True

    async def wait_until_idle(self) -> None:
        """Wait until no call is running, except those that contain the caller.

        The caller is about to raise a request, with which the calls around it end.
        """
        self._finish(_enclosing_futures.get())
        while running := self._running_calls():
            for future in running:
                await asyncio.shield(asyncio.wrap_future(future))

    async def close(self) -> None:
        """Let no more calls start, and wait until the running ones are done."""
        with self._lock:
            self._closed = True
        await self.wait_until_idle()

    def _running_calls(self) -> tuple[Future[None], ...]:
        with self._lock:
            return tuple(self._running)

    def _finish(self, done: Iterable[Future[None]]) -> None:
        with self._lock:
            for future in done:
                self._running.discard(future)
                if not future.done():
                    future.set_result(None)

    def end(self) -> None:
        """End the attempt: calls that want to start are cancelled."""
        with self._lock:
            self._closed = True
            if not self._over.done():
                self._over.set_result(None)


class StreamKeeper:
    """Keeps what is printed and streamed while a node runs, for its step and within bounds. Thread-safe."""

    def __init__(self) -> None:
        self.used = False
        self._lock = threading.Lock()
        self._writers: dict[tuple[str, str, int], _Writer] = {}
        self._size = 0

    def add(self, text: str, agent: str, path: str, attempt: int) -> None:
        """Keep a piece of text; of a long text, the beginning and the end."""
        if not text.isascii():
            # Characters that can't be encoded must not prevent the commit of a step.
            text = text.encode(errors="backslashreplace").decode()
        with self._lock:
            self.used = True
            writer = self._writers.setdefault((agent, path, attempt), _Writer())
            self._size += writer.add(text, STREAM_KEPT - self._size)

    def replied(self, agent: str, path: str, attempt: int, answer: tuple[int, int]) -> None:
        """Note how long a model's answer was, and how many tools it called."""
        with self._lock:
            self.used = True
            self._writers.setdefault((agent, path, attempt), _Writer()).replies.append(answer)

    @property
    def texts(self) -> tuple[StreamedText, ...]:
        """What is kept, in the order in which the writers started."""
        with self._lock:
            return tuple(
                StreamedText(
                    *key, "".join(writer.head), writer.left_out, "".join(writer.tail), tuple(writer.replies)
                )
                for key, writer in self._writers.items()
            )


class _Writer:
    """The text that one writer has written."""

    def __init__(self) -> None:
        self.head: list[str] = []
        self.tail: deque[str] = deque()
        self.left_out = 0
        self.replies: list[tuple[int, int]] = []
        self._room = _HALF
        self._tail_size = 0

    def add(self, text: str, room: int) -> int:
        """Keep a piece; return how many more characters are kept now, at most `room`."""
        begins = min(len(text), self._room, room)
        if begins:
            self.head.append(text[:begins])
            self._room -= begins
        # Once a piece does not fit into the beginning, all later ones go to the end.
        if begins < len(text):
            self._room = 0
        return begins + self._end_with(text[begins:], room - begins)

    def _end_with(self, text: str, room: int) -> int:
        """Add to the end of the text, which grows by at most `room` and then drops its oldest characters."""
        before, most = self._tail_size, min(_HALF, self._tail_size + room)
        self.tail.append(text)
        self._tail_size += len(text)
        while self._tail_size > most:
            first = self.tail.popleft()
            surplus = min(len(first), self._tail_size - most)
            if surplus < len(first):
                self.tail.appendleft(first[surplus:])
            self._tail_size -= surplus
            self.left_out += surplus
        return self._tail_size - before


_HALF: Final = 16 * 1024
"""Characters that are kept of the beginning, and of the end, of what one writer writes in a step."""
STREAM_KEPT: Final = 256 * 1024
"""Characters that are kept of all that is written in a step."""


def newest_texts(texts: Sequence[StreamedText]) -> tuple[StreamedText, ...]:
    """Return the newest texts of several attempts, as many as there is room for."""
    size, first = 0, len(texts)
    while first and (size := size + texts[first - 1].size) <= STREAM_KEPT:
        first -= 1
    return tuple(texts[first:])


__all__ = [
    "STREAM_KEPT",
    "Activity",
    "AttemptCancelled",
    "ModelUse",
    "StreamKeeper",
    "before_end",
    "begin_work",
    "current_activity",
    "end_work",
    "newest_texts",
    "running_activity",
]


class AttemptCancelled(BaseException):
    """Raised in a node whose attempt was stopped; not an Exception, so that nodes don't catch it."""


def _ask_too_late(*_question: Any, **_options: Any) -> NoReturn:
    raise AttemptCancelled


class Activity:
    """The running attempt of one node.  Thread-safe: nodes and agents may call it from any thread."""

    calls: list[ToolUse] | None = None
    """Calls of tools, for the step's record; None if no record is kept."""
    streamed: StreamKeeper | None = None
    """What it prints and streams, for the step's record; None if no record is kept."""
    interrupt: Callable[..., Any] | None = None
    """Asks a person as `config.interrupt` does, for agents in a node; None outside a graph."""
    question: InterruptRaised | None = None
    """The first request that was raised in this attempt; the node may have caught it."""
    before_tool: Callable[[str, Any, str], None] | None = None
    """Called before each call of a tool with its name, its arguments and the call's key; raises at a
    breakpoint.
    """
    on_return: Callable[[tuple[Frame, ...]], None] | None = None
    """Called with the frame of the node's function when it returns; None if nobody needs it."""
    state: WorkflowState | None = None
    """The state that the node may read; None outside a graph."""
    _hide: Callable[[Any], Any] | None = None
    first_input: Callable[[str], Any] = staticmethod(lambda _channel: None)
    """Returns the first input by channel; see `NodeConfig.first_input`."""
    call_log: Callable[[str], CallLog] | None = None
    """Returns the recorded calls of this run of a node; None if nothing keeps them."""
    item: Any = None
    """The item of a map's branch."""
    budget: Budget | None = None
    """What it may still use; None if no limit can be reached inside a node."""
    limit_stop: LimitStop | None = None
    """The limit that has stopped it."""
    cursor: Cursor | None = None
    """The thread's cursor, with the answers for the node; None outside a graph."""
    check_updates: Callable[[Iterable[tuple[str, Any]]], Sequence[tuple[str, Any]]] | None = None
    """Checks updates that a tool makes; None outside a graph."""
    code: StartedCode | None = None
    """The code that its node's function has started in other threads; None if it runs in this thread."""
    _memory: RecordedCalls | None = None
    _in_flight: InFlight | None = None
    _cancelled = False

    def __init__(self, node: str, attempt: int, sink: Callable[[Event], None] | None, path: str = "") -> None:
        self.node = node
        self.path = path
        """The branch of a map or a parallel that it runs, "" for a plain node."""
        self.attempt = attempt
        self.uses: list[ModelUse] = []
        self.served: list[str] = []
        """The hashes of the requests whose answers were used."""
        self.tainted_by: list[str] = []
        self.read: dict[str, None] | None = {} if sink else None
        """The channels that the node has read, in order; None if that is not recorded."""
        self.updated: list[tuple[str, Sequence[tuple[str, Any]]]] = []
        """The updates that tools made, by call with the tool's name, in the order of the calls."""
        self.added: dict[str, list[Any]] = {}
        """Entries that agents in the node add to channels, such as their turns."""
        self._undo: list[Callable[[], None]] = []
        self._sink = sink
        self._on_cancel: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """Whether the attempt was stopped: return as soon as possible, nothing will be committed."""
        return self._cancelled

    def cancel(self) -> None:
        """Stop the attempt, and call all callbacks."""
        self._cancelled = True
        for callback in tuple(self._on_cancel):
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` (from any thread) when the attempt is stopped.

        Return a function that unsubscribes.
        """
        self._on_cancel.append(callback)
        if self._cancelled:
            callback()
        return lambda: self._on_cancel.remove(callback)

    def note_reads(self) -> None:
        """Record what the node reads, even if nobody watches it."""
        if self.read is None:
            self.read = {}

    @property
    def memory(self) -> RecordedCalls:
        """The calls that are not made again if the node runs again before its step is committed."""
        if self._memory is None:
            self._memory = RecordedCalls(CallLog() if self.call_log is None else self.call_log(self.node))
        return self._memory

    def slot(self, digest: str) -> str:
        """Return a key for a model call: the same in every attempt, and different for every call.

        Identical calls are counted within the tool call that makes them: a tool call that is served from a
        record skips the calls inside it, and later calls must not get their keys.
        """
        if outer := own_agents_called.get():
            outer.yes = True
        where = self.path or self.node
        if self.item is not None:
            where += f"\0{item_hash(self.item).hex()}"
        text = f"{where}\0{enclosing_call.get()}\0{digest}"
        return self.memory.slot(hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32])

    async def record(
        self,
        key: str,
        value: Any = None,
        *,
        state: CallState = "done",
        uses: Sequence[ModelUse] = (),
        tool: ToolUse | None = None,
    ) -> None:
        """Commit that a call has completed, with its result; see `CallRecord`.

        Raises:
            StoreUnusable, StaleWriter, ThreadBusy: it could not be committed.
        """
        await self.memory.log.add(self._call_record(key, value, state=state, uses=uses, tool=tool))

    def record_sync(self, key: str, value: Any, *, uses: Sequence[ModelUse]) -> None:
        """Like `record`, for a call that blocked its thread."""
        self.memory.log.add_sync(self._call_record(key, value, uses=uses))

    def _call_record(
        self,
        key: str,
        value: Any,
        *,
        state: CallState = "done",
        uses: Sequence[ModelUse] = (),
        tool: ToolUse | None = None,
    ) -> CallRecord:
        cursor = self.cursor
        run = (cursor.invocation, cursor.iteration) if cursor else (0, 0)
        return CallRecord(key, self.node, *run, self.path, state, value, tuple(uses), tool)

    @property
    def idempotency_key(self) -> str:
        """A key that is the same for every attempt at this run of the node, also after edits in between.

        It depends on when the thread was made: a later thread of the same name has other keys, and a thread
        that is copied to another store keeps its own.
        """
        cursor = self.cursor
        assert cursor is not None
        thread = f"{cursor.thread_id}\0{cursor.created_at}"
        text = f"{thread}\0{cursor.invocation}\0{cursor.iteration + 1}\0{self.node}"
        if self.path:
            text += f"\0{self.path}"
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]

    @property
    def in_flight(self) -> InFlight:
        """The calls of models and tools that are being made now."""
        if self._in_flight is None:
            self._in_flight = InFlight()
        return self._in_flight

    def note_request(self, question: InterruptRaised) -> InterruptRaised:
        """Note a request that is raised now: the attempt waits for its answer even if the node catches it."""
        if self.question is None:
            self.question = question
        return question

    async def stop_at_limit(self) -> None:
        """Stop the attempt before a model call if a limit is reached; wait for the calls that run now.

        Raises:
            LimitStop: it is reached.
        """
        try:
            self.stop_at_limit_sync()
        except LimitStop:
            await self.in_flight.wait_until_idle()
            raise

    def stop_at_limit_sync(self) -> None:
        """Like `stop_at_limit`, before a call that blocks its thread.

        Calls that run now end with the attempt.

        Raises:
            LimitStop: it is reached.
        """
        if self.budget and (words := self.budget.reached()):
            self.limit_stop = LimitStop(words)
            raise self.limit_stop

    async def close_calls(self) -> None:
        """Let no more calls start, and wait for the running ones, before a request leaves the attempt."""
        if self._in_flight:
            await self._in_flight.close()

    def end(self) -> None:
        """End the attempt, with or without a result."""
        if self._in_flight:
            self._in_flight.end()
        if self.interrupt is not None:
            self.before_tool = None
            # It refers back to this object: each step would leave a cycle for the garbage collector.
            self.interrupt = _ask_too_late

    @property
    def context(self) -> Mapping[str, Any]:
        """The context of the invocation."""
        return self.cursor.context if self.cursor else {}

    def private(self) -> dict[str, Any]:
        """The values that must not get into files and streams, by name: of private channels and context."""
        hidden = self.state.private() if self.state is not None else {}
        given = self.cursor
        return hidden | {name: given.context[name] for name in given.private_context} if given else hidden

    def add(self, channel: str, entries: Sequence[Any]) -> None:
        """Add entries to a list channel together with the node's updates, whatever its reducer is."""
        self.added.setdefault(channel, []).extend(entries)

    def update(self, tool: str, updates: Sequence[tuple[str, Any]]) -> None:
        """Add the checked updates of a tool's call, before the node's own."""
        self.updated.append((tool, updates))

    def on_undo(self, callback: Callable[[], None]) -> None:
        """Call `callback` if the attempt ends without a result, to undo changes in memory."""
        self._undo.append(callback)

    def undo(self) -> None:
        """Undo changes in the memory of agents, since the attempt has no result."""
        while self._undo:
            self._undo.pop()()

    def taint(self, source: str) -> None:
        """Mark that untrusted data (from a tool, file, network) went into what the node writes."""
        if source not in self.tainted_by:
            self.tainted_by.append(source)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of untrusted data in the attempt so far: brought in, or read from tainted channels."""
        read = self.state.tainted_sources() if self.state is not None else ()
        return tuple(dict.fromkeys((*self.tainted_by, *read)))

    def text(self, text: str, agent: str = "") -> None:
        """Stream a piece of text to watchers and to the step's record."""
        if not text or self._cancelled:
            return
        text = self._without_private(text)
        if self.streamed:
            self.streamed.add(text, agent, self.path, self.attempt)
        if self._sink:
            self._sink(TextStreamed(self.node, agent, text, self.path))

    def _without_private(self, text: str) -> str:
        """Hide private values in a text; a value that is split between two pieces of text is not found."""
        if self._hide is None:
            hide = hiding(self.private())
            if self.state is None:  # the state is set before the node runs
                return str(hide(text))
            self._hide = hide
        return str(self._hide(text))

    def replied(self, agent: str, length: int, calls: int) -> None:
        """Note the length of an answer of an agent's model, and how many tools it called."""
        if self.streamed:
            self.streamed.replied(agent, self.path, self.attempt, (length, calls))

    def model_called(self, use: ModelUse, duration: int) -> None:
        """Count a model call, even if it failed; `duration` is in microseconds."""
        self.uses.append(use)
        if self.budget:
            self.budget.count(use)
        if self._sink and not self._cancelled:
            self._sink(
                ModelCalled(
                    self.node,
                    use.agent,
                    use.model,
                    use.tokens_in,
                    use.tokens_out,
                    use.cost,
                    duration,
                    self.path,
                )
            )

    def replace_estimates(self, exact: Sequence[ModelUse]) -> None:
        """Drop the estimates for agents whose exact use the node reports."""
        agents = {use.agent for use in exact}
        self.uses = [use for use in self.uses if use.provider != ESTIMATED or use.agent not in agents]

    def tool_called(self, use: ToolUse) -> None:
        """Note a call of a tool that was made now, not one that is served again after an answer."""
        if self.calls is not None:
            self.calls.append(use)

    def report(self, event: Event) -> None:
        """Emit another event from within the node."""
        if self._sink and not self._cancelled:
            self._sink(event)

    @property
    def for_whole_node(self) -> Activity:
        """An activity of the node as a whole, for output that can't be assigned to one of its branches."""
        activity = Activity(self.node, self.attempt, self._sink)
        activity.streamed, activity.state, activity.cursor = self.streamed, self.state, self.cursor
        return activity

    def is_sibling(self, other: Activity) -> bool:
        """Whether both are branches of the same run of a node."""
        return self.node == other.node and self._sink == other._sink

    def retrying(self, attempt: int, max_attempts: int, wait: float, error: str) -> None:
        """Report that a call or attempt failed and will be tried again after `wait` seconds."""
        if self._sink:
            self._sink(NodeRetrying(self.node, attempt, max_attempts, wait, error, self.path))


current_activity: ContextVar[Activity | None] = ContextVar("hitl_tui_activity", default=None)

_running: Final[dict[Activity, None]] = {}
before_end: Final[list[Callable[[], None]]] = []
"""Called just before an attempt ends, while output that it wrote elsewhere can still be assigned to it."""


def begin_work(activity: Activity) -> Token[Activity | None]:
    """Make the activity the current one for the code that it calls, and list it as running.

    Returns the token for `end_work`; a `with` block would take five times as long, at every step.
    """
    _running[activity] = None
    return current_activity.set(activity)


def end_work(activity: Activity, token: Token[Activity | None]) -> None:
    """End an activity, with or without a result."""
    try:
        for callback in before_end:
            callback()
    finally:
        del _running[activity]
        current_activity.reset(token)
        activity.end()


def running_activity() -> Activity | None:
    """Return the activity of the only node that runs in this process.

    If several branches of one node run, it is an activity of the whole node. It is None if no node runs, or
    several do.
    """
    running = list(_running)
    if not running:
        return None
    first, *more = running
    if not more:
        return first
    return first.for_whole_node if all(map(first.is_sibling, more)) else None
