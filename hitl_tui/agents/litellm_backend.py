"""Backend for real models through litellm, which is imported late; turns its errors into helpful ones."""

from __future__ import annotations

import asyncio
import gc
import json
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

import msgspec

from hitl_tui.agents.backend import (
    CallFailed,
    Finish,
    Message,
    Piece,
    Thought,
    ToolCall,
    Use,
    is_json_object,
    rough_size,
)
from hitl_tui.agents.redaction import redactor
from hitl_tui.engine.log.outcomes import rough_tokens

_lock = threading.Lock()
_importing: Future[Any] | None = None
_callers = 0
"""Number of calls that wait for the import."""


def preload() -> Future[Any]:
    """Start importing litellm in a daemon thread, once for the process; it takes about 3 s.

    Returns:
        a future of the module, with the ImportError if litellm can't be imported.
    """
    global _importing  # noqa: PLW0603  (the process has one)
    with _lock:
        if _importing is None:
            _importing = Future()
            _importing.set_running_or_notify_cancel()  # a cancelled caller must not cancel the import
            # A daemon thread: an executor's threads would be joined when the process quits.
            threading.Thread(target=_import, args=(_importing,), name="litellm-import", daemon=True).start()
        return _importing


async def imported() -> Any:
    """Wait for the module to be imported; `is_awaited` is true meanwhile."""
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
    """Whether a call is waiting for litellm's import."""
    return _callers > 0


def _import(result: Future[Any]) -> None:
    try:
        # Read at import; without it litellm fetches its price list from the network.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        # Otherwise it reads a .env file of a parent directory, which may name another server for a key.
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        warnings.filterwarnings("ignore", module=r"(litellm|pydantic|aiohttp)\b")
        with _without_gc():
            litellm = import_module("litellm")
        _silence(litellm)
    except BaseException as error:
        result.set_exception(error)
    else:
        result.set_result(litellm)


@contextmanager
def _without_gc() -> Iterator[None]:
    """Suspend garbage collection in this context, and exempt the objects that it created for good.

    A collection visits hundreds of thousands of litellm's objects, which blocks the screen for a tenth of a
    second and more.
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
    """Turn off litellm's advice on stdout, telemetry, downloads and log lines on the terminal."""
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
    """Return an error that says why a call to `name` failed and how to fix it.

    Args:
        litellm: the module, which knows providers and their keys.
        error: the call's exception.
        options: the call's options; their secrets, and values of private channels, are removed from the text,
            as a provider may quote the request.
    """
    status = getattr(error, "status_code", None)
    missing = _missing_keys(litellm, name, options)
    if not missing and not options.get("api_key") and _NO_KEY.search(str(error)):
        # litellm treats an empty variable as set.
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
    """Return why no call to `name` can work, as far as known without a call; "" for no known reason."""
    try:
        litellm.get_llm_provider(name, api_base=options.get("api_base"))
    except Exception:  # litellm raises a BadRequestError, with paragraphs of advice
        return f'{name}: unknown provider; write the model as "provider/model"'
    # An address has a default.  If a key may be in one of several variables, one is enough.
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
    # A timeout during a stream, or inside another error, comes without a timeout's status.
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
    """Return an error's message; for a failed connection that of its cause, which has the reason."""
    for cause in _causes(error):
        text = str(getattr(cause, "message", None) or cause)
        if text and "Connection error" not in text:
            return text
    return str(error)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return an error and its causes, the newest first."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _retry_after(error: Exception) -> float | None:
    """Return the seconds of a Retry-After header; dates, which are rare here, are ignored."""
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
        name: "provider/model", or the bare name of a well-known model, as for litellm.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    async def stream(
        self, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> AsyncGenerator[Piece, None]:
        """Yield the reply in pieces, then its use; a server that can't stream sends one piece.

        Raises:
            CallFailed: names provider, model, reason and remedy; never a key.
        """
        litellm = await imported()
        try:
            async for piece in self._stream(litellm, messages, options):
                yield piece
        except (CallFailed, asyncio.CancelledError, GeneratorExit):
            raise
        except Exception as error:
            # Without its cause: the provider's error may contain the key or the request.
            raise explain(litellm, error, self._name, options) from None

    def lacks(self, options: Mapping[str, Any]) -> str:
        """Return what is known to be missing for a call, "" for nothing.  Blocks for litellm's import."""
        return lacking(preload().result(), self._name, with_key(self._name, options))

    def estimate(self, messages: Sequence[Message], text: str) -> Use:
        """Return a rough count of tokens, at litellm's price."""
        return self._use(preload().result(), rough_size(messages), rough_tokens(text), None)

    async def _stream(
        self, litellm: Any, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> AsyncGenerator[Piece, None]:
        # The agent retries, so that users see it.
        options = with_key(self._name, options)
        request = {"model": self._name, "messages": list(messages), "max_retries": 0, **options}
        if "tools" in options:
            # Otherwise litellm looks for tools of its own gateway, with a package that it does not install.
            request["_skip_mcp_handler"] = True
        reply = await litellm.acompletion(**request, stream=True, stream_options={"include_usage": True})
        usage, parts, written, refusal = None, CallParts(), list[str](), list[str]()
        try:
            async for chunk in reply:
                usage = getattr(chunk, "usage", None) or usage
                delta = chunk.choices[0].delta if chunk.choices else None
                parts.add(getattr(delta, "tool_calls", None))
                refusal.append(getattr(delta, "refusal", None) or "")
                for piece in _pieces(delta):
                    written.append(str(piece))
                    yield piece
        finally:
            await reply.aclose()  # otherwise the provider would continue to generate, and to charge
        # litellm ends every stream with "stop"; only this shows the provider's own reason.
        ended = reply.received_finish_reason or reply.intermittent_finish_reason
        began = bool(written or parts.calls or any(refusal))
        if began and not ended:
            raise CallFailed(f"{self._name}: the reply broke off before its end", "try again")
        if not began and not ended:
            whole = await litellm.acompletion(**request, stream=False)
            message, ended = whole.choices[0].message, whole.choices[0].finish_reason
            for piece in _pieces(message):
                written.append(str(piece))
                yield piece
            refusal.append(getattr(message, "refusal", None) or "")
            parts.add_whole(message.tool_calls)
            usage = whole.usage
        for call in parts.calls:
            yield call
        if any(refusal):
            yield "".join(refusal)
        if finish := self._finish(str(ended or ""), refused=any(refusal)):
            yield finish
        written += refusal + [call.text for call in parts.calls]
        if use := self._reported(litellm, usage, messages, "".join(written)):
            yield use

    def _finish(self, reason: str, *, refused: bool) -> Finish | None:
        """Return whether the reply is incomplete; raises `CallFailed` if the provider failed or refused."""
        reason = reason.lower()
        if reason in _BROKEN:
            raise CallFailed(
                f"{self._name}: the provider stopped before the reply was complete ({reason})",
                "try again",
                retryable=True,
            )
        if reason in _CUT:
            return Finish("length")
        return Finish("content_filter") if refused or reason in _WITHHELD else None

    def _reported(self, litellm: Any, usage: Any, messages: Sequence[Message], written: str) -> Use | None:
        """Return the provider's reported use; a missing count is estimated; None if it reported nothing."""
        read, wrote = _tokens(usage, "prompt_tokens"), _tokens(usage, "completion_tokens")
        if not read and not wrote:
            return None
        if read and (wrote or not written):
            return self._use(litellm, read, wrote, usage)
        return self._use(litellm, read or rough_size(messages), wrote or rough_tokens(written), None)

    def _use(self, litellm: Any, tokens_in: int, tokens_out: int, usage: Any) -> Use:
        try:
            model, provider, _, _ = litellm.get_llm_provider(self._name)
        except Exception:
            provider, _, model = self._name.rpartition("/")
        price = _price(litellm, self._name, tokens_in, tokens_out, usage)
        return Use(provider, model, tokens_in, tokens_out, price)


def with_key(name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call's options, with a dummy key for a server on this machine: the client requires one."""
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


def _pieces(said: Any) -> Iterator[str | Thought]:
    """Return the thinking and the text of a delta or a whole message."""
    thought = getattr(said, "reasoning_content", None) or getattr(said, "reasoning", None)
    if thought and isinstance(thought, str):
        yield Thought(thought)
    if text := getattr(said, "content", None):
        yield text


def _tokens(usage: Any, kind: str) -> int:
    """Return a provider's token count, 0 if it reported none."""
    count = getattr(usage, kind, None)
    return count if isinstance(count, int) and count > 0 else 0


_CUT = frozenset({"length", "max_tokens", "model_length", "max_output_tokens", "compaction",
                  "model_context_window_exceeded"})  # fmt: skip
"""Finish reasons of providers, in lower case: the reply reached a limit of tokens."""
_WITHHELD = frozenset({
    "content_filter", "content_filtered", "refusal", "safety", "recitation", "language", "blocklist",
    "prohibited_content", "spii", "sensitive", "guardrail_intervened", "error_toxic", "escalation",
})  # fmt: skip
"""The provider withheld the rest, or the model refused."""
_BROKEN = frozenset({
    "error", "network_error", "insufficient_system_resource", "abort", "cancelled", "malformed_response",
})  # fmt: skip
"""The provider failed while it wrote."""


class _CallPart:
    """One tool call while its parts arrive."""

    def __init__(self, call_id: str, name: str) -> None:
        self.id, self.name, self.arguments = call_id, name, ""

    @property
    def is_whole(self) -> bool:
        return is_json_object(self.arguments)


class CallParts:
    """Assembles tool calls from the parts of a stream.

    An index should identify a reply's calls, but many servers give all of them the same one, or none.
    So a new id also begins a call, and so do arguments after a call whose arguments are complete.
    A name is replaced, never appended to: some servers repeat it in each part.
    """

    def __init__(self) -> None:
        self._parts: list[_CallPart] = []
        self._latest: dict[Any, _CallPart] = {}
        """The newest call of each index."""
        self._newest: _CallPart | None = None

    @property
    def calls(self) -> list[ToolCall]:
        """Return the calls so far, in the order in which they began."""
        return [
            ToolCall(part.name, arguments, "" if number else part.id)
            for part in self._parts
            if part.name or part.arguments
            for number, arguments in enumerate(_separate(part.arguments))
        ]

    def add(self, parts: Any) -> None:
        """Add the parts of one chunk of a stream."""
        for part in parts or ():
            index, call_id, name, arguments = _facts(part)
            call = self._find(index, call_id, name, arguments)
            if call is None:
                before = self._latest.get(index)
                call = self._begin(call_id, name or (before.name if before else ""))
            self._latest[index] = self._newest = call
            call.id = call.id or call_id
            call.name = name or call.name
            if call.arguments.strip() == "{}" and arguments.strip():
                call.arguments = ""  # a placeholder
            # Some servers repeat the whole call at the end.
            if not (call.is_whole and arguments.strip() in ("", call.arguments.strip())):
                call.arguments += arguments

    def add_whole(self, calls: Any) -> None:
        """Add calls that arrived whole."""
        for call in calls or ():
            _, call_id, name, arguments = _facts(call)
            self._begin(call_id, name).arguments = arguments

    def _begin(self, call_id: str, name: str) -> _CallPart:
        self._parts.append(_CallPart(call_id, name))
        return self._parts[-1]

    def _find(self, index: Any, call_id: str, name: str, arguments: str) -> _CallPart | None:
        """Return the call that a part continues; None for a new one."""
        known = [part for part in self._parts if call_id and part.id == call_id]
        latest = self._latest.get(index)
        if latest is None and not name and (known or not call_id):
            # Only the call's first part has an index, or each part has a different one.
            latest = known[-1] if known else self._newest
        if latest is None:
            return None
        text = arguments.strip()
        if call_id and latest.id and latest.id != call_id:
            if known:
                return known[-1]
            begins = (
                not text or text.startswith("{") or latest.is_whole or latest.name != (name or latest.name)
            )
            return None if begins and (name or latest.is_whole) else latest
        before = latest.arguments.strip()
        if latest.is_whole and text.startswith("{") and text != before and (name or before != "{}"):
            return None
        renamed = bool(name) and name != latest.name and bool(latest.name)
        return None if renamed and (latest.is_whole or index is None) else latest


def _facts(part: Any) -> tuple[Any, str, str, str]:
    """Return the index, id, name and arguments of a part, "" for missing ones."""
    function = getattr(part, "function", None)
    arguments = getattr(function, "arguments", None) or ""
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments).decode()
    name = getattr(function, "name", None) or ""
    return getattr(part, "index", None), getattr(part, "id", None) or "", name, arguments


def _separate(arguments: str) -> list[str]:
    """Split arguments of several calls that a server has joined: `{…}{…}`."""
    found, at, decoder = list[str](), 0, json.JSONDecoder()
    try:
        while at < len(arguments):
            value, end = decoder.raw_decode(arguments, at)
            if not isinstance(value, dict):
                return [arguments]
            found.append(arguments[at:end])
            at = end + len(arguments[end:]) - len(arguments[end:].lstrip())
    except (ValueError, RecursionError):
        return [arguments]
    return found or [arguments]


def _price(litellm: Any, name: str, tokens_in: int, tokens_out: int, usage: Any) -> float | None:
    """Return US dollars by litellm's local price map, counting cached tokens; None if unknown."""
    if name.startswith("ollama"):
        return 0.0  # local models; and litellm would query that server, blocking the event loop
    try:
        if litellm.get_model_info(name).get("input_cost_per_token") is None:
            return None
        parts = litellm.cost_per_token(
            model=name, prompt_tokens=tokens_in, completion_tokens=tokens_out, usage_object=usage
        )
    except Exception:  # litellm raises a plain Exception for a model that is not in its map
        return None
    return float(sum(parts)) or None
