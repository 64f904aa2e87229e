"""One prompt and its reply: model calls, retries, tools. Every kind of chat uses it."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import aclosing, contextmanager
from hashlib import sha256
from typing import Any

import msgspec

from hitl_tui.agents.backend import CallFailed, Message, ModelBackend, Tally, ToolCall, Use
from hitl_tui.agents.cassettes import sampling
from hitl_tui.agents.replies import CUT_CALL, ReplyReader, sendable_calls
from hitl_tui.agents.tool_calls import ToolBox
from hitl_tui.agents.turns import sendable_turns
from hitl_tui.engine.nodes.activity import MISSING, Activity, AttemptCancelled, ModelUse
from hitl_tui.errors import ModelFailed

LONGEST_WAIT = 60.0
"""Seconds; if a provider asks for a longer pause, the call fails instead of waiting."""

_FIRST_WAIT = 0.5


def wait_before_retry(failure: CallFailed, attempt: int, max_attempts: int) -> float | None:
    """Return the seconds to wait before the next attempt, or None if there should be none.

    A provider's Retry-After is respected; otherwise the wait doubles, with jitter, so that branches of a map
    that failed together don't try again together.

    Args:
        failure: how attempt number `attempt` (from 1) failed.
        max_attempts: the highest number of attempts.
    """
    if attempt >= max_attempts or not failure.retryable:
        return None
    if failure.retry_after is not None:
        return failure.retry_after if failure.retry_after <= LONGEST_WAIT else None
    return min(_FIRST_WAIT * 2.0 ** (attempt - 1) * random.uniform(0.75, 1.25), LONGEST_WAIT)


class Meter:
    """Counts the model calls of one prompt, each exactly once.

    The loop that makes a call and the thread that waits for it may both end it: only the first one counts.
    """

    def __init__(self, agent: str, backend: ModelBackend, tally: Tally, activity: Activity | None) -> None:
        self._agent = agent
        self._backend = backend
        self._messages: Sequence[Message] = ()
        self._tally = tally
        self._activity = activity
        self._lock = threading.Lock()
        self._abandoned = False
        self._started: int | None = None
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._length = self._calls = 0
        self._uses: list[ModelUse] = []

    def take_new_uses(self) -> list[ModelUse]:
        """Return what was used since the last call of this method, including failed attempts."""
        with self._lock:
            uses, self._uses = self._uses, []
        return uses

    @property
    def streamed(self) -> bool:
        """Whether the current or last call has written text."""
        return bool(self._text)

    def open(self, messages: Sequence[Message]) -> None:
        """Start a model call with these messages."""
        with self._lock:
            self._messages = messages
            self._text, self._thoughts = [], []
            self._length = self._calls = 0
            self._started = None if self._abandoned else time.monotonic_ns()

    def piece(self, text: str) -> None:
        """Take a piece of text of the current call."""
        with self._lock:
            if self._started is None:
                return
            self._text.append(text)
            self._length += len(text)
        if self._activity:
            self._activity.text(text, agent=self._agent)

    def thought(self, text: str) -> None:
        """Take a piece of thinking; it is shown under a separate name, since it is not part of the reply."""
        with self._lock:
            if self._started is None:
                return
            self._thoughts.append(text)
        if self._activity:
            self._activity.text(text, agent=f"{self._agent} (thinking)")

    def wrote(self, text: str) -> None:
        """Take text that is not shown: the arguments of a tool."""
        with self._lock:
            self._text.append(text)
            self._calls += 1

    def close(self, use: Use | None) -> None:
        """End the current call; without `use` it is estimated from the text, if there is any."""
        with self._lock:
            started, self._started = self._started, None
            text = "".join((*self._thoughts, *self._text))
        if started is None:
            return
        if self._activity:
            self._activity.replied(self._agent, self._length, self._calls)
        if use is None and text:
            use = self._backend.estimate(self._messages, text)
        if use is None:
            return
        self._tally.add(use)
        if self._activity:
            counted = ModelUse(self._agent, use.provider, use.model, use.tokens_in, use.tokens_out, use.cost)
            self._uses.append(counted)
            self._activity.model_called(counted, (time.monotonic_ns() - started) // 1000)

    def stop_counting(self) -> None:
        """Stop counting, because nobody waits for the reply: count what was used so far."""
        self._abandoned = True
        self.close(None)


Emit = Callable[[str], None]
Read = Callable[[str], Any]


class Misfit(ValueError):
    """A reply that does not fit the schema; the text tells the model what is wrong."""


class ModelReply(msgspec.Struct, frozen=True):
    """What a model said in one call: text, calls of tools, or both."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    is_cut: bool = False
    """Whether it reached its token limit while it wrote calls, so that none of them may be made."""

    @property
    def turn(self) -> Message:
        """Return the reply as a turn."""
        turn: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.calls:
            turn["tool_calls"] = [call.turn for call in self.calls]
        return turn


class AgentSetup(msgspec.Struct, frozen=True):
    """The settings of an agent, which are fixed while it answers one prompt.

    Attributes:
        system: the system message, if there is one.
        max_rounds: how often the model may call tools.
        max_attempts: how often one model call is attempted.
    """

    agent: str
    model: str
    backend: ModelBackend
    options: Mapping[str, Any]
    system: Sequence[Message]
    toolbox: ToolBox
    max_rounds: int
    max_attempts: int

    def digest(self, prompt: str) -> str:
        """Return a key for a prompt with these settings.

        Earlier turns are left out: they are not part of the state, and another process that continues a
        waiting node does not have them.
        """
        tools: list[object] = [tool.schema for tool in self.toolbox.tools.values()]
        # The tools of a server are only known once it runs, so they are left out.
        tools += [repr(server) for server in self.toolbox.servers]
        asked = (self.agent, self.model, self.system, prompt, tools, sampling(self.options))
        return sha256(msgspec.json.encode(asked, enc_hook=repr, order="deterministic")).hexdigest()[:32]


class ChatExchange:
    """One prompt and the conversation before it.

    Args:
        turns: the conversation before it.
        conversation: which conversation it belongs to.
    """

    def __init__(
        self,
        setup: AgentSetup,
        prompt: str,
        turns: Sequence[Message],
        *,
        conversation: int,
        tally: Tally,
        activity: Activity | None,
    ) -> None:
        self.conversation = conversation
        self.activity = activity
        self.new: list[Message] = [{"role": "user", "content": prompt}]
        self._setup = setup
        self._before = [*setup.system, *sendable_turns(turns)]
        self._meter = Meter(setup.agent, setup.backend, tally, activity)
        self._slot = activity.slot(setup.digest(prompt)) if activity else ""
        self._said = 0

    def check(self) -> None:
        """Raise `AttemptCancelled` if the node's attempt was stopped."""
        if self.activity and self.activity.cancelled:
            raise AttemptCancelled

    @contextmanager
    def cancelling_with_attempt(self, call: Future[Any]) -> Iterator[None]:
        """Cancel `call` as soon as the attempt is stopped or the caller leaves the context."""

        def give_up() -> None:
            call.cancel()

        unsubscribe = self.activity.on_cancel(give_up) if self.activity else None
        try:
            yield
        except (CancelledError, asyncio.CancelledError):
            self.check()
            raise
        finally:
            if unsubscribe:
                unsubscribe()
            call.cancel()
            self._meter.stop_counting()

    async def answer(self, emit: Emit, read: Read | None = None) -> Any:
        """Return the reply, or the result of `read` on it; runs on the background loop.

        If `read` raises `Misfit`, the reply is sent back once with what is wrong.

        Raises:
            ModelFailed: no complete reply, too many rounds of tools, or a second misfit.
        """
        text = await self._converse(emit)
        if read is None:
            return text
        try:
            return read(text)
        except Misfit as problem:
            wrong = len(self.new) - 1
            self.new.append({"role": "user", "content": f"{problem}\nAnswer again."})
            text = await self._converse(emit)
            del self.new[wrong : wrong + 2]  # the conversation continues from the good answer
        try:
            return read(text)
        except Misfit as problem:
            raise ModelFailed(
                f"agent {self._setup.agent!r}: {self._setup.model} gave no valid answer "
                f"in two tries: {problem}",
                "ask for less at once, or a stronger model",
            ) from None

    async def _converse(self, emit: Emit) -> str:
        """Call the model and the tools that it asks for, until it replies with text."""
        for round_ in range(self._setup.max_rounds + 1):
            key = f"{self._slot}/{self._said}"
            self._said += 1
            said = await self._reply(key, emit)
            self.new.append(said.turn)
            if not said.calls:
                return said.text
            if round_ == self._setup.max_rounds:
                break
            for number, call in enumerate(said.calls):
                self.check()
                result = await self._setup.toolbox.make(
                    call, self.activity, f"{key}/{number}", problem=CUT_CALL if said.is_cut else ""
                )
                self.new.append({"role": "tool", "tool_call_id": call.id, "content": result})
        raise ModelFailed(
            f"agent {self._setup.agent!r}: {self._setup.model} still calls tools after "
            f"{self._setup.max_rounds} rounds",
            "give the agent a larger max_tool_rounds, or clearer tools",
        )

    async def _reply(self, key: str, emit: Emit) -> ModelReply:
        """Return what the model says next.

        What it said in an earlier attempt of the node is not requested again.
        """
        memory = self.activity.memory if self.activity else None
        kept = memory.recall(f"reply:{key}") if memory else MISSING
        if kept is not MISSING:
            said = msgspec.convert(kept, ModelReply)
            if self.activity:
                self.activity.text(said.text, agent=self._setup.agent)
                self.activity.replied(self._setup.agent, len(said.text), len(said.calls))
            emit(said.text)
            return said
        if self.activity is None:
            return await self._with_retries(emit)
        async with self.activity.in_flight.call():
            said = await self._with_retries(emit)
            uses = self._meter.take_new_uses()
            await self.activity.record(f"reply:{key}", msgspec.to_builtins(said), uses=uses)
            return said

    async def _with_retries(self, emit: Emit) -> ModelReply:
        most = self._setup.max_attempts
        for attempt in range(1, most + 1):
            if self.activity:
                await self.activity.stop_at_limit()
            try:
                return await self._call_model(emit)
            except CallFailed as failure:
                wait = wait_before_retry(failure, attempt, most)
                if wait is None or self._meter.streamed:
                    raise
                if self.activity:
                    self.activity.retrying(attempt, most, wait, failure.message)
                await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _call_model(self, emit: Emit) -> ModelReply:
        setup = self._setup
        messages = [*self._before, *self.new]
        options = dict(setup.options)
        if tools := await setup.toolbox.offered():
            options["tools"] = [tool.schema for tool in tools.values()]
        reader = ReplyReader(self._meter, emit)
        self._meter.open(messages)
        try:
            async with aclosing(setup.backend.stream(messages, options)) as pieces:
                async for piece in pieces:
                    reader.take(piece)
            reader.close()
        finally:
            self._meter.close(reader.use)
        text = reader.complete_text(f"agent {setup.agent!r}: {setup.model}")
        return ModelReply(text, sendable_calls(reader.calls, messages, tools), reader.is_cut)
