"""The keys in use, and choices with a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from hitl_tui.view.actions import Action
from hitl_tui.view.keys import spelled, written

Keys = tuple[str, ...]
PALETTE: Final = "app.palette"
"""The action through which all others can be reached."""


class Keymap(msgspec.Struct, frozen=True):
    """The keys in use, and the problems with configured ones.

    Args:
        bindings: the keys of each action as Textual calls them, () for one that has none.
        actions: all actions, by id.
        problems: each with its place, the action and how to fix it.
        configured: the actions whose keys are not the default ones.
    """

    bindings: Mapping[str, Keys]
    actions: Mapping[str, Action]
    problems: tuple[str, ...] = ()
    configured: frozenset[str] = frozenset()

    def shown(self, action_id: str) -> str:
        """Return the first key as a screen shows it; "" if there is none."""
        keys = self.bindings[action_id]
        return written(keys[0]) if keys else ""

    def all_shown(self, action_id: str) -> str:
        """Return all keys of an action, separated by blanks."""
        return " ".join(written(key) for key in self.bindings[action_id])

    def spelled(self, action_id: str) -> tuple[str, ...]:
        """Return all keys of an action, each as the settings write it."""
        return tuple(spelled(key) for key in self.bindings[action_id])

    def key_hint(self, action_id: str) -> str:
        """Return what to press, for a sentence: the key, or how to use the palette if there is none."""
        return self.shown(action_id) or f"{self.shown(PALETTE)} {self.actions[action_id].label}"

    @property
    def key_hints(self) -> dict[str, str]:
        """Return `key_hint` of every action."""
        return {name: self.key_hint(name) for name in self.actions}


class Option(msgspec.Struct, frozen=True):
    """One of several choices: its key (`also` works too), its name, and a note beside it.

    `risk` is a highlighted note, as "high risk".  A key is a character, or the id of the action whose keys
    choose it; "" for none.
    """

    id: str
    key: str
    label: str
    note: str = ""
    also: tuple[str, ...] = ()
    risk: str = ""

    def keys(self, keymap: Keymap) -> Keys:
        """Return all keys of an option, by Textual's names."""
        names = (name for name in (self.key, *self.also) if name)
        return tuple(key for name in names for key in keymap.bindings.get(name, (name,)))


BACK: Final = Option("back", "ask.back", "go back")
"""The choice that decides nothing."""
