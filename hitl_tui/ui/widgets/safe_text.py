"""Text fields that never send a control character to the terminal, whatever was pasted into them."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input, TextArea

from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.view.sanitise import sanitise

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")

_LARGEST: Final = 256 * 1024
_LONGEST_LINE: Final = 32 * 1024


def too_large(text: str) -> bool:
    """Whether a text can't be edited on screen: Textual lays the whole line out again for each of its rows.

    A line of a megabyte takes minutes that way, and no key works during that time.
    """
    return len(text) > _LARGEST or any(len(line) > _LONGEST_LINE for line in text.splitlines())


class SafeInput(Input):
    """Field of one line; control and deceptive characters are removed from typed and pasted text."""

    def __init__(self, value: str = "", **options: Any) -> None:
        super().__init__(_CONTROLS.sub("", value), select_on_focus=False, highlighter=None, **options)

    def replace(self, text: str, start: int, end: int) -> None:
        """Replace a part of the text, without control and deceptive characters."""
        super().replace(_CONTROLS.sub("", text), start, end)


class SafeTextArea(TextArea):
    """Shows "·" for control and deceptive characters; the text itself is kept."""

    def get_line(self, line_index: int) -> Text:
        """Return a line to draw, each character as wide as the original one."""
        line = super().get_line(line_index)
        plain = line.plain
        if sanitise(plain) == plain:
            return line
        safe = "".join(char if char == "\t" or sanitise(char) == char else "·" for char in plain)
        return Text(safe, end="", no_wrap=True)

    async def on_paste(self, event: events.Paste) -> None:
        """Cut pasted text to what can be edited here; the clipboard still has all of it."""
        if not self.read_only and too_large(self.text + event.text):
            event.prevent_default()
            words = f"not pasted: {len(event.text):,} characters are too many to edit here"
            self.notify(words, severity="warning", markup=False)


class FieldArea(SafeTextArea):
    """Field for several lines, in a form where enter moves to the next field."""

    BINDINGS: ClassVar[list[BindingType]] = [bound("form.line", "break_line", priority=True)]

    def __init__(self, text: str, **options: Any) -> None:
        super().__init__(
            text,
            soft_wrap=True,
            show_line_numbers=False,
            highlight_cursor_line=False,
            tab_behavior="focus",
            **options,
        )

    def action_break_line(self) -> None:
        """Insert a line break at the cursor."""
        self.insert("\n")


class DraftArea(SafeTextArea):
    """Draft; one that is too large to type in is not shown, and is changed in the user's own editor."""

    def __init__(self, text: str, name: str) -> None:
        self._kept = text if too_large(text) else None
        super().__init__(
            "" if self.is_too_large else text, id=name, soft_wrap=True, show_line_numbers=False,
            tab_behavior="focus", highlight_cursor_line=False, read_only=self.is_too_large,
        )  # fmt: skip

    @property
    def is_too_large(self) -> bool:
        """Whether the text can only be changed in another editor."""
        return self._kept is not None

    @property
    def whole(self) -> str:
        """Complete text."""
        return self.text if self._kept is None else self._kept

    def take(self, text: str) -> None:
        """Set another text, and report that it has changed."""
        self._kept = text if too_large(text) else None
        self.read_only = self.is_too_large
        self.load_text("" if self.is_too_large else text)


def elsewhere(app: App[object]) -> str:
    """Return a message about a draft that is too large to edit here."""
    return f"too large to edit here: {keymap_of(app).shown('edit.editor')} opens it in your editor"


class ReasonField(SafeTextArea):
    """Small field for a reason; every key that ends it only leaves it, so typing never decides."""

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
        """Move the cursor back to the choices."""
        self.post_message(self.Left())

    def action_break_line(self) -> None:
        """Insert a line break at the cursor."""
        self.insert("\n")
