"""Cassettes: recorded model calls, to run again without a key, a network or costs."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from hitl_tui.agents.backend import (
    CallFailed,
    Finish,
    Message,
    ModelBackend,
    Outcome,
    Piece,
    Thought,
    ToolCall,
    Use,
    rough_size,
)
from hitl_tui.agents.redaction import redactor
from hitl_tui.agents.tempo import TEMPO
from hitl_tui.engine.log.outcomes import rough_tokens
from hitl_tui.errors import UsageError
from hitl_tui.given_files import open_given

VERSION: Final = 1
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NONBLOCK", 0)
"""With this flag, opening a pipe that nobody reads fails instead of waiting."""
_LONGEST_HEADER: Final = 1024
_SHOWN = 60
_encode = msgspec.json.Encoder(order="deterministic").encode


class RecordedRequest(msgspec.Struct, frozen=True):
    """A recorded request to a model; `options` are those that influence the reply."""

    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = []
    options: dict[str, Any] = {}


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A recorded failure of a call; the fields of `CallFailed`."""

    message: str
    hint: str = ""
    retryable: bool = False
    retry_after: float | None = None


class RecordedCall(RecordedRequest, frozen=True, omit_defaults=True, kw_only=True):
    """One recorded model call; `thoughts` and `pieces` are [milliseconds since the last one, text]."""

    agent: str = ""
    thoughts: list[tuple[int, str]] = []
    pieces: list[tuple[int, str]] = []
    calls: list[ToolCall] = []
    finish: Finish | None = None
    use: Use | None = None
    error: Failure | None = None


class _Header(msgspec.Struct):
    cassette: int


class Cassette:
    """A file of model calls, being recorded or played.  Thread-safe.

    Args:
        path: its file.  Recording appends to an existing cassette.
        record: record replies of models; otherwise play recorded ones, and fail on unknown requests.
        pace: of playing: 1 as recorded, 0 at once.

    Raises:
        UsageError: the file can't be read or written, or is not a cassette.
    """

    def __init__(self, path: str | os.PathLike[str], *, record: bool = False, pace: float = 0.0) -> None:
        self.path = Path(path)
        self.recording = record
        self.pace = pace
        self._lock = threading.Lock()
        self._entries: list[RecordedCall] = []
        self._left: dict[bytes, deque[RecordedCall]] = {}
        try:
            if record:
                self._begin()
            else:
                self._load()
        except OSError as error:
            raise UsageError(
                f"the cassette {str(path)!r} can't be used: {error.strerror}", "check the path"
            ) from None

    def __repr__(self) -> str:
        what = "recording" if self.recording else f"{len(self._entries)} calls"
        return f"Cassette({str(self.path)!r}, {what})"

    def add(self, entry: RecordedCall) -> None:
        """Append one call in a single write."""
        with self._lock, self.path.open("ab") as file:
            file.write(_encode(entry) + b"\n")

    def rewind(self) -> None:
        """Make every reply available again."""
        with self._lock:
            self._left = {}
            for entry in self._entries:
                self._left.setdefault(_key(entry), deque()).append(entry)

    def take(self, agent: str, request: RecordedRequest) -> RecordedCall:
        """Return the next recorded reply to exactly this request.

        Raises:
            CallFailed: there is none; names the nearest recorded request and what differs.
        """
        with self._lock:
            left = self._left.get(_key(request))
            if left:
                return left.popleft()
            asked = sum(_key(entry) == _key(request) for entry in self._entries)
        name = self.path.name
        if asked:
            times = "once" if asked == 1 else f"{asked} times"
            raise CallFailed(
                f"agent {agent!r}: the cassette {name} answers this request {times}, and it is asked again",
                "record it again",
            )
        raise CallFailed(
            f"agent {agent!r}: this request is not in the cassette {name}; {self._nearest(agent, request)}",
            "record it again, or run without it",
        )

    def call(self, agent: str, call: ToolCall) -> Outcome | None:
        """Return None, so that the tool is called: a cassette has no tool results."""
        return None

    def _begin(self) -> None:
        if os.path.exists(self.path) and self.path.stat().st_size:
            with open_given(self.path) as file:
                self._check_header(file.readline(_LONGEST_HEADER))
            return
        with os.fdopen(os.open(self.path, _NEW_FILE, 0o600), "wb") as file:
            file.write(_encode(_Header(VERSION)) + b"\n")

    def _load(self) -> None:
        decode = msgspec.json.Decoder(RecordedCall).decode
        with open_given(self.path) as file:
            self._check_header(file.readline(_LONGEST_HEADER))
            for number, line in enumerate(file, 2):
                try:
                    entry = decode(line)
                except (msgspec.MsgspecError, RecursionError) as error:
                    raise UsageError(
                        f"{self.path.name}, line {number}: no recorded call: {error}", "record it again"
                    ) from None
                self._entries.append(entry)
        self.rewind()

    def _check_header(self, line: bytes) -> None:
        try:
            version = msgspec.json.decode(line, type=_Header).cassette
        except (msgspec.MsgspecError, RecursionError):
            raise UsageError(
                f"{self.path.name} is not a cassette", 'its first line would be {"cassette": 1}'
            ) from None
        if version != VERSION:
            raise UsageError(
                f"{self.path.name} is a cassette of version {version}; this program reads {VERSION}",
                "use a newer hitl-tui, or record it again",
            )

    def _nearest(self, agent: str, request: RecordedRequest) -> str:
        known = [entry for entry in self._entries if entry.agent == agent] or self._entries
        if not known:
            return "it is empty"
        nearest = max(known, key=lambda entry: _likeness(entry, request))
        number = self._entries.index(nearest) + 1
        return f"the nearest is call {number}: {_difference(nearest, request)}"


def _key(request: RecordedRequest) -> bytes:
    return _encode((request.model, request.messages, request.tools, request.options))


def _likeness(entry: RecordedCall, request: RecordedRequest) -> tuple[int, float]:
    same = sum(message == other for message, other in zip(entry.messages, request.messages, strict=False))
    first, second = (
        str(exchange.messages[-1].get("content")) if exchange.messages else ""
        for exchange in (entry, request)
    )
    return same, _alike(first, second) / (1 + max(len(first), len(second)))


def _difference(entry: RecordedCall, request: RecordedRequest) -> str:
    """Describe the first difference from the recorded request."""
    for number, (old, new) in enumerate(zip(entry.messages, request.messages, strict=False), 1):
        if old != new:
            recorded, asked = (_content(message) for message in (old, new))
            at = max(0, _alike(recorded, asked) - 10)
            return f"message {number} ({new.get('role')}) was {_part(recorded, at)} and is {_part(asked, at)}"
    if len(entry.messages) != len(request.messages):
        return f"it had {len(entry.messages)} messages and has {len(request.messages)}"
    if entry.model != request.model:
        return f"the model was {entry.model} and is {request.model}"
    if entry.tools != request.tools:
        return "its tools have changed"
    changed = sorted(
        name
        for name in entry.options.keys() | request.options.keys()
        if entry.options.get(name) != request.options.get(name)
    )
    return "; ".join(
        f"{name} was {entry.options.get(name)!r} and is {request.options.get(name)!r}" for name in changed
    )


def _alike(first: str, second: str) -> int:
    """Return the length of the common beginning of two texts."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (letter, other) in pairs if letter != other), min(len(first), len(second)))


def _content(message: dict[str, Any]) -> str:
    if message.get("tool_calls"):
        return str(_encode(message).decode())
    return str(message.get("content"))


def _part(text: str, at: int) -> str:
    part = text[at : at + _SHOWN]
    return repr(f"{'…' if at else ''}{part}{'…' if len(text) > at + _SHOWN else ''}")


class ScriptedCassette(Cassette):
    """Scripted replies and tool results, whatever the requests, for a test of a recorded step.

    Args:
        replies: by agent, its model's replies in order: a text, tool calls, or both.
        results: by tool, the outcomes of its calls in order.
    """

    def __init__(
        self, replies: Mapping[str, Sequence[RecordedCall]], results: Mapping[str, Sequence[Outcome]]
    ) -> None:
        self.recording, self.pace = False, 0.0
        self._lock = threading.Lock()
        self._replies = {agent: deque(said) for agent, said in replies.items()}
        self._results = {tool: deque(outcomes) for tool, outcomes in results.items()}

    def __repr__(self) -> str:
        return f"ScriptedCassette({', '.join(self._replies)})"

    @property
    def left(self) -> dict[str, int]:
        """Return the number of unused replies and results, by agent and tool."""
        left = {agent: len(queue) for agent, queue in self._replies.items()}
        left |= {f"{tool}()": len(queue) for tool, queue in self._results.items()}
        return {name: count for name, count in left.items() if count}

    def take(self, agent: str, request: RecordedRequest) -> RecordedCall:
        """Return the agent's next reply.

        Raises:
            CallFailed: none is left.
        """
        with self._lock:
            if queue := self._replies.get(agent):
                return queue.popleft()
        raise CallFailed(
            f"agent {agent!r}: the script has no answer left", "add one, or look why it is asked again"
        )

    def call(self, agent: str, call: ToolCall) -> Outcome | None:
        """Return the outcome of a tool's next call; None, so that it is called, for an unscripted tool."""
        with self._lock:
            if call.name not in self._results:
                return None
            queue = self._results[call.name]
            if queue:
                return queue.popleft()
        return Outcome(call.arguments, error="the script has no result left")


_in_use: list[Cassette] = []


def in_use() -> Cassette | None:
    """Return the cassette that all agents of the process use, if any."""
    return _in_use[-1] if _in_use else None


@contextmanager
def using(tape: Cassette) -> Iterator[None]:
    """Let all agents of the process use a cassette or script within the block."""
    _in_use.append(tape)
    try:
        yield
    finally:
        _in_use.remove(tape)


@contextmanager
def cassette(path: str | os.PathLike[str], *, record: bool = False, pace: float = 0.0) -> Iterator[Cassette]:
    """Let all agents of the process use a cassette within the block; arguments as in `Cassette`."""
    tape = Cassette(path, record=record, pace=pace)
    with using(tape):
        yield tape


SAMPLING = (
    "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop", "seed",
    "presence_penalty", "frequency_penalty", "reasoning_effort", "response_format", "tool_choice",
)  # fmt: skip
"""Options that influence a model's reply; none of them is secret."""


def sampling(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that influence a model's reply."""
    return {name: options[name] for name in SAMPLING if name in options}


def taped(agent: str, model: str, backend: ModelBackend, own: Cassette | None) -> ModelBackend:
    """Wrap the backend in the agent's own cassette or that of the process, if there is one."""
    tape = own or in_use()
    if tape is None:
        return backend
    return _Recorder(agent, model, backend, tape) if tape.recording else _Player(agent, model, tape)


class _Recorder:
    """Backend that records each call of another one when its reply is complete or has failed."""

    def __init__(self, agent: str, model: str, backend: ModelBackend, tape: Cassette) -> None:
        self._agent = agent
        self._model = model
        self._backend = backend
        self._tape = tape

    def estimate(self, messages: Sequence[Message], text: str) -> Use:
        """Return the backend's estimate."""
        return self._backend.estimate(messages, text)

    async def stream(
        self, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> AsyncGenerator[Piece, None]:
        """Stream the backend's reply; an interrupted call is not recorded."""
        hide = redactor(options)
        request = _request(self._model, messages, options, hide)
        thoughts: list[tuple[int, str]] = []
        pieces: list[tuple[int, str]] = []
        calls: list[ToolCall] = []
        finish: Finish | None = None
        use: Use | None = None
        latest = time.monotonic_ns()
        try:
            async with aclosing(self._backend.stream(messages, options)) as stream:
                async for piece in stream:
                    if isinstance(piece, Use):
                        use = piece
                    elif isinstance(piece, ToolCall):
                        calls.append(ToolCall(piece.name, hide(piece.text), piece.id))
                    elif isinstance(piece, Finish):
                        finish = piece
                    else:
                        now = time.monotonic_ns()
                        written = thoughts if isinstance(piece, Thought) else pieces
                        written.append(((now - latest) // 1_000_000, str(piece)))
                        latest = now
                    yield piece
        except CallFailed as failure:
            hidden = Failure(hide(failure.message), failure.hint, failure.retryable, failure.retry_after)
            self._write(request, error=hidden)
            raise
        self._write(
            request,
            thoughts=_hidden(thoughts, hide),
            pieces=_hidden(pieces, hide),
            calls=calls,
            finish=finish,
            use=use,
        )

    def _write(self, request: RecordedRequest, **came: Any) -> None:
        asked = {name: getattr(request, name) for name in RecordedRequest.__struct_fields__}
        self._tape.add(RecordedCall(agent=self._agent, **asked, **came))


class _Player:
    """Backend that plays a cassette."""

    def __init__(self, agent: str, model: str, tape: Cassette) -> None:
        self._agent = agent
        self._model = model
        self._tape = tape

    def estimate(self, messages: Sequence[Message], text: str) -> Use:
        """Return a rough count, without a price."""
        provider, _, model = self._model.rpartition("/")
        return Use(provider, model, rough_size(messages), rough_tokens(text), None)

    async def stream(
        self, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> AsyncGenerator[Piece, None]:
        """Stream the recorded reply to this request, piece by piece.

        Raises:
            CallFailed: it is not in the cassette, or failed when it was recorded.
        """
        entry = self._tape.take(self._agent, _request(self._model, messages, options, redactor(options)))
        if entry.error:
            error = entry.error
            raise CallFailed(
                error.message, error.hint, retryable=error.retryable, retry_after=error.retry_after
            )
        for kind, written in ((Thought, entry.thoughts), (str, entry.pieces)):
            for wait, text in written:
                if self._tape.pace:
                    await TEMPO.wait(wait / 1000 * self._tape.pace)
                yield kind(text)
        for call in entry.calls:
            yield call
        if entry.finish:
            yield entry.finish
        if entry.use:
            yield entry.use


def _request(
    model: str, messages: Sequence[Message], options: Mapping[str, Any], hide: Callable[[Any], Any]
) -> RecordedRequest:
    return RecordedRequest(
        model, hide(list(messages)), hide(list(options.get("tools", ()))), hide(sampling(options))
    )


def _hidden(pieces: list[tuple[int, str]], hide: Callable[[Any], Any]) -> list[tuple[int, str]]:
    """Hide secrets in pieces; if a secret spans several, the pieces are joined to one."""
    whole = "".join(text for _, text in pieces)
    shown = hide(whole)
    return pieces if shown == whole else [(sum(wait for wait, _ in pieces), shown)]
