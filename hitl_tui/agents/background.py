"""One private event loop in a daemon thread, on which all model calls of the process run.

A caller waits for its call from any thread, or from a loop of its own, and may give it up at once;
connections of the providers' clients belong to one loop and can be shared.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_log = logging.getLogger("hitl_tui.agents")
_log.addHandler(logging.NullHandler())  # without it Python writes warnings over the screen

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run `coroutine` on the background loop, in a copy of the caller's context.

    Returns:
        a future that any thread may wait for; cancelling it releases the waiters at once and
        cancels the coroutine.
    """
    return asyncio.run_coroutine_threadsafe(coroutine, _running_loop())


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603  (the process has one)
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            _loop.set_exception_handler(_note)
            threading.Thread(target=_loop.run_forever, name="hitl-tui-agents", daemon=True).start()
        return _loop


def _note(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Keep what providers' clients complain about (unclosed sessions, lost tasks) off the screen."""
    _log.debug("%s", context.get("message"), exc_info=context.get("exception"))


def _forget() -> None:
    """A forked child has a copy of the loop but not its thread."""
    global _loop, _lock  # noqa: PLW0603
    _loop = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
