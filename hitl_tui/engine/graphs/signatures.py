"""What a user's function wants to be called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def takes_second(function: Callable[..., Any], name: str) -> bool:
    """Whether a function wants a second argument: a node the config, an answer of a gate the text.

    One with a default is the function's own (`lambda state, word=word: ...`), unless it is called `name`.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) > 1:
        second = positional[1]
        return second.default is second.empty or second.name == name
    return any(p.kind is p.VAR_POSITIONAL for p in parameters)
