"""What agents below an attempt are doing to the outside at a moment: calls of models and tools (SPEC 11).

A question restarts its node, and what was done until then is served again.  So a question waits until
all that has begun beside it is done and kept, and nothing begins once it has left the attempt: nothing
is paid or run twice.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from contextvars import ContextVar

_within: ContextVar[tuple[Future[None], ...]] = ContextVar("hitl_tui_within", default=())


class InFlight:
    """The calls of one attempt.  Thread-safe: its agents may be at work on several event loops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Future[None]] = set()
        self._closed = False
        self._over: Future[None] = Future()

    @asynccontextmanager
    async def doing(self) -> AsyncIterator[None]:
        """A block that makes a call and keeps what it gave; once a question has left, none begins.

        Raises:
            asyncio.CancelledError: a question has left, and the attempt is over.
        """
        one: Future[None] = Future()
        if not self._begin(one):
            # Not before the attempt has ended: to whoever waits for us the question must come first.
            await asyncio.shield(asyncio.wrap_future(self._over))
            raise asyncio.CancelledError
        token = _within.set((*_within.get(), one))
        try:
            yield
        finally:
            _within.reset(token)
            self._finish([one])

    def _begin(self, one: Future[None]) -> bool:
        with self._lock:
            # What is below a call that has begun is a part of it.
            if self._closed and not self._running & set(_within.get()):
                return False
            self._running.add(one)
            return True

    async def quiet(self) -> None:
        """Wait until nothing is being done, as one who asks.

        The calls that the asking one is a part of end with the question: nobody waits for them.
        """
        self._finish(_within.get())
        while running := self._now():
            for one in running:
                await asyncio.shield(asyncio.wrap_future(one))

    async def settled(self) -> None:
        """Let nothing begin any more, and wait until what has begun is done."""
        with self._lock:
            self._closed = True
        await self.quiet()

    def _now(self) -> tuple[Future[None], ...]:
        with self._lock:
            return tuple(self._running)

    def _finish(self, done: Iterable[Future[None]]) -> None:
        with self._lock:
            for one in done:
                self._running.discard(one)
                if not one.done():
                    one.set_result(None)

    def end(self) -> None:
        """The attempt is over: whoever still wants to begin gives up."""
        with self._lock:
            self._closed = True
            if not self._over.done():
                self._over.set_result(None)
