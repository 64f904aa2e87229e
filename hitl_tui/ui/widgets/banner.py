"""The row under the header: what is special about what is shown, and which keys matter there."""

from __future__ import annotations

from hitl_tui.ui.widgets.lines import LineBar
from hitl_tui.view.spans import Line, Span


class BannerBar(LineBar):
    """Hidden while there is nothing to say."""

    def __init__(self) -> None:
        super().__init__(id="banner")
        self._line: Line = ()
        self.display = False

    def show(self, line: Line, kind: str = "") -> None:
        """Show a line, or hide the row; `kind` "error" or "waiting" sets its colours."""
        if line != self._line:
            self._line = line
            self.display = bool(line)
            self.set_class(kind == "error", "-error")
            self.set_class(kind == "waiting", "-waiting")
            self.refresh()

    @property
    def line(self) -> Line:
        """What it says."""
        return self._line

    def bar(self, width: int) -> Line:
        """The spans."""
        return (Span(" "), *self._line)
