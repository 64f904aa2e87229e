"""Measures and cuts text in terminal cells, and places spans on rows of cells."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from hitl_tui.view.sanitise import is_mark, sanitise
from hitl_tui.view.spans import Line, Role, Span

_JOINER: Final = "\u200d"
_AS_PICTURE: Final = "\ufe0f"
"""Follows a narrow character that is drawn as a picture, two cells wide."""


_all_narrow = re.compile(
    "[\\x00-\\x7f\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2030-\u205e\u2190-\u21ff]*"
).fullmatch
"""Matches texts in which each character takes one cell."""


def narrow(text: str) -> bool:
    """Whether each character of a text certainly takes one cell, by a quick check."""
    return text.isascii() or _all_narrow(text) is not None


def cells(text: str) -> int:
    """Return the width of a sanitised text in cells."""
    if text.isascii() or _all_narrow(text):
        return len(text)
    pictures = text.count(_AS_PICTURE) and sum(
        char == _AS_PICTURE and _cell(before) == 1 for before, char in pairwise(text)
    )
    return sum(map(_cell, text)) + pictures


@lru_cache(4096)
def _cell(char: str) -> int:
    if is_mark(char) or char == _JOINER:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, limit: int, ellipsis: str = "…") -> str:
    """Return the text, or its beginning and an ellipsis, in at most `limit` cells."""
    if cells(text) <= limit:
        return text
    room = limit - 1
    if _all_narrow(text, 0, limit):
        return text[: max(room, 0)] + (ellipsis if limit > 0 else "")
    used = 0
    for at, char in enumerate(text):
        used += _cell(char)
        if used > room:
            return text[:at].rstrip(_JOINER) + (ellipsis if limit > 0 else "")
    return text


def cut_start(text: str, limit: int, ellipsis: str = "…") -> str:
    """Return the text, or an ellipsis and its end, in at most `limit` cells."""
    if cells(text) <= limit:
        return text
    room = limit - 1
    used = 0
    for at in range(len(text) - 1, -1, -1):
        used += _cell(text[at])
        if used > room:
            return ellipsis + text[at + 1 :] if limit > 0 else ""
    return text


def cut_middle(text: str, limit: int, ellipsis: str = "…") -> str:
    """Return the text, or its beginning and end around an ellipsis, in at most `limit` cells."""
    if cells(text) <= limit:
        return text
    end = cut_start(text, limit // 2 + 1, ellipsis) if limit > 2 else ellipsis[: max(limit, 0)]
    return cut(text, limit - cells(end) + 1, "") + end


def thread_name(thread_id: str, limit: int) -> str:
    """Shorten a thread's id to `limit` cells: it begins with the graph's name and ends with what differs."""
    return cut_middle(sanitise(thread_id, multiline=False), limit)


def columns(rows: Sequence[Sequence[str]], give: Sequence[int] = (), room: int | None = None) -> list[int]:
    """Return the width of each column of a table, that of its widest cell.

    Args:
        give: the columns that shrink if all together exceed `room`, the first one first.
        room: the cells for all columns and the gaps between them; None for no limit.
    """
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    if room is not None:
        room -= GAP * (len(widths) - 1)
        for column in give:
            widths[column] -= max(min(sum(widths) - room, widths[column] - _NARROWEST), 0)
    return widths


def fitted(text: str, width: int) -> str:
    """Cut or pad a text to exactly so many cells."""
    shown = cut(text, width)
    return shown + _BLANK * (width - cells(shown))


_BLANK: Final = " "
GAP: Final = 2
"""Cells between two columns of a table."""
_NARROWEST: Final = 10
"""Cells that a column of a table keeps."""


class Canvas:
    """`rows` rows of `width` cells; text is cut at the right edge."""

    def __init__(self, rows: int, width: int) -> None:
        self._rows: list[list[tuple[int, int, Span]]] = [[] for _ in range(rows)]
        self.width = width

    def put(self, row: int, x: int, text: str, role: Role = "plain", edge: int | None = None) -> int:
        """Write a sanitised text at a cell, cut at `edge`; returns the cell after it."""
        shown = cut(text, max((self.width if edge is None else edge) - x, 0))
        end = x + cells(shown)
        if shown:
            self._rows[row].append((x, end, Span(shown, role)))
        return end

    def end(self, row: int) -> int:
        """Return the cell after the last span of a row."""
        return max((end for _, end, _ in self._rows[row]), default=0)

    def lines(self) -> tuple[Line, ...]:
        """Return the rows, with blanks in the gaps up to the last span."""
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
