"""Bindings made from the tables of actions, and the keys in use, for widgets and screens to show."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from textual.app import App
from textual.binding import Binding

from hitl_tui.verbs.actions import ALL_BY_ID
from hitl_tui.verbs.keymap import load_keymap
from hitl_tui.view.keymap import Keymap


def keymap_of(app: App[Any]) -> Keymap:
    """Return the keys of the app, or the default ones in another app."""
    keymap = getattr(app, "keymap", None)
    return keymap if isinstance(keymap, Keymap) else _defaults()


@cache
def _defaults() -> Keymap:
    return load_keymap({})


def bound(action_id: str, do: str, *, priority: bool = False) -> Binding:
    """Return a binding of an action's default keys to an action of a screen or widget.

    Args:
        do: Textual's name of the action: `close` is the method `action_close`.
        priority: whether it takes precedence over the widget with the focus.
    """
    action = ALL_BY_ID[action_id]
    keys = ",".join(action.default_keys)
    return Binding(keys, do, action.label, show=False, priority=priority, id=action_id)


LIST_MOVES: Final = (
    bound("list.up", "move(-1)"),
    bound("list.down", "move(1)"),
    bound("list.page_up", "move(-10)"),
    bound("list.page_down", "move(10)"),
    bound("list.first", "move(-1_000_000)"),
    bound("list.last", "move(1_000_000)"),
)
"""For lists with a cursor, which `action_move` moves by a number of rows."""
