"""Between an agent and its model: writing calls to a cassette, or answering from one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from hitl_tui.agents.backend import (
    CallFailed,
    Message,
    ModelBackend,
    ToolCall,
    Use,
    rough_size,
    rough_tokens,
)
from hitl_tui.agents.cassettes import Cassette, Entry, Failure, Request, in_use
from hitl_tui.agents.redaction import redactor

SAMPLING = (
    "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop", "seed",
    "presence_penalty", "frequency_penalty", "reasoning_effort", "response_format", "tool_choice",
)  # fmt: skip
"""Options that change what a model says; none of them holds a key."""


def sampling(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that change what a model says."""
    return {name: options[name] for name in SAMPLING if name in options}


def taped(agent: str, model: str, backend: ModelBackend, own: Cassette | None) -> ModelBackend:
    """The backend, with the agent's own cassette or that of the process between."""
    tape = own or in_use()
    if tape is None:
        return backend
    return _Recorder(agent, model, backend, tape) if tape.recording else _Player(agent, model, tape)


class _Recorder:
    """Passes everything on and writes it down once the reply is whole, or has failed."""

    def __init__(self, agent: str, model: str, backend: ModelBackend, tape: Cassette) -> None:
        self._agent = agent
        self._model = model
        self._backend = backend
        self._tape = tape

    def estimate(self, messages: Sequence[Message], text: str) -> Use:
        """As the backend's."""
        return self._backend.estimate(messages, text)

    async def stream(
        self, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> AsyncGenerator[str | ToolCall | Use, None]:
        """As the backend's; a call that is given up is not written down."""
        hide = redactor(options)
        request = _request(self._model, messages, options, hide)
        pieces: list[tuple[int, str]] = []
        calls: list[ToolCall] = []
        use: Use | None = None
        latest = time.monotonic_ns()
        try:
            async with aclosing(self._backend.stream(messages, options)) as stream:
                async for piece in stream:
                    if isinstance(piece, Use):
                        use = piece
                    elif isinstance(piece, ToolCall):
                        calls.append(ToolCall(piece.name, hide(piece.text), piece.id))
                    else:
                        now = time.monotonic_ns()
                        pieces.append(((now - latest) // 1_000_000, piece))
                        latest = now
                    yield piece
        except CallFailed as failure:
            told = Failure(hide(failure.message), failure.hint, failure.retryable, failure.retry_after)
            self._write(request, error=told)
            raise
        self._write(request, pieces=_hidden(pieces, hide), calls=calls, use=use)

    def _write(self, request: Request, **came: Any) -> None:
        asked = {name: getattr(request, name) for name in Request.__struct_fields__}
        self._tape.add(Entry(agent=self._agent, **asked, **came))


class _Player:
    """Answers from a cassette alone."""

    def __init__(self, agent: str, model: str, tape: Cassette) -> None:
        self._agent = agent
        self._model = model
        self._tape = tape

    def estimate(self, messages: Sequence[Message], text: str) -> Use:
        """A rough count, without a price."""
        provider, _, model = self._model.rpartition("/")
        return Use(provider, model, rough_size(messages), rough_tokens(text), None)

    async def stream(
        self, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> AsyncGenerator[str | ToolCall | Use, None]:
        """What was recorded for this request, piece by piece.

        Raises:
            CallFailed: it is not in the cassette, or failed when it was recorded.
        """
        entry = self._tape.take(self._agent, _request(self._model, messages, options, redactor(options)))
        if entry.error:
            error = entry.error
            raise CallFailed(
                error.message, error.hint, retryable=error.retryable, retry_after=error.retry_after
            )
        for wait, text in entry.pieces:
            if self._tape.pace:
                await asyncio.sleep(wait / 1000 * self._tape.pace)
            yield text
        for call in entry.calls:
            yield call
        if entry.use:
            yield entry.use


def _request(
    model: str, messages: Sequence[Message], options: Mapping[str, Any], hide: Callable[[Any], Any]
) -> Request:
    return Request(model, hide(list(messages)), hide(list(options.get("tools", ()))), hide(sampling(options)))


def _hidden(pieces: list[tuple[int, str]], hide: Callable[[Any], Any]) -> list[tuple[int, str]]:
    """The pieces without secrets; one that was cut across pieces makes them one piece."""
    whole = "".join(text for _, text in pieces)
    shown = hide(whole)
    return pieces if shown == whole else [(sum(wait for wait, _ in pieces), shown)]
