"""The private values of a thread, and how they are removed from errors."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.redaction import hiding
from hitl_tui.errors import HitlError, described

E = TypeVar("E", bound=HitlError)


def private_values(
    graph: CompiledGraph,
    cursor: Cursor,
    values: Mapping[str, Any],
    updates: Iterable[tuple[str, Any]] = (),
) -> dict[str, Any]:
    """Return the values of private channels and of private parts of the context, by name.

    Args:
        values: the state.
        updates: values that are about to be written to channels; they are hidden together with the current
            ones.
    """
    private = {name for name, channel in graph.channels.items() if channel.visibility == "private"}
    hidden: dict[str, Any] = {name: values[name] for name in private if name in values}
    for name, update in updates:
        if name in private:
            hidden[name] = [hidden.get(name), update]
    return hidden | {name: cursor.context[name] for name in cursor.private_context if name in cursor.context}


def without_private(error: E, private: Mapping[str, Any]) -> E:
    """Hide private values in an error's message, and return the same error."""
    if private:
        hide = hiding(private)
        error.message, error.hint, error.details = map(hide, (error.message, error.hint, error.details))
        error.args = (error.message,)
    return error


def hidden_error(error: Exception, private: Mapping[str, Any]) -> Exception:
    """Return a user's error that ends a command or a run; one that quotes private values is replaced."""
    if isinstance(error, HitlError) or not private:
        return error
    hide, words = hiding(private), described(error)
    if hide(words) == words:
        return error
    hidden = HitlError(hide(words), "it quotes private values, which are hidden here")
    hidden.details = hide("".join(traceback.format_exception(error)))
    return hidden


def error_without_private(error: Exception, private: Mapping[str, Any]) -> Exception | None:
    """Return the error to raise instead of one that quotes private values, also in its causes.

    None for itself.

    Raise it `from None`.
    """
    if not private:
        return None
    hide, whole = hiding(private), "".join(traceback.format_exception(error))
    if hide(whole) == whole:
        return None
    return without_private(error, private) if isinstance(error, HitlError) else hidden_error(error, private)
