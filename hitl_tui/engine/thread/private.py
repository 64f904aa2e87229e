"""What a thread keeps private, and errors without it."""

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
    """The values of private channels and of private parts of the context, by name.

    Args:
        values: the state.
        updates: what is about to be written to channels, hidden beside the values that those have.
    """
    private = {name for name, channel in graph.channels.items() if channel.visibility == "private"}
    hidden: dict[str, Any] = {name: values[name] for name in private if name in values}
    for name, update in updates:
        if name in private:
            hidden[name] = [hidden.get(name), update]
    return hidden | {name: cursor.context[name] for name in cursor.private_context if name in cursor.context}


def without_private(error: E, private: Mapping[str, Any]) -> E:
    """The same error, with private values hidden in its words."""
    if private:
        hide = hiding(private)
        error.message, error.hint, error.details = map(hide, (error.message, error.hint, error.details))
        error.args = (error.message,)
    return error


def hidden_error(error: Exception, private: Mapping[str, Any]) -> Exception:
    """A user's error that ends a command or a run, as one of ours where it quotes private values."""
    if isinstance(error, HitlError) or not private:
        return error
    hide, words = hiding(private), described(error)
    if hide(words) == words:
        return error
    hidden = HitlError(hide(words), "it quotes private values, which are hidden here")
    hidden.details = hide("".join(traceback.format_exception(error)))
    return hidden


def concealed(error: Exception, private: Mapping[str, Any]) -> Exception | None:
    """The error to raise in place of one that quotes private values, its causes included; None for itself.

    Raise it `from None`.
    """
    if not private:
        return None
    hide, whole = hiding(private), "".join(traceback.format_exception(error))
    if hide(whole) == whole:
        return None
    return without_private(error, private) if isinstance(error, HitlError) else hidden_error(error, private)
