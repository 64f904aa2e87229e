"""Cassettes: files of model exchanges, to run again without a key, a network or a cent.

JSON lines, version 1.  The first line is `{"cassette": 1}`; each other line is one model call: who asked
(`agent`, `model`), what was asked (`messages`, `tools`, `options`), and what came (`pieces` of text with the
milliseconds before each, `calls` of tools, `use`; or `error`).  Keys and the values of private channels are
not in it: `[secret]` and `[private: CHANNEL]` stand for them, and for comparing a request too.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from hitl_tui.agents.backend import CallFailed, ToolCall, Use
from hitl_tui.errors import UsageError

VERSION: Final = 1
_SHOWN = 60
_encode = msgspec.json.Encoder(order="deterministic").encode


class Request(msgspec.Struct, frozen=True):
    """What a model was asked; `options` are those that change what it says."""

    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = []
    options: dict[str, Any] = {}


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a call failed, as `CallFailed` says it."""

    message: str
    hint: str = ""
    retryable: bool = False
    retry_after: float | None = None


class Entry(Request, frozen=True, omit_defaults=True, kw_only=True):
    """One model call; `pieces` are [milliseconds since the one before, text]."""

    agent: str = ""
    pieces: list[tuple[int, str]] = []
    calls: list[ToolCall] = []
    use: Use | None = None
    error: Failure | None = None


class _Header(msgspec.Struct):
    cassette: int


class Cassette:
    """A file of model exchanges, either being written or being served from.  Thread-safe.

    Args:
        path: where it is.  Recording adds to a cassette that is there already.
        record: write what models say; otherwise say what is written, and fail on anything else.
        pace: of what is served: 1 as it was recorded, 0 at once.

    Raises:
        UsageError: the file can't be read or written, or is no cassette.
    """

    def __init__(self, path: str | os.PathLike[str], *, record: bool = False, pace: float = 0.0) -> None:
        self.path = Path(path)
        self.recording = record
        self.pace = pace
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._left: dict[bytes, deque[Entry]] = {}
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

    def add(self, entry: Entry) -> None:
        """Write one call down, at once and whole."""
        with self._lock, self.path.open("ab") as file:
            file.write(_encode(entry) + b"\n")

    def take(self, agent: str, request: Request) -> Entry:
        """The next recorded answer to exactly this request.

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
            raise CallFailed(
                f"agent {agent!r}: the cassette {name} answers this request {_times(asked)}, "
                "and it is asked again",
                "record it anew",
            )
        raise CallFailed(
            f"agent {agent!r}: this request is not in the cassette {name}; {self._nearest(agent, request)}",
            "record it anew, or run without it",
        )

    def _begin(self) -> None:
        if self.path.exists() and self.path.stat().st_size:
            with self.path.open("rb") as file:
                self._check_header(file.readline())
            return
        with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(_encode(_Header(VERSION)) + b"\n")

    def _load(self) -> None:
        decode = msgspec.json.Decoder(Entry).decode
        with self.path.open("rb") as file:
            self._check_header(file.readline())
            for number, line in enumerate(file, 2):
                try:
                    entry = decode(line)
                except (msgspec.MsgspecError, RecursionError) as error:
                    raise UsageError(
                        f"{self.path.name}, line {number}: no recorded call: {error}", "record it anew"
                    ) from None
                self._entries.append(entry)
                self._left.setdefault(_key(entry), deque()).append(entry)

    def _check_header(self, line: bytes) -> None:
        try:
            version = msgspec.json.decode(line, type=_Header).cassette
        except (msgspec.MsgspecError, RecursionError):
            raise UsageError(
                f"{self.path.name} is no cassette", 'its first line would be {"cassette": 1}'
            ) from None
        if version != VERSION:
            raise UsageError(
                f"{self.path.name} is a cassette of version {version}; this program reads {VERSION}",
                "use a newer hitl-tui, or record it anew",
            )

    def _nearest(self, agent: str, request: Request) -> str:
        known = [entry for entry in self._entries if entry.agent == agent] or self._entries
        if not known:
            return "it is empty"
        nearest = max(known, key=lambda entry: _likeness(entry, request))
        number = self._entries.index(nearest) + 1
        return f"the nearest is call {number}: {_difference(nearest, request)}"


def _key(request: Request) -> bytes:
    return _encode((request.model, request.messages, request.tools, request.options))


def _likeness(entry: Entry, request: Request) -> tuple[int, float]:
    same = sum(one == other for one, other in zip(entry.messages, request.messages, strict=False))
    first, second = (str(one.messages[-1].get("content")) if one.messages else "" for one in (entry, request))
    return same, _alike(first, second) / (1 + max(len(first), len(second)))


def _difference(entry: Entry, request: Request) -> str:
    """The first thing that is not as it was recorded, in words."""
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
    """How many characters two texts begin with in common."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))


def _content(message: dict[str, Any]) -> str:
    if message.get("tool_calls"):
        return str(_encode(message).decode())
    return str(message.get("content"))


def _part(text: str, at: int) -> str:
    part = text[at : at + _SHOWN]
    return repr(f"{'…' if at else ''}{part}{'…' if len(text) > at + _SHOWN else ''}")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


_in_use: list[Cassette] = []


def in_use() -> Cassette | None:
    """The cassette that all agents of the process use, where there is one."""
    return _in_use[-1] if _in_use else None


@contextmanager
def cassette(path: str | os.PathLike[str], *, record: bool = False, pace: float = 0.0) -> Iterator[Cassette]:
    """Let all agents of the process use a cassette within the block; arguments as in `Cassette`."""
    one = Cassette(path, record=record, pace=pace)
    _in_use.append(one)
    try:
        yield one
    finally:
        _in_use.remove(one)
