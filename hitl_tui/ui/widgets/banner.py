"""The rows under the header: what is special about what is shown, and which keys matter there."""

from __future__ import annotations

from textual.strip import Strip

from hitl_tui.ui.widgets.lines import LineBar, strip_of
from hitl_tui.view.spans import Line, Span


class BannerBar(LineBar):
    """Hidden while there is nothing to say."""

    def __init__(self) -> None:
        super().__init__(id="banner")
        self._rows: tuple[Line, ...] = ()
        self.display = False

    def show(self, rows: tuple[Line, ...], kind: str = "") -> None:
        """Show rows, or hide where there are none; `kind` "error" or "waiting" sets their colours."""
        if rows != self._rows:
            if len(rows) != len(self._rows):
                self.styles.height = max(1, len(rows))
            self._rows = rows
            self.display = bool(rows)
            self.set_class(kind == "error", "-error")
            self.set_class(kind == "waiting", "-waiting")
            self.refresh()

    def bar(self, width: int) -> Line:
        """The spans of the first row."""
        return self._bar(0)

    def _bar(self, y: int) -> Line:
        return (Span(" "), *self._rows[y]) if y < len(self._rows) else ()

    def render_line(self, y: int) -> Strip:
        """Draw a row."""
        return strip_of(self, self._bar(y), self.size.width, self.rich_style)
