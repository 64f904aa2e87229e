"""What a user's function wants to be called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from hitl_tui.errors import GraphInvalid


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


def _is_async(function: Callable[..., Any]) -> bool:
    """Whether a call gives something to await instead of the answer."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def check_takes(what: str, function: Callable[..., Any], *arguments: str, waits: bool = False) -> None:
    """Refuse a function that could never be called the way it will be.

    Args:
        what: it, for people, as "node 'write'".
        arguments: what it is called with, in words.
        waits: whether it may be async.

    Raises:
        GraphInvalid: it takes fewer arguments, needs more, or is async where nothing awaits it.
    """
    if not waits and _is_async(function):
        raise GraphInvalid(f"{what} is async", "write def instead of async def; only nodes may wait")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    given, name = ", ".join(arguments), getattr(function, "__name__", "function")
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise GraphInvalid(
            f"{what} can't be called with ({given}): {error}",
            f"write lambda {given}: …" if name == "<lambda>" else f"write def {name}({given})",
        ) from None
