"""A user's functions: what they want to be called with, and where in them an error was raised."""

from __future__ import annotations

import inspect
import os
import traceback
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any, Final

from hitl_tui.errors import GraphInvalid


def takes_second(function: Callable[..., Any], name: str) -> bool:
    """Whether a function wants a second argument: a node the config, an answer of a gate the text.

    One with a default is the function's own (`lambda state, word=word: ...`), unless it is called `name`.
    """
    signature = _signature(function)
    if signature is None:
        return True
    parameters = signature.parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) > 1:
        second = positional[1]
        return second.default is second.empty or second.name == name
    return any(p.kind is p.VAR_POSITIONAL for p in parameters)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function, or of the `__call__` of an object that tells none; None without."""
    try:
        return inspect.signature(function)
    except Exception:  # a proxy or a mock may raise anything when it is asked
        called = inspect.getattr_static(type(function), "__call__", None)
    if type(called) is not FunctionType:
        return None
    signature = inspect.signature(called)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def code_behind(function: Any) -> CodeType | None:
    """The code of a function, also behind a decorator, a partial or an object's `__call__`; None without.

    None of it runs: what a user gives may be a proxy that does anything when it is asked.
    """
    for _ in range(_MOST_WRAPPED):
        if type(function) is FunctionType:
            wrapped = vars(function).get("__wrapped__")
            if wrapped is None:
                return function.__code__
            function = wrapped
        elif type(function) is MethodType:
            function = function.__func__
        elif type(function) is partial:
            function = function.func
        else:
            function = inspect.getattr_static(type(function), "__call__", None)
            if type(function) is not FunctionType:
                return None
    return None


_MOST_WRAPPED: Final = 100


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
    signature = _signature(function)
    if signature is None:
        return
    given, name = ", ".join(arguments), getattr(function, "__name__", "function")
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise GraphInvalid(
            f"{what} can't be called with ({given}): {error}",
            f"write lambda {given}: …" if name == "<lambda>" else f"write def {name}({given})",
        ) from None


_OURS = f"{Path(__file__).resolve().parents[2]}{os.sep}"
_LONGEST = 120


@cache
def _libraries() -> tuple[str, ...]:
    """Where Python and what is installed with it lie."""
    import site

    # As `sysconfig` has them, which reads how Python was built to tell.
    places = (os.path.dirname(os.__file__), *site.getsitepackages(), site.getusersitepackages())
    return tuple(f"{place}{os.sep}" for place in places)


def is_ours(file: str) -> bool:
    """Whether code of that file is this package's."""
    return file.startswith(_OURS)


def is_library(file: str) -> bool:
    """Whether code of that file is this package's, Python's or a library's, rather than a user's."""
    known = file.startswith((_OURS, "<frozen "))  # first, for where libraries lie takes a while to find
    return known or file.startswith(_libraries())


def raised_at(error: BaseException) -> str:
    """The innermost line of a user's code that led to an error, as "flow.py, line 12: words = …".

    "" where none did: a frame counts if it lies neither in this package nor in Python or a library.
    """
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_library(frame.filename):
            continue
        line = frame.line or ""
        line = "" if line.startswith("raise ") else line  # the message says that
        code = f": {line if len(line) <= _LONGEST else f'{line[: _LONGEST - 1]}…'}" if line else ""
        return f"{os.path.basename(frame.filename)}, line {frame.lineno}{code}"
    return ""
