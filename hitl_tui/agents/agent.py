"""Agent: a chat with one model, as users of R's ellmer know it, that runs below a node or alone."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from hitl_tui.agents import background
from hitl_tui.agents.backend import CallFailed, Message, ModelBackend, Use
from hitl_tui.agents.meter import Cost, Meter, Tally, Tokens
from hitl_tui.agents.models import find_backend
from hitl_tui.agents.retries import DEFAULT_RETRIES, wait_before_retry
from hitl_tui.engine.activity import Activity, AttemptCancelled, current_activity
from hitl_tui.errors import ModelFailed, UsageError

_OURS = frozenset({"messages", "stream", "stream_options", "tools", "functions", "n"})
"""Options of litellm that would break what an agent promises: one text, streamed."""


@dataclass(frozen=True)
class _Exchange:
    """One prompt on its way: what is sent, for whom, and which conversation it belongs to."""

    prompt: str
    messages: Sequence[Message]
    conversation: int
    meter: Meter
    activity: Activity | None

    def check(self) -> None:
        """Raise `AttemptCancelled` if the node's attempt was given up."""
        if self.activity and self.activity.cancelled:
            raise AttemptCancelled

    @contextmanager
    def attended(self, call: Future[str]) -> Iterator[None]:
        """Give `call` up as soon as the attempt is cancelled or the caller leaves the block."""

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
            self.meter.abandon()


class Agent:
    """A named chat with a model.  Safe to use from several threads and event loops at once.

    Every prompt is sent with the turns before it; prompt and reply become turns only when the reply
    is whole.  Replies are always streamed: below a node the pieces go to the running activity, and
    when that attempt is cancelled the waiting call raises `AttemptCancelled` at once.

    Args:
        name: shown beside the agent's text and in cost reports.
        model: a litellm name ("anthropic/claude-sonnet-4-5"), "demo/NAME", or a `ScriptedModel`.
        instructions: the system message.
        role: what the agent is in the workflow, put before the instructions.
        litellm_options: passed on with every call (`api_base`, `api_key`, `temperature`,
            `max_tokens`, `timeout` in seconds, ...).  `num_retries` (default 2) is ours: how often a
            call is tried again after a rate limit, a timeout or a server's error.

    Raises:
        UsageError: an option that an agent sets itself, or an unknown demo model.
    """

    def __init__(
        self,
        name: str,
        model: str | ModelBackend,
        instructions: str | None = None,
        role: str | None = None,
        **litellm_options: Any,
    ) -> None:
        refused = sorted(_OURS & litellm_options.keys())
        if refused:
            raise UsageError(
                f"agent {name!r}: option {refused[0]!r} can't be set", "an agent streams one text reply"
            )
        self.name = name
        self.model = model
        self.instructions = instructions
        self.role = role
        self._given = litellm_options
        self._options = dict(litellm_options)
        self._max_attempts = 1 + int(self._options.pop("num_retries", DEFAULT_RETRIES))
        self._backend = find_backend(model)
        self._lock = threading.Lock()
        self._turns: list[dict[str, str]] = []
        self._conversation = 0
        self._tally = Tally()

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, {self.model!r})"

    def chat(self, prompt: str) -> str:
        """Send `prompt` and wait for the whole reply.

        Raises:
            ModelFailed: the model gave no whole reply.
            AttemptCancelled: the node's attempt was given up meanwhile.
        """
        return "".join(self.stream(prompt))

    async def achat(self, prompt: str) -> str:
        """As `chat`, without blocking the event loop it is awaited on."""
        exchange = self._begin(prompt)
        exchange.check()
        call = background.submit(self._answer(exchange, _ignore))
        with exchange.attended(call):
            reply = await asyncio.wrap_future(call)
        self._keep(exchange, reply)
        return reply

    def stream(self, prompt: str) -> Iterator[str]:
        """Send `prompt` when the first piece is asked for, and yield the reply as it comes.

        The exchange becomes part of the turns once the last piece was taken.  Raises as `chat`.
        """
        # Taken here, not in the generator: its body runs in the context of whoever iterates.
        return self._pieces(self._begin(prompt), contextvars.copy_context())

    @property
    def turns(self) -> list[dict[str, str]]:
        """The conversation so far: a copy, oldest first, each with `role` and `content`."""
        with self._lock:
            return [dict(turn) for turn in self._turns]

    def set_turns(self, turns: Sequence[Message]) -> None:
        """Replace the conversation; `[]` forgets it.  A reply under way belongs to the old one.

        Raises:
            UsageError: a turn that is not {"role": "user" or "assistant", "content": text}.
        """
        for number, turn in enumerate(turns, 1):
            known = turn.get("role") in ("user", "assistant") and isinstance(turn.get("content"), str)
            if not known or len(turn) != 2:
                raise UsageError(
                    f"agent {self.name!r}: turn {number} is not a turn",
                    'each is {"role": "user" or "assistant", "content": text}',
                )
        with self._lock:
            self._turns = [dict(turn) for turn in turns]
            self._conversation += 1

    def fresh(self) -> Agent:
        """The same agent without turns and with its own counts."""
        return Agent(self.name, self.model, self.instructions, self.role, **self._given)

    @property
    def tokens(self) -> Tokens:
        """Tokens used: `.last.input`, `.last.output`, `.total.input`, `.total.output`."""
        return self._tally.tokens

    @property
    def cost(self) -> Cost:
        """US dollars spent: `.last` and `.total`, None where a price is unknown."""
        return self._tally.cost

    def _begin(self, prompt: str) -> _Exchange:
        if not isinstance(prompt, str):
            raise UsageError(f"agent {self.name!r}: the prompt is {type(prompt).__name__}, not text")
        activity = current_activity.get()
        with self._lock:
            messages = [*self._system(), *self._turns, {"role": "user", "content": prompt}]
            conversation = self._conversation
        meter = Meter(self.name, self._backend, messages, self._tally, activity)
        return _Exchange(prompt, messages, conversation, meter, activity)

    def _system(self) -> list[dict[str, str]]:
        parts = [f"Your role: {self.role}" if self.role else "", self.instructions or ""]
        content = "\n\n".join(part for part in parts if part)
        return [{"role": "system", "content": content}] if content else []

    def _pieces(self, exchange: _Exchange, context: contextvars.Context) -> Generator[str, None, None]:
        exchange.check()
        pieces: SimpleQueue[str | None] = SimpleQueue()
        call = context.run(background.submit, self._answer(exchange, pieces.put))
        call.add_done_callback(lambda _: pieces.put(None))
        with exchange.attended(call):
            while (piece := pieces.get()) is not None:
                exchange.check()
                yield piece
            reply = call.result()
        self._keep(exchange, reply)

    async def _answer(self, exchange: _Exchange, emit: Callable[[str], None]) -> str:
        """The one way a reply is made, on the background loop."""
        for attempt in range(1, self._max_attempts + 1):
            try:
                return await self._call_model(exchange, emit)
            except CallFailed as failure:
                wait = wait_before_retry(failure, attempt, self._max_attempts)
                if wait is None or exchange.meter.streamed:
                    raise
                if exchange.activity:
                    exchange.activity.retrying(attempt, self._max_attempts, wait, failure.message)
                await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _call_model(self, exchange: _Exchange, emit: Callable[[str], None]) -> str:
        reply: list[str] = []
        use: Use | None = None
        exchange.meter.open()
        try:
            async with aclosing(self._backend.stream(exchange.messages, self._options)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Use):
                        use = piece
                    elif piece:
                        reply.append(piece)
                        exchange.meter.piece(piece)
                        emit(piece)
        finally:
            exchange.meter.close(use)
        if not reply:
            raise ModelFailed(
                f"agent {self.name!r}: {self.model} answered without any text",
                "a max_tokens that is too small can be the cause",
            )
        return "".join(reply)

    def _keep(self, exchange: _Exchange, reply: str) -> None:
        with self._lock:
            if exchange.conversation == self._conversation:
                self._turns.append({"role": "user", "content": exchange.prompt})
                self._turns.append({"role": "assistant", "content": reply})


def _ignore(_: str) -> None:
    """Takes the pieces nobody reads."""
