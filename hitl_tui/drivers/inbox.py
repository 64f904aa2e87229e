"""Several stores in one queue: each is read by itself, and one that fails is tried again."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from hitl_tui.drivers.protocol import Hub, SourceState
from hitl_tui.engine.log.threads import Waiting
from hitl_tui.errors import HitlError, StoreUnusable

if TYPE_CHECKING:
    from hitl_tui.loading.trust import Ask

log = logging.getLogger(__name__)
PATIENCE: Final = 0.5
"""Seconds to wait for a slow source before the requests of the others are returned."""
_SILENT: Final = 5.0
"""Seconds without an answer after which a source counts as unavailable."""
_FIRST_DELAY: Final = 2.0
_LONGEST_DELAY: Final = 30.0
"""Seconds between two attempts to read a source that failed; they double from the first to the longest."""

Connect = Callable[[], Awaitable[Hub]]


class Source:
    """One store of an inbox.

    Args:
        name: unique among the sources.
        url: the store, without a password.
        connect: opens the store, and returns a hub over it.
        file: the file or directory of the store; None if it has none.
        connected: called once the hub of `connect` has read the requests; any other hub is closed again.
    """

    def __init__(
        self,
        name: str,
        url: str,
        connect: Connect,
        file: Path | None = None,
        connected: Callable[[], object] = lambda: None,
    ) -> None:
        self.name = name
        self.url = url
        self.connect = connect
        self.file = file
        self.connected = connected


class _Reading:
    """The requests of one source as last read; it connects when it is first read.

    Args:
        connected: called with each hub that it uses from then on.
        done: called after a reading that took longer than `patience` seconds.
    """

    def __init__(
        self,
        source: Source,
        patience: float,
        connected: Callable[[Hub], object],
        done: Callable[[], object],
    ) -> None:
        self.source = source
        self._patience = patience
        self.hub: Hub | None = None
        self.rows: tuple[Waiting, ...] = ()
        self.former: list[Hub] = []
        """Hubs over a store that was opened again since; their threads may still be on screen."""
        self._problem = ""
        self._failed = False
        self._connected = connected
        self._done = done
        self._task: asyncio.Task[None] | None = None
        self._began = 0.0
        self._next = 0.0
        self._delay = _FIRST_DELAY
        self._file: tuple[int, int] | None = None

    @property
    def problem(self) -> str:
        """Why it is unavailable; "" if it is not."""
        waited = time.monotonic() - self._began
        if self._failed or self._task is None or self._task.done() or waited < _SILENT:
            return self._problem
        return f"no answer for {waited:.0f} s"

    @property
    def state(self) -> SourceState:
        """Whether its requests can be read now, and why not."""
        source, problem = self.source, self.problem
        if problem:
            return SourceState(source.name, source.url, "unavailable", problem)
        return SourceState(source.name, source.url, "connecting" if self.hub is None else "ready")

    @property
    def is_due(self) -> bool:
        """Whether it failed, and may be tried again now."""
        return self._failed and time.monotonic() >= self._next

    @property
    def is_moved(self) -> bool:
        """Whether others no longer find the store that the hub has open."""
        return _identity(self.source.file) != self._file

    def take(self, hub: Hub) -> None:
        """Use a hub that is connected already."""
        self.hub = hub
        self._file = _identity(self.source.file)
        self._connected(hub)

    def begin(self, limit: int) -> asyncio.Task[None] | None:
        """Begin to read, unless that is under way or was refused a moment ago."""
        if self._task is None or self._task.done():
            if self._failed and not self.is_due:
                return None
            self._began = time.monotonic()
            self._task = asyncio.create_task(self._read(limit))
        return self._task

    async def _read(self, limit: int) -> None:
        try:
            rows = await self._rows(limit)
        except HitlError as error:
            self._fail(error.message)
        except Exception as error:  # a graph of somebody else may raise anything
            log.warning("source %s: %r", self.source.name, error)
            self._fail(f"{type(error).__name__}: {error}")
        else:
            self.rows = tuple(replace(row, source=self.source.name) for row in rows)
            self._problem, self._failed, self._delay = "", False, _FIRST_DELAY
        if time.monotonic() > self._began + self._patience:  # nobody has waited for it
            self._done()

    def _fail(self, why: str) -> None:
        self.rows = ()
        self._problem, self._failed = why, True
        self._next = time.monotonic() + self._delay
        self._delay = min(self._delay * 2, _LONGEST_DELAY)

    async def _rows(self, limit: int) -> Sequence[Waiting]:
        """Read the requests; after a failure that lasts, the store is opened again."""
        hub = self.hub
        if hub is not None:
            try:
                if self.is_moved:
                    raise StoreUnusable(f"{self.source.file} was deleted, moved or replaced")
                return await hub.waiting(limit)
            except HitlError:
                if not self._failed:
                    raise
        fresh = await self.source.connect()
        try:
            rows = await fresh.waiting(limit)
        except BaseException:
            await fresh.close()
            raise
        if hub is not None:
            self.former.append(hub)
        self.take(fresh)
        self.source.connected()
        return rows

    async def close(self) -> tuple[str, ...]:
        """Stop reading, and close all hubs; returns what was not committed."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        lost: list[str] = []
        for hub in (*self.former, *((self.hub,) if self.hub is not None else ())):
            try:
                lost += await hub.close()
            except HitlError as error:
                lost.append(str(error))
        return tuple(lost)


class SeveralSources:
    """An `Inbox` over several stores.

    A source that is slow or down delays no other one. It is read again by itself, with growing delays.

    Args:
        sources: all of them, in the order in which they are listed.
        home: the name of the one whose hub is open already.
        hub: that hub.
        patience: seconds to wait for a slow source.
    """

    def __init__(self, sources: Sequence[Source], home: str, hub: Hub, *, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._news = 0
        self._wakes: list[Callable[[], object]] = []
        self._unsubscribe: dict[str, Callable[[], None]] = {}
        self._ask: Ask | None = None
        self._home = home
        self._readings = {
            source.name: _Reading(source, patience, partial(self._take, source.name), self._report_news)
            for source in sources
        }
        self._readings[home].take(hub)

    def _take(self, name: str, hub: Hub) -> None:
        """Let a new hub take part: it asks and wakes as the others do."""
        hub.inbox, hub.source = self, name
        if self._ask is not None:
            hub.ask_by(self._ask)
        if (end := self._unsubscribe.pop(name, None)) is not None:
            end()
        if self._wakes:
            self._listen(name, hub)

    def _listen(self, name: str, hub: Hub) -> None:
        if name not in self._unsubscribe and (end := hub.subscribe(self._wake)) is not None:
            self._unsubscribe[name] = end

    def _report_news(self) -> None:
        """Wake who shows the requests: those of a source are known only now, or have gone."""
        self._news += 1
        self._wake()

    def _wake(self) -> None:
        for wake in tuple(self._wakes):
            wake()

    @property
    def home(self) -> Hub:
        """See `Inbox.home`."""
        return self.hub_of(self._home)

    def hub_of(self, source: str) -> Hub:
        """See `Inbox.hub_of`."""
        reading = self._readings[source or self._home]
        if reading.hub is None:
            why = reading.problem or "it is not connected yet"
            raise StoreUnusable(f"source {source!r} is unavailable: {why}", "it is tried again by itself")
        return reading.hub

    async def waiting(self, limit: int) -> tuple[Waiting, ...]:
        """See `Inbox.waiting`."""
        tasks = [task for reading in self._readings.values() if (task := reading.begin(limit)) is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=self._patience)
        rows = [row for reading in self._readings.values() for row in reading.rows]
        rows.sort(key=lambda row: row.thread.waiting_since or row.thread.updated_at)
        return tuple(rows[:limit])

    def sources(self) -> tuple[SourceState, ...]:
        """See `Inbox.sources`."""
        return tuple(reading.state for reading in self._readings.values())

    def changes(self) -> object:
        """See `Inbox.changes`."""
        if any(reading.is_due for reading in self._readings.values()):
            return None
        seen: list[object] = [self._news]
        for reading in self._readings.values():
            if reading.hub is None or reading.problem:
                seen.append(None)
                continue
            change = reading.hub.changes()
            if change is None or reading.is_moved:
                return None
            seen.append(change)
        return tuple(seen)

    def subscribe(self, wake: Callable[[], object]) -> Callable[[], None] | None:
        """See `Inbox.subscribe`."""
        self._wakes.append(wake)
        for name, reading in self._readings.items():
            if reading.hub is not None:
                self._listen(name, reading.hub)

        def end() -> None:
            self._wakes.remove(wake)
            while not self._wakes and self._unsubscribe:
                self._unsubscribe.popitem()[1]()

        return end

    def now(self) -> int:
        """See `Inbox.now`; by the clock of the home store."""
        return self.home.now()

    def ask_by(self, ask: Ask) -> None:
        """See `Inbox.ask_by`."""
        self._ask = ask
        for reading in self._readings.values():
            if reading.hub is not None:
                reading.hub.ask_by(ask)

    async def close(self) -> tuple[str, ...]:
        """See `Inbox.close`."""
        lost = await asyncio.gather(*(reading.close() for reading in self._readings.values()))
        return tuple(sentence for sentences in lost for sentence in sentences)


def _identity(file: Path | None) -> tuple[int, int] | None:
    """Return what tells a file from another one of its name; None without a file."""
    if file is None:
        return None
    try:
        facts = os.stat(file)
    except OSError:
        return 0, 0
    return facts.st_dev, facts.st_ino
