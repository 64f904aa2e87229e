"""Agent: a chat with one model, as in R's ellmer, that runs in a node or alone."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from copy import copy
from functools import cached_property
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, overload

import msgspec

from hitl_tui.agents.backend import Cost, Message, ModelBackend, Tally, Tokens
from hitl_tui.agents.models import check_settings, find_backend, options_for
from hitl_tui.agents.turns import Turns, channel_name
from hitl_tui.declared import declares, has
from hitl_tui.engine.state.values import is_name
from hitl_tui.errors import UsageError, in_words

if TYPE_CHECKING:
    from hitl_tui.agents.cassettes import Cassette
    from hitl_tui.agents.exchange import AgentSetup, ChatExchange, Read
    from hitl_tui.agents.mcp import McpServer
    from hitl_tui.agents.tool_calls import Approver, ToolBox
    from hitl_tui.agents.tools import Approve, Tool
    from hitl_tui.engine.nodes.activity import Activity

T = TypeVar("T")
_Method = TypeVar("_Method", bound=Callable[..., Any])

_log = logging.getLogger("hitl_tui.agents")
_log.addHandler(logging.NullHandler())  # otherwise Python writes warnings over the screen

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run `coroutine` on the background loop, in a copy of the caller's context.

    Returns:
        a future that any thread may wait for; cancelling it releases the waiters at once and
        cancels the coroutine.
    """
    return asyncio.run_coroutine_threadsafe(coroutine, _running_loop())


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603  (the process has one)
    with _lock:
        if _loop is None:
            # A loop keeps the context in which it was made; a node's would keep the node's store and state.
            _loop = contextvars.Context().run(asyncio.new_event_loop)
            _loop.set_exception_handler(_note)
            threading.Thread(target=_loop.run_forever, name="hitl-tui-agents", daemon=True).start()
        return _loop


def _note(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Keep complaints of providers' clients (unclosed sessions, lost tasks) off the screen."""
    _log.debug("%s", context.get("message"), exc_info=context.get("exception"))


def _forget() -> None:
    """Drop the loop in a forked child, which has a copy of it but not its thread."""
    global _loop, _lock  # noqa: PLW0603
    _loop = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


DEFAULT_RETRIES = 2

_OURS = frozenset({"messages", "stream", "stream_options", "functions", "n"})
"""Options of litellm that would break what an agent relies on: one streamed text."""


_OPTION_NAMES = """
    name model instructions role tools approve approver max_tool_rounds max_tool_result history cassette
    additional_drop_params allowed_openai_params api_base api_key api_version audio base_url
    custom_llm_provider deployment_id drop_params extra_body extra_headers frequency_penalty headers
    logit_bias logprobs max_completion_tokens max_retries max_tokens metadata modalities num_retries
    organization parallel_tool_calls prediction presence_penalty reasoning_effort response_format
    safety_settings seed service_tier stop store temperature thinking timeout tool_choice top_k
    top_logprobs top_p user verbosity web_search_options
"""
"""Known names, of which misspellings are refused; a provider may have others, which are passed on."""
_MISSPELT = 0.8
"""From this similarity on, an option counts as a misspelling of a known name."""


def _refuse_misspelt(agent: str, options: Iterable[str]) -> None:
    """Refuse an option that is nearly a known one: litellm silently drops options that it does not know.

    Raises:
        UsageError: names the option that is meant.
    """
    from difflib import get_close_matches

    options_known = _OPTION_NAMES.split()
    for option in options:
        if option not in options_known and (near := get_close_matches(option, options_known, 1, _MISSPELT)):
            raise UsageError(f"agent {agent!r}: there is no option {option!r}", f"did you mean {near[0]!r}?")


def _meters_itself(method: _Method) -> _Method:
    """Mark a method that counts and records its own model calls, so that nothing else does."""
    method.meters_itself = True  # type: ignore[attr-defined]
    return method


class Agent:
    """A named chat with a model.  Safe to use from several threads and event loops at once.

    Every prompt is sent with the turns before it; prompt and reply become turns only when the reply is
    complete. Replies are always streamed: in a node, the pieces go to the running activity, and if that
    attempt is stopped, the waiting call raises `AttemptCancelled` at once. Turns of an attempt that commits
    nothing are removed.

    Args:
        name: shown next to the agent's text and in cost reports.
        model: a litellm name ("anthropic/claude-sonnet-4-5"), "demo/NAME", or a `ScriptedModel`.
        instructions: the system message.
        role: what the agent is in the workflow, put before the instructions.
        tools: functions (or `Tool`s) that the model may call, and `McpServer`s, all of whose tools it may
            call.
        approve: whether a person must approve calls of tools without their own rule: "always", "never", or a
            function of the arguments. In a node, the run waits for the answer.
        approver: approves calls outside a graph: a function of the `ToolRequest` that returns True, False or
            an answer such as {"choice": "reject", "text": "why"}.
        max_tool_rounds: how often the model may call tools before it must answer.
        max_tool_result: characters of a tool's result that the model gets.
        history: "channel:NAME" keeps the turns in a node in that channel, as part of the state; by default
            the agent keeps them, and a restore or a fork does not change them.
        cassette: records or serves its model calls; by default that of the process.
        litellm_options: passed on with every call (`api_base`, `api_key`, `temperature`,
            `max_tokens`, `timeout` in seconds, ...). `num_retries` (default 2) is handled here: how often a
                call is tried again after a rate limit, a timeout or a server's error.

    Raises:
        UsageError: a name that is not text, an option that an agent sets itself, an unknown demo model, or a
            function that can't be a tool.
    """

    @declares(UsageError)
    def __init__(
        self,
        name: str,
        model: str | ModelBackend,
        instructions: str | None = None,
        role: str | None = None,
        tools: Sequence[Callable[..., Any] | Tool | McpServer] = (),
        *,
        approve: Approve = "never",
        approver: Approver | None = None,
        max_tool_rounds: int = 10,
        max_tool_result: int = 20_000,
        history: str | None = None,
        cassette: Cassette | None = None,
        **litellm_options: Any,
    ) -> None:
        if not is_name(name):
            raise UsageError(f"the agent's name {name!r} is not allowed", 'give text, as Agent("writer", …)')
        if approver is not None and not callable(approver):
            raise UsageError(
                f"agent {name!r}: approver is {in_words(approver)}", "give a function of the request"
            )
        if cassette is not None and not has(cassette, "recording"):
            raise UsageError(f"agent {name!r}: cassette is {in_words(cassette)}", "give a Cassette(path)")
        if max_tool_rounds < 0 or max_tool_result < 0:
            raise UsageError(f"agent {name!r}: a maximum is below 0", "give whole numbers of at least 0")
        refused = sorted(_OURS & litellm_options.keys())
        if refused:
            raise UsageError(
                f"agent {name!r}: option {refused[0]!r} can't be set", "an agent streams one text reply"
            )
        _refuse_misspelt(name, litellm_options)
        self.name = name
        self.model = model
        self.instructions = instructions
        self.role = role
        self.history = history
        self._own: Mapping[str, Tool] = {}
        self._servers: tuple[McpServer, ...] = ()
        if (tools, approve) != ((), "never"):
            self._own, self._servers = _read_tools(tools, approve, name)
        self._approve, self._approver, self._max_result = approve, approver, max_tool_result
        self._max_rounds = max_tool_rounds
        self._made = (model, instructions)
        self._given = litellm_options
        if litellm_options:
            from hitl_tui.agents.redaction import remember

            remember(litellm_options)
        self._max_attempts = 1 + int(litellm_options.get("num_retries", DEFAULT_RETRIES))
        self.configure({})
        self._cassette = cassette
        self._turns = Turns(name, channel_name(history, name))
        self._tally = Tally()

    def __init_subclass__(cls, **options: Any) -> None:
        """Count, limit and record the chat methods of a subclass like those of other agents.

        A subclass needs to define only one of `chat` and `achat`: each can serve the other.
        """
        super().__init_subclass__(**options)
        from hitl_tui.engine.nodes.foreign_agents import METERED, metered_method

        own = vars(cls).keys() & set(METERED)
        for name in own:
            setattr(cls, name, metered_method(vars(cls)[name]))
        for name, (other, served) in _SERVED_BY.items():
            if name in own and other not in own:
                setattr(cls, other, served)

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, {self.model!r})"

    @_meters_itself
    def chat(self, prompt: str) -> str:
        """Send `prompt` and wait for the whole reply.

        Raises:
            ModelFailed: the model gave no complete reply, or called tools too often.
            AttemptCancelled: the node's attempt was stopped meanwhile.
            UsageError: a tool needs approval, and there is nobody to ask.
        """
        return str(self._wait(self._begin(prompt)))

    @_meters_itself
    async def achat(self, prompt: str) -> str:
        """Do what `chat` does, without blocking the event loop."""
        return str(await self._await(self._begin(prompt)))

    @_meters_itself
    def stream(self, prompt: str) -> Iterator[str]:
        """Send `prompt` when the first piece is requested, and yield the reply as it comes.

        The model's text between calls of tools is part of the reply. The exchange becomes part of the turns
        after the last piece was read. Raises the errors of `chat`.
        """
        # Copied here and not in the generator, whose body runs in the context of the code that iterates.
        return self._pieces(self._begin(prompt), contextvars.copy_context())

    @overload
    def chat_structured(self, prompt: str, schema: type[T]) -> T: ...

    @overload
    def chat_structured(self, prompt: str, schema: Any) -> Any: ...

    @_meters_itself
    def chat_structured(self, prompt: str, schema: Any) -> Any:
        """Send `prompt` and return data that fits a schema.

        A reply that does not fit is sent back once, with its errors.

        Args:
            schema: a JSON Schema (returns dicts and lists), or a type: a pydantic model, a dataclass,
                `list[str]` and the like (returns a value of it).

        Raises:
            ModelFailed: the second reply did not fit either; names path and value.
            GraphInvalid: no schema can be made of it.
        """
        from hitl_tui.agents.structured import StructuredOutput

        answer = StructuredOutput(schema)
        return self._wait(self._begin(answer.ask(prompt)), answer.read)

    @overload
    async def achat_structured(self, prompt: str, schema: type[T]) -> T: ...

    @overload
    async def achat_structured(self, prompt: str, schema: Any) -> Any: ...

    @_meters_itself
    async def achat_structured(self, prompt: str, schema: Any) -> Any:
        """Do what `chat_structured` does, without blocking the event loop."""
        from hitl_tui.agents.structured import StructuredOutput

        answer = StructuredOutput(schema)
        return await self._await(self._begin(answer.ask(prompt)), answer.read)

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Replace all changed settings; `{}` resets them to those with which the agent was made.

        Address and key belong to a provider: another provider's model is called without them.

        Args:
            settings: any of `model`, `instructions`, `temperature` and `api_base`.

        Raises:
            UsageError: another setting, a value that can't be one, or an unknown demo model.
        """
        check_settings(settings, self.name)
        model: str | ModelBackend = settings.get("model", self._made[0])
        backend = find_backend(model)
        self._settings = dict(settings)
        self.model, self._backend = model, backend
        self.instructions = settings.get("instructions", self._made[1])
        self._options = options_for(model, self._made[0], self._given, settings)

    def lacks(self) -> str:
        """Describe what a call would lack, as far as that is known without a call; "" for nothing.

        For example an unknown provider or a missing key. Blocks while litellm is imported, about 3 s.
        """
        from hitl_tui.agents.cassettes import in_use

        tape = self._cassette or in_use()
        find = getattr(self._backend, "lacks", None)
        return str(find(self._options)) if find and (tape is None or tape.recording) else ""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that `configure` has set."""
        return dict(self._settings)

    @property
    def options(self) -> Mapping[str, Any]:
        """The current options that change what the model says; none of them contains a key."""
        from hitl_tui.agents.cassettes import sampling

        return sampling(self._options)

    @property
    def history_channel(self) -> str | None:
        """The channel that keeps its turns in a node, None if the agent keeps them."""
        return channel_name(self.history, self.name)

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name; those of MCP servers once they run."""
        tools = dict(self._own)
        for server in self._servers:
            tools |= server.tools
        return tools

    @property
    def turns(self) -> list[dict[str, Any]]:
        """A copy of the conversation so far, oldest turn first, each with `role` and `content`.

        Turns with calls of tools and their results have OpenAI's format.
        """
        return [dict(turn) for turn in self._turns.read(_activity())]

    def set_turns(self, turns: Sequence[Message]) -> None:
        """Replace the conversation; `[]` clears it. A reply that is being written belongs to the old one.

        Raises:
            UsageError: a turn that is not {"role": "user" or "assistant", "content": text}, or the
                turns are kept in a channel.
        """
        self._turns.replace(turns, _activity())

    def fresh(self) -> Self:
        """Return the same agent without turns and with its own counts."""
        return self._copy(self.history)

    @property
    def tokens(self) -> Tokens:
        """Tokens used: `.last.input`, `.last.output`, `.total.input`, `.total.output`."""
        return self._tally.tokens

    @property
    def cost(self) -> Cost:
        """US dollars spent: `.last` and `.total`, None if a price is unknown."""
        return self._tally.cost

    def aside(self) -> Self:
        """Return a new copy for a question outside the conversation; what it uses counts for this agent."""
        other = self._copy(None)
        other._tally = self._tally
        return other

    def _copy(self, history: str | None) -> Self:
        other = copy(self)
        other.history = history
        other._turns = Turns(self.name, channel_name(history, self.name))
        other._tally = Tally()
        other.configure(self._settings)
        return other

    def _begin(self, prompt: str) -> ChatExchange:
        if not isinstance(prompt, str):
            raise UsageError(f"agent {self.name!r}: the prompt is {in_words(prompt)}, not text")
        from hitl_tui.agents.exchange import ChatExchange

        activity = _activity()
        conversation = self._turns.conversation
        turns = self._turns.read(activity)
        return ChatExchange(
            self._setup(), prompt, turns, conversation=conversation, tally=self._tally, activity=activity
        )

    @cached_property
    def _toolbox(self) -> ToolBox:
        from hitl_tui.agents.tool_calls import ToolBox

        rules = self._approve, self._approver, self._max_result
        return ToolBox(self.name, self._own, *rules, self._servers)

    def _setup(self) -> AgentSetup:
        from hitl_tui.agents.cassettes import taped
        from hitl_tui.agents.exchange import AgentSetup

        return AgentSetup(
            agent=self.name,
            model=str(self.model),
            backend=taped(self.name, str(self.model), self._backend, self._cassette),
            options=self._options,
            system=self._system(),
            toolbox=self._toolbox,
            max_rounds=self._max_rounds,
            max_attempts=self._max_attempts,
        )

    def _system(self) -> list[Message]:
        parts = [f"Your role: {self.role}" if self.role else "", self.instructions or ""]
        content = "\n\n".join(part for part in parts if part)
        return [{"role": "system", "content": content}] if content else []

    def _wait(self, exchange: ChatExchange, read: Read | None = None) -> Any:
        call = self._submit(exchange, _ignore, read)
        with exchange.cancelling_with_attempt(call):
            reply = call.result()
        self._keep(exchange)
        return reply

    async def _await(self, exchange: ChatExchange, read: Read | None = None) -> Any:
        call = self._submit(exchange, _ignore, read)
        with exchange.cancelling_with_attempt(call):
            reply = await asyncio.wrap_future(call)
        self._keep(exchange)
        return reply

    def _pieces(self, exchange: ChatExchange, context: contextvars.Context) -> Generator[str, None, None]:
        pieces: SimpleQueue[str | None] = SimpleQueue()
        call = context.run(self._submit, exchange, pieces.put)
        call.add_done_callback(lambda _: pieces.put(None))
        with exchange.cancelling_with_attempt(call):
            while (piece := pieces.get()) is not None:
                exchange.check()
                yield piece
            call.result()
        self._keep(exchange)

    @staticmethod
    def _submit(exchange: ChatExchange, emit: Callable[[str], None], read: Read | None = None) -> Future[Any]:
        exchange.check()
        return submit(exchange.answer(emit, read))

    def _keep(self, exchange: ChatExchange) -> None:
        self._turns.keep(exchange.new, exchange.conversation, exchange.activity)


@_meters_itself
async def _chat_in_thread(agent: Agent, prompt: str) -> str:
    return await asyncio.to_thread(agent.chat, prompt)


@_meters_itself
def _wait_for_chat(agent: Agent, prompt: str) -> str:
    return submit(agent.achat(prompt)).result()


_SERVED_BY: Final = {"chat": ("achat", _chat_in_thread), "achat": ("chat", _wait_for_chat)}
"""For each kind of chat, the method that serves it with the other one."""


def _read_tools(tools: Any, approve: Any, agent: str) -> tuple[Mapping[str, Tool], tuple[McpServer, ...]]:
    """Return an agent's own tools by name, and its servers; raises the errors of `Agent`."""
    from hitl_tui.agents.mcp import McpServer
    from hitl_tui.agents.tools import as_tools, check_approve, check_tools

    check_approve(approve)
    check_tools(tools, agent)
    servers = tuple(server for server in tools if isinstance(server, McpServer))
    return as_tools([tool for tool in tools if not isinstance(tool, McpServer)], agent), servers


def _activity() -> Activity | None:
    """Return the activity of the node in which the agent is called; None outside of nodes."""
    from hitl_tui.engine.nodes.activity import current_activity

    return current_activity.get()


def _ignore(_: str) -> None:
    """Ignore a piece."""


class Reply(msgspec.Struct, frozen=True):
    """The outcome of one prompt: `text`, or None and the `error` of its chat."""

    prompt: str
    text: str | None
    error: Exception | None = None


def parallel_chat(agent: Agent, prompts: Sequence[str], *, limit: int = 5) -> list[Reply]:
    """Send each prompt to a new copy of the agent, at most `limit` at once.

    Replies are in the prompts' order.

    A prompt that fails does not stop the others: its reply has the error. What the copies use counts for the
    agent; its turns are neither sent nor changed. If a copy's tool waits for a person, the other replies are
    completed first, so that they are not requested again.

    Raises:
        UsageError: `limit` is below 1, a prompt is not text, or the agent is not an `Agent`.
        AttemptCancelled: the node's attempt was stopped meanwhile.
    """
    call = _begin(agent, prompts, limit)
    try:
        return call.result()
    except CancelledError:
        _check_cancelled()
        raise
    finally:
        call.cancel()


async def aparallel_chat(agent: Agent, prompts: Sequence[str], *, limit: int = 5) -> list[Reply]:
    """Do what `parallel_chat` does, without blocking the event loop."""
    call = _begin(agent, prompts, limit)
    try:
        return await asyncio.wrap_future(call)
    except (CancelledError, asyncio.CancelledError):
        _check_cancelled()
        raise
    finally:
        call.cancel()


def _begin(agent: Agent, prompts: Sequence[str], limit: int) -> Future[list[Reply]]:
    if limit < 1:
        raise UsageError(f"limit={limit}: give at least 1")
    if not has(agent, "aside"):
        raise UsageError(f"parallel_chat was given {in_words(agent)}", "give an Agent, or a subclass of it")
    wrong = next((prompt for prompt in prompts if not isinstance(prompt, str)), None)
    if wrong is not None or isinstance(prompts, str):
        raise UsageError(
            "parallel_chat takes a list of texts", f"found {prompts if wrong is None else wrong!r}"
        )
    return submit(_all(agent, list(prompts), limit))


async def _all(agent: Agent, prompts: Sequence[str], limit: int) -> list[Reply]:
    room = asyncio.Semaphore(limit)

    async def ask(prompt: str) -> str:
        async with room:
            return await agent.aside().achat(prompt)

    results = await asyncio.gather(*map(ask, prompts), return_exceptions=True)
    for result in results:
        # A request to a person, or the end of the attempt, is not a failure of one prompt.
        if isinstance(result, BaseException) and not isinstance(result, Exception):
            raise result
    return [
        Reply(prompt, None, result) if isinstance(result, Exception) else Reply(prompt, str(result))
        for prompt, result in zip(prompts, results, strict=True)
    ]


def _check_cancelled() -> None:
    from hitl_tui.engine.nodes.activity import AttemptCancelled

    activity = _activity()
    if activity and activity.cancelled:
        raise AttemptCancelled
