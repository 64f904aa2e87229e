"""The bottom row of a screen over the run: its keys, as configured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
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
        """The spans; an entry that has no room is left out whole."""
        keymap = keymap_of(self.app)
        spans: list[Span] = []
        for name, word in self.entries:
            key = keymap.shown(name) if name in keymap.bindings else name
            width -= cell_len(key) + cell_len(word) + 3
            if width >= 0:
                spans += [ours(f" {key}", "key"), Span(f" {word} ")]
        return tuple(spans)
