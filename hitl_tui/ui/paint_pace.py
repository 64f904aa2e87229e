"""How often what happened is painted: as often as the eye wants it, and seldom enough that keys find time."""

from __future__ import annotations

from typing import Final

_SHARE: Final = 0.3
_LONGEST: Final = 0.25


class Pace:
    """Says when the next batch of events may be taken: painting keeps to a share of the time.

    A key that comes while a batch is folded and painted has to wait for it, so that what is costly to
    paint is painted less often, and at least four times a second.  Times are in seconds; `cpu` is the
    processor time of the thread that paints, which other threads and processes do not lengthen.
    """

    def __init__(self) -> None:
        self._taken_at = 0.0
        self._cpu_then = 0.0
        self._taken = False

    def due(self, now: float, cpu: float) -> bool:
        """True if the last batch has been paid for."""
        if not self._taken:
            return True
        cost = cpu - self._cpu_then
        return now - self._taken_at >= min(cost / _SHARE, _LONGEST)

    def take(self, now: float, cpu: float) -> None:
        """A batch is taken."""
        self._taken, self._taken_at, self._cpu_then = True, now, cpu
