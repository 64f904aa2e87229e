"""Deadlines of requests: they pass while a thread is open, though nobody looks at it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError, ThreadBusy

log = logging.getLogger(__name__)

_AGAIN = 1.0
"""Seconds until the next try where another process writes the thread just now."""


class Deadlines:
    """A timer for the next deadline of a thread; all of it happens on the engine's thread.

    Args:
        expire: answers what nobody answered in time; None while the thread can only be looked at: then its
            deadlines are left to others.
    """

    def __init__(self, session: Session, expire: Callable[[], Awaitable[None]] | None) -> None:
        self._session = session
        self._apply = expire
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Wait for the earliest deadline there is now."""
        self.stop()
        session = self._session
        deadlines = [one.deadline for one in session.cursor.pending if one.deadline]
        if deadlines and self._apply:
            wait = max(0.0, (min(deadlines) - session.clock()) / 1e6) + 0.01
            self._timer = asyncio.get_running_loop().call_later(wait, self._expire)

    def stop(self) -> None:
        """Wait no longer."""
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def apply_due(self) -> None:
        """Apply deadlines that passed while the thread was open nowhere."""
        session = self._session
        if self._apply is None or not session.exists:
            return
        now = session.clock()
        if any(one.deadline and now > one.deadline for one in session.cursor.pending):
            self._expire()

    def _expire(self) -> None:
        if self._apply and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._expired(self._apply))

    async def _expired(self, apply: Callable[[], Awaitable[None]]) -> None:
        try:
            await apply()
        except ThreadBusy:
            self._timer = asyncio.get_running_loop().call_later(_AGAIN, self._expire)
        except HitlError as error:
            log.warning("deadlines of %s: %s", self._session.thread_id, error)
        else:
            self.watch()
