"""A user's functions: which arguments they take, and where in them an error was raised."""

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
    """Whether a function takes a second argument: the config of a node, or the text of a gate's answer.

    A parameter with a default is the function's own (`lambda state, word=word: ...`), unless it is called
    `name`.
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
    """Return the signature of a function, or of an object's `__call__`; None if it is not known."""
    try:
        return inspect.signature(function)
    except Exception:  # a proxy or a mock may raise anything here
        called = inspect.getattr_static(type(function), "__call__", None)
    if type(called) is not FunctionType:
        return None
    signature = inspect.signature(called)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def code_behind(function: Any) -> CodeType | None:
    """Return the code of a function, a decorated function, a partial or an object's `__call__`; or None.

    None of the user's code runs, since an object may be a proxy that does anything when an attribute is read.
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
    """Whether a call returns something to await instead of the result."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def check_arguments(
    what: str, function: Callable[..., Any], *arguments: str, may_be_async: bool = False
) -> None:
    """Refuse a function that can't be called with the arguments it will get.

    Args:
        what: its description for people, such as "node 'write'".
        arguments: a description of the arguments.
        may_be_async: whether its result is awaited.

    Raises:
        GraphInvalid: it takes fewer arguments, needs more, or is async although its result is not awaited.
    """
    if not may_be_async and _is_async(function):
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
    """Return the directories of Python and of installed packages."""
    import site

    # The same as in `sysconfig`, which would first read how Python was built.
    places = (os.path.dirname(os.__file__), *site.getsitepackages(), site.getusersitepackages())
    return tuple(f"{place}{os.sep}" for place in places)


def is_ours(file: str) -> bool:
    """Whether a file belongs to this package."""
    return file.startswith(_OURS)


def is_library(file: str) -> bool:
    """Whether a file belongs to this package, Python or a library, and not to the user."""
    known = file.startswith(
        (_OURS, "<frozen ")
    )  # checked first, because it takes a while to find the directories of libraries
    return known or file.startswith(_libraries())


def raised_at(error: BaseException) -> str:
    """Return the innermost line of a user's code that led to an error, as "flow.py, line 12: words = …".

    It is "" if there is none. Code counts as the user's if it is neither in this package nor in Python or a
    library.
    """
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_library(frame.filename):
            continue
        line = frame.line or ""
        line = "" if line.startswith("raise ") else line  # the message already says where
        code = f": {line if len(line) <= _LONGEST else f'{line[: _LONGEST - 1]}…'}" if line else ""
        return f"{os.path.basename(frame.filename)}, line {frame.lineno}{code}"
    return ""
