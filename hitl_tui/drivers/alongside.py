"""What goes on beside the runs of an open thread: other processes, deadlines, the file of its graph."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hitl_tui.drivers.deadlines import Deadlines
from hitl_tui.drivers.graph_file import BuildGraph, GraphFile, follow_file
from hitl_tui.drivers.watching import Watcher
from hitl_tui.engine.log.events import Event
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.thread.session import Session


class Alongside:
    """Everything that follows one thread while it is open; made and used on the engine's thread."""

    def __init__(
        self,
        session: Session,
        store: Store,
        *,
        tell: Callable[[Event], None],
        resync: Callable[[], None],
        busy: Callable[[], bool],
        inside: Callable[[], bool],
        expire: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self.deadlines = Deadlines(session, expire)
        self._session = session
        self._tell = tell
        self.watcher = Watcher(session, store, tell=tell, resync=resync, busy=busy, inside=inside)
        self.graph_file: GraphFile | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Look once, and from then on again and again."""
        self.watcher.look()
        self.deadlines.watch()
        self.deadlines.apply_due()
        self._tasks.append(asyncio.get_running_loop().create_task(self.watcher.follow()))

    def follow_graph_file(self, build: BuildGraph | None) -> None:
        """Look at the file of the graph, too, from now on, where it has one that can be loaded again."""
        if self.graph_file is None:
            self.graph_file = follow_file(self._session, build, self._tell)
            if self.graph_file is not None:
                self._tasks.append(asyncio.get_running_loop().create_task(self.graph_file.follow()))

    def end(self) -> None:
        """Look no longer."""
        self.deadlines.stop()
        for task in self._tasks:
            task.cancel()

    @property
    def holder(self) -> str:
        """Which other process runs the thread, "" for none."""
        return self.watcher.holder

    @property
    def graph_changed(self) -> tuple[str, ...] | None:
        """What differs since the file of the graph was saved, None while it wasn't."""
        return self.graph_file.changed if self.graph_file else None
