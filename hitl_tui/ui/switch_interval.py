"""Turns of threads: how soon the screen gets the interpreter from a node or an import that computes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_TURN: Final = 0.001


@contextmanager
def short_turns() -> Iterator[None]:
    """A thread that computes gives way after a millisecond, not after Python's five.

    From a key to its paint the screen asks for the interpreter several times, and waits for a whole turn
    each time while another thread computes.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
