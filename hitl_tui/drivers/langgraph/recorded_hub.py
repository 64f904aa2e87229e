"""The hub of a file of checkpoints: lists what is in it, and mirrors a thread once somebody looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.langgraph.discovery import outdated, thread_heads, thread_named
from hitl_tui.drivers.langgraph.listing import ThreadListing
from hitl_tui.drivers.langgraph.mirror import Mirror
from hitl_tui.drivers.langgraph.pregel import App
from hitl_tui.drivers.langgraph.recorded import Checkpoints
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadSummary, Waiting


class RecordedThreads:
    """The threads of a file, each on the graph that its rows tell, and their mirror.

    Attributes:
        listing: they, page by page.

    Args:
        checkpoints: the file.
        store: where they are mirrored.
    """

    def __init__(self, checkpoints: Checkpoints, store: Store) -> None:
        self._checkpoints = checkpoints
        self._store = store
        self.listing = ThreadListing(store, checkpoints.saver, self._lend, checkpoints.asked)

    async def sync(self, name: str) -> bool:
        """Bring the mirror of one thread up to date, of theirs or of a line of it; False where none is."""
        thread = thread_named(self._store, name)
        head = (await thread_heads(self._checkpoints.saver)).get(thread)
        if head is None:
            return False
        await self._sync({thread: head})
        return True

    async def sync_all(self, tell: Callable[[int, int], object]) -> None:
        """Bring the mirror of every thread that has moved up to date.

        Args:
            tell: called with how many of how many threads are done.
        """
        await self._sync(await thread_heads(self._checkpoints.saver), tell)

    async def _sync(
        self, heads: Mapping[str, str], tell: Callable[[int, int], object] = lambda done, total: None
    ) -> None:
        moved = outdated(self._store, heads)
        for done, thread in enumerate(moved):
            tell(done, len(moved))
            with self._lend(thread) as mirror:
                await mirror.sync(thread)

    @contextmanager
    def _lend(self, thread: str) -> Iterator[Mirror]:
        app = App(self._checkpoints.graph(thread))
        try:
            yield Mirror(app, self._store, self._checkpoints.path.stem, {})
        finally:
            app.close()


class RecordedHub(LocalHub):
    """Drivers of the threads of a file of checkpoints, whose graph isn't there.

    Args:
        threads: of the file.
        given: as for `LocalHub`.
    """

    def __init__(self, threads: RecordedThreads, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._recorded_threads = threads

    async def threads(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> tuple[ThreadSummary, ...]:
        """See `Hub.threads`; those that nobody has looked at here, too, but among what waits."""
        if within or waiting:
            return await super().threads(query, limit, after, within, waiting=waiting)
        return await self._recorded_threads.listing.page(query, limit, after, within)

    async def waiting(self, limit: int) -> tuple[Waiting, ...]:
        """See `Hub.waiting`."""
        await self._recorded_threads.listing.mirror_waiting()
        return await super().waiting(limit)

    async def _recorded(self, thread_id: str, why_not: str) -> LocalDriver:
        await self._recorded_threads.sync(thread_id)
        return await super()._recorded(thread_id, why_not)
