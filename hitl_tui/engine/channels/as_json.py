"""How a Python value that is no JSON becomes one, for the hint of an error."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterable
from typing import Any

GIVE_JSON = "return text, numbers, lists, dicts, dataclasses or pydantic models"


def as_json_hint(value: Any) -> str:
    """What to write instead of a value that no channel keeps; a coroutine is closed, as nothing awaits it."""
    if inspect.iscoroutine(value):
        value.close()
        return f"await it: write async def, and await {value.__name__}(…)"
    if inspect.isawaitable(value) or isinstance(value, AsyncIterator):
        return "await it: write async def, and keep what comes of it"
    if isinstance(value, (bytes, bytearray)):
        return "make text of it, as value.decode()"
    if isinstance(value, (set, frozenset)):
        return "make a list of it, as sorted(value)"
    if not isinstance(value, type):
        for method in ("tolist", "to_dict"):  # as numpy and pandas have them
            if callable(getattr(value, method, None)):
                return f"make JSON of it, as value.{method}()"
    if inspect.isroutine(value) or isinstance(value, type):
        return "call it: this is the function or class itself"
    if isinstance(value, Iterable):
        return "make a list of it, as list(value)"
    return GIVE_JSON
