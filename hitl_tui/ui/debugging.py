"""Lends the terminal to a debugger that runs in the thread of a node."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from hitl_tui.errors import HitlError
from hitl_tui.ui.textual_private import HookedApp

_LOOK: Final = 0.1
"""Seconds between checks whether the app has ended."""


@contextmanager
def terminal_lent(app: HookedApp[Any]) -> Iterator[None]:
    """Suspend the screen for as long as this is entered, from another thread than the app's.

    Raises:
        HitlError: the app has no terminal to lend, or has ended.
    """
    lent, done = threading.Event(), threading.Event()

    async def hold() -> None:
        with app.as_active_app():
            # ctrl+c is for the debugger, which runs in a thread and gets no signals.
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                with app.suspend():
                    lent.set()
                    done.wait()
            finally:
                signal.signal(signal.SIGINT, before)

    if app.event_loop is None:
        raise _no_terminal()
    coroutine = hold()
    try:
        holding = asyncio.run_coroutine_threadsafe(coroutine, app.event_loop)
    except RuntimeError:  # its loop has closed
        coroutine.close()
        raise _no_terminal() from None
    while not lent.wait(_LOOK):
        if holding.done():
            raise _no_terminal() from holding.exception()
    try:
        yield
    finally:
        done.set()
        holding.result()


def _no_terminal() -> HitlError:
    return HitlError(
        "breakpoint() has no terminal here",
        "stop before the node instead: b, or --break NODE",
    )
