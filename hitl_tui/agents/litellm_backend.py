"""A real model, through litellm, which is imported late; its errors in words that a user can act on."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import threading
import warnings
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import import_module
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from hitl_tui.agents.backend import CallFailed, Message, ToolCall, Use, rough_size, rough_tokens
from hitl_tui.agents.redaction import redactor

_lock = threading.Lock()
_importing: Future[Any] | None = None
_callers = 0
"""Calls that wait for the import."""


def preload() -> Future[Any]:
    """Start importing litellm in a daemon thread, once for the process; it takes about 3 s.

    Returns:
        a future of the module; it carries the ImportError if litellm can't be imported.
    """
    global _importing  # noqa: PLW0603  (the process has one)
    with _lock:
        if _importing is None:
            _importing = Future()
            _importing.set_running_or_notify_cancel()  # a caller that gives up must not cancel it
            # A daemon, not an executor's thread: those are joined when the process quits.
            threading.Thread(target=_import, args=(_importing,), name="litellm-import", daemon=True).start()
        return _importing


async def imported() -> Any:
    """The module, once it is imported; `is_awaited` is true meanwhile."""
    global _callers  # noqa: PLW0603  (the process has one import)
    module = preload()
    if module.done():
        return module.result()
    with _lock:
        _callers += 1
    try:
        return await asyncio.wrap_future(module)
    finally:
        with _lock:
            _callers -= 1


def is_awaited() -> bool:
    """Whether a call waits for litellm's import just now."""
    return _callers > 0


def _import(result: Future[Any]) -> None:
    try:
        # Read at import; without it litellm fetches its price list from the network.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        # Else it reads a file .env of a directory above, which may name another server for a key.
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        warnings.filterwarnings("ignore", module=r"(litellm|pydantic|aiohttp)\b")
        with _uncollected():
            litellm = import_module("litellm")
        _silence(litellm)
    except BaseException as error:
        result.set_exception(error)
    else:
        result.set_result(litellm)


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection meanwhile, and none of what has come to stay ever after.

    A collection walks over the hundreds of thousands of objects that litellm brings, and a screen
    stands still for that long: a tenth of a second and more.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _silence(litellm: Any) -> None:
    """No advice on stdout, no telemetry, no downloads, no log lines on the terminal."""
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.disable_hf_tokenizer_download = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [logging.NullHandler()]
        logger.propagate = False


_LONGEST_REASON = 300

_PREFIXES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)\s*[:-]\s*)+")
_KEY_WORDS = re.compile(r"api[ _]?key|credential", re.IGNORECASE)
_NO_KEY = re.compile(r"missing credentials|api[_ ]?key\W.{0,60}must be set", re.IGNORECASE | re.DOTALL)
_NAMED_KEYS = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_API_KEY\b")
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


def explain(litellm: Any, error: Exception, name: str, options: Mapping[str, Any]) -> CallFailed:
    """Tell what went wrong with a call to `name` and how to mend it.

    Args:
        litellm: the module, for what it knows of providers and their keys.
        error: what a call raised.
        options: the call's options; values that look secret are cut out of the text, and so are those of
            private channels: a provider may quote the request.
    """
    status = getattr(error, "status_code", None)
    missing = _missing_keys(litellm, name, options)
    if not missing and not options.get("api_key") and _NO_KEY.search(str(error)):
        # A variable that is there and empty counts as set for litellm.
        missing = _NAMED_KEYS.findall(str(error))[:1] or ["the provider's key"]
    if missing and (status == 401 or _KEY_WORDS.search(str(error))):
        where = " and ".join(missing)
        return CallFailed(
            f"{_who(litellm, name)}: no API key", f"set {where} in the environment, or pass api_key"
        )
    reason, hint = _reason_and_hint(litellm, error, status)
    text = _one_line(redactor(options)(_message(error)))
    return CallFailed(
        f"{_who(litellm, name)}: {reason}: {text}",
        hint,
        retryable=status in _PASSING,
        retry_after=_retry_after(error),
    )


def lacking(litellm: Any, name: str, options: Mapping[str, Any]) -> str:
    """What keeps any call to `name` from being made, as far as that is known without one; "" for nothing."""
    try:
        litellm.get_llm_provider(name, api_base=options.get("api_base"))
    except Exception:  # litellm raises a BadRequestError, with paragraphs of advice
        return f'{name}: unknown provider; write the model as "provider/model"'
    # An address has a default.  Of several names for a key, one is enough for those that have more.
    keys = [key for key in _missing_keys(litellm, name, options) if not key.endswith("_BASE")]
    return f"{_who(litellm, name)}: no API key; set {' or '.join(keys)} in the environment" if keys else ""


def _who(litellm: Any, name: str) -> str:
    try:
        model, provider, _, _ = litellm.get_llm_provider(name)
    except Exception:
        return name
    return f"{provider}/{model}"


def _missing_keys(litellm: Any, name: str, options: Mapping[str, Any]) -> list[str]:
    if options.get("api_key"):
        return []
    try:
        missing: list[str] = litellm.validate_environment(name)["missing_keys"]
    except Exception:
        return []
    return missing


def _reason_and_hint(litellm: Any, error: Exception, status: int | None) -> tuple[str, str]:
    if isinstance(error, litellm.ContextWindowExceededError):
        return "the conversation is too long for the model", "shorten the prompt or forget turns"
    if isinstance(error, litellm.ContentPolicyViolationError):
        return "the provider refused the content", "change the prompt"
    if "LLM Provider NOT provided" in str(error):
        return "unknown provider", 'write the model as "provider/model"'
    # The time may be over in mid-stream or under another error's name: both come without a timeout's status.
    if any(isinstance(cause, TimeoutError) for cause in _causes(error)):
        status = 408
    elif "Connection error" in str(error) or "Cannot connect" in str(error):
        return "no connection", "check the network and api_base"
    return {
        400: ("the provider refused the request", "check the options of the agent"),
        401: ("the API key was refused", "check api_key or the key in the environment"),
        402: ("the account can't pay for the call", "check the account at the provider"),
        403: ("the key may not use this model", "check the key's rights at the provider"),
        404: ("no such model or address", "check the model's name and api_base"),
        408: ("no answer in time", "try again, or pass a longer timeout"),
        429: ("too many requests", "wait, or check the account's limits"),
    }.get(
        status or 0,
        ("the provider failed", "try again later")
        if (status or 0) >= 500
        else ("the call failed", "check the options of the agent"),
    )


def _message(error: BaseException) -> str:
    """What an error says; of a connection that failed why it did, which only its cause knows."""
    for cause in _causes(error):
        text = str(getattr(cause, "message", None) or cause)
        if text and "Connection error" not in text:
            return text
    return str(error)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and those that led to it, the last one first."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _retry_after(error: Exception) -> float | None:
    """Seconds of a Retry-After header; a date is not understood, and is rare here."""
    headers = getattr(error, "litellm_response_headers", None) or {}
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if seconds >= 0 else None


def _one_line(text: str) -> str:
    line = _PREFIXES.sub("", " ".join(text.split())).partition(" Error_str: ")[0]
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"


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
        litellm = await imported()
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
        spoke, usage, parts = False, None, CallParts()
        try:
            async for chunk in reply:
                usage = getattr(chunk, "usage", None) or usage
                delta = chunk.choices[0].delta if chunk.choices else None
                parts.add(getattr(delta, "tool_calls", None))
                text = delta.content if delta else None
                if text:
                    spoke = True
                    yield text
        finally:
            await reply.aclose()  # or the provider goes on writing, and charging, unheard
        # litellm ends every stream with "stop"; only this tells whether the provider did.
        ended = reply.received_finish_reason or reply.intermittent_finish_reason
        if (spoke or parts.calls) and not ended:
            raise CallFailed(f"{self._name}: the reply broke off before its end", "try again")
        if not spoke and not ended:
            whole = await litellm.acompletion(**request, stream=False)
            message = whole.choices[0].message
            yield message.content or ""
            parts.add(message.tool_calls)
            usage = whole.usage
        for call in parts.calls:
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
    def calls(self) -> list[ToolCall]:
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
