"""A person in plain text mode: the lines that they type, and what was said to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from hitl_tui.plain.console import Left

Line = str | Callable[[], object]


class Person:
    """Types lines one after the other; "…WORDS" types empty ones until these words were said."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = list(lines)
        self.said: list[str] = []

    def say(self, *lines: str) -> None:
        self.said += lines

    def ask(self, prompt: str) -> str:
        while self._lines and callable(act := self._lines[0]):
            del self._lines[0]
            act()
        if not self._lines:
            raise Left
        line = str(self._lines[0])
        if line.startswith("…") and not any(line[1:] in text for text in self.said):
            time.sleep(0.01)
            return ""
        del self._lines[0]
        return "" if line.startswith("…") else line
