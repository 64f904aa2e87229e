"""The bottom row of a screen over the run: its keys, as configured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.app import App

from hitl_tui.ui.keymap import Keymap, load_keymap
from hitl_tui.ui.widgets.lines import LineBar, ours
from hitl_tui.view.spans import Line, Span


def keymap_of(app: App[Any]) -> Keymap:
    """The keys in use; the default ones before a thread could be opened."""
    run = getattr(app, "run_screen", None)
    return run.keymap if run is not None else load_keymap({})


class KeysBar(LineBar):
    """Ids of actions, or keys that are always the same, each with a word."""

    entries: Sequence[tuple[str, str]] = ()

    def bar(self, width: int) -> Line:
        """The spans."""
        keymap = keymap_of(self.app)
        shown = [(keymap.shown(key) if key in keymap.bindings else key, word) for key, word in self.entries]
        return tuple(span for key, word in shown for span in (ours(f" {key}", "key"), Span(f" {word} ")))
