"""Word wrapping by cells, for text that is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len

from hitl_tui.view.cells import cells, cut
from hitl_tui.view.spans import Line, Span

_WORDS: Final = re.compile(r"\s*\S+|\s+")
_TAB: Final = "    "


def wrap_line(text: str, width: int, indent: str = "") -> list[str]:
    """One line as rows of at most `width` cells; rows after the first begin with `indent`."""
    text = text.replace("\t", _TAB)
    if width < 4 or cell_len(text) <= width:
        return [text]
    rows: list[str] = []
    row, used = "", 0
    for word in _WORDS.findall(text):
        size = cell_len(word)
        if used + size <= width:
            row, used = row + word, used + size
            continue
        wrapped = bool(row.strip())
        if wrapped:
            rows.append(row)
            row, used = indent, len(indent)
        for piece in _pieces(word.lstrip() if wrapped else word, width - len(indent)):
            if used + cell_len(piece) > width:
                rows.append(row)
                row, used = indent, len(indent)
            row, used = row + piece, used + cell_len(piece)
    return [*rows, row] if row.strip() or not rows else rows


def wrap_spans(line: Line, width: int) -> Iterator[Line]:
    """A line in rows of a width: its last span is wrapped, under where it begins."""
    if not line or sum(cells(span.text) for span in line) <= width:
        yield line
        return
    *before, last = line
    indent = min(sum(cells(span.text) for span in before), width // 3)
    first, *rest = wrap_line(last.text, max(width - sum(cells(span.text) for span in before), 8))
    yield (*before, Span(first, last.role))
    for row in rest:
        yield (Span(" " * indent), Span(row, last.role))


def _pieces(word: str, width: int) -> Iterator[str]:
    """A word that is wider than a row, cut; most words are one piece."""
    at = 0
    while at < len(word):
        # A cell holds a character and few marks; what is beyond a row is not looked at again and again.
        ahead = word[at : at + 6 * width]
        if cell_len(ahead) > width:
            ahead = cut(ahead, width + 1, "")
        yield ahead
        at += len(ahead)
