"""A text area that never sends a control character to the terminal, whatever was pasted into it."""

from __future__ import annotations

from typing import Final

from rich.text import Text
from textual.widgets import TextArea

from hitl_tui.view.sanitise import sanitise

NO_CONTROLS: Final = r"[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]*"


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
