"""A running node: what it tells the world while it works, and what it got from outside.

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
    from hitl_tui.engine.state.workflow_state import WorkflowState
    from hitl_tui.engine.thread.interrupts import InterruptRaised


MISSING: Final = object()


enclosing_call: ContextVar[str] = ContextVar("hitl_tui_enclosing_call", default="")
"""Key of the tool call that the running code is a part of, "" outside of tools."""


class AgentsAsked:
    """Whether something has asked agents of ours, which meter and record their own model calls."""

    yes = False


asked_within: ContextVar[AgentsAsked | None] = ContextVar("hitl_tui_asked_within", default=None)
"""Of the call of a user's own agent that the running code is a part of."""


class Memory:
    """The calls that an attempt may use again, and the keys by which it finds them.  Thread-safe.

    Args:
        log: the calls of this run of the node.
    """

    def __init__(self, log: CallLog) -> None:
        self.log = log
        self._lock = threading.Lock()
        self._asked: dict[str, int] = {}

    def slot(self, key: str) -> str:
        """The key for the next time that the same thing is asked, in this attempt and by the same call."""
        with self._lock:
            number = self._asked.get(key, 0) + 1
            self._asked[key] = number
            return f"{key}.{number}"

    def recall(self, key: str) -> Any:
        """What a completed call gave, or `MISSING`."""
        return self.log.value(key, MISSING)


_within: ContextVar[tuple[Future[None], ...]] = ContextVar("hitl_tui_within", default=())


class InFlight:
    """The calls of one attempt.  Thread-safe: its agents may be at work on several event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Future[None]] = set()
        self._closed = False
        self._over: Future[None] = Future()

    @asynccontextmanager
    async def doing(self) -> AsyncIterator[None]:
        """A block that makes a call and keeps what it gave; once a question has left, none begins.

        Raises:
            asyncio.CancelledError: a question has left, and the attempt is over.
        """
        future: Future[None] = Future()
        if not self._begin(future):
            # Not before the attempt has ended: to whoever waits for us the question must come first.
            await asyncio.shield(asyncio.wrap_future(self._over))
            raise asyncio.CancelledError
        token = _within.set((*_within.get(), future))
        try:
            yield
        finally:
            _within.reset(token)
            self._finish([future])

    @contextmanager
    def doing_here(self) -> Iterator[None]:
        """As `doing`, for a call that blocks its thread.

        Raises:
            AttemptCancelled: a question has left, and the attempt is over.
        """
        future: Future[None] = Future()
        if not self._begin(future):
            raise AttemptCancelled
        token = _within.set((*_within.get(), future))
        try:
            yield
        finally:
            _within.reset(token)
            self._finish([future])

    def _begin(self, future: Future[None]) -> bool:
        with self._lock:
            # What is below a call that has begun is a part of it.
            if self._closed and not self._running & set(_within.get()):
                return False
            self._running.add(future)
            return True

    async def quiet(self) -> None:
        """Wait until nothing is being done, as one who asks.

        The calls that the asking one is a part of end with the question: nobody waits for them.
        """
        self._finish(_within.get())
        while running := self._now():
            for future in running:
                await asyncio.shield(asyncio.wrap_future(future))

    async def settled(self) -> None:
        """Let nothing begin any more, and wait until what has begun is done."""
        with self._lock:
            self._closed = True
        await self.quiet()

    def _now(self) -> tuple[Future[None], ...]:
        with self._lock:
            return tuple(self._running)

    def _finish(self, done: Iterable[Future[None]]) -> None:
        with self._lock:
            for future in done:
                self._running.discard(future)
                if not future.done():
                    future.set_result(None)

    def end(self) -> None:
        """The attempt is over: whoever still wants to begin gives up."""
        with self._lock:
            self._closed = True
            if not self._over.done():
                self._over.set_result(None)


class StreamKeeper:
    """What is printed and streamed while a node runs, kept for its step within bounds.  Thread-safe."""

    def __init__(self) -> None:
        self.used = False
        self._lock = threading.Lock()
        self._writers: dict[tuple[str, str, int], _Writer] = {}
        self._size = 0

    def add(self, text: str, agent: str, path: str, attempt: int) -> None:
        """Keep a piece of text; of much of it the beginning and the end."""
        if not text.isascii():
            # What can't be written must not keep a step from being committed.
            text = text.encode(errors="backslashreplace").decode()
        with self._lock:
            self.used = True
            writer = self._writers.setdefault((agent, path, attempt), _Writer())
            self._size += writer.add(text, STREAM_KEPT - self._size)

    def replied(self, agent: str, path: str, attempt: int, answer: tuple[int, int]) -> None:
        """Note how long an answer of a model was, and how many tools it called."""
        with self._lock:
            self.used = True
            self._writers.setdefault((agent, path, attempt), _Writer()).replies.append(answer)

    @property
    def texts(self) -> tuple[StreamedText, ...]:
        """What is kept, in the order in which the writers began."""
        with self._lock:
            return tuple(
                StreamedText(
                    *key, "".join(writer.head), writer.left_out, "".join(writer.tail), tuple(writer.replies)
                )
                for key, writer in self._writers.items()
            )


class _Writer:
    """What one writer has written."""

    def __init__(self) -> None:
        self.head: list[str] = []
        self.tail: deque[str] = deque()
        self.left_out = 0
        self.replies: list[tuple[int, int]] = []
        self._room = _HALF
        self._tail_size = 0

    def add(self, text: str, room: int) -> int:
        """Keep a piece; gives by how many characters more is kept now, at most `room`."""
        begins = min(len(text), self._room, room)
        if begins:
            self.head.append(text[:begins])
            self._room -= begins
        # What no longer goes to the beginning, or not all of it, never does again.
        if begins < len(text):
            self._room = 0
        return begins + self._end_with(text[begins:], room - begins)

    def _end_with(self, text: str, room: int) -> int:
        """The end of what was written, which grows by `room` at most and then moves on."""
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
"""Characters that are kept of the beginning of what one writer writes in a step, and of its end."""
STREAM_KEPT: Final = 256 * 1024
"""Characters that are kept of all that is written in a step."""


def newest_texts(texts: Sequence[StreamedText]) -> tuple[StreamedText, ...]:
    """What is kept of several attempts: the newest ones, as many as there is room for."""
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
    "at_work",
    "before_end",
    "begin_work",
    "current_activity",
    "end_work",
    "newest_texts",
]


class AttemptCancelled(BaseException):
    """Raised below a node whose attempt was given up; not an Exception, so that nodes don't catch it."""


def _ask_too_late(*_question: Any, **_options: Any) -> NoReturn:
    raise AttemptCancelled


class Activity:
    """The running attempt of one node.  Thread-safe: nodes and agents may call it from any thread."""

    calls: list[ToolUse] | None = None
    """Where calls of tools are noted for the step's record; None where nobody keeps one."""
    streamed: StreamKeeper | None = None
    """Where what it writes is kept for the step's record; None where nobody keeps one."""
    interrupt: Callable[..., Any] | None = None
    """Ask a human as `config.interrupt` does, for agents below a node; None outside a graph."""
    question: InterruptRaised | None = None
    """The first question that was raised in this attempt, which the node may have caught."""
    before_tool: Callable[[str, Any, str], None] | None = None
    """Told of each call of a tool that will be made now: its name, its arguments, and what names the call;
    raises where a breakpoint stands there."""
    on_return: Callable[[tuple[Frame, ...]], None] | None = None
    """Gets the frame of the node's function as it returns; None where nobody asks for it."""
    state: WorkflowState | None = None
    """What the node may read; None outside a graph."""
    _hide: Callable[[Any], Any] | None = None
    first_input: Callable[[str], Any] = staticmethod(lambda _channel: None)
    """What began the run, by channel; see `NodeConfig.first_input`."""
    call_log: Callable[[str], CallLog] | None = None
    """Gives the calls of this run of a node; None where nothing keeps them."""
    item: Any = None
    """The item of a map's branch."""
    budget: Budget | None = None
    """What it may still use; None where no limit can be reached inside a node."""
    limit_stop: LimitStop | None = None
    """The limit that has stopped it."""
    cursor: Cursor | None = None
    """Where the thread stands, with what it has for the node; None outside a graph."""
    check_updates: Callable[[Iterable[tuple[str, Any]]], Sequence[tuple[str, Any]]] | None = None
    """Takes updates that a tool makes, if the node may make them; None outside a graph."""
    _memory: Memory | None = None
    _in_flight: InFlight | None = None
    _cancelled = False

    def __init__(self, node: str, attempt: int, sink: Callable[[Event], None] | None, path: str = "") -> None:
        self.node = node
        self.path = path
        """The branch of a map or a parallel it is at work for, "" for a plain node."""
        self.attempt = attempt
        self.uses: list[ModelUse] = []
        self.served: list[str] = []
        """The hashes of the requests whose answers were used."""
        self.tainted_by: list[str] = []
        self.read: dict[str, None] | None = {} if sink else None
        """What the node has read of the state, in order; None where that is not noted."""
        self.updated: list[tuple[str, Sequence[tuple[str, Any]]]] = []
        """The updates that tools made, a call each with the tool's name, in the order of the calls."""
        self.added: dict[str, list[Any]] = {}
        """Entries for channels that agents below the node add to its updates, as their turns."""
        self._undo: list[Callable[[], None]] = []
        self._sink = sink
        self._on_cancel: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        """True once the attempt was given up: stop as soon as possible, nothing will be committed."""
        return self._cancelled

    def cancel(self) -> None:
        """Give the attempt up and call everyone who asked to know."""
        self._cancelled = True
        for callback in tuple(self._on_cancel):
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` (from any thread) when the attempt is given up; returns a way to unsubscribe."""
        self._on_cancel.append(callback)
        if self._cancelled:
            callback()
        return lambda: self._on_cancel.remove(callback)

    def note_reads(self) -> None:
        """Note what the node reads, though nobody watches it."""
        if self.read is None:
            self.read = {}

    @property
    def memory(self) -> Memory:
        """What is not asked or done again when the node runs again before its step is committed."""
        if self._memory is None:
            self._memory = Memory(CallLog() if self.call_log is None else self.call_log(self.node))
        return self._memory

    def slot(self, digest: str) -> str:
        """A key for what is asked of a model: the same in every attempt, another one for every call.

        Identical calls are counted within the tool call that makes them: one that is served from a record
        skips the calls inside it, and later ones must not move up into their places.
        """
        if outer := asked_within.get():
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
        """Commit that a call has completed, and what it gave; see `CallRecord`.

        Raises:
            StoreUnusable, StaleWriter, ThreadBusy: it could not be committed.
        """
        await self.memory.log.add(self._call_record(key, value, state=state, uses=uses, tool=tool))

    def record_here(self, key: str, value: Any, *, uses: Sequence[ModelUse]) -> None:
        """As `record`, for a call that blocked its thread."""
        self.memory.log.add_here(self._call_record(key, value, uses=uses))

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
        """The same for every attempt at this run of the node; edits meanwhile do not change it.

        It holds when the thread was made: a later thread of the same name has other keys, and a thread that
        is carried to another store keeps its own.
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

    def asks(self, question: InterruptRaised) -> InterruptRaised:
        """Note a question that is raised now: the attempt waits for it even if the node catches it."""
        if self.question is None:
            self.question = question
        return question

    async def stop_at_limit(self) -> None:
        """Stop the attempt before a model call where a limit is reached; calls that run now still end.

        Raises:
            LimitStop: it is reached.
        """
        try:
            self.stop_here_at_limit()
        except LimitStop:
            await self.in_flight.quiet()
            raise

    def stop_here_at_limit(self) -> None:
        """As `stop_at_limit`, before a call that blocks its thread; calls that run now end with the attempt.

        Raises:
            LimitStop: it is reached.
        """
        if self.budget and (words := self.budget.reached()):
            self.limit_stop = LimitStop(words)
            raise self.limit_stop

    async def settled(self) -> None:
        """Before a question leaves the attempt: what was begun is done and kept, and nothing begins."""
        if self._in_flight:
            await self._in_flight.settled()

    def end(self) -> None:
        """The attempt is over, however it went."""
        if self._in_flight:
            self._in_flight.end()
        if self.interrupt is not None:
            self.before_tool = None
            # It leads to what leads back here: a circle a step would be left to the collector.
            self.interrupt = _ask_too_late

    @property
    def context(self) -> Mapping[str, Any]:
        """Of the invocation."""
        return self.cursor.context if self.cursor else {}

    def private(self) -> dict[str, Any]:
        """All that must be kept out of files and streams, by name: private channels and context."""
        hidden = self.state.private() if self.state is not None else {}
        given = self.cursor
        return hidden | {name: given.context[name] for name in given.private_context} if given else hidden

    def add(self, channel: str, entries: Sequence[Any]) -> None:
        """Add entries to a list channel with the node's updates, whatever reducer it has."""
        self.added.setdefault(channel, []).extend(entries)

    def update(self, tool: str, updates: Sequence[tuple[str, Any]]) -> None:
        """Add the updates of a call of a tool, which were checked, before the node's own."""
        self.updated.append((tool, updates))

    def on_undo(self, callback: Callable[[], None]) -> None:
        """Call `callback` if the attempt ends without a result: what it left in memory is taken back."""
        self._undo.append(callback)

    def undo(self) -> None:
        """The attempt has no result: take back what it left in the memory of agents."""
        while self._undo:
            self._undo.pop()()

    def taint(self, source: str) -> None:
        """Say that something from outside (a tool, file, network) went into what the node writes."""
        if source not in self.tainted_by:
            self.tainted_by.append(source)

    @property
    def sources(self) -> tuple[str, ...]:
        """What came from outside into the attempt so far: brought in, or read in tainted channels."""
        read = self.state.tainted_sources() if self.state is not None else ()
        return tuple(dict.fromkeys((*self.tainted_by, *read)))

    def text(self, text: str, agent: str = "") -> None:
        """Stream a piece of text to whoever watches, and to the step's record."""
        if not text or self._cancelled:
            return
        text = self._without_private(text)
        if self.streamed:
            self.streamed.add(text, agent, self.path, self.attempt)
        if self._sink:
            self._sink(TextStreamed(self.node, agent, text, self.path))

    def _without_private(self, text: str) -> str:
        """A text in which private values are hidden, as far as one piece of it has them whole."""
        if self._hide is None:
            hide = hiding(self.private())
            if self.state is None:  # it gets its state before its node runs
                return str(hide(text))
            self._hide = hide
        return str(self._hide(text))

    def replied(self, agent: str, length: int, calls: int) -> None:
        """Note an answer of an agent's model: how many characters, and how many calls of tools."""
        if self.streamed:
            self.streamed.replied(agent, self.path, self.attempt, (length, calls))

    def model_called(self, use: ModelUse, duration: int) -> None:
        """Count a model call, failed ones included; `duration` in microseconds."""
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
        """Drop what was estimated for agents of which the node itself says what they used."""
        agents = {use.agent for use in exact}
        self.uses = [use for use in self.uses if use.provider != ESTIMATED or use.agent not in agents]

    def tool_called(self, use: ToolUse) -> None:
        """Note a call of a tool that was made now, not one that is served again after an answer."""
        if self.calls is not None:
            self.calls.append(use)

    def report(self, event: Event) -> None:
        """Emit another event that happens below the node."""
        if self._sink and not self._cancelled:
            self._sink(event)

    @property
    def of_node(self) -> Activity:
        """The node as a whole, for what can't be told to be of one of its branches."""
        activity = Activity(self.node, self.attempt, self._sink)
        activity.streamed, activity.state, activity.cursor = self.streamed, self.state, self.cursor
        return activity

    def beside(self, other: Activity) -> bool:
        """Whether both are branches of the same node's run."""
        return self.node == other.node and self._sink == other._sink

    def retrying(self, attempt: int, max_attempts: int, wait: float, error: str) -> None:
        """Say that a call or attempt failed and will be tried again after `wait` seconds."""
        if self._sink:
            self._sink(NodeRetrying(self.node, attempt, max_attempts, wait, error, self.path))


current_activity: ContextVar[Activity | None] = ContextVar("hitl_tui_activity", default=None)

_at_work: Final[dict[Activity, None]] = {}
before_end: Final[list[Callable[[], None]]] = []
"""Called while an attempt that ends is still at work: what it wrote elsewhere can be told as its own."""


def begin_work(activity: Activity) -> Token[Activity | None]:
    """Let code called meanwhile find the activity, and anybody in the process know that it runs.

    Gives what `end_work` takes; a `with` block would take five times as long, with every step.
    """
    _at_work[activity] = None
    return current_activity.set(activity)


def end_work(activity: Activity, token: Token[Activity | None]) -> None:
    """The activity is over, however it went."""
    try:
        for callback in before_end:
            callback()
    finally:
        del _at_work[activity]
        current_activity.reset(token)
        activity.end()


def at_work() -> Activity | None:
    """The only attempt that runs in this process.

    Where several branches of one node run it is the node's as a whole; None where it can't be told.
    """
    running = list(_at_work)
    if not running:
        return None
    first, *more = running
    if not more:
        return first
    return first.of_node if all(map(first.beside, more)) else None
