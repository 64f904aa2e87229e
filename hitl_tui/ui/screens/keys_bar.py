"""The bottom row of a screen over the run: its keys, as configured."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from hitl_tui.ui.keys_in_use import keymap_of
from hitl_tui.ui.widgets.lines import LineBar, ours
from hitl_tui.view.spans import Line, Span


class KeysBar(LineBar):
    """Ids of actions (several with blanks between), or Textual's own keys, each with a word."""

    entries: Sequence[tuple[str, str]] = ()

    def bar(self, width: int) -> Line:
        """The spans; an entry that has no room is left out whole."""
        keymap = keymap_of(self.app)
        spans: list[Span] = []
        for names, word in self.entries:
            key = " ".join(keymap.shown(name) if name in keymap.bindings else name for name in names.split())
            width -= cell_len(key) + cell_len(word) + 3
            if width >= 0:
                spans += [ours(f" {key}", "key"), Span(f" {word} ")]
        return tuple(spans)
