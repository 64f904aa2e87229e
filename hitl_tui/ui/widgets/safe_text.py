"""Fields to type in that never send a control character to the terminal, whatever was pasted into them."""

from __future__ import annotations

import re
from typing import Any, Final

from rich.text import Text
from textual import events
from textual.widgets import Input, TextArea

from hitl_tui.view.sanitise import sanitise

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")

_LARGEST: Final = 256 * 1024
_LONGEST_LINE: Final = 32 * 1024


def too_large(text: str) -> bool:
    """Whether a text can't be edited on screen: Textual lays the whole line out again for each of its rows.

    A line of a megabyte takes minutes that way, during which no key is heard.
    """
    return len(text) > _LARGEST or any(len(line) > _LONGEST_LINE for line in text.splitlines())


class SafeInput(Input):
    """One line; what could steer or deceive is left out of what is typed or pasted."""

    def __init__(self, value: str = "", **options: Any) -> None:
        super().__init__(_CONTROLS.sub("", value), select_on_focus=False, highlighter=None, **options)

    def replace(self, text: str, start: int, end: int) -> None:
        """Put text in place of what stands there."""
        super().replace(_CONTROLS.sub("", text), start, end)


class SafeTextArea(TextArea):
    """Shows "·" where a character could steer or deceive; the text itself is kept."""

    def get_line(self, line_index: int) -> Text:
        """A line to draw, each character as wide as the one it stands for."""
        line = super().get_line(line_index)
        plain = line.plain
        if sanitise(plain) == plain:
            return line
        safe = "".join(char if char == "\t" or sanitise(char) == char else "·" for char in plain)
        return Text(safe, end="", no_wrap=True)

    async def _on_paste(self, event: events.Paste) -> None:
        """Take no more than can be edited here; the clipboard still has it."""
        if not self.read_only and too_large(self.text + event.text):
            event.prevent_default()
            words = f"not pasted: {len(event.text):,} characters are too many to edit here"
            self.notify(words, severity="warning", markup=False)
