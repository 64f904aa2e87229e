"""A running node: what it tells the world while it works, and what it got from outside (SPEC 5, 11)."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final, NoReturn

from hitl_tui.engine.log.events import Event, ModelCalled, NodeRetrying, TextStreamed
from hitl_tui.engine.log.outcomes import Exchange, Frame, ModelUse, StreamedText, ToolUse

if TYPE_CHECKING:
    from hitl_tui.engine.log.records import Cursor
    from hitl_tui.engine.state.workflow_state import WorkflowState


MISSING: Final = object()


class Memory:
    """What was kept of earlier tries of an attempt, and what this one adds.  Thread-safe."""

    def __init__(self, kept: Sequence[Exchange] = ()) -> None:
        self._lock = threading.Lock()
        self._values = {exchange.key: exchange.value for exchange in kept}
        self._asked: dict[str, int] = {}

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All of it, oldest first, as it is stored with a request."""
        with self._lock:
            return tuple(Exchange(key, value) for key, value in self._values.items())

    def slot(self, key: str) -> str:
        """The key for the next time the same thing is asked in this try."""
        with self._lock:
            number = self._asked.get(key, 0) + 1
            self._asked[key] = number
            return f"{key}.{number}"

    def recall(self, key: str) -> Any:
        """What was got under a key, or `MISSING`."""
        return self._values.get(key, MISSING)

    def keep(self, key: str, value: Any) -> None:
        """Keep JSON under a key."""
        with self._lock:
            self._values[key] = value


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
    before_tool: Callable[[str, Any, str], None] | None = None
    """Told of each call of a tool that will be made now: its name, its arguments, and what names the call;
    raises where a breakpoint stands there."""
    on_return: Callable[[tuple[Frame, ...]], None] | None = None
    """Gets the frame of the node's function as it returns; None where nobody asks for it."""
    state: WorkflowState | None = None
    """What the node may read; None outside a graph."""
    first_input: Callable[[str], Any] = staticmethod(lambda _channel: None)
    """What began the run, by channel; see `NodeConfig.first_input`."""
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
        """What is not asked or done again when a human's answer restarts the node."""
        if self._memory is None:
            self._memory = Memory(self.kept)
        return self._memory

    @property
    def in_flight(self) -> InFlight:
        """The calls of models and tools that are being made now."""
        if self._in_flight is None:
            self._in_flight = InFlight()
        return self._in_flight

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
    def exchanges(self) -> tuple[Exchange, ...]:
        """What to store with a request, so that a restart of the node finds it again."""
        return self._memory.exchanges if self._memory else self.kept

    @property
    def kept(self) -> tuple[Exchange, ...]:
        """What earlier tries of this attempt got from outside, before they asked a human."""
        return self.cursor.exchanges if self.cursor else ()

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
        """Say that something from outside (a tool, file, network) went into what the node writes (SPEC 8)."""
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
        if self.streamed:
            self.streamed.add(text, agent, self.path, self.attempt)
        if self._sink:
            self._sink(TextStreamed(self.node, agent, text, self.path))

    def replied(self, agent: str, length: int, calls: int) -> None:
        """Note an answer of an agent's model: how many characters, and how many calls of tools."""
        if self.streamed:
            self.streamed.replied(agent, self.path, self.attempt, (length, calls))

    def model_called(self, use: ModelUse, duration: int) -> None:
        """Count a model call, failed ones included; `duration` in microseconds."""
        self.uses.append(use)
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

    def tool_called(self, use: ToolUse) -> None:
        """Note a call of a tool that was made now, not one that is served again after an answer."""
        if self.calls is not None:
            self.calls.append(use)

    def tell(self, event: Event) -> None:
        """Tell something else that happens below the node."""
        if self._sink and not self._cancelled:
            self._sink(event)

    @property
    def of_node(self) -> Activity:
        """The node as a whole, for what can't be told to be of one of its branches."""
        activity = Activity(self.node, self.attempt, self._sink)
        activity.streamed = self.streamed
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
