"""The bottom row of a screen over the run: its keys, as configured."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from hitl_tui.ui.keys_in_use import keymap_of
from hitl_tui.ui.widgets.lines import LineBar, ours
from hitl_tui.view.spans import Line, Span

_WAY_BACK = "Back"


class KeysBar(LineBar):
    """Ids of actions (several with blanks between), or Textual's own keys, each with a word."""

    entries: Sequence[tuple[str, str]] = ()

    def bar(self, width: int) -> Line:
        """The spans; entries that have no room are left out whole, the way back last of all."""
        keymap = keymap_of(self.app)
        shown = [
            (
                " ".join(keymap.shown(name) if name in keymap.bindings else name for name in names.split()),
                word,
            )
            for names, word in self.entries
        ]
        while sum(cell_len(key) + cell_len(word) + 3 for key, word in shown) > width and len(shown) > 1:
            shown.pop(next(at for at in reversed(range(len(shown))) if shown[at][1] != _WAY_BACK))
        return tuple(span for key, word in shown for span in (ours(f" {key}", "key"), Span(f" {word} ")))
