"""The hub of a LangGraph graph: lists the threads of its checkpointer and opens them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.langgraph.driver import LangGraphDriver
from hitl_tui.drivers.langgraph.mirror import Mirror, their_thread
from hitl_tui.drivers.langgraph.pregel import App
from hitl_tui.drivers.local import Observe
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.log.signing import Signer
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.errors import UnknownThread, UsageError


class LangGraphHub(LocalHub):
    """Drivers of the threads of one compiled graph, over their mirror.

    Args:
        graph: the compiled graph, with its checkpointer.
        store: the mirror; it is closed with the hub.
        name: what the graph is called.
        source: how it is loaded again (`ThreadInfo.source`).
        signer, observe: as for `LocalHub`.
        refusals: what its threads can't be told, and why, by verb.
    """

    def __init__(
        self,
        graph: Any,
        store: Store,
        *,
        name: str,
        source: Mapping[str, Any] | None = None,
        signer: Signer | None = None,
        observe: Observe | None = None,
        refusals: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(store, _no_builder, signer=signer, observe=observe)
        self._refusals = refusals
        self.mirror = Mirror(App(graph), store, name, source or {}, signer=signer)

    async def open(self, thread_id: str) -> Driver:
        """The driver of a thread, of theirs by its id or of a line of it.

        Raises:
            UnknownThread: there is no such thread, here or there.
        """
        if thread_id in self._drivers:
            return self._drivers[thread_id]
        leaves = await self._sync(thread_id)
        if thread_id not in leaves:
            raise UnknownThread(f"there is no thread {thread_id!r}", "see `hitl-tui threads`")
        return self._opened(thread_id, leaves[thread_id], max(leaves.values()))

    async def begin(self, thread_id: str, actor: str | None = None) -> Driver:
        """The driver of a thread that is there, or of a new one that its first input creates."""
        try:
            return await self.open(thread_id)
        except UnknownThread:
            return self._opened(thread_id, "", "", actor)

    async def _sync(self, thread_id: str) -> Mapping[str, str]:
        info = self._store.info(thread_id)
        return await self.mirror.sync(thread_id if info is None else their_thread(info))

    def _opened(self, thread_id: str, leaf: str, newest: str, actor: str | None = None) -> LangGraphDriver:
        driver = LangGraphDriver(
            thread_id,
            self.mirror,
            leaf,
            newest,
            actor=actor,
            subgraph_runs=self._subgraph_runs,
            observe=self._observe,
            refusals=self._refusals,
        )
        self._drivers[thread_id] = driver
        return driver

    async def close(self) -> tuple[str, ...]:
        """Close all drivers; what was not committed, a sentence for each thread concerned."""
        told = await super().close()
        self.mirror.app.close()
        return told


def _no_builder(info: ThreadInfo) -> GraphRunner:
    raise UsageError(f"the graph of thread {info.thread_id!r} is LangGraph's", "it is not built again")
