"""What is typed into a large field: a text too large to be edited on screen is kept whole beside it."""

from __future__ import annotations

from textual.app import App

from hitl_tui.ui.bindings import keymap_of
from hitl_tui.ui.widgets.safe_text import SafeTextArea, too_large


class DraftArea(SafeTextArea):
    """A draft; one that is too large to type in is not shown, and changed in the user's own editor."""

    def __init__(self, text: str, name: str) -> None:
        self._kept = text if too_large(text) else None
        super().__init__(
            "" if self.is_too_large else text, id=name, soft_wrap=True, show_line_numbers=False,
            tab_behavior="focus", highlight_cursor_line=False, read_only=self.is_too_large,
        )  # fmt: skip

    @property
    def is_too_large(self) -> bool:
        """Whether the text can only be changed elsewhere."""
        return self._kept is not None

    @property
    def whole(self) -> str:
        """The text as it stands."""
        return self.text if self._kept is None else self._kept

    def take(self, text: str) -> None:
        """Put another text in its place; tells that it has changed."""
        self._kept = text if too_large(text) else None
        self.read_only = self.is_too_large
        self.load_text("" if self.is_too_large else text)


def elsewhere(app: App[object]) -> str:
    """What to say of a draft that is too large."""
    return f"too large to edit here: {keymap_of(app).shown('edit.editor')} opens it in your editor"
