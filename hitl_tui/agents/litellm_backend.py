"""A real model, through litellm."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from hitl_tui.agents.backend import CallFailed, Message, ToolCall, Use, rough_size, rough_tokens
from hitl_tui.agents.litellm_errors import explain, lacking
from hitl_tui.agents.litellm_import import preload


class LiteLLMBackend:
    """Streams replies of any model that litellm knows.

    Args:
        name: as litellm takes it: "provider/model", or a bare name of a well-known model.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    async def stream(
        self, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> AsyncGenerator[str | ToolCall | Use, None]:
        """Yield the reply in pieces, then its use; a server that can't stream gives it in one piece.

        Raises:
            CallFailed: names provider, model, reason and mend; never a key.
        """
        litellm = await asyncio.wrap_future(preload())
        try:
            async for piece in self._stream(litellm, messages, options):
                yield piece
        except (CallFailed, asyncio.CancelledError, GeneratorExit):
            raise
        except Exception as error:
            # Without its cause: the provider's error may carry the key or the request.
            raise explain(litellm, error, self._name, options) from None

    def lacks(self, options: Mapping[str, Any]) -> str:
        """What is known to be missing for a call, in words; "" for nothing.  Blocks for litellm's import."""
        return lacking(preload().result(), self._name, with_key(self._name, options))

    def estimate(self, messages: Sequence[Message], text: str) -> Use:
        """A rough count of tokens at litellm's price."""
        return self._use(preload().result(), rough_size(messages), rough_tokens(text), None)

    async def _stream(
        self, litellm: Any, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> AsyncGenerator[str | ToolCall | Use, None]:
        # Retries are the agent's, so that they are seen.
        options = with_key(self._name, options)
        request = {"model": self._name, "messages": list(messages), "max_retries": 0, **options}
        if "tools" in options:
            # litellm looks for tools of its own gateway, with a package that it does not install.
            request["_skip_mcp_handler"] = True
        reply = await litellm.acompletion(**request, stream=True, stream_options={"include_usage": True})
        spoke, usage, calls = False, None, CallParts()
        try:
            async for chunk in reply:
                usage = getattr(chunk, "usage", None) or usage
                delta = chunk.choices[0].delta if chunk.choices else None
                calls.add(getattr(delta, "tool_calls", None))
                text = delta.content if delta else None
                if text:
                    spoke = True
                    yield text
        finally:
            await reply.aclose()  # or the provider goes on writing, and charging, unheard
        # litellm ends every stream with "stop"; only this tells whether the provider did.
        ended = reply.received_finish_reason or reply.intermittent_finish_reason
        if (spoke or calls.found) and not ended:
            raise CallFailed(f"{self._name}: the reply broke off before its end", "try again")
        if not spoke and not ended:
            whole = await litellm.acompletion(**request, stream=False)
            message = whole.choices[0].message
            yield message.content or ""
            calls.add(message.tool_calls)
            usage = whole.usage
        for call in calls.found:
            yield call
        if usage:
            yield self._use(litellm, usage.prompt_tokens, usage.completion_tokens, usage)

    def _use(self, litellm: Any, tokens_in: int, tokens_out: int, usage: Any) -> Use:
        try:
            model, provider, _, _ = litellm.get_llm_provider(self._name)
        except Exception:
            provider, _, model = self._name.rpartition("/")
        price = _price(litellm, self._name, tokens_in, tokens_out, usage)
        return Use(provider, model, tokens_in, tokens_out, price)


def with_key(name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of a call; a server on this machine needs no key, though the client wants one."""
    address = options.get("api_base") or options.get("base_url")
    provider = name.partition("/")[0] if "/" in name else "openai"
    if not address or options.get("api_key") or os.environ.get(f"{provider.upper()}_API_KEY"):
        return options
    return {**options, "api_key": "none"} if _is_loopback(str(address)) else options


def _is_loopback(address: str) -> bool:
    try:
        host = urlsplit(address).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ip_address(host).is_loopback
    except ValueError:
        return False


class CallParts:
    """Puts tool calls together from the parts of a stream, which an index or an id tells apart."""

    def __init__(self) -> None:
        self._parts: dict[Any, list[str]] = {}
        self._latest: Any = None

    @property
    def found(self) -> list[ToolCall]:
        """The calls so far, in order."""
        return [ToolCall(name, arguments, call_id) for call_id, name, arguments in self._parts.values()]

    def add(self, parts: Any) -> None:
        """Take the parts of one chunk, or whole calls."""
        for part in parts or ():
            index = getattr(part, "index", None)
            key = part.id if index is None else index
            self._latest = self._latest if key is None else key
            call = self._parts.setdefault(self._latest, ["", "", ""])
            call[0] = part.id or call[0]
            call[1] += part.function.name or ""
            call[2] += part.function.arguments or ""


def _price(litellm: Any, name: str, tokens_in: int, tokens_out: int, usage: Any) -> float | None:
    """US dollars by litellm's local price map, cached tokens as the usage tells; None where unknown."""
    if name.startswith("ollama"):
        return 0.0  # on one's own machine; and litellm would ask that server, blocking the loop
    try:
        if litellm.get_model_info(name).get("input_cost_per_token") is None:
            return None
        parts = litellm.cost_per_token(
            model=name, prompt_tokens=tokens_in, completion_tokens=tokens_out, usage_object=usage
        )
    except Exception:  # litellm raises a plain Exception for a model that is not in its map
        return None
    return float(sum(parts)) or None
