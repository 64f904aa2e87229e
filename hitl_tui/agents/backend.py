"""The interface between agents and models of any kind: messages, tool calls, use, failures."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from hitl_tui.engine.log.outcomes import rough_tokens
from hitl_tui.errors import ModelFailed

Message = Mapping[str, Any]
"""One message of a conversation in OpenAI's format: `role` (system, user, assistant, tool) and `content`;
`tool_calls` if a model called tools, `tool_call_id` if a tool answers."""


class ToolCall(msgspec.Struct, frozen=True):
    """A call that a model wants to make; `arguments` as JSON text, or in a script as a mapping."""

    name: str
    arguments: Any = ""
    id: str = ""

    @property
    def text(self) -> str:
        """The arguments as text, as the model wrote them."""
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()

    @property
    def turn(self) -> dict[str, Any]:
        """Return the call as a turn keeps it."""
        arguments = sendable_arguments(self.text)
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


def sendable_arguments(text: Any) -> str:
    """Return arguments that every provider accepts: the JSON object as written, "{}" for anything else."""
    if isinstance(text, Mapping):
        return msgspec.json.encode(text).decode()
    return text if isinstance(text, str) and is_json_object(text) else "{}"


def is_json_object(text: str) -> bool:
    """Whether a text is one complete JSON object."""
    try:
        msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True


class Thought(msgspec.Struct, frozen=True):
    """A piece of a model's thinking; it is shown, but is not part of the reply."""

    text: str

    def __str__(self) -> str:
        return self.text


class Finish(msgspec.Struct, frozen=True):
    """Why a model stopped before its reply was complete.

    Args:
        reason: "length" (its limit of tokens) or "content_filter" (the provider withheld the rest, or the
            model refused).
    """

    reason: Literal["length", "content_filter"]


class Use(msgspec.Struct, frozen=True):
    """What one model call used; `cost` is in US dollars, None if the price is unknown."""

    provider: str
    model: str
    tokens_in: int
    tokens_out: int
    cost: float | None


Piece = str | Thought | ToolCall | Finish | Use
"""What a backend yields: text of the reply, thinking, calls of tools, why it is incomplete, what it used."""


class TokenCount(msgspec.Struct, frozen=True):
    """Tokens sent to the model, and tokens that it wrote."""

    input: int = 0
    output: int = 0


class Tokens(msgspec.Struct, frozen=True):
    """Tokens of the last model call and of all calls of an agent."""

    last: TokenCount = TokenCount()
    total: TokenCount = TokenCount()


class Cost(msgspec.Struct, frozen=True):
    """US dollars of the last model call and of all calls; None if the price is unknown.

    One call without a known price makes the total unknown.  `last` is None before the first call.
    """

    last: float | None = None
    total: float | None = 0.0


class Tally:
    """Running totals of one agent.  Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.tokens = Tokens()
        self.cost = Cost()

    def add(self, use: Use) -> None:
        """Count one model call."""
        with self._lock:
            total = self.tokens.total
            self.tokens = Tokens(
                TokenCount(use.tokens_in, use.tokens_out),
                TokenCount(total.input + use.tokens_in, total.output + use.tokens_out),
            )
            before = self.cost.total
            known = before is not None and use.cost is not None
            self.cost = Cost(use.cost, before + use.cost if known else None)  # type: ignore[operator]


class CallFailed(ModelFailed):
    """One model call failed.

    Args:
        retryable: True for temporary failures: rate limits, timeouts, errors of the server.
        retry_after: seconds that the provider asks to wait, if it does.
    """

    def __init__(
        self, message: str, hint: str = "", *, retryable: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint)
        self.retryable = retryable
        self.retry_after = retry_after


class ModelBackend(Protocol):
    """A model that answers a conversation."""

    def stream(self, messages: Sequence[Message], options: Mapping[str, Any]) -> AsyncGenerator[Piece, None]:
        """Yield the reply in pieces of text, the tools it calls, then what the call used.

        An incomplete reply has a `Finish` before its use.

        It runs on the agents' background loop and must not block it.

        Raises:
            CallFailed: the call failed; what was yielded before is not a complete reply.
        """
        ...

    def estimate(self, messages: Sequence[Message], text: str) -> Use:
        """Estimate what a call that was interrupted after `text` has used. Thread-safe and quick."""
        ...


def rough_size(messages: Sequence[Message]) -> int:
    """Return about how many tokens a conversation has."""
    return sum(rough_tokens(_text(message)) for message in messages)


def _text(message: Message) -> str:
    calls = message.get("tool_calls")
    written = msgspec.json.encode(calls).decode() if calls else ""
    return f"{message.get('content') or ''}{written}"


class Outcome(msgspec.Struct, frozen=True):
    """How a call of a tool ended: its arguments and its result, or its error.

    `ran` says that the tool was called, so that it may have brought in untrusted data; `duration` is
    in microseconds; `updates` are those of channels that the tool made; `note` is what a person changed;
    `is_unknown` says that no result came back, so that the call may have been made.
    """

    arguments: Any
    result: str | None = None
    error: str | None = None
    duration: int = 0
    ran: bool = False
    updates: tuple[tuple[str, Any], ...] = ()
    note: str = ""
    is_unknown: bool = False

    @property
    def reply(self) -> str:
        """The text that the model gets."""
        text = self.result if self.result is not None else f"Error: {self.error}"
        return f"{self.note}\n{text}" if self.note else text
