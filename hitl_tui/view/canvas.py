"""Rows of cells to put spans on, left to right in any order."""

from __future__ import annotations

from typing import Final

from hitl_tui.view.cells import cells, cut
from hitl_tui.view.spans import Line, Role, Span

_BLANK: Final = " "


class Canvas:
    """`rows` rows of `width` cells; what would reach beyond the right edge is cut there."""

    def __init__(self, rows: int, width: int) -> None:
        self._rows: list[list[tuple[int, int, Span]]] = [[] for _ in range(rows)]
        self.width = width

    def put(self, row: int, x: int, text: str, role: Role = "plain", edge: int | None = None) -> int:
        """Put a sanitised text at a cell, cut at `edge`; returns the cell after it."""
        shown = cut(text, max((self.width if edge is None else edge) - x, 0))
        end = x + cells(shown)
        if shown:
            self._rows[row].append((x, end, Span(shown, role)))
        return end

    def end(self, row: int) -> int:
        """The cell after the last span of a row."""
        return max((end for _, end, _ in self._rows[row]), default=0)

    def lines(self) -> tuple[Line, ...]:
        """The rows, gaps filled with blanks up to the last span."""
        return tuple(self._line(sorted(row, key=lambda put: put[0])) for row in self._rows)

    @staticmethod
    def _line(row: list[tuple[int, int, Span]]) -> Line:
        spans: list[Span] = []
        at = 0
        for x, end, span in row:
            if x > at:
                spans.append(Span(_BLANK * (x - at)))
            spans.append(span)
            at = end
        return tuple(spans)
