"""Bindings made from the tables of actions, so that every key has an id by which it can be changed."""

from __future__ import annotations

from typing import Final

from textual.binding import Binding

from hitl_tui.ui.screen_actions import ALL_BY_ID


def bound(action_id: str, do: str, *, priority: bool = False) -> Binding:
    """The default keys of an action, on what a screen or widget does for it.

    Args:
        do: Textual's name of it: `close` is the method `action_close`.
        priority: whether it comes before what the widget with the focus does with the key.
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
"""For lists with a cursor, which `action_move` moves by so many rows."""
