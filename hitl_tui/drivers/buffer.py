"""Numbered events between the engine's thread and whoever watches (DESIGN, "The driver")."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

import msgspec

from hitl_tui.drivers.protocol import Stamped
from hitl_tui.engine.log.events import Event, TextStreamed

KEPT = 20_000
"""Events kept for slow watchers; who falls further behind takes a new snapshot."""
KEPT_TEXT = 16 << 20
"""Characters of streamed text kept for them."""
_JOINED = 4096
"""Characters; pieces of text are put together up to here while nobody has seen them."""


class EventBuffer:
    """Events with numbers that grow by one; adding and reading are safe from any thread."""

    def __init__(self, kept: int = KEPT) -> None:
        self._events: deque[Stamped] = deque(maxlen=kept)
        self._lock = self.together = threading.RLock()
        """Held while events are added that nobody may see some of without the others."""
        self._last = 0
        self._text = 0
        self._told = 0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def last(self) -> int:
        """The number of the newest event, 0 before the first."""
        with self._lock:
            self._told = self._last
            return self._last

    def add(self, event: Event) -> int:
        """Append an event, wake who waits, and return the event's number."""
        with self._lock:
            if not (isinstance(event, TextStreamed) and self._joined(event)):
                self._last += 1
                self._append(Stamped(self._last, event))
            number, woken = self._last, self._waiting
            if woken:
                self._waiting = []
        for loop, flag in woken:
            loop.call_soon_threadsafe(flag.set)
        return number

    def skip(self) -> None:
        """Forget what there is and leave a gap, so that every watcher takes a new snapshot."""
        with self._lock:
            self._events.clear()
            self._text = 0
            self._last += 1

    def since(self, number: int) -> Sequence[Stamped]:
        """Events after a number, oldest first."""
        with self._lock:
            if not self._events or self._last <= number:
                return ()
            self._told = self._last
            first = self._events[0].number
            return tuple(islice(self._events, max(0, number + 1 - first), None))

    async def changed(self, since: int) -> None:
        """Wait for an event after a number."""
        flag = asyncio.Event()
        waiting = (asyncio.get_running_loop(), flag)
        with self._lock:
            if self._last > since:
                return
            self._waiting.append(waiting)
        try:
            await flag.wait()
        finally:
            if not flag.is_set():  # given up
                with self._lock, suppress(ValueError):
                    self._waiting.remove(waiting)

    def _joined(self, event: TextStreamed) -> bool:
        """Put a piece of text to the newest event, where that is text of the same and nobody has it yet."""
        newest = self._events[-1] if self._events and self._last > self._told else None
        if newest is None or not isinstance(before := newest.event, TextStreamed):
            return False
        same = (before.node, before.agent, before.path) == (event.node, event.agent, event.path)
        if not same or len(before.text) + len(event.text) > _JOINED:
            return False
        longer = msgspec.structs.replace(before, text=before.text + event.text)
        self._events[-1] = Stamped(newest.number, longer)
        self._text += len(event.text)
        return True

    def _append(self, stamped: Stamped) -> None:
        """Add an event; the oldest ones make room."""
        if len(self._events) == self._events.maxlen:
            self._drop()
        self._events.append(stamped)
        if length := _length(stamped):
            self._text += length
            while self._text > KEPT_TEXT and len(self._events) > 1:
                self._drop()

    def _drop(self) -> None:
        self._text -= _length(self._events.popleft())


def _length(stamped: Stamped) -> int:
    return len(stamped.event.text) if isinstance(stamped.event, TextStreamed) else 0
