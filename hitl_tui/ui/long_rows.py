"""Lines as rows of a width, found a part at a time: five megabytes in one line cost what is looked at."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence

from rich.cells import get_character_cell_size

_TAB = "    "
_LEAST = 8
_KEPT = 4
_PER_LINE = 64
"""A line costs at least as much as so many characters."""


class LongRows:
    """The rows of the first lines are known; each line after them counts as one row until it is reached.

    Args:
        lines: sanitised, without line breaks; made again whenever they are asked for.
        room: cells for the text of a line, by its number.
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
        """Rows known, and one for each line that is not reached yet."""
        return len(self._of) + len(self._lines) - self._line

    @property
    def done(self) -> bool:
        """Whether the rows of all lines are known."""
        return self._line >= len(self._lines)

    def find_more(self, chars: int) -> None:
        """Find the rows of about so many characters more."""
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
        """The row where a line begins; all rows before it are found."""
        while self._line <= line and not self.done:
            self.find_more(1 << 20)
        return bisect_left(self._of, line)

    def row(self, number: int) -> tuple[int, bool, str]:
        """The line that a row is of, whether that begins there, and the text of the row."""
        known = len(self._of)
        if number >= known:
            line, start = self._line + number - known, 0 if number > known else self._at
        else:
            line, start = self._of[number], self._from[number]
        text = self._text(line)
        return line, start == 0, text[start : _row_end(text, start, max(self._room(line), _LEAST))].rstrip()

    def _text(self, line: int) -> str:
        """A line; those asked for last are kept, because they may be long."""
        if line not in self._kept:
            if len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[line] = self._lines[line].replace("\t", _TAB)
        return self._kept[line]


def _row_end(text: str, start: int, width: int) -> int:
    """Where a row ends that begins at `start`: behind the last blank that fits, else where it is full."""
    piece = text[start : start + width]
    if not piece.isascii():
        piece = piece[: _fitting(piece, width)]
    end = start + len(piece)
    if end >= len(text) or text[end] == " ":
        return min(end + 1, len(text))
    blank = piece.rfind(" ")
    return start + blank + 1 if blank > 0 else end


def _fitting(piece: str, width: int) -> int:
    """How many of the characters fit, at least one."""
    used = 0
    for count, char in enumerate(piece):
        used += get_character_cell_size(char)
        if used > width:
            return max(count, 1)
    return len(piece)
