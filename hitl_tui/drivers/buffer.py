"""Numbered events between the engine's thread and whoever watches."""

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
"""Events kept for slow watchers; who falls further behind takes a new snapshot."""
KEPT_TEXT = 16 << 20
"""Characters of streamed text kept for them."""
_JOINED = 4096
"""Characters; pieces of text are put together up to here while nobody has seen them."""
_FRESH = 512
"""Events that may wait for their numbers."""

_Waiting = list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]


class EventBuffer:
    """Events with numbers that grow by one; adding and reading are safe from any thread.

    They get their numbers once somebody looks: whoever adds one waits for nobody.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._fresh: deque[Event] = deque()
        self._events: deque[Stamped] = deque(maxlen=kept)
        self._lock = self.together = threading.RLock()
        """Held while events are added that nobody may see some of without the others."""
        self._last = 0
        self._run_ended = 0
        self._text = 0
        self._told = 0
        self._waiting: _Waiting = []
        self._waiting_for_end: _Waiting = []

    @property
    def last(self) -> int:
        """The number of the newest event, 0 before the first."""
        with self._lock:
            self._number()
            self._told = self._last
            return self._last

    def add(self, event: Event) -> None:
        """Append an event, and wake who waits for it."""
        self._fresh.append(event)
        if self._waiting:
            self._wake(self._waiting)
        if type(event) is RunEnded:
            self._wake(self._waiting_for_end)
        elif len(self._fresh) >= _FRESH or type(event) is TextStreamed:  # of text there may be much
            with self._lock:
                self._number()

    def skip(self) -> None:
        """Forget what there is and leave a gap, so that every watcher takes a new snapshot."""
        with self._lock:
            self._number()
            self._events.clear()
            self._text = 0
            self._last += 1

    def since(self, number: int) -> Sequence[Stamped]:
        """Events after a number, oldest first."""
        with self._lock:
            self._number()
            if not self._events or self._last <= number:
                return ()
            self._told = self._last
            # From the end: most ask for the last few of many.
            newest = islice(reversed(self._events), self._last - number)
            return tuple(newest)[::-1]

    def before(self, kind: type[Event]) -> int:
        """The number before that of the newest event of a kind; that of the newest of all without any."""
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
        waiting.append(mine)  # before looking: whoever adds something looks for us afterwards
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
            with suppress(IndexError):  # they have given up meanwhile
                loop, flag = waiting.pop()
                loop.call_soon_threadsafe(flag.set)

    def _number(self) -> None:
        """Give fresh events their numbers; the oldest ones make room."""
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
