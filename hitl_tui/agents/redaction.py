"""What must not be written to a file: keys, and the values of private channels (SPEC 8)."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

from hitl_tui.engine.log.secrets import MASK, SECRET_LOOK, SECRET_NAME
from hitl_tui.engine.nodes.activity import Activity, current_activity

_of_agents: set[str] = set()
_SHORT = 4


def redactor(options: Mapping[str, Any], activity: Activity | None = None) -> Callable[[Any], Any]:
    """A function that hides in any JSON what is secret here and now: below the running node, in this call.

    Args:
        options: of the call; values of those that look like keys are hidden.
        activity: of the node; the running one by default.
    """
    activity = activity or current_activity.get()
    private = activity.private() if activity else {}
    hidden = [
        (pattern, f"[private: {name}]") for name, value in private.items() for pattern in _patterns(value)
    ]

    def hide(value: Any) -> Any:
        if isinstance(value, str):
            for pattern, instead in hidden:
                value = pattern.sub(instead, value)
            return scrub(value, options)
        if isinstance(value, Mapping):
            return {key: hide(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [hide(item) for item in value]
        return value

    return hide


def _patterns(value: Any) -> list[re.Pattern[str]]:
    """What finds the value in a text, whole or in its parts, however it is written there."""
    texts = {text for leaf in _leaves(value) for text in _written(leaf) if text.strip()}
    return [_pattern(text) for text in sorted(texts, key=len, reverse=True)]


@lru_cache(maxsize=256)
def _written(text: str) -> frozenset[str]:
    """A text as providers quote it: as it is, in JSON, in JSON that stands in JSON, in Python, in a URL."""
    forms = {text, repr(text)[1:-1]}
    for once in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        # In JSON that stands in JSON it is a text of its own there.
        forms |= {once[1:-1], json.dumps(once)[3:-3], json.dumps(once, ensure_ascii=False)[3:-3]}
    with contextlib.suppress(UnicodeEncodeError):
        forms |= {quote(text), quote(text, safe=""), quote_plus(text)}
    return frozenset(forms)


def _pattern(text: str) -> re.Pattern[str]:
    escaped = re.escape(text)
    # A short one may stand inside other words by chance.
    return re.compile(escaped if len(text) >= _SHORT else rf"(?<!\w){escaped}(?!\w)")


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        yield from (line for line in value.splitlines() if line != value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield json.dumps(value)


def remember(options: Mapping[str, Any]) -> None:
    """Keep the secrets among an agent's options: errors of other agents of this process may quote them."""
    _of_agents.update(_secrets(options))


def scrub(text: str, options: Mapping[str, Any]) -> str:
    """Cut out the values of secret-looking options and variables, and what looks like a key."""
    # The longest first: a key may be the beginning of another one.
    secrets = {*_of_agents, *_secrets(options), *_secrets(os.environ)}
    for written in sorted({form for secret in secrets for form in _written(secret)}, key=len, reverse=True):
        text = text.replace(written, MASK)
    return SECRET_LOOK.sub(MASK, text)


def _secrets(options: Mapping[str, Any]) -> set[str]:
    named = [*options.items()]
    for nested in ("extra_headers", "headers"):
        # A provider quotes "Bearer KEY" as well as the key alone.
        given = options.get(nested)
        headers = [str(value) for value in given.values()] if isinstance(given, Mapping) else []
        named += [("secret", part) for header in headers for part in (header, *header.split())]
    return {
        value
        for name, value in named
        if isinstance(value, str) and len(value) >= 8 and SECRET_NAME.search(name)
    }
