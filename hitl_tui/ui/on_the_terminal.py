"""Runs a program of the user's on the terminal that the screen has left to it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from hitl_tui.drivers.node_streams import own_descriptors

_LOOK: Final = 0.2
"""Seconds between looks for a signal, which may be told to another thread and so break off no wait."""
_GRACE: Final = 1.0
"""Seconds; a shell or a terminal that ends tells the program, too, and it may have to save."""


def run_on_the_terminal(command: Sequence[str]) -> int:
    """Run it until it ends; returns its exit code, or the negative number of the signal that ended it.

    Its ctrl+c is none of our business.  Whoever tells us to end ends it, too, as the app's own loop
    hears of that only when it has gone; this is no failure of its own, and the code is 0.

    Raises:
        OSError: it can't be started.
    """
    with _ctrl_c_ignored(), _told_to_end() as told:
        out, err = own_descriptors()
        child = subprocess.Popen(list(command), stdout=out, stderr=err, preexec_fn=_ctrl_c_as_usual)  # noqa: PLW1509  one call, no locks
        for before, end in enumerate((child.terminate, child.kill)):
            while len(told) <= before:
                with suppress(subprocess.TimeoutExpired):
                    code = child.wait(_LOOK)
                    return 0 if told else code
            with suppress(subprocess.TimeoutExpired):
                child.wait(_GRACE)
                return 0
            end()
        child.wait()
        return 0


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _told_to_end() -> Iterator[list[int]]:
    """The signals so far that asked us to end."""
    told: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        told.append(number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, hear) for number in heard}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ctrl_c_as_usual() -> None:
    """Run in the child before it becomes that program: what is ignored would stay ignored there."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
