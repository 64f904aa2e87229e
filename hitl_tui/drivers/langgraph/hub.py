"""The hub of a LangGraph graph: lists the threads of its checkpointer and opens them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.langgraph.audit import compare
from hitl_tui.drivers.langgraph.driver import NO_AGENTS, LangGraphDriver
from hitl_tui.drivers.langgraph.items import NO_STORE, find_items
from hitl_tui.drivers.langgraph.listing import listing_of
from hitl_tui.drivers.langgraph.mirror import Mirror, SubgraphRun, namespace_of, their_thread
from hitl_tui.drivers.langgraph.pregel import App
from hitl_tui.drivers.langgraph.run_context import checked, with_defaults
from hitl_tui.drivers.langgraph.server_names import SERVER, new_server_thread
from hitl_tui.drivers.langgraph.sizes import UPKEEP_REFUSAL, sizes_of, space_of
from hitl_tui.drivers.langgraph.window import Window, newest_page
from hitl_tui.drivers.langgraph.window_driver import Mirroring
from hitl_tui.drivers.local import LocalDriver, Observe
from hitl_tui.drivers.protocol import Driver, StoredItem
from hitl_tui.engine.log.signing import Signer
from hitl_tui.engine.log.store import Store, new_thread_id
from hitl_tui.engine.log.threads import ORIGIN, ThreadInfo, ThreadSummary, Waiting
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.errors import UnknownThread, UsageError
from hitl_tui.loading.known import KnownGraph

if TYPE_CHECKING:
    from hitl_tui.engine.audit.findings import Mismatch
    from hitl_tui.engine.log.threads import Space, ThreadSize
    from hitl_tui.stores.deletion import Watch


_IN_MEMORY: Final = (
    "the graph keeps this thread in memory: the thread and its requests are lost when this program ends"
)


class LangGraphHub(LocalHub):
    """Drivers of the threads of one compiled graph, over their mirror.

    Args:
        graph: the compiled graph, with its checkpointer.
        store: the mirror; it is closed with the hub.
        name: what the graph is called.
        source: how it is loaded again (`ThreadInfo.source`).
        signer, observe: as for `LocalHub`.
        streams: whether its models stream, as for `App`.
        ends_with_process: its checkpoints are in memory; a notice says so when a thread is opened.
        defaults: `context` and `configurable` that new threads begin with where nothing else is given.
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
        streams: bool | None = None,
        ends_with_process: bool = False,
        defaults: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    ) -> None:
        super().__init__(store, _no_builder, signer=signer, observe=observe)
        self.mirror = Mirror(App(graph, streams=streams), store, name, source or {}, signer=signer)
        self._mirroring = Mirroring()
        self._ends_with_process = ends_with_process
        self._defaults = defaults
        self._list = listing_of(self.mirror)

    async def threads(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> tuple[ThreadSummary, ...]:
        """See `Hub.threads`; those that nobody has opened here, too, but among what waits."""
        if within or waiting:
            return await super().threads(query, limit, after, within, waiting=waiting)
        return await self._list.page(query, limit, after, within, running=self._drivers)

    async def waiting(self, limit: int) -> tuple[Waiting, ...]:
        """See `Inbox.waiting`."""
        await self._list.mirror_waiting(running=self._drivers)
        return await self._list.still_there(await super().waiting(limit), self._drivers)

    async def open(self, thread_id: str, *, at_once: bool = False) -> Driver:
        """Open a LangGraph thread by its id, or one of its lines.

        Args:
            at_once: a long thread is shown by its newest page while it is mirrored; it is only looked at
                until then.

        Raises:
            UnknownThread: there is no such thread, here or there.
        """
        thread_id = self.mirror.thread_of_name(thread_id)
        if at_once and thread_id not in {*self._drivers, *self._lent}:
            info = self._store.info(thread_id)
            theirs = info is None or (info.owner is None and their_thread(info) == thread_id)
            if theirs and (window := await newest_page(self.mirror, thread_id)) is not None:
                driver = self._of_line(thread_id, window.leaf, window.leaf, window=window)
                self._drivers[thread_id] = driver
                self._mirroring.begin(driver, self.mirror)
                return driver
        return await self._open(thread_id)

    async def _recorded(self, thread_id: str, read_only_reason: str) -> LocalDriver:
        """A driver of a thread, of theirs by its id or of a line of it; not kept here."""
        if read_only_reason:
            return await super()._recorded(thread_id, read_only_reason)
        info = self._store.info(thread_id)
        mirror = self.mirror if info is None else self._mirror_of(info)
        if self._subgraph_runs.runner(thread_id) is not None:
            # It runs inside another one, which mirrors it.
            heads = self._store.checkpoints(thread_id, None, 1)
            leaf = heads[0].origin or "" if heads else ""
            return self._of_line(thread_id, leaf, leaf, mirror=mirror)
        leaves = await mirror.sync(thread_id if info is None else their_thread(info))
        if thread_id not in leaves:
            raise UnknownThread(f"there is no thread {thread_id!r}", "see `hitl-tui threads`")
        return self._of_line(thread_id, leaves[thread_id], max(leaves.values()), mirror=mirror)

    async def compare(self, thread_id: str) -> tuple[Mismatch, ...]:
        """Return the differences between a mirrored thread and the checkpointer.

        Raises:
            UnknownThread: it is not mirrored.
        """
        info = self._store.info(thread_id)
        mirror = self.mirror if info is None else self._mirror_of(info)
        return await compare(mirror, thread_id)

    def _mirror_of(self, info: ThreadInfo) -> Mirror:
        """What mirrors a thread: the graph's, or for the thread of a subgraph's run one of that.

        Raises:
            UsageError: the graph has no such subgraph any more.
        """
        if info.owner is None:
            return self.mirror
        owner = self._store.info(info.owner.thread_id)
        outer = self.mirror if owner is None else self._mirror_of(owner)
        if info.owner.node not in outer.opens:
            raise UsageError(
                f"the graph has no subgraph {info.owner.node!r} any more, in which {info.thread_id!r} ran",
                "give the graph as it was",
            )
        first = info
        while first.parent is not None and (parent := self._store.info(first.parent)) is not None:
            first = parent
        place = SubgraphRun(first.thread_id, info.owner, str(info.source[ORIGIN]))
        return outer.inside(info.owner.node, namespace_of(info), place)

    async def begin(
        self,
        thread_id: str,
        actor: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        at_once: bool = False,
    ) -> Driver:
        """Open an existing thread, or a new one that its first input creates.

        Args:
            context: what a new thread begins with besides that input.
            at_once: as for `open`.

        Raises:
            UsageError: the graph takes no such context.
        """
        thread_id = self.mirror.thread_of_name(thread_id)
        given = None if context is None else self._with_defaults(context)
        try:
            return await self.open(thread_id, at_once=at_once)
        except UnknownThread:
            return self._new_driver(thread_id, actor, self._with_defaults() if given is None else given)

    async def known_graphs(self) -> tuple[KnownGraph, ...]:
        """Return only the graph of these threads."""
        return (KnownGraph(self.mirror.info.name, "the graph of these threads", self.mirror.source),)

    async def start(self, graph: KnownGraph, actor: str | None) -> Driver:
        """See `Hub.start`."""
        return self._new_driver(await self._new_name(), actor, self._with_defaults())

    def _with_defaults(self, context: Mapping[str, Any] = MappingProxyType({})) -> Mapping[str, Any] | None:
        """Return the context of a new thread, None for none; raises what `begin` raises."""
        root = self.mirror.app.root
        merged = with_defaults(root, self._defaults, context)
        return checked(root, merged) if merged else None

    def _new_driver(
        self, thread_id: str, actor: str | None, context: Mapping[str, Any] | None = None
    ) -> Driver:
        driver = self._drivers[thread_id] = self._of_line(thread_id, "", "", actor, context=context)
        return driver

    async def _new_name(self) -> str:
        """Return a thread name that is unused on both sides."""
        if SERVER in self.mirror.source:
            return new_server_thread()
        while True:
            name = await asyncio.to_thread(new_thread_id, self._store, self.mirror.info.name)
            if not await self.mirror.sync(name):  # if somebody else took the name, the thread is mirrored now
                return name

    def _of_line(
        self,
        thread_id: str,
        leaf: str,
        newest: str,
        actor: str | None = None,
        *,
        mirror: Mirror | None = None,
        context: Mapping[str, Any] | None = None,
        window: Window | None = None,
    ) -> LangGraphDriver:
        if self._ends_with_process:
            (mirror or self.mirror).notice(thread_id, _IN_MEMORY)
        return LangGraphDriver(
            thread_id,
            (mirror or self.mirror).copy_for_run(),
            leaf,
            newest,
            actor=actor,
            context=context,
            subgraph_runs=self._subgraph_runs,
            observe=self._observe,
            window=window,
        )

    @property
    def upkeep_refusal(self) -> str:
        """See `Hub.upkeep_refusal`."""
        return UPKEEP_REFUSAL

    async def sizes(self, watch: Watch | None = None) -> tuple[tuple[ThreadSize, ...], Space]:
        """See `Hub.sizes`; as their checkpointer keeps them."""
        saver = self.mirror.app.root.checkpointer
        return tuple(await sizes_of(saver, self._store, watch=watch)), await self.space()

    async def space(self) -> Space:
        """See `Hub.space`; that of their checkpointer."""
        return await space_of(self.mirror.app.root.checkpointer)

    @property
    def no_agents(self) -> str:
        """See `Hub.no_agents`."""
        return NO_AGENTS

    @property
    def no_items(self) -> str:
        """See `Hub.no_items`."""
        return "" if self.mirror.app.root.store is not None else NO_STORE

    async def items(self, prefix: Sequence[str], query: str, limit: int) -> tuple[StoredItem, ...]:
        """See `Hub.items`."""
        if why := self.no_items:
            raise UsageError("there is no store of items", why)
        return await find_items(self.mirror.app.root.store, prefix, query, limit)

    async def close(self) -> tuple[str, ...]:
        """Close all drivers; what was not committed, a sentence for each thread concerned."""
        await asyncio.to_thread(self._mirroring.end)
        lost = await super().close()
        self.mirror.app.close()
        return lost


def _no_builder(info: ThreadInfo) -> GraphRunner:
    raise UsageError(f"the graph of thread {info.thread_id!r} is LangGraph's", "it can't be built again")
