"""Deadlines of requests: they pass while a thread is open, though nobody looks at it."""

from __future__ import annotations

import asyncio
import logging

from hitl_tui.engine import decisions
from hitl_tui.engine.session import Session
from hitl_tui.errors import HitlError

log = logging.getLogger(__name__)


class Deadlines:
    """A timer for the next deadline of a thread; all of it happens on the engine's thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Wait for the earliest deadline there is now."""
        self.stop()
        session = self._session
        deadlines = [one.deadline for one in session.cursor.pending if one.deadline]
        if deadlines:
            wait = max(0.0, (min(deadlines) - session.clock()) / 1e6) + 0.01
            self._timer = asyncio.get_running_loop().call_later(wait, self._expire)

    def stop(self) -> None:
        """Wait no longer."""
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        try:
            with self._session.writing():
                decisions.expire(self._session)
        except HitlError as error:
            log.warning("deadlines of %s: %s", self._session.thread_id, error)
            return
        self.watch()
