"""The hub of a checkpoint file: lists its threads, and mirrors a thread when somebody views it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.langgraph.audit import compare
from hitl_tui.drivers.langgraph.discovery import outdated, thread_heads, thread_named
from hitl_tui.drivers.langgraph.driver import NO_TEST
from hitl_tui.drivers.langgraph.listing import ThreadListing
from hitl_tui.drivers.langgraph.mirror import Mirror
from hitl_tui.drivers.langgraph.pregel import App
from hitl_tui.drivers.langgraph.recorded import Checkpoints
from hitl_tui.drivers.langgraph.sizes import UPKEEP_REFUSAL, sizes_of, space_of
from hitl_tui.drivers.langgraph.window import Window, newest_page
from hitl_tui.drivers.langgraph.window_driver import Mirroring, WindowDriver
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadSummary, Waiting
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from hitl_tui.engine.audit.findings import Mismatch
    from hitl_tui.engine.log.threads import Space, ThreadSize
    from hitl_tui.stores.deletion import Watch


class RecordedThreads:
    """The threads of a file and their mirrors, each with a graph reconstructed from its rows.

    Attributes:
        listing: the threads, page by page.

    Args:
        checkpoints: the file.
        store: the mirror of the threads.
    """

    def __init__(self, checkpoints: Checkpoints, store: Store) -> None:
        self._checkpoints = checkpoints
        self._store = store
        self.listing = ThreadListing(store, checkpoints.saver, self._lend, checkpoints.asked)

    async def sync(self, name: str) -> bool:
        """Bring the mirror of a LangGraph thread or one of its lines up to date; False if there is none."""
        thread = thread_named(self._store, name)
        head = (await thread_heads(self._checkpoints.saver)).get(thread)
        if head is None:
            return False
        await self._sync({thread: head})
        return True

    async def sync_all(self, on_progress: Callable[[int, int], object]) -> None:
        """Bring the mirror of every moved thread up to date.

        Args:
            on_progress: called with the number of threads done and the number of all.
        """
        await self._sync(await thread_heads(self._checkpoints.saver), on_progress)

    async def _sync(
        self, heads: Mapping[str, str], on_progress: Callable[[int, int], object] = lambda done, total: None
    ) -> None:
        moved = outdated(self._store, heads)
        for done, thread in enumerate(moved):
            on_progress(done, len(moved))
            with self._lend(thread) as mirror:
                await mirror.sync(thread)

    async def compare(self, name: str) -> tuple[Mismatch, ...]:
        """Return the differences between a mirrored thread and the file.

        A subgraph's thread is not compared: a file does not say which graph it belongs to.

        Raises:
            UsageError: it is a subgraph's thread.
            UnknownThread: it is not mirrored.
        """
        info = self._store.info(name)
        if info is not None and info.owner is not None:
            raise UsageError("it runs inside another thread", "export that one, or name the graph")
        with self._lend(thread_named(self._store, name)) as mirror:
            return await compare(mirror, name)

    async def sizes(self, watch: Watch | None = None) -> tuple[tuple[ThreadSize, ...], Space]:
        """See `Hub.sizes`; measured in the file."""
        saver = self._checkpoints.saver
        return tuple(await sizes_of(saver, self._store, watch=watch)), await space_of(saver)

    async def long_thread(self, thread: str) -> tuple[Mirror, Window] | None:
        """Return a LangGraph thread's mirror and its newest page; None if the thread needs no page.

        The caller must close the mirror's graph.
        """
        if thread not in await thread_heads(self._checkpoints.saver):
            return None
        mirror = self._mirror(thread)
        window = await newest_page(mirror, thread)
        if window is None:
            mirror.app.close()
            return None
        return mirror, window

    def _mirror(self, thread: str) -> Mirror:
        return Mirror(App(self._checkpoints.graph(thread)), self._store, self._checkpoints.path.stem, {})

    @contextmanager
    def _lend(self, thread: str) -> Iterator[Mirror]:
        mirror = self._mirror(thread)
        try:
            yield mirror
        finally:
            mirror.app.close()


class RecordedHub(LocalHub):
    """Drivers of the threads of a checkpoint file whose graph is missing.

    Args:
        threads: the threads of the file.
        given: as for `LocalHub`.
    """

    never: ClassVar[Mapping[str, str]] = {"write_test": NO_TEST}

    def __init__(self, threads: RecordedThreads, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._recorded_threads = threads
        self._mirroring = Mirroring()
        self._lent_mirrors: list[Mirror] = []

    async def threads(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> tuple[ThreadSummary, ...]:
        """See `Hub.threads`; includes threads not opened here yet, except in the queue."""
        if within or waiting:
            return await super().threads(query, limit, after, within, waiting=waiting)
        return await self._recorded_threads.listing.page(query, limit, after, within)

    async def waiting(self, limit: int) -> tuple[Waiting, ...]:
        """See `Inbox.waiting`."""
        listing = self._recorded_threads.listing
        await listing.mirror_waiting()
        return await listing.still_there(await super().waiting(limit), ())

    async def open(self, thread_id: str, *, at_once: bool = False) -> Driver:
        """Open a LangGraph thread by its id, or one of its lines.

        Args:
            at_once: show the newest page of a long thread while it is mirrored.

        Raises:
            UnknownThread: there is no such thread.
        """
        if not at_once or thread_id in self._drivers or thread_named(self._store, thread_id) != thread_id:
            return await super().open(thread_id)
        if (long := await self._recorded_threads.long_thread(thread_id)) is None:
            return await super().open(thread_id)
        mirror, window = long
        self._lent_mirrors.append(mirror)
        driver = self._reading(thread_id, "", partial(WindowDriver, window=window))
        assert isinstance(driver, WindowDriver)
        self._drivers[thread_id] = driver
        self._mirroring.begin(driver, mirror)
        return driver

    async def sizes(self, watch: Watch | None = None) -> tuple[tuple[ThreadSize, ...], Space]:
        """See `Hub.sizes`."""
        return await self._recorded_threads.sizes(watch)

    async def space(self) -> Space:
        """See `Hub.space`."""
        return (await self.sizes())[1]

    @property
    def upkeep_refusal(self) -> str:
        """See `Hub.upkeep_refusal`."""
        return UPKEEP_REFUSAL

    @property
    def no_agents(self) -> str:
        """See `Hub.no_agents`."""
        return "a file of checkpoints says nothing of agents"

    @property
    def no_items(self) -> str:
        """See `Hub.no_items`."""
        return "a graph's store of items is not in the file of its checkpoints"

    async def close(self) -> tuple[str, ...]:
        """See `LocalHub.close`; mirroring stops where it is."""
        await asyncio.to_thread(self._mirroring.end)
        lost = await super().close()
        for mirror in self._lent_mirrors:
            mirror.app.close()
        return lost

    async def _recorded(self, thread_id: str, read_only_reason: str) -> LocalDriver:
        await self._recorded_threads.sync(thread_id)
        return await super()._recorded(thread_id, read_only_reason)
