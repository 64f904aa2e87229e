"""Holding a thread while it runs: others who want it paused are heard."""

from __future__ import annotations

import asyncio
import logging
import time

from hitl_tui.engine.humans.decisions import note_pause
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import PauseRequest
from hitl_tui.engine.running.loop import Run
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError

log = logging.getLogger(__name__)

EVERY = 0.2
"""Seconds between looks for what is asked, and at whether the thread is held."""

_ASK_AGAIN = 1.0


class Holding:
    """What goes on during one run on behalf of other processes; made and used on the engine's thread."""

    def __init__(self, session: Session, run: Run) -> None:
        self._session = session
        self._run = run
        self._begun = session.clock()
        self._heard: PauseRequest | None = None
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        store, thread_id = self._session.store, self._session.thread_id
        while store is not None and self._heard is None:
            await asyncio.sleep(EVERY)
            try:
                asked = store.pause_request(thread_id)
            except HitlError as error:
                log.warning("thread %s: what is asked of it can't be read: %s", thread_id, error)
                self._run.break_off(error)
                return
            # What was asked before this run began was about another one.
            if asked is not None and asked.at >= self._begun:
                self._heard = asked
                self._run.pause()

    def end(self) -> None:
        """The run is over: write down who paused it, where it was paused."""
        self._listening.cancel()
        session, asked = self._session, self._heard
        if asked is None or session.store is None:
            return
        try:
            session.store.request_pause(session.thread_id, None)
            if (session.cursor.status, session.cursor.reason) == ("waiting", "paused"):
                with session.writing():
                    note_pause(session, actor=asked.actor, note=asked.note)
        except HitlError as error:
            log.warning("thread %s: the pause could not be logged: %s", session.thread_id, error)


async def ask_to_pause(
    store: Store, thread_id: str, *, actor: str | None, note: str | None, patience: float
) -> str:
    """Ask whoever holds a thread to pause it, and wait until nobody does.

    Args:
        patience: seconds to wait at most; what was asked stays asked.

    Returns:
        Who holds it still, "" for nobody.
    """
    end, again = time.monotonic() + patience, 0.0
    while True:
        summary = store.summary(thread_id)
        holder = (summary.held_by or "") if summary else ""
        if not holder:
            return ""
        if time.monotonic() >= again:
            # The holder may have begun another run by now, which what was asked before is not about.
            store.request_pause(thread_id, PauseRequest(actor, note, time.time_ns() // 1_000))
            again = time.monotonic() + _ASK_AGAIN
        if time.monotonic() >= end:
            return holder
        await asyncio.sleep(EVERY)
