"""Pictures of a screen as SVG, and recordings of it in asciicast v3.

A recording (https://docs.asciinema.org/manual/asciicast/v3) is a line of JSON as a header, then an array a
line: seconds since the one before, a code, and data.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from rich.color import ColorSystem
from textual.app import App
from textual.driver import Driver
from textual.strip import Strip

from hitl_tui.errors import UsageError
from hitl_tui.new_files import file_name
from hitl_tui.view.sanitise import sanitise_line

_OSC: Final = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
"""Sequences for the terminal that aren't part of its screen: titles, notices, copied text."""


_FONTS: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


_TITLE: Final = 80


def screen_svg(app: App[Any], title: str) -> str:
    """Return the screen of an app as a picture that loads nothing, not even a font.

    Args:
        title: raw; it may hold the name that anybody gave to a thread.
    """
    return _FONTS.sub("", app.export_screenshot(title=sanitise_line(title, _TITLE)))


def picture_name(thread: str, step: int) -> str:
    """Return a file name for a picture of a thread at a step."""
    return f"{file_name(thread, 'thread')}-step-{step}.svg"


class Recording:
    """File that a screen is recorded into, for its owner alone.

    Args:
        size: columns and rows at the start.
        clock: seconds; those of the real clock by default.

    Raises:
        UsageError: the file already exists, or can't be written.
    """

    def __init__(
        self, path: Path, size: tuple[int, int], title: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._size = size
        self._latest = clock()
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise UsageError(f"there is a file {path} already", "give another name") from None
        except OSError as error:
            raise UsageError(f"{path} can't be written: {error.strerror}", "give another place") from None
        self._file = os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace")
        title = sanitise_line(title, _TITLE)
        term = {"cols": size[0], "rows": size[1], "type": "xterm-256color"}
        self._line({"version": 3, "term": term, "timestamp": int(time.time()), "title": title})

    def write(self, text: str) -> None:
        """Record output to the terminal."""
        shown = _OSC.sub("", text)
        if shown:
            self._event("o", shown)

    def resize(self, size: tuple[int, int]) -> None:
        """Record another size of the terminal."""
        if size != self._size:
            self._size = size
            self._event("r", f"{size[0]}x{size[1]}")

    def close(self, code: int = 0) -> None:
        """Record the end of the program, and close the file."""
        if not self._file.closed:
            self._event("x", str(code))
            self._file.close()

    def _event(self, code: str, data: str) -> None:
        if self._file.closed:
            return
        now = self._clock()
        # Rounded so that what is lost in one interval is added to the next.
        interval = round(now - self._latest, 6)
        self._latest += interval
        self._line([max(interval, 0.0), code, data])

    def _line(self, value: Any) -> None:
        self._file.write(json.dumps(value, ensure_ascii=False) + "\n")
        self._file.flush()


def recorded(driver: type[Driver], recording: Recording) -> type[Driver]:
    """Return a driver of Textual's that records its output to the terminal."""

    class Recorded(driver):  # type: ignore[valid-type,misc]  # whichever it is
        def write(self, data: str) -> None:
            recording.write(data)
            super().write(data)

    return Recorded


class Frames:
    """Turns pictures of a screen into terminal output: the rows that have changed."""

    def __init__(self) -> None:
        self._shown: list[Strip] = []

    def changes(self, rows: Sequence[Strip]) -> str:
        """Return the output that updates a terminal to these rows, "" if it shows them."""
        clear = "" if self._shown else "\x1b[?25l\x1b[2J"
        parts = [
            f"\x1b[{y};1H{_ansi(row)}"
            for y, row in enumerate(rows, 1)
            if y > len(self._shown) or row != self._shown[y - 1]
        ]
        self._shown = list(rows)
        return clear + "".join(parts)


def _ansi(row: Strip) -> str:
    return "".join(
        segment.style.render(segment.text, color_system=ColorSystem.TRUECOLOR)
        if segment.style
        else segment.text
        for segment in row
    )
