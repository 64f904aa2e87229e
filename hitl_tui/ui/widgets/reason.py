"""A small text field whose enter only goes back to the choices: typing never decides."""

from __future__ import annotations

from textual import events
from textual.message import Message

from hitl_tui.ui.widgets.safe_text import SafeTextArea


class ReasonField(SafeTextArea):
    """Enter, escape and tab leave it; ctrl+j breaks the line."""

    class Left(Message):
        """The user has finished typing."""

    def __init__(self, name: str) -> None:
        super().__init__(
            id=name, soft_wrap=True, show_line_numbers=False, compact=True, highlight_cursor_line=False
        )

    def on_key(self, event: events.Key) -> None:
        """Leave, or break the line."""
        if event.key in ("enter", "escape", "tab", "shift+tab"):
            event.stop()
            event.prevent_default()
            self.post_message(self.Left())
        elif event.key == "ctrl+j":
            event.stop()
            event.prevent_default()
            self.insert("\n")
