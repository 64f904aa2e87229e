"""Text that grows at its end, as rows of a width: what is added costs the same however long it is."""

from __future__ import annotations

from typing import Final

from hitl_tui.ui.wrap import wrap_line
from hitl_tui.view.sanitise import sanitise

_ROWS_KEPT: Final = 2_000
_OPEN_CHARS: Final = 500


class GrowingText:
    """The newest rows of a text, sanitised and wrapped.

    Args:
        width: cells of a row.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: list[str] = []
        self._open = ""
        self._open_rows = 0

    def append(self, text: str) -> None:
        """Add to the end; only what stands after the last line break is wrapped again."""
        *whole, self._open = (self._open + text).replace("\r\n", "\n").split("\n")
        del self.rows[len(self.rows) - self._open_rows :]
        for line in whole:
            self.rows += wrap_line(sanitise(line), self.width)
        if len(self._open) > _OPEN_CHARS:
            self._settle()
        last = wrap_line(sanitise(self._open), self.width)
        self.rows += last
        self._open_rows = len(last)
        del self.rows[: max(0, len(self.rows) - _ROWS_KEPT)]

    def _settle(self) -> None:
        """Keep the rows of a long line but for its last one: nothing that follows can change them."""
        end = self._open.rfind(" ")
        if end < len(self._open) // 2:
            end = len(self._open) - 1
        *settled, last = wrap_line(sanitise(self._open[:end]), self.width)
        self.rows += settled
        self._open = last + self._open[end:]
