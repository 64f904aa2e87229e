"""A model that follows a script: for demos, tests and rehearsals, without keys or network."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import re
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from hitl_tui.agents.backend import (
    CallFailed,
    Finish,
    Message,
    Piece,
    ToolCall,
    Use,
    rough_size,
)
from hitl_tui.agents.tempo import TEMPO
from hitl_tui.engine.log.outcomes import rough_tokens
from hitl_tui.errors import UsageError

_PIECE = re.compile(r"\s*\S{1,12}")


Reply = str | ToolCall | Mapping[str, Any] | Sequence[str | ToolCall | Finish] | Exception
"""A scripted reply: a text; a `ToolCall`; a list of texts and calls in one reply, which ends with a `Finish`
if the reply is incomplete; a mapping, written as JSON for a structured answer; or an error with which
the call fails."""


class ScriptedModel:
    """Streams given replies at the pace of a model.

    The same conversation and seed give the same pieces, waits and token counts in every process.

    Args:
        replies: replies served in order, or a function (sync or async) from the messages to a reply.
            A sync function runs in a worker thread. If a call is stopped, its reply is served again.
        pace: tokens a second; 0 writes at once.
        seed: for the jitter between pieces.
        name: "provider/model", or a model name, for cost reports.
    """

    def __init__(
        self,
        replies: Sequence[Reply] | Callable[[Sequence[Message]], Any],
        *,
        pace: float = 70.0,
        seed: int = 0,
        name: str = "scripted",
    ) -> None:
        if isinstance(replies, str):
            raise UsageError("replies is text", f"give a list of replies: ScriptedModel([{replies[:20]!r}])")
        self._reply = replies if callable(replies) else None
        self._left = deque(() if callable(replies) else replies)
        self._served = len(self._left)
        self._lock = threading.Lock()
        self._pace = pace
        self._seed = seed
        provider, _, self._model = name.rpartition("/")
        self._provider = provider or "scripted"

    def __repr__(self) -> str:
        return f"{self._provider}/{self._model}"

    def estimate(self, messages: Sequence[Message], text: str) -> Use:
        """Return what a call with this reply uses, by the script's rough count. A script costs nothing."""
        return Use(self._provider, self._model, rough_size(messages), rough_tokens(text), 0.0)

    async def stream(
        self, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> AsyncGenerator[Piece, None]:
        """Yield the next reply in pieces of about a word, then its use; `options` are ignored.

        Raises:
            CallFailed: the script has no reply left.
            Exception: the one in the script.
        """
        reply = await self._ask(messages) if self._reply else self._next()
        if isinstance(reply, Exception):
            raise reply
        text, calls, finish = _said(reply)
        whole = False
        try:
            pieces = _in_pieces(text)
            to_first_token, *between = waits(pieces, self._pace, self._seed)
            if self._pace:
                await TEMPO.wait(to_first_token)
            for piece, wait in zip(pieces, between, strict=True):
                if self._pace:
                    await TEMPO.wait(wait)
                yield piece
            for call in calls:
                yield call
            if finish:
                yield finish
            whole = True
        finally:
            if not whole and self._reply is None:
                with self._lock:
                    self._left.appendleft(reply)
        yield self.estimate(messages, text + "".join(call.name + call.text for call in calls))

    async def _ask(self, messages: Sequence[Message]) -> Any:
        if inspect.iscoroutinefunction(self._reply):
            return await self._reply(messages)
        return await asyncio.to_thread(self._reply, messages)  # type: ignore[arg-type]

    def _next(self) -> Reply:
        with self._lock:
            if not self._left:
                raise CallFailed(
                    f"{self!r}: the script has no reply left ({self._served} used)",
                    "give it more replies, or a function",
                )
            return self._left.popleft()


def _said(reply: Reply) -> tuple[str, list[ToolCall], Finish | None]:
    """Return the text and the calls of a reply, and why it is incomplete."""
    if isinstance(reply, str):
        return reply, [], None
    if isinstance(reply, Mapping):
        return json.dumps(reply, ensure_ascii=False), [], None
    parts = [reply] if isinstance(reply, ToolCall) else list(reply)  # type: ignore[arg-type]
    text = "".join(part for part in parts if isinstance(part, str))
    finish = next((part for part in parts if isinstance(part, Finish)), None)
    return text, [part for part in parts if isinstance(part, ToolCall)], finish


def waits(pieces: Sequence[str], pace: float, seed: int) -> list[float]:
    """Return the seconds before the first token and each of `pieces`, at `pace` tokens a second (0: none)."""
    if not pace:
        return [0.0] * (1 + len(pieces))
    jitter = random.Random(f"{seed}:{''.join(pieces)}")
    to_first_token = jitter.uniform(0.3, 0.6)
    return [to_first_token, *(len(piece) / 4 / pace * jitter.uniform(0.4, 1.6) for piece in pieces)]


def _in_pieces(text: str) -> list[str]:
    """Cut a text into pieces of about a word that join to the same text."""
    pieces = _PIECE.findall(text)
    tail = text[sum(map(len, pieces)) :]
    return [*pieces, tail] if tail else pieces
