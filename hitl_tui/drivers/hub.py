"""The local hub: opens threads of one store, each with a driver of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from hitl_tui.drivers.below import Below
from hitl_tui.drivers.graph_file import BuildGraph
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.drivers.protocol import Driver
from hitl_tui.drivers.recorded import RecordedDriver
from hitl_tui.engine.graphs.compiled import CompiledGraph
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo, ThreadSummary
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.thread.agent_settings import fresh_agents
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import GraphInvalid, HitlError, UnknownThread, UsageError

log = logging.getLogger(__name__)
WithoutGraph = Callable[[str, HitlError], str]


class LocalHub:
    """Drivers by thread; a driver that was opened goes on in the background until the hub closes.

    Args:
        store: where the threads live.
        build: makes a thread's graph again from its record (`ThreadInfo.source`).
        without_graph: says of a thread whose graph can't be built why it can only be looked at: it is
            opened as its log has it.  None refuses to open it.
    """

    def __init__(self, store: Store, build: BuildGraph, without_graph: WithoutGraph | None = None) -> None:
        self._store = store
        self._build = build
        self._without_graph = without_graph
        self._drivers: dict[str, LocalDriver] = {}
        self._below = Below()

    async def threads(
        self,
        query: str = "",
        limit: int = 50,
        offset: int = 0,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> tuple[ThreadSummary, ...]:
        """Threads of the store by last change, newest first; the rest as for `Store.threads`."""
        return tuple(
            await asyncio.to_thread(self._store.threads, query, limit, offset, within, waiting=waiting)
        )

    async def open(self, thread_id: str) -> Driver:
        """The driver of a thread that is in the store.

        Raises:
            UnknownThread: there is no such thread.
            GraphInvalid, UsageError: its graph can't be built again.
        """
        if thread_id in self._drivers:
            return self._drivers[thread_id]
        info = await asyncio.to_thread(self._store.info, thread_id)
        if info is None:
            raise UnknownThread(f"there is no thread {thread_id!r}", "see `hitl-tui threads`")
        try:
            graph = await self._graph_of(info)
        except (GraphInvalid, UsageError) as error:
            if self._without_graph is None:
                raise
            log.warning("%s: %s\n%s", thread_id, error, error.details)
            return await self.open_recorded(thread_id, self._without_graph(thread_id, error))
        return self._add(thread_id, lambda: Session.open(graph, self._store, thread_id))

    async def _graph_of(self, info: ThreadInfo) -> CompiledGraph:
        """The graph of a thread; for the thread of a subgraph's run that of its owner, where that is open."""
        owner = self._drivers.get(info.owner.thread_id) if info.owner else None
        if owner is not None and info.owner is not None:
            inside = await owner.graph_inside(info.owner.node)
            if inside is not None:
                return inside
        return (await asyncio.to_thread(self._build, info)).graph

    async def open_recorded(self, thread_id: str, why: str) -> Driver:
        """The driver of a thread as its log has it, without its graph: for looking alone.

        Args:
            why: why nothing else can be done, in words.
        """
        info = await asyncio.to_thread(self._store.info, thread_id)
        if info is None:
            raise UnknownThread(f"there is no thread {thread_id!r}", "see `hitl-tui threads`")
        driver = self._drivers[thread_id] = RecordedDriver(
            self._store, info, why, self._build if self._without_graph else None, self._below
        )
        return driver

    async def new(
        self,
        thread_id: str,
        runner: GraphRunner,
        *,
        source: Mapping[str, Any] | None = None,
        actor: str | None = None,
    ) -> Driver:
        """The driver of a thread of a given graph: an existing one, or one that its first input creates.

        Args:
            source: how to build the graph again in another process, kept with the thread.
        """
        if thread_id in self._drivers:
            return self._drivers[thread_id]

        def prepare() -> Session:
            graph, store = runner.graph, self._store
            if store.info(thread_id) is not None:
                return Session.open(graph, store, thread_id)
            return Session.new(
                graph, store, thread_id, source=source, actor=actor, agents=fresh_agents(graph)
            )

        return self._add(thread_id, prepare)

    async def close(self) -> tuple[str, ...]:
        """Close all drivers; what was not committed, a sentence for each thread concerned."""
        lost = [await driver.close() for driver in self._drivers.values()]
        self._drivers.clear()
        self._store.close()
        return tuple(sentence for sentence in lost if sentence)

    def _add(self, thread_id: str, open_session: Callable[[], Session]) -> LocalDriver:
        driver = LocalDriver(thread_id, open_session, self._store, self._build, self._below)
        self._drivers[thread_id] = driver
        return driver
