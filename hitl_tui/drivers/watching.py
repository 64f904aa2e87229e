"""Watching a thread that another process runs: what it commits is told as if it had happened here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from hitl_tui.engine.graphs.limits import limits_near
from hitl_tui.engine.log.events import Event, HolderChanged, LedgerWritten, ProgressChanged, StepCommitted
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.subgraphs.children import outdated, refresh
from hitl_tui.engine.thread.rebuild import applied_updates
from hitl_tui.engine.thread.recorded import RecordedGraph
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError, ThreadBusy

log = logging.getLogger(__name__)

EVERY = 0.2
"""Seconds between looks at the store: a watcher sees a step well within half a second."""
_MOST_STEPS = 500


class Watcher:
    """Follows one thread of a store while this process does not run it.

    Args:
        tell: takes the events.
        resync: called where too much has happened to tell it step by step.
        busy: True while this process runs the thread itself.
        inside: True while this process runs it as a part of another thread's run.
    """

    def __init__(
        self,
        session: Session,
        store: Store,
        *,
        tell: Callable[[Event], None],
        resync: Callable[[], None],
        busy: Callable[[], bool],
        inside: Callable[[], bool],
    ) -> None:
        self.holder = ""
        self._session = session
        self._store = store
        self._tell = tell
        self._resync = resync
        self._busy = busy
        self._inside = inside

    async def follow(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            if not self._busy():
                try:
                    self.look()
                except HitlError as error:  # the store may come back
                    log.warning("thread %s can't be looked at: %s", self._session.thread_id, error)

    def look(self) -> None:
        """Tell what has changed since the last look; a run whose process has died is taken over."""
        session = self._session
        if not session.exists and self._store.info(session.thread_id) is None:
            return
        inside = self._inside()
        summary = self._store.summary(session.thread_id)
        held = (summary.held_by or "") if summary else ""
        # A run inside another may have ended since: who held it then was this process.
        holder = "" if inside or self._inside() else held
        if holder != self.holder:
            self.holder = holder
            self._tell(HolderChanged(holder))
        self.catch_up()
        if not held and session.cursor.status == "running":
            session.recover()
        if outdated(session):
            with suppress(ThreadBusy), session.writing():
                refresh(session)

    def catch_up(self) -> None:
        """Load what another writer has committed, and tell it."""
        session = self._session
        cursor = self._store.cursor(session.thread_id)
        before = session.cursor
        if cursor is None or cursor.version == before.version:
            return
        if (
            before.head < 0
            or cursor.head - before.head > _MOST_STEPS
            or (cursor.graph != before.graph and isinstance(session.graph, RecordedGraph))
        ):
            session.reload()
            self._resync()
            return
        values = session.state.values
        session.reload()
        # The other process may be further by now: what follows is about the cursor that was loaded.
        now = session.cursor
        steps = self._store.checkpoints(session.thread_id, now.head + 1, now.head - before.head)
        for checkpoint in reversed(steps):
            values = self._tell_step(checkpoint, values)
        for entry in self._store.ledger(session.thread_id)[before.ledger_n : now.ledger_n]:
            self._tell(LedgerWritten(entry))
        self._tell(ProgressChanged(session.progress))
        for alert in limits_near(before, now, now.limits):
            self._tell(alert)

    def _tell_step(self, checkpoint: Checkpoint, values: dict[str, object]) -> dict[str, object]:
        session = self._session
        records = list(self._store.records(session.thread_id, checkpoint.step, checkpoint.step))
        updates, after = applied_updates(records, values)
        self._tell(StepCommitted(checkpoint, updates, session.progress))
        return after
