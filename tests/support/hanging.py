"""Ends a test that hangs: with an error where it stands, or else with the whole process."""

from __future__ import annotations

import faulthandler
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_HEARD = 20
"""Seconds in which the main thread must have heard; a loop in C does not."""


class Hung(BaseException):
    """A test took too long; no `except Exception` on its way may take it for an error of its own."""


@contextmanager
def no_longer_than(seconds: float) -> Iterator[None]:
    """Raise `Hung` in the main thread, and print every thread's stack, where the block takes longer."""

    def ring(number: int, frame: FrameType | None) -> None:
        faulthandler.dump_traceback(sys.__stderr__)
        raise Hung(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(seconds + _HEARD, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
