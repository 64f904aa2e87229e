"""Commenting on a passage of a request's subject: choose the passage, type, save."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from hitl_tui.engine.thread.comments import Comment
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.view.comments import Passage, numbers_at
from hitl_tui.view.rows import wrap_line
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import Line, Span

_PROSE: Final = 78
_KEYS: Final = (
    ("comment.up comment.down", "Passage"), ("comment.page_up comment.page_down", "Ten"),
    ("comment.less comment.more", "Shorter, longer"),
    ("comment.pin", "Save"), ("comment.back", "Back"),
)  # fmt: skip


class CommentScreen(OverlayScreen):
    """Returns a `Comment`, or None."""

    STAYS = True
    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "comment.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("comment.back", "close", priority=True),
        bound("comment.pin", "pin", priority=True),
        bound("comment.up", "select(-1)", priority=True),
        bound("comment.down", "select(1)", priority=True),
        bound("comment.page_up", "select(-10)", priority=True),
        bound("comment.page_down", "select(10)", priority=True),
        bound("comment.less", "stretch(-1)", priority=True),
        bound("comment.more", "stretch(1)", priority=True),
    ]
    AUTO_FOCUS = "#comment"

    def __init__(
        self, channel: str, passages: Sequence[Passage], first: int, last: int, known: Sequence[Comment]
    ) -> None:
        """`first` and `last` are the passages selected at first, `known` the existing comments."""
        super().__init__()
        self._channel = channel
        self._passages = passages
        self._first, self._last = first, last
        self._known = known
        self._rows: list[int] = []

    def compose(self) -> ComposeResult:
        yield LineView("passages", self._channel)
        yield SafeInput("", id="comment", placeholder="your comment")
        yield KeysBar(_KEYS)

    def on_mount(self) -> None:
        """Keep the focus off the passages: the screen's own keys move through them."""
        passages = self.query_one("#passages", LineView)
        passages.can_focus, passages.heeds_keys = False, True
        self._show()

    def _show(self) -> None:
        """Show each passage in rows, the selected ones marked; a number marks each comment."""
        view = self.query_one("#passages", LineView)
        width = min(max(view.scrollable_content_region.width - 6, 20), _PROSE)
        lines: list[Line] = []
        self._rows = []
        for place, passage in enumerate(self._passages):
            chosen = self._first <= place <= self._last
            number = numbers_at(passage, self._known)
            for at, row in enumerate(wrap_line(sanitise(passage.text, multiline=False), width)):
                self._rows.append(place)
                sign = Span("▌ " if chosen else "  ", "accent")
                mark = Span(f"{number if at == 0 else '':>3} ", "human")
                lines.append((mark, sign, Span(row, "title" if chosen else "plain")))
        view.show(lines)
        view.set_titles(self._channel, self._passages[self._first].path if self._passages else "")
        if self._passages:
            view.reveal(self._rows.index(self._last))
            view.reveal(self._rows.index(self._first))
        field = self.query_one(SafeInput)
        field.border_title = Content("Your comment")

    def on_resize(self, event: events.Resize) -> None:
        """Wrap again."""
        self._show()

    def action_select(self, by: int) -> None:
        """Select another passage."""
        self._first = self._last = min(max(self._first + by, 0), len(self._passages) - 1)
        self._show()

    def action_stretch(self, by: int) -> None:
        """Select more passages, or fewer."""
        path = self._passages[self._first].path
        last = min(max(self._last + by, self._first), len(self._passages) - 1)
        if self._passages[last].path == path:
            self._last = last
            self._show()

    def action_pin(self) -> None:
        """Attach the typed comment to the passage; an empty one does nothing."""
        text = self.query_one(SafeInput).value.strip()
        if not text:
            self.dismiss(None)
            return
        chosen = self._passages[self._first : self._last + 1]
        begin, end = chosen[0], chosen[-1]
        quote = begin.whole[begin.offset : end.offset + len(end.text)]
        self.dismiss(Comment(quote, text, begin.path, begin.offset))
