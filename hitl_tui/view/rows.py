"""Wraps text into rows of a width: at once, growing at its end, or lazily."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from hitl_tui.view.cells import cells, cut
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import Line, Role, Span, plain_text, untrusted

_WORDS: Final = re.compile(r"\s*\S+|\s+")
TAB: Final = "    "
"""The blanks that replace a tab."""


def wrap_line(text: str, width: int, indent: str = "") -> list[str]:
    """Wrap a line into rows of at most `width` cells; rows after the first begin with `indent`."""
    text = text.replace("\t", TAB)
    if width < 4 or cells(text) <= width:
        return [text]
    rows: list[str] = []
    row, used = "", 0
    for word in _WORDS.findall(text):
        size = cells(word)
        if used + size <= width:
            row, used = row + word, used + size
            continue
        wrapped = bool(row.strip())
        if wrapped:
            rows.append(row)
            row, used = indent, len(indent)
        for piece in _pieces(word.lstrip() if wrapped else word, width - len(indent)):
            if used + cells(piece) > width:
                rows.append(row)
                row, used = indent, len(indent)
            row, used = row + piece, used + cells(piece)
    return [*rows, row] if row.strip() or not rows else rows


def wrapped(text: str, width: int, role: Role = "plain") -> list[Line]:
    """Sanitise a text and wrap it into rows; none for an empty text."""
    return [(untrusted(row, role),) for row in wrap_line(text, width)] if text else []


def wrap_spans(line: Line, width: int) -> Iterator[Line]:
    """Wrap the last span of a line, with a hanging indent at its start."""
    if not line or sum(cells(span.text) for span in line) <= width:
        yield line
        return
    *before, last = line
    indent = min(sum(cells(span.text) for span in before), width // 3)
    first, *rest = wrap_line(last.text, max(width - sum(cells(span.text) for span in before), 8))
    yield (*before, Span(first, last.role))
    for row in rest:
        yield (Span(" " * indent), Span(row, last.role))


def wrap_rich(line: Line, width: int, indent: str = "") -> list[Line]:
    """Wrap a line of spans into rows of at most `width` cells; each word keeps its role."""
    line = untabbed(line)
    text = plain_text(line)
    rows: list[Line] = []
    at = 0
    for number, row in enumerate(wrap_line(text, width, indent)):
        words = row[len(indent) :] if number else row
        # Only blanks between two rows are dropped.
        start = text.find(words, at)
        at = start + len(words)
        rows.append((*((Span(indent),) if number and indent else ()), *part_of(line, start, at)))
    return rows


def untabbed(line: Line) -> Line:
    """Replace the tabs in a line by blanks, as its rows do."""
    return tuple(Span(span.text.replace("\t", TAB), span.role) for span in line)


def part_of(line: Line, start: int, end: int) -> Line:
    """Return the spans of a line between two characters."""
    spans: list[Span] = []
    at = 0
    for span in line:
        text = span.text[max(start - at, 0) : max(end - at, 0)]
        if text:
            spans.append(Span(text, span.role))
        at += len(span.text)
    return tuple(spans)


def _pieces(word: str, width: int) -> Iterator[str]:
    """Cut a word that is wider than a row; most words are one piece."""
    at = 0
    while at < len(word):
        # A cell holds a character and few marks, so text past the row need not be checked again and again.
        ahead = word[at : at + 6 * width]
        if cells(ahead) > width:
            ahead = cut(ahead, width + 1, "")
        yield ahead
        at += len(ahead)


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
        """Append text; only the text after the last line break is wrapped again."""
        *whole, self._open = (self._open + text).replace("\r\n", "\n").split("\n")
        del self.rows[len(self.rows) - self._open_rows :]
        for line in whole:
            self.rows += wrap_line(sanitise(as_overwritten(line)), self.width)
        if "\r" in self._open:
            # Later text continues the last part, so that part is kept separate.
            before, last_return, part = self._open.rpartition("\r")
            self._open = as_overwritten(before) + last_return + part
        if len(self._open) > _OPEN_CHARS:
            self._open = as_overwritten(self._open)
            self._settle()
        last = wrap_line(sanitise(as_overwritten(self._open)), self.width)
        self.rows += last
        self._open_rows = len(last)
        del self.rows[: max(0, len(self.rows) - _ROWS_KEPT)]

    def _settle(self) -> None:
        """Fix all rows of a long line but the last: later text can't change them."""
        end = self._open.rfind(" ")
        if end < len(self._open) // 2:
            end = len(self._open) - 1
        *settled, last = wrap_line(sanitise(self._open[:end]), self.width)
        self.rows += settled
        self._open = last + self._open[end:]


def as_overwritten(line: str) -> str:
    """Return what a terminal shows of a line with carriage returns, as progress bars write them."""
    if "\r" not in line:
        return line
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown


_LEAST = 8
_KEPT = 4
_PER_LINE = 64
"""The least cost of a line, in characters."""


class LongRows:
    """The rows of the first lines are known; each line after them counts as one row until it is reached.

    Args:
        lines: sanitised, without line breaks; computed again on each access.
        room: the width of a line's text in cells, by its number.
    """

    def __init__(self, lines: Sequence[str], room: Callable[[int], int]) -> None:
        self._lines = lines
        self._room = room
        self._of = array("L")
        self._from = array("L")
        self._line = 0
        self._at = 0
        self._kept: dict[int, str] = {}

    def __len__(self) -> int:
        """Known rows, plus one for each line whose rows aren't known yet."""
        return len(self._of) + len(self._lines) - self._line

    @property
    def done(self) -> bool:
        """Whether the rows of all lines are known."""
        return self._line >= len(self._lines)

    def find_more(self, chars: int) -> None:
        """Compute the rows of about so many more characters."""
        while chars > 0 and not self.done:
            text, width = self._text(self._line), max(self._room(self._line), _LEAST)
            chars -= _PER_LINE
            while chars > 0 or self._at == 0:
                self._of.append(self._line)
                self._from.append(self._at)
                end = _row_end(text, self._at, width)
                chars -= end - self._at
                self._at = end
                if end >= len(text):
                    self._line, self._at = self._line + 1, 0
                    break

    def first_row(self, line: int) -> int:
        """Return the row where a line begins, after finding all rows before it."""
        while self._line <= line and not self.done:
            self.find_more(1 << 20)
        return bisect_left(self._of, line)

    def known_row(self, line: int) -> int:
        """Return the row where a line begins, as far as known; nothing more is computed."""
        return bisect_left(self._of, line) + max(line - self._line, 0)

    def change(self, lines: Sequence[str], since: int) -> None:
        """Replace the lines from a number on; the rows before them stay."""
        known = bisect_left(self._of, since)
        del self._of[known:], self._from[known:]
        if since <= self._line:
            self._line, self._at = since, 0
        self._lines = lines
        self._kept.clear()

    def line_of(self, number: int) -> int:
        """Return the line that a row belongs to."""
        known = len(self._of)
        return self._of[number] if number < known else self._line + number - known

    def row(self, number: int) -> tuple[int, int, str]:
        """Return the line of a row, where the row begins in it, and the row's text."""
        known, line = len(self._of), self.line_of(number)
        start = self._from[number] if number < known else self._at if number == known else 0
        text = self._text(line)
        return line, start, text[start : _row_end(text, start, max(self._room(line), _LEAST))].rstrip()

    def _text(self, line: int) -> str:
        """Return a line; recently used ones are cached, as they may be long."""
        if line not in self._kept:
            if len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[line] = self._lines[line].replace("\t", TAB)
        return self._kept[line]


def _row_end(text: str, start: int, width: int) -> int:
    """Return the end of the row that begins at `start`: after the last blank that fits, else when full."""
    piece = text[start : start + width]
    if not piece.isascii():
        piece = piece[: _fitting(piece, width)]
    end = start + len(piece)
    if end >= len(text) or text[end] == " ":
        return min(end + 1, len(text))
    blank = piece.rfind(" ")
    return start + blank + 1 if blank > 0 else end


def _fitting(piece: str, width: int) -> int:
    """Return how many of the characters fit, at least one."""
    used = 0
    for count, char in enumerate(piece):
        used += cells(char)
        if used > width:
            return max(count, 1)
    return len(piece)


def continued(lead: str) -> str:
    """Return what precedes the further rows of a wrapped line: the rule of a gutter, if there is one."""
    return "".join(char if char == "│" else " " for char in lead)
