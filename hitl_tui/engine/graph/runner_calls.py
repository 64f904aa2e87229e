"""Checks of how a runner's methods are called, so that a wrong argument is answered with the right one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hitl_tui.engine.graph.names_elsewhere import ARGUMENTS, thread_in_config
from hitl_tui.engine.log.threads import check_thread_id
from hitl_tui.errors import UsageError
from hitl_tui.suggest import did_you_mean

T = TypeVar("T")


def checks_calls(cls: type[T]) -> type[T]:
    """Let public methods refuse arguments that they do not take, and thread ids that are not text."""
    for name, method in list(vars(cls).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            setattr(cls, name, _checked(method))
    return cls


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    code = method.__code__
    parameters = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    known = frozenset(parameters)
    takes_any = bool(code.co_flags & inspect.CO_VARKEYWORDS)
    most = code.co_argcount
    place = parameters.index("thread_id") + 1 if "thread_id" in parameters else most

    def check(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if len(args) > most or not (takes_any or kwargs.keys() <= known):
            raise _refused(method.__name__, parameters, args, kwargs, most)
        thread_id = args[place] if place < len(args) else kwargs.get("thread_id")
        if thread_id is not None and not isinstance(thread_id, str):
            _refuse_thread_id(thread_id)

    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            check(args, kwargs)
            return await method(*args, **kwargs)

        return awaited

    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        check(args, kwargs)
        return method(*args, **kwargs)

    return called


def _refused(
    name: str, parameters: tuple[str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any], most: int
) -> UsageError:
    wrong = next((each for each in kwargs if each not in parameters), "")
    if wrong:
        hint = ARGUMENTS.get(wrong) or did_you_mean(wrong, parameters)
        return UsageError(
            f"{name}: there is no argument {wrong!r}", hint or f"it takes {', '.join(parameters)}"
        )
    by_name = ", ".join(f"{each}=…" for each in parameters[most - 1 :])
    config = any(thread_in_config(each) for each in args)
    return UsageError(
        f"{name}: {len(args) - 1} arguments without a name, and it takes {most - 1}",
        ARGUMENTS["config"] if config else f"give by name: {by_name}" if by_name else "",
    )


def _refuse_thread_id(thread_id: Any) -> None:
    if found := thread_in_config(thread_id):
        raise UsageError("a thread id is text, this one a dict", f"use {found!r}")
    check_thread_id(thread_id)
