"""A small text field whose enter only goes back to the choices: typing never decides."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message

from hitl_tui.ui.bindings import bound
from hitl_tui.ui.widgets.safe_text import SafeTextArea


class ReasonField(SafeTextArea):
    """Every usual way to end a field only leaves it; a key of its own breaks the line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("reason.leave", "leave", priority=True),
        bound("form.line", "break_line", priority=True),
    ]

    class Left(Message):
        """The user has finished typing."""

    def __init__(self, name: str) -> None:
        super().__init__(
            id=name, soft_wrap=True, show_line_numbers=False, compact=True, highlight_cursor_line=False
        )

    def action_leave(self) -> None:
        """Back to the choices."""
        self.post_message(self.Left())

    def action_break_line(self) -> None:
        """Break the line."""
        self.insert("\n")
