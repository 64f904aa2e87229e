"""Numbered events between the engine's thread and whoever watches (DESIGN, "The driver")."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from itertools import islice

from hitl_tui.drivers.protocol import Stamped
from hitl_tui.engine.log.events import Event

KEPT = 20_000
"""Events kept for slow watchers; who falls further behind takes a new snapshot."""


class EventBuffer:
    """Events with numbers that grow by one; adding and reading are safe from any thread."""

    def __init__(self, kept: int = KEPT) -> None:
        self._events: deque[Stamped] = deque(maxlen=kept)
        self._lock = threading.Lock()
        self._last = 0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def last(self) -> int:
        """The number of the newest event, 0 before the first."""
        return self._last

    def add(self, event: Event) -> int:
        """Append an event, wake who waits, and return the event's number."""
        with self._lock:
            self._last += 1
            self._events.append(Stamped(self._last, event))
            woken, self._waiting = self._waiting, []
        for loop, flag in woken:
            loop.call_soon_threadsafe(flag.set)
        return self._last

    def skip(self) -> None:
        """Forget what there is and leave a gap, so that every watcher takes a new snapshot."""
        with self._lock:
            self._events.clear()
            self._last += 1

    def since(self, number: int) -> Sequence[Stamped]:
        """Events after a number, oldest first."""
        with self._lock:
            if not self._events or self._last <= number:
                return ()
            first = self._events[0].number
            return tuple(islice(self._events, max(0, number + 1 - first), None))

    async def changed(self, since: int) -> None:
        """Wait for an event after a number."""
        flag = asyncio.Event()
        with self._lock:
            if self._last > since:
                return
            self._waiting.append((asyncio.get_running_loop(), flag))
        await flag.wait()
