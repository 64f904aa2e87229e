"""The speed of scripted and recorded replies: a tempo for the process, which a presentation can change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

_SLICE: Final = 0.05
"""Seconds after which a wait checks whether the pace has changed."""
PACES: Final = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
"""The steps of `faster` and `slower`."""


class Tempo:
    """A pace, 1 for the recorded one, and whether everything is paused; can be changed from any thread."""

    def __init__(self) -> None:
        self.pace = 1.0
        self.held = False

    def faster(self) -> None:
        """Set the next higher pace."""
        self.pace = next((pace for pace in PACES if pace > self.pace), self.pace)

    def slower(self) -> None:
        """Set the next lower pace."""
        self.pace = next((pace for pace in reversed(PACES) if pace < self.pace), self.pace)

    async def wait(self, seconds: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Wait for a number of seconds at pace 1; while it is paused, until it no longer is.

        Args:
            enough: tells that the wait can end early.
        """
        left = seconds
        while (left > 0 or self.held) and not enough():
            rest = _SLICE if self.held else min(left / self.pace, _SLICE)
            await asyncio.sleep(rest)
            left -= 0.0 if self.held else rest * self.pace


TEMPO: Final = Tempo()
"""The tempo of this process."""
