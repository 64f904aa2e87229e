"""What an agent asks of a model, whoever answers for it: messages, tool calls, use, failures."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from hitl_tui.engine.log.outcomes import rough_tokens
from hitl_tui.errors import ModelFailed

Message = Mapping[str, Any]
"""One message of a conversation, as OpenAI writes it: `role` (system, user, assistant, tool) and `content`;
`tool_calls` where a model called tools, `tool_call_id` where a tool answers."""


class ToolCall(msgspec.Struct, frozen=True):
    """A call that a model asks for; `arguments` as JSON text, or in a script as the mapping itself."""

    name: str
    arguments: Any = ""
    id: str = ""

    @property
    def text(self) -> str:
        """The arguments as JSON text, whatever a model made of them."""
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()

    @property
    def turn(self) -> dict[str, Any]:
        """The call as a turn keeps it."""
        arguments = sendable_arguments(self.text)
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


def sendable_arguments(text: Any) -> str:
    """Arguments that every provider takes back: the JSON object as it is written, "{}" for anything else."""
    if isinstance(text, Mapping):
        return msgspec.json.encode(text).decode()
    return text if isinstance(text, str) and is_json_object(text) else "{}"


def is_json_object(text: str) -> bool:
    """Whether a text is one whole JSON object."""
    try:
        msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True


class Thought(msgspec.Struct, frozen=True):
    """A piece of a model's thinking, which is shown and is no part of its reply."""

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
    """What one model call used; `cost` in US dollars, None where the price is unknown."""

    provider: str
    model: str
    tokens_in: int
    tokens_out: int
    cost: float | None


Piece = str | Thought | ToolCall | Finish | Use
"""What a backend yields: text of the reply, thinking, calls of tools, why it is incomplete, what it used."""


class TokenCount(msgspec.Struct, frozen=True):
    """Tokens sent to the model and tokens it wrote."""

    input: int = 0
    output: int = 0


class Tokens(msgspec.Struct, frozen=True):
    """Tokens of the last model call and of all calls of an agent."""

    last: TokenCount = TokenCount()
    total: TokenCount = TokenCount()


class Cost(msgspec.Struct, frozen=True):
    """US dollars of the last model call and of all; None where the price is unknown.

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
        retryable: True for failures that may pass: rate limits, timeouts, a server's own errors.
        retry_after: seconds the provider asks to wait, where it said so.
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

        A reply that is not complete has a `Finish` before its use.

        Runs on the agents' background loop and must not block it.

        Raises:
            CallFailed: the call failed; what was yielded before is not a whole reply.
        """
        ...

    def estimate(self, messages: Sequence[Message], text: str) -> Use:
        """What a call that broke off after `text` probably used.  Thread-safe and quick."""
        ...


def rough_size(messages: Sequence[Message]) -> int:
    """About how many tokens a conversation is."""
    return sum(rough_tokens(_text(message)) for message in messages)


def _text(message: Message) -> str:
    calls = message.get("tool_calls")
    written = msgspec.json.encode(calls).decode() if calls else ""
    return f"{message.get('content') or ''}{written}"


class Outcome(msgspec.Struct, frozen=True):
    """How a call of a tool ended: the arguments it ran with and its result, or what went wrong.

    `ran` says that the tool was called, so that something from outside may have come in; `duration` is
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
        """What the model reads."""
        text = self.result if self.result is not None else f"Error: {self.error}"
        return f"{self.note}\n{text}" if self.note else text
