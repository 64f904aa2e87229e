"""What happens beside the runs of an open thread: other processes, deadlines, the file of its graph."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hitl_tui.drivers.graph_file import BuildGraph, GraphFileWatch, follow_file, until_next
from hitl_tui.engine.commands import Pause
from hitl_tui.engine.graph.limits import limits_near
from hitl_tui.engine.log.events import (
    AttendanceChanged,
    Event,
    HolderChanged,
    KnownOutcome,
    LedgerWritten,
    ProgressChanged,
    StepCommitted,
    shown_step,
)
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import PauseRequest, Presence
from hitl_tui.engine.nodes.children import outdated, refresh
from hitl_tui.engine.thread.rebuild import applied_updates
from hitl_tui.engine.thread.recorded import RecordedGraph
from hitl_tui.engine.thread.run_inputs import shown_ledger
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError, ThreadBusy

if TYPE_CHECKING:
    from hitl_tui.engine.run.loop import RunLoop

log = logging.getLogger(__name__)

_AGAIN = 1.0
"""Seconds until the next try if another process is writing the thread."""


class Deadlines:
    """A timer for the next deadline or escalation of a thread's requests.

    All of it happens on the engine's thread.

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
        """Wait for the earliest deadline."""
        self.stop()
        session = self._session
        due = [at for request in session.cursor.pending if (at := request.next_due) is not None]
        if due and self._apply:
            wait = max(0.0, (min(due) - session.clock()) / 1e6) + 0.01
            self._timer = asyncio.get_running_loop().call_later(wait, self._expire)

    def stop(self) -> None:
        """Stop waiting."""
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def end(self) -> list[asyncio.Task[None]]:
        """Apply no deadlines from now on; returns the task that is being stopped."""
        self.stop()
        self._apply = None
        if self._task is None or self._task.done():
            return []
        self._task.cancel()
        return [self._task]

    def apply_due(self) -> None:
        """Apply deadlines that passed while the thread was open nowhere."""
        session = self._session
        if self._apply is None or not session.exists:
            return
        now = session.clock()
        if any(request.due(now) for request in session.cursor.pending):
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
        except Exception:  # nobody awaits this task, and the next deadline must still be applied
            log.exception("deadlines of %s can't be applied", self._session.thread_id)
            self._timer = asyncio.get_running_loop().call_later(_AGAIN_AFTER_ERROR, self._expire)
        else:
            self.watch()


_AGAIN_AFTER_ERROR = 30.0
"""Seconds until deadlines are tried again after an unexpected error."""
EVERY = 0.2
"""Seconds between checks of the store: a watcher sees a step well within half a second."""
_QUIET_LOOKS = 25
_EVERY_IN_QUIET = 0.4
_MOST_STEPS = 500


class Watcher:
    """Follows one thread of a store while this process does not run it.

    Args:
        emit: takes the events.
        together: held while events are emitted that belong together.
        resync: called if too much has happened to emit it step by step.
        busy: returns whether this process runs the thread itself.
        inside: returns whether this process runs it as a part of another thread's run.
    """

    def __init__(
        self,
        session: Session,
        store: Store,
        *,
        emit: Callable[[Event], None],
        together: AbstractContextManager[object],
        resync: Callable[[], None],
        busy: Callable[[], bool],
        inside: Callable[[], bool],
    ) -> None:
        self.holder = ""
        self.attending: tuple[Presence, ...] = ()
        self.own_look = ""
        self._settled: object = None
        self._logged = ""
        self._session = session
        self._store = store
        self._emit = emit
        self._together = together
        self._resync = resync
        self._busy = busy
        self._inside = inside

    async def follow(self) -> None:
        """Check again and again, until cancelled; less often while nothing has changed for a while.

        A store that reports writes is also checked then.
        """
        news, loop = asyncio.Event(), asyncio.get_running_loop()
        thread_id = self._session.thread_id
        end = self._store.subscribe(lambda: loop.call_soon_threadsafe(news.set), thread_id)
        try:
            await self._follow(news)
        finally:
            if end is not None:
                end()

    async def _follow(self, news: asyncio.Event) -> None:
        version, quiet = -1, 0
        while True:
            every = EVERY if self.holder or quiet < _QUIET_LOOKS else _EVERY_IN_QUIET
            with suppress(TimeoutError):
                async with asyncio.timeout(until_next(every)):
                    await news.wait()
            news.clear()
            if not self._busy():
                try:
                    self.look()
                except HitlError as error:  # the store may come back
                    log.warning("thread %s can't be looked at: %s", self._session.thread_id, error)
                except Exception:  # otherwise nothing would be followed any more, without any message
                    self._log_unexpected()
            now = self._session.cursor.version
            version, quiet = now, quiet + 1 if now == version else 0

    def _log_unexpected(self) -> None:
        """Log an unexpected error of a check, but not again and again."""
        error = sys.exc_info()[1]
        kind = f"{type(error).__name__}: {error}"
        if kind != self._logged:
            self._logged = kind
            log.exception("thread %s can't be looked at", self._session.thread_id)

    def look(self) -> None:
        """Emit what has changed since the last check; take over a run whose process has died."""
        session = self._session
        changes = self._store.changes(session.thread_id)
        if changes is not None and (changes == self._settled or (changes == session.stamp and self._alone)):
            return
        self._settled = None
        if not session.exists and self._store.info(session.thread_id) is None:
            self._settled = changes
            return
        inside = self._inside()
        summary = self._store.summary(session.thread_id)
        held = (summary.held_by or "") if summary else ""
        # A run inside another may have ended since: its holder was this process.
        holder = "" if inside or self._inside() else held
        if holder != self.holder:
            self.holder = holder
            self._emit(HolderChanged(holder))
        self._see(summary.attending if summary else ())
        self.catch_up()
        if not held and session.cursor.status == "running":
            session.recover()
        if outdated(session):
            with suppress(ThreadBusy), session.writing():
                refresh(session)
        # Holders die and people leave without writing; all other news is written.
        elif not (held or self.attending or session.cursor.status == "running"):
            self._settled = changes

    @property
    def _alone(self) -> bool:
        """Whether nobody who may leave is there, and nothing runs below, without a write to this thread."""
        return not (self.attending or self.holder or self._session.cursor.branches)

    def _see(self, attending: tuple[Presence, ...]) -> None:
        others = tuple(at for at in attending if at.lease.token != self.own_look)
        if _shown(others) != _shown(self.attending):
            self._emit(AttendanceChanged(others))
        self.attending = others

    def catch_up(self) -> None:
        """Load what another writer has committed, and emit it."""
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
        events: list[Event] = []
        for checkpoint in reversed(steps):
            step, values = self._step(checkpoint, values)
            events.append(step)
        ledger = self._store.ledger(session.thread_id, before.ledger_n)[: now.ledger_n - before.ledger_n]
        events += map(LedgerWritten, shown_ledger(ledger))
        events.append(ProgressChanged(session.progress))
        events += limits_near(before, now, now.limits)
        # Nobody may see the step without the decision that made it, or the other way round.
        with self._together:
            for event in events:
                self._emit(event)

    def _step(
        self, checkpoint: Checkpoint, values: dict[str, object]
    ) -> tuple[StepCommitted, dict[str, object]]:
        session = self._session
        records = list(self._store.records(session.thread_id, checkpoint.step, checkpoint.step))
        updates, after = applied_updates(records, values)
        return StepCommitted(shown_step(checkpoint), KnownOutcome(updates, session.progress)), after


"""Seconds between checks for pause requests, and whether the thread is held."""

_ASK_AGAIN = 1.0


class Looking:
    """Records in the store that somebody here has a card open, again and again until they close it.

    `watcher` ignores the person's own record.
    """

    def __init__(self, session: Session, watcher: Watcher) -> None:
        self._session = session
        self._watcher = watcher
        self._presence: Presence | None = None
        self._timer: asyncio.TimerHandle | None = None

    def at(self, request_id: str, actor: str) -> None:
        """Record that a pending request is open from now on; none for a request that isn't pending."""
        from hitl_tui.engine.commands.claiming import presence_of

        self.end()
        pending = self._session.cursor.pending
        request = next((request for request in pending if request.id == request_id), None)
        if request is not None:
            self._presence = presence_of(self._session, request, actor, _LOOK_LASTS)
            self._watcher.own_look = self._presence.lease.token
            self._renew()

    def end(self) -> None:
        """Record that the card was closed."""
        presence, self._presence = self._presence, None
        if self._timer:
            self._timer.cancel()
        if presence and self._session.store:
            try:
                self._session.store.leave(self._session.thread_id, presence.lease.token)
            except HitlError as error:
                log.warning(
                    "thread %s: could not record that the card was closed: %s", self._session.thread_id, error
                )

    def _renew(self) -> None:
        """Renew the record that somebody has the card open; remove it once the request no longer waits."""
        presence, store, now = self._presence, self._session.store, self._session.clock()
        if presence is None or store is None:
            return
        if all(request.id != presence.request for request in self._session.cursor.pending):
            self.end()
            return
        presence = replace(presence, until=now + _LOOK_LASTS)
        try:
            store.attend(self._session.thread_id, presence, now)
        except HitlError as error:  # a store that can't be written may still be viewed
            log.warning("thread %s: could not record that a card is open: %s", self._session.thread_id, error)
        self._timer = asyncio.get_running_loop().call_later(_LOOK_AGAIN, self._renew)


_LOOK_LASTS = 60_000_000
"""Microseconds for which an open card counts if its process can't be checked."""
_LOOK_AGAIN = 25.0


def _shown(attending: tuple[Presence, ...]) -> list[tuple[object, ...]]:
    """Return what distinguishes people who are there; renewed records are not."""
    return [(at.lease.token, at.claims, at.until if at.claims else 0) for at in attending]


class RunSupervisor:
    """Acts for other processes during one run; made and used on the engine's thread."""

    def __init__(self, session: Session, run: RunLoop) -> None:
        self._session = session
        self._run = run
        self._begun = session.clock()
        self._received: PauseRequest | None = None
        self.paused_here: Pause | None = None
        """Who has asked this process to pause the run."""
        self._seen: object = None
        self._timer = asyncio.get_running_loop().call_later(EVERY, self._listen)

    def _listen(self) -> None:
        store, thread_id = self._session.store, self._session.thread_id
        if store is None:
            return
        # Requests of others are written to the store: one that reports writes is read when it does.
        changes = store.changes(thread_id)
        if changes is not None and changes == self._seen:
            self._timer = asyncio.get_running_loop().call_later(EVERY, self._listen)
            return
        self._seen = changes
        try:
            asked = store.pause_request(thread_id)
        except HitlError as error:
            log.warning("thread %s: what is asked of it can't be read: %s", thread_id, error)
            self._run.end_with_error(error)
            return
        # What was requested before this run began was about another one.
        if asked is not None and asked.at >= self._begun:
            self._received = asked
            if asked.at_once:
                self._run.is_being_cancelled = True
                self._run.stop_attempt("the thread was cancelled")
            else:
                self._run.pause()
            return
        self._timer = asyncio.get_running_loop().call_later(EVERY, self._listen)

    def end(self) -> None:
        """End the run: record who paused it, if it was paused."""
        from hitl_tui.engine.commands.decisions import note_pause

        self._timer.cancel()
        session, asked = self._session, self._received or self.paused_here
        if asked is None or session.store is None:
            return
        try:
            if self._received:
                session.store.request_pause(session.thread_id, None)
            if (session.cursor.status, session.cursor.reason) == ("waiting", "paused"):
                with session.writing():
                    note_pause(session, actor=asked.actor, note=asked.note)
        except HitlError as error:
            log.warning("thread %s: the pause could not be logged: %s", session.thread_id, error)


async def ask_to_pause(
    store: Store, thread_id: str, command: Pause, *, patience: float, at_once: bool = False
) -> str:
    """Ask the holder of a thread to pause it, and wait until it is released; workers then leave it alone.

    Args:
        at_once: the thread is about to be cancelled, so its running node is stopped, too.
        patience: the most seconds to wait; the request stays.

    Returns:
        Who holds it still, "" for nobody.
    """
    end, again = time.monotonic() + patience, 0.0
    jobs = store.jobs()
    queued = jobs is not None and jobs.is_handed(thread_id)
    while True:
        summary = store.summary(thread_id)
        holder = (summary.held_by or "") if summary else ""
        if jobs is not None and not holder:
            # A worker that has just taken the thread from the queue has not reported anything yet.
            holder = next((f"worker {job.worker}" for job in jobs.of_threads([thread_id]) if job.worker), "")
        if not holder and not queued:
            return ""
        queued = False
        if time.monotonic() >= again:
            # The holder may have started another run by now, which the request is not about.
            request = PauseRequest(command.actor, command.note, store.now(), at_once)
            store.request_pause(thread_id, request)
            again = time.monotonic() + _ASK_AGAIN
        if time.monotonic() >= end:
            return holder
        await asyncio.sleep(EVERY)


class ThreadWatch:
    """Everything that follows one thread while it is open; made and used on the engine's thread."""

    def __init__(
        self,
        session: Session,
        store: Store,
        *,
        emit: Callable[[Event], None],
        together: AbstractContextManager[object],
        resync: Callable[[], None],
        busy: Callable[[], bool],
        inside: Callable[[], bool],
        expire: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self.deadlines = Deadlines(session, expire)
        self._session = session
        self._emit = emit
        self.watcher = Watcher(
            session, store, emit=emit, together=together, resync=resync, busy=busy, inside=inside
        )
        self.looking = Looking(session, self.watcher)
        self.graph_file: GraphFileWatch | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Check once, and from then on again and again."""
        self.watcher.look()
        self.deadlines.watch()
        self.deadlines.apply_due()
        self._tasks.append(asyncio.get_running_loop().create_task(self.watcher.follow()))

    def follow_graph_file(self, build: BuildGraph | None) -> None:
        """Also watch the file of the graph from now on, if it can be loaded again."""
        if self.graph_file is None:
            self.graph_file = follow_file(self._session, build, self._emit)
            if self.graph_file is not None:
                self._tasks.append(asyncio.get_running_loop().create_task(self.graph_file.follow()))

    async def end(self) -> None:
        """Stop watching; returns once nothing of it runs."""
        self.looking.end()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self.deadlines.end(), return_exceptions=True)

    @property
    def holder(self) -> str:
        """The other process that runs the thread, "" for none."""
        return self.watcher.holder

    @property
    def graph_changed(self) -> tuple[str, ...] | None:
        """The differences since the file of the graph was saved, None if it wasn't."""
        return self.graph_file.changed if self.graph_file else None
