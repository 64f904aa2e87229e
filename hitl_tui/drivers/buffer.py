"""Numbered events between the engine's thread and its watchers."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count, islice

import msgspec

from hitl_tui.drivers.protocol import Stamped
from hitl_tui.engine.log.events import Event, RunEnded, TextStreamed

KEPT = 20_000
"""Events kept for slow watchers; those that fall further behind take a new snapshot."""
KEPT_TEXT = 16 << 20
"""Characters of streamed text kept for slow watchers."""
_JOINED = 4096
"""Pieces of text are joined up to this many characters as long as nobody has read them."""
_FRESH = 512
"""Most events that may wait for their numbers."""

_Waiting = list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]


class EventBuffer:
    """Events with numbers that grow by one; adding and reading are safe from any thread.

    Events get their numbers when somebody reads them, so that adding one never waits.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._fresh: deque[Event] = deque()
        self._events: deque[Stamped] = deque(maxlen=kept)
        self._lock = self.together = threading.RLock()
        """Held while events are added that must become visible together."""
        self._last = 0
        self._run_ended = 0
        self._text = 0
        self._last_read = 0
        self._waiting: _Waiting = []
        self._waiting_for_end: _Waiting = []

    @property
    def last(self) -> int:
        """The number of the newest event, 0 before the first."""
        with self._lock:
            self._number()
            self._last_read = self._last
            return self._last

    def add(self, event: Event) -> None:
        """Append an event, and wake those who wait for it."""
        self._fresh.append(event)
        if self._waiting:
            self._wake(self._waiting)
        if type(event) is RunEnded:
            self._wake(self._waiting_for_end)
        elif len(self._fresh) >= _FRESH or type(event) is TextStreamed:  # there may be much text
            with self._lock:
                self._number()

    def skip(self) -> None:
        """Forget all events and leave a gap, so that every watcher takes a new snapshot."""
        with self._lock:
            self._number()
            self._events.clear()
            self._text = 0
            self._last += 1

    def since(self, number: int) -> Sequence[Stamped]:
        """Return the events after a number, oldest first."""
        with self._lock:
            self._number()
            if not self._events or self._last <= number:
                return ()
            self._last_read = self._last
            # From the end: most watchers ask for the last few of many.
            newest = islice(reversed(self._events), self._last - number)
            return tuple(newest)[::-1]

    def before(self, kind: type[Event]) -> int:
        """Return the number before that of the newest event of a kind; the newest number if there is none."""
        with self._lock:
            self._number()
            of_kind = (kept.number - 1 for kept in reversed(self._events) if type(kept.event) is kind)
            return next(of_kind, self._last)

    async def changed(self, since: int) -> None:
        """Wait for an event after a number."""
        await self._wait(self._waiting, lambda: self._last > since)

    async def ended(self, since: int) -> None:
        """Wait for the end of a run after a number."""
        await self._wait(self._waiting_for_end, lambda: self._run_ended > since)

    async def _wait(self, waiting: _Waiting, over: Callable[[], bool]) -> None:
        mine = (asyncio.get_running_loop(), flag := asyncio.Event())
        waiting.append(mine)  # before checking: whoever adds an event checks for waiters afterwards
        try:
            with self._lock:
                self._number()
                if over():
                    return
            await flag.wait()
        finally:
            with suppress(ValueError):
                waiting.remove(mine)

    @staticmethod
    def _wake(waiting: _Waiting) -> None:
        while waiting:
            with suppress(IndexError):  # they have stopped waiting meanwhile
                loop, flag = waiting.pop()
                loop.call_soon_threadsafe(flag.set)

    def _number(self) -> None:
        """Give new events their numbers, and drop the oldest ones if there are too many."""
        fresh = self._fresh
        events = [fresh.popleft() for _ in range(len(fresh))]
        kinds = set(map(type, events))
        if not self._text and TextStreamed not in kinds:
            self._events.extend(map(Stamped, count(self._last + 1), events))
            self._last += len(events)
        else:
            for event in events:
                if not (isinstance(event, TextStreamed) and self._joined(event)):
                    self._last += 1
                    self._append(Stamped(self._last, event))
        if RunEnded in kinds:
            self._run_ended = self._last

    def _joined(self, event: TextStreamed) -> bool:
        """Append a piece of text to the newest event if that is unread text of the same writer."""
        newest = self._events[-1] if self._events and self._last > self._last_read else None
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
