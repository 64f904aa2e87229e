"""How fast scripted and recorded words are said: a tempo for the process, which a show changes as it goes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

_SLICE: Final = 0.05
"""Seconds after which a wait looks whether the pace has changed."""
PACES: Final = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
"""What `faster` and `slower` go through."""


class Tempo:
    """A pace, 1 as it was recorded, and whether everything is held; to be changed from any thread."""

    def __init__(self) -> None:
        self.pace = 1.0
        self.held = False

    def faster(self) -> None:
        """The next higher pace."""
        self.pace = next((pace for pace in PACES if pace > self.pace), self.pace)

    def slower(self) -> None:
        """The next lower pace."""
        self.pace = next((pace for pace in reversed(PACES) if pace < self.pace), self.pace)

    async def wait(self, seconds: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Wait for so many seconds of a run at pace 1; while it is held, until it no longer is.

        Args:
            enough: says that it need not be waited any longer.
        """
        left = seconds
        while (left > 0 or self.held) and not enough():
            rest = _SLICE if self.held else min(left / self.pace, _SLICE)
            await asyncio.sleep(rest)
            left -= 0.0 if self.held else rest * self.pace


TEMPO: Final = Tempo()
"""The tempo of this process."""
