"""A terminal's screen as text, from the bytes that a program wrote to it."""

from __future__ import annotations

import re
from functools import cache

import pyte
from pyte.screens import Char, wcwidth

LEAVE_ALTERNATE = b"\x1b[?1049l"
_COLOUR = re.compile(rb"\x1b\[[0-9;:]*m")
_STARTED = re.compile(rb"\x1b(\[[0-9;:?]*)?\Z")
"""A sequence whose end comes with the next bytes."""


@cache
def _cell(letter: str) -> Char | None:
    return Char(letter) if wcwidth(letter) == 1 else None


class _Letters(pyte.Screen):
    """A screen without colours: half of what an app writes is colours, and they take most of the time."""

    def draw(self, data: str) -> None:
        begin, end = self.cursor.x, self.cursor.x + len(data)
        cells = [cell for letter in data if (cell := _cell(letter)) is not None]
        if len(cells) < len(data) or end > self.columns:
            super().draw(data)
            return
        self.buffer[self.cursor.y].update(zip(range(begin, end), cells, strict=True))
        self.cursor.x = end


class Emulator:
    """What a terminal of some size shows."""

    def __init__(self, columns: int, rows: int) -> None:
        self._screen = _Letters(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._begun = b""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return self._screen.columns, self._screen.lines

    def rows(self) -> list[str]:
        """The rows; pyte's own can't take half a wide character, which a program may leave."""
        buffer, columns = self._screen.buffer, range(self._screen.columns)
        return ["".join(buffer[row][column].data for column in columns) for row in range(self._screen.lines)]

    def text(self) -> str:
        """The rows without blanks at their ends."""
        return "\n".join(row.rstrip() for row in self.rows())

    def resize(self, columns: int, rows: int) -> None:
        """Another size."""
        self._screen.resize(rows, columns)

    def feed(self, data: bytes) -> None:
        """Paint; pyte knows no alternate screen, so leaving it leaves an empty one."""
        data = self._begun + data
        cut = _STARTED.search(data)
        self._begun = cut[0] if cut else b""
        *screens, last = _COLOUR.sub(b"", data[: cut.start()] if cut else data).split(LEAVE_ALTERNATE)
        for part in screens:
            self._stream.feed(part)
            self._screen.reset()
        self._stream.feed(last)
