"""Checks the types of the options of `compile`, `add_node` and `invoke`; errors name the option."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hitl_tui.declared import has
from hitl_tui.engine.graph.description import InputField
from hitl_tui.engine.graph.gates import Gate
from hitl_tui.engine.graph.retry import RetryPolicy
from hitl_tui.engine.graph.termination import Termination
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.state.values import is_name
from hitl_tui.errors import GraphInvalid, UsageError, in_words


def check_compiled_with(checkpointer: Any, agents: Any, termination: Any, limits: Any) -> None:
    """Refuse options of `compile` with a wrong type; raises `GraphInvalid`."""
    if isinstance(checkpointer, (str, os.PathLike)):
        raise _wrong_type(
            "checkpointer", checkpointer, f"write SQLiteCheckpointer({os.fspath(checkpointer)!r})"
        )
    if checkpointer is not None and not has(checkpointer, "commit"):
        raise _wrong_type(
            "checkpointer", checkpointer, "as in SQLiteCheckpointer(path), or MemoryCheckpointer()"
        )
    if agents is not None and not isinstance(agents, Mapping):
        raise _wrong_type("agents", agents, 'give a dict by name, as {"writer": Agent("writer", …)}')
    for name in agents or ():
        if not is_name(name):
            raise GraphInvalid(f"agents: the name {name!r} is not allowed", 'give text, as {"writer": …}')
    if termination is not None and not isinstance(termination, Termination):
        instead = "write custom_condition(function)" if callable(termination) else "as in max_turns(8)"
        raise _wrong_type("termination", termination, instead)
    if limits is not None and not isinstance(limits, Limits):
        raise _wrong_type("limits", limits, "as in Limits(max_tokens=50_000)")


def check_places(inputs: Any, max_update_bytes: Any, before: Any, after: Any) -> None:
    """Refuse inputs, a size or interrupts with a wrong type; raises `GraphInvalid`."""
    for field in inputs:
        if not isinstance(field, InputField):
            raise _wrong_type("an entry of inputs", field, "as InputField(name, channel, label)")
    if isinstance(max_update_bytes, bool) or not isinstance(max_update_bytes, int) or max_update_bytes < 1:
        raise GraphInvalid(f"max_update_bytes is {max_update_bytes!r}", "give a whole number of at least 1")
    for option, places in (("interrupt_before", before), ("interrupt_after", after)):
        if not isinstance(places, (str, Gate, Iterable)):
            raise _wrong_type(option, places, 'give a list of nodes, or "*" for all of them')


def check_names(what: str, names: Any) -> None:
    """Refuse anything but a list of channels; raises `GraphInvalid`.

    Args:
        what: which list, such as "node 'write': reads".
    """
    if names is not None:
        check_listed(what, names, "channels")


def check_listed(what: str, names: Any, of: str) -> None:
    """Refuse anything but a list of names; raises `GraphInvalid`.

    Args:
        what: which list.
        of: what they are names of.
    """
    listed = isinstance(names, Iterable) and not isinstance(names, str)
    if not listed or not all(isinstance(name, str) for name in names):
        raise GraphInvalid(f"{what} is {names!r:.100}", f"give a list of names of {of}")


def check_choice(option: str, given: Any, known: Sequence[str]) -> None:
    """Refuse a value that an option of a run does not take; raises `UsageError`."""
    if given not in known:
        raise UsageError(f"{option} is {given!r}", f"one of {', '.join(map(repr, known))}")


def check_callback(option: str, given: Any) -> None:
    """Refuse a callback that is not a function; raises `UsageError`."""
    if given is not None and not callable(given):
        raise UsageError(f"{option} is {in_words(given)}", "give a function, or leave it out")


def check_retry(what: str, retry: Any, timeout: Any) -> None:
    """Refuse a retry or a timeout with a wrong type, or an impossible time; raises `GraphInvalid`.

    Args:
        what: the node or handler that they belong to, such as "node 'write'".
    """
    if retry is not None and not isinstance(retry, RetryPolicy):
        tries = retry if isinstance(retry, int) and not isinstance(retry, bool) else 3
        raise _wrong_type(f"{what}: retry", retry, f"write RetryPolicy(max_attempts={tries})")
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise _wrong_type(f"{what}: timeout", timeout, "give seconds, as timeout=30")
    if not timeout > 0:  # nan, too
        raise GraphInvalid(f"{what}: timeout {timeout!r} must be above 0 seconds")


def _wrong_type(what: str, value: Any, instead: str) -> GraphInvalid:
    return GraphInvalid(f"{what} is {in_words(value)}", instead)
