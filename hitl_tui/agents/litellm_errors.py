"""From litellm's exceptions to one that a user can act on: provider, model, reason, mend."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hitl_tui.agents.backend import CallFailed
from hitl_tui.agents.redaction import redactor

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
    keys = [one for one in _missing_keys(litellm, name, options) if not one.endswith("_BASE")]
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
