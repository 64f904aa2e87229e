"""Counts what an agent uses, and tells the running activity."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import msgspec

from hitl_tui.agents.backend import Message, ModelBackend, Use
from hitl_tui.engine.nodes.activity import Activity, ModelUse


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


class Meter:
    """Meters the model calls behind one prompt, each exactly once.

    The loop that makes a call and the thread that waits for it may both end it: the first wins.
    """

    def __init__(
        self,
        agent: str,
        backend: ModelBackend,
        tally: Tally,
        activity: Activity | None,
    ) -> None:
        self._agent = agent
        self._backend = backend
        self._messages: Sequence[Message] = ()
        self._tally = tally
        self._activity = activity
        self._lock = threading.Lock()
        self._abandoned = False
        self._started: int | None = None
        self._text: list[str] = []

    @property
    def streamed(self) -> bool:
        """True once the call under way, or the last one, has written text."""
        return bool(self._text)

    def open(self, messages: Sequence[Message]) -> None:
        """A model call with these messages begins."""
        with self._lock:
            self._messages = messages
            self._text = []
            self._started = None if self._abandoned else time.monotonic_ns()

    def piece(self, text: str) -> None:
        """The call under way wrote `text`."""
        with self._lock:
            if self._started is None:
                return
            self._text.append(text)
        if self._activity:
            self._activity.text(text, agent=self._agent)

    def wrote(self, text: str) -> None:
        """The call under way wrote what is not shown as text: the arguments of a tool."""
        with self._lock:
            self._text.append(text)

    def close(self, use: Use | None) -> None:
        """The call under way ended; without `use` it is estimated from the text, if there is any."""
        with self._lock:
            started, self._started = self._started, None
            text = "".join(self._text)
        if started is None:
            return
        if use is None and text:
            use = self._backend.estimate(self._messages, text)
        if use is None:
            return
        self._tally.add(use)
        if self._activity:
            told = ModelUse(self._agent, use.provider, use.model, use.tokens_in, use.tokens_out, use.cost)
            self._activity.model_called(told, (time.monotonic_ns() - started) // 1000)

    def abandon(self) -> None:
        """Nobody waits any more: count what was used, then take nothing further."""
        self._abandoned = True
        self.close(None)
