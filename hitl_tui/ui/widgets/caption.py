"""Caption of a presentation for its audience: a bold line and plain ones, in a box below the panes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hitl_tui.ui.widgets.lines import LineView, ours
from hitl_tui.view.spans import Span

if TYPE_CHECKING:
    from hitl_tui.view.stage import Caption

_MOST = 5
"""Rows of a caption on a screen of 24 rows."""


class CaptionBox(LineView):
    """Box for the caption; hidden while there is none."""

    can_focus = False

    def __init__(self) -> None:
        super().__init__("caption")
        self._caption: Caption | None = None
        self._wrapped_for = 0

    def show_caption(self, caption: Caption, width: int) -> None:
        """Show the caption of a step of a presentation, in as many rows as it needs.

        Args:
            width: width of the screen in cells.
        """
        if (caption, width) != (self._caption, self._wrapped_for):
            self._caption, self._wrapped_for = caption, width
            title, text = caption.rows(max(width - 8, 20))
            lines = [*((ours(row, "caption"),) for row in title), *((Span(row, "dim"),) for row in text)]
            self.styles.height = min(len(lines), _MOST) + 2
            self.set_class(bool(lines), "-told")
            self.show(lines[:_MOST])
