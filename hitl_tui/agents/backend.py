"""What an agent asks of a model: one protocol, so that a script can stand where a provider does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from hitl_tui.errors import ModelFailed

Message = Mapping[str, str]
"""One message of a conversation: `role` (system, user, assistant) and `content`."""


class Use(msgspec.Struct, frozen=True):
    """What one model call used; `cost` in US dollars, None where the price is unknown."""

    provider: str
    model: str
    tokens_in: int
    tokens_out: int
    cost: float | None


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

    def stream(
        self, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> AsyncGenerator[str | Use, None]:
        """Yield the reply in pieces of text, then what the call used.

        Runs on the agents' background loop and must not block it.

        Raises:
            CallFailed: the call failed; what was yielded before is not a whole reply.
        """
        ...

    def estimate(self, messages: Sequence[Message], text: str) -> Use:
        """What a call that broke off after `text` probably used.  Thread-safe and quick."""
        ...


def rough_tokens(text: str) -> int:
    """About how many tokens `text` is: four characters each, the usual rule of thumb."""
    return -(-len(text) // 4)
