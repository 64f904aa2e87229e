"""The keys in use, for widgets and screens to show and to ask for."""

from __future__ import annotations

from functools import cache
from typing import Any

from textual.app import App

from hitl_tui.ui.keymap import Keymap, load_keymap


def keymap_of(app: App[Any]) -> Keymap:
    """The keys of the app; the default ones in an app that is not ours."""
    found = getattr(app, "keymap", None)
    return found if isinstance(found, Keymap) else _defaults()


@cache
def _defaults() -> Keymap:
    return load_keymap({})
