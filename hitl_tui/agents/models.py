"""Models: what an agent asks of one, and from the `model` an agent is given to what answers for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from hitl_tui.errors import ModelFailed, UsageError

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
    ) -> AsyncGenerator[str | ToolCall | Use, None]:
        """Yield the reply in pieces of text, the tools it calls, then what the call used.

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


def rough_tokens(text: str) -> int:
    """About how many tokens `text` is: four characters each, the usual rule of thumb."""
    return -(-len(text) // 4)


_DEMO = "demo/"


def find_backend(model: str | ModelBackend) -> ModelBackend:
    """The backend for a litellm name, a "demo/NAME" or a model object, which is its own.

    Raises:
        UsageError: an unknown demo model, or what is no model at all.
    """
    if not isinstance(model, str):
        if not hasattr(model, "stream") or not hasattr(model, "estimate"):
            raise UsageError(
                f"a {type(model).__name__} is no model",
                'give a name, as "anthropic/claude-sonnet-4-5", or a script: ScriptedModel(["a reply"])',
            )
        return model
    if model.startswith(_DEMO):
        from hitl_tui.agents.demo import demo_model

        return demo_model(model.removeprefix(_DEMO))
    from hitl_tui.agents.litellm_backend import LiteLLMBackend

    return LiteLLMBackend(model)


_KINDS: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "instructions": (str,),
    "temperature": (int, float),
    "api_base": (str,),
}
_OF_A_PROVIDER = ("api_base", "api_key", "api_version", "organization", "base_url")


def check_settings(settings: Mapping[str, Any], agent: str) -> None:
    """Refuse settings that an agent can't take while it is in use; raises `UsageError`."""
    for name, value in settings.items():
        kinds = _KINDS.get(name)
        if kinds is None:
            raise UsageError(f"agent {agent!r} has no setting {name!r}", f"settings: {', '.join(_KINDS)}")
        if not isinstance(value, kinds) or isinstance(value, bool) or (name == "model" and not value):
            wanted = "a number" if name == "temperature" else "a text"
            raise UsageError(f"agent {agent!r}: {name} is {value!r}", f"give {wanted}")


def options_for(
    model: str | ModelBackend,
    made_for: str | ModelBackend,
    given: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """The options of calls to `model`, of an agent that was given its options for `made_for`."""
    options = {name: value for name, value in given.items() if name != "num_retries"}
    if _provider(model) != _provider(made_for):
        options = {name: value for name, value in options.items() if name not in _OF_A_PROVIDER}
    for name in ("temperature", "api_base"):
        if name in settings:
            options[name] = settings[name]
    return options


def _provider(model: str | ModelBackend) -> str:
    return model.partition("/")[0] if isinstance(model, str) and "/" in model else str(model)
