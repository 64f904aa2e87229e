"""Ends a test that hangs: with an error where it stands, or else with the whole process."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

GRACE = 60
"""Seconds for what clears up behind a test that hung; then its process ends."""


class Hung(BaseException):
    """A test took too long; no `except Exception` on its way may take it for an error of its own."""


@contextmanager
def no_longer_than(seconds: float, *, grace: float = GRACE, stacks: int = 2) -> Iterator[None]:
    """Raise `Hung` in the main thread where the block takes longer; end the process where that is not enough.

    Args:
        grace: seconds between the two; what the block clears up in a `finally` can hang as well.
        stacks: the file descriptor that every thread's stack is printed to at both.
    """
    rung = False

    def ring(number: int, frame: FrameType | None) -> None:
        nonlocal rung
        faulthandler.dump_traceback(stacks)
        if rung:
            os._exit(1)
        rung = True
        raise Hung(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, grace)
    # A loop in C hears no signal.  pytest's own plugin would call this off at a failure: it is not loaded.
    faulthandler.dump_traceback_later(seconds + 2 * grace, exit=True, file=stacks)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
