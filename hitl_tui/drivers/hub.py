"""The local hub: opens threads of one store, each with its own driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hitl_tui.drivers.graph_file import BuildGraph
from hitl_tui.drivers.local import LocalDriver, Observe, Unbuilt, denied_to, only_reading, refusing_all
from hitl_tui.drivers.nested import SubgraphRuns
from hitl_tui.drivers.protocol import Driver, Inbox, SourceState, StoredItem
from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.log.jobs import AtWork
from hitl_tui.engine.log.signing import Signer
from hitl_tui.engine.log.store import Store, new_thread_id
from hitl_tui.engine.log.threads import ThreadInfo, ThreadSummary, Waiting
from hitl_tui.engine.thread.agent_settings import fresh_agents
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError, UnknownThread, UsageError
from hitl_tui.loading.modules import one_loads
from hitl_tui.loading.trust import Ask, NotTrusted, Question

if TYPE_CHECKING:
    from hitl_tui.drivers.decided import DecisionFilter, DecisionSearch
    from hitl_tui.drivers.measured import Reviews
    from hitl_tui.engine.log.records import LedgerEntry
    from hitl_tui.engine.log.threads import Space, ThreadSize
    from hitl_tui.engine.runner import GraphRunner
    from hitl_tui.loading.known import KnownGraph, KnownGraphs
    from hitl_tui.stores.deletion import DeletionPlan, Retention, Watch

_DELETED_AT_ONCE: Final = 50
"""Threads that are deleted between two checks whether to continue."""


class LocalHub:
    """Drivers by thread; an opened driver stays active in the background until the hub closes.

    Args:
        store: the store of the threads.
        build: builds a thread's graph from its record (`ThreadInfo.source`).
        unbuilt: returns why a thread whose graph can't be built can only be viewed.
        signer: signs decisions.
        known: the graphs from which threads can be started; None for none.
        observe: as for `LocalDriver`.
        asks: a person may agree to run graphs that are not trusted yet.
        guest: the database login that a guest in another person's account needs to delete threads; None for
            the account's owner.
        read_only: why all threads are read-only, "" if they are not. Nothing is built then.

    Attributes:
        never: what its threads without a graph can't take either, by verb, with the reason.
        inbox, source: see `Hub`.
    """

    never: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        store: Store,
        build: BuildGraph,
        unbuilt: Unbuilt | None = None,
        signer: Signer | None = None,
        known: KnownGraphs | None = None,
        *,
        observe: Observe | None = None,
        asks: bool = True,
        guest: str | None = None,
        read_only: str = "",
    ) -> None:
        self.inbox: Inbox = self
        self.source = ""
        self._store = store
        self._asks = asks
        self._guest = guest
        self._read_only = read_only or store.why_read_only
        self._denied: Mapping[str, str] | None = None
        self._build = build
        self._unbuilt = unbuilt
        self._signer = signer
        self._known = known
        self._observe = observe
        self._drivers: dict[str, LocalDriver] = {}
        self._lent: dict[str, LocalDriver] = {}
        self._subgraph_runs = SubgraphRuns()
        self._ask_person: Ask | None = None
        self._upkeep: set[asyncio.Task[str]] = set()
        self._shutting: set[asyncio.Task[str]] = set()
        """Drivers that are being closed: the store stays open for what they still commit."""
        self._closing = False

    def ask_by(self, ask: Ask) -> None:
        """Set how a person is asked, on this event loop, before an untrusted graph is built."""
        loop = asyncio.get_running_loop()

        async def from_engine(question: Question) -> bool:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_asked(ask, question), loop))

        if self._asks:
            self._ask_person = from_engine

    async def _ask(self, question: Question) -> bool | None:
        return None if self._ask_person is None else await self._ask_person(question)

    async def threads(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> tuple[ThreadSummary, ...]:
        """Return threads of the store by last change, newest first; see `Store.threads`."""
        return tuple(
            await asyncio.to_thread(self._store.threads, query, limit, after, within, waiting=waiting)
        )

    async def waiting(self, limit: int) -> tuple[Waiting, ...]:
        """See `Inbox.waiting`."""
        return tuple(await asyncio.to_thread(self._store.waiting, limit))

    def sources(self) -> tuple[SourceState, ...]:
        """See `Inbox.sources`."""
        return ()

    def hub_of(self, source: str) -> LocalHub:
        """See `Inbox.hub_of`."""
        return self

    @property
    def home(self) -> LocalHub:
        """See `Inbox.home`."""
        return self

    def changes(self) -> object:
        """See `Inbox.changes`."""
        return self._store.changes()

    def subscribe(self, wake: Callable[[], object]) -> Callable[[], None] | None:
        """See `Inbox.subscribe`."""
        return self._store.subscribe(wake)

    def now(self) -> int:
        """See `Inbox.now`."""
        return self._store.now()

    async def open(self, thread_id: str, *, at_once: bool = False) -> Driver:
        """Return the driver of a thread in the store, as its log has it; its graph is built when it is run.

        `at_once` is not used here: nothing has to be copied first.

        Raises:
            UnknownThread: there is no such thread.
        """
        return await self._open(thread_id)

    async def look_at(self, thread_id: str) -> Driver:
        """Return a driver that only views a thread: none of it is ever built."""
        return await self._open(thread_id, "it was opened to be looked at")

    @asynccontextmanager
    async def borrow(self, thread_id: str, *, look: bool = False) -> AsyncIterator[Driver]:
        """See `Hub.borrow`."""
        opened = await self._opened(self._drivers, thread_id) or await self._opened(self._lent, thread_id)
        if opened is not None:
            yield opened
            return
        driver = await self._recorded(thread_id, "it was opened to be looked at" if look else "")
        if not look:
            self._lent[thread_id] = driver
        try:
            yield driver
        finally:
            # If somebody opened it meanwhile, it stays open.
            if look or self._lent.pop(thread_id, None) is driver:
                await self._shut(driver)

    async def _shut(self, driver: LocalDriver) -> None:
        """Close a driver completely, even if the caller is cancelled meanwhile."""
        closing = asyncio.create_task(driver.close())
        self._shutting.add(closing)
        closing.add_done_callback(self._shutting.discard)
        await asyncio.shield(closing)

    async def _open(self, thread_id: str, read_only_reason: str = "") -> Driver:
        if await self._opened(self._lent, thread_id) is not None:
            self._drivers[thread_id] = self._lent.pop(thread_id)
        opened = await self._opened(self._drivers, thread_id)
        if opened is None:
            driver = await self._recorded(thread_id, read_only_reason)
            return self._drivers.setdefault(thread_id, driver)
        return opened

    async def _opened(self, drivers: dict[str, LocalDriver], thread_id: str) -> LocalDriver | None:
        """Return the driver of an open thread; that of a thread that has lost its name is closed."""
        driver = drivers.get(thread_id)
        if driver is None or not driver.birth:
            return driver
        info = await asyncio.to_thread(self._store.info, thread_id)
        if info is None or info.birth == driver.birth:
            return driver
        if drivers.get(thread_id) is driver:
            del drivers[thread_id]
        await self._shut(driver)
        return None

    async def _recorded(self, thread_id: str, read_only_reason: str) -> LocalDriver:
        """Return a driver of a thread in the store."""
        if await asyncio.to_thread(self._store.info, thread_id) is None:
            raise UnknownThread(f"there is no thread {thread_id!r}", "see `hitl-tui threads`")
        if self._denied is None:
            self._denied = denied_to(await asyncio.to_thread(self._store.rights))
        return self._reading(thread_id, read_only_reason)

    def _reading(
        self, thread_id: str, read_only_reason: str, make: Callable[..., LocalDriver] = LocalDriver
    ) -> LocalDriver:
        """Return a driver of a thread as its log has it.

        `read_only_reason` is why it may not be run, "" if it may. `make` makes it from the arguments of
        `LocalDriver`.
        """
        if self._read_only:
            refusals = refusing_all(self._read_only)
        else:
            refusals = {**only_reading(read_only_reason), **self.never} if read_only_reason else {}
        return self._driver(
            thread_id, lambda: Session.recorded(self._store, thread_id, signer=self._signer), refusals, make
        )

    def decisions(self, wanted: DecisionFilter) -> DecisionSearch:
        """See `Hub.decisions`."""
        from hitl_tui.drivers.decided import DecisionSearch

        return DecisionSearch(self._store, wanted)

    async def reviews(self) -> Reviews:
        """See `Hub.reviews`."""
        from hitl_tui.drivers.measured import reviews

        return await asyncio.to_thread(reviews, self._store)

    async def deleted(self, newest: int) -> tuple[LedgerEntry, ...]:
        """See `Hub.deleted`."""
        return tuple(await asyncio.to_thread(self._store.store_ledger, newest))

    @property
    def upkeep_refusal(self) -> str:
        """See `Hub.upkeep_refusal`."""
        return self._read_only

    async def _refuse_upkeep(self) -> None:
        why = self.upkeep_refusal
        if not why and not await asyncio.to_thread(self._store.may_delete, self._guest):
            owner = self._guest is None
            who = f"{self._store.login!r}" if owner else f"guest {self._guest!r}"
            why = f"{who} is no login of the database that is a hitl_operator or owns the store"
        if why:
            raise UsageError("threads can't be deleted from this store here", why)

    async def plan_deletion(
        self,
        what: Sequence[str] | Retention,
        *,
        force: bool = False,
        spared: str = "",
        together: bool = False,
        forks: bool = True,
        watch: Watch | None = None,
    ) -> DeletionPlan:
        """See `Hub.plan_deletion`."""
        from hitl_tui.stores.deletion import DeletionPlan, Retention, leaving, plan_deletion, prunable

        await self._refuse_upkeep()

        def plan() -> DeletionPlan:
            if isinstance(what, Retention):
                now = self._store.now()
                return prunable(self._store, what, now, force=force, watch=watch, spared=spared)
            if together:
                return DeletionPlan(tuple(leaving(self._store, what, forks=forks, force=force)), force=force)
            return plan_deletion(self._store, what, force=force, spared=spared)

        return await asyncio.to_thread(plan)

    async def delete(
        self,
        plan: DeletionPlan,
        *,
        actor: str | None,
        note: str | None,
        on_batch: Callable[[Sequence[LedgerEntry]], bool],
        alone: bool = False,
    ) -> int:
        """See `Hub.delete`; open threads are closed first."""
        from hitl_tui.stores.deletion import delete_in_batches

        await self._refuse_upkeep()
        for thread in plan.going:
            if (driver := self._drivers.pop(thread.thread_id, None)) is not None:
                await self._shut(driver)

        batches = delete_in_batches(
            self._store, plan.going, actor=actor, note=note, at=self._store.now(),
            why=plan.rule, force=plan.force, at_once=None if alone else _DELETED_AT_ONCE,
        )  # fmt: skip
        gone = 0

        def goes_on(batch: list[LedgerEntry]) -> bool:
            nonlocal gone
            gone += len(batch)
            return on_batch(batch) and not self._closing

        def delete() -> str:
            for batch in batches:
                if not goes_on(batch):
                    break
            return f"{gone:,} of {len(plan.going):,} threads that were to be deleted are gone"

        if not alone:
            await self._keep_up(delete)
            return gone
        for batch in batches:
            if not goes_on(batch):
                break
            await asyncio.sleep(0)  # a signal to end may end it here
        return gone

    async def _keep_up(self, work: Callable[[], str]) -> None:
        """Change the store in a thread: `close` waits for it, and reports that it had to wait."""
        task = asyncio.create_task(asyncio.to_thread(work))
        self._upkeep.add(task)
        try:
            await asyncio.shield(task)
        finally:
            if task.done():
                self._upkeep.discard(task)

    async def sizes(self, watch: Watch | None = None) -> tuple[tuple[ThreadSize, ...], Space]:
        """See `Hub.sizes`."""
        from hitl_tui.stores.deletion import sizes

        return await asyncio.to_thread(lambda: (tuple(sizes(self._store, watch)), self._store.space()))

    async def space(self) -> Space:
        """See `Hub.space`."""
        return await asyncio.to_thread(self._store.space)

    async def vacuum(self) -> tuple[Space, Space]:
        """See `Hub.vacuum`."""
        await self._refuse_upkeep()
        spaces: list[Space] = []

        def vacuum() -> str:
            spaces.extend((self._store.space(), self._store.vacuum()))
            return "what was free in the store was given back"

        await self._keep_up(vacuum)
        return spaces[0], spaces[1]

    async def _graph_of(self, info: ThreadInfo) -> CompiledGraph:
        """Return the graph of a thread; for a subgraph's thread that of its owner, if that is open."""
        owner = self._drivers.get(info.owner.thread_id) if info.owner else None
        if owner is not None and info.owner is not None:
            inside = await owner.graph_inside(info.owner.node)
            if inside is not None:
                return inside
        return (await asyncio.to_thread(self._built, info)).graph

    def _built(self, info: ThreadInfo) -> GraphRunner:
        with one_loads:
            return self._build(info)

    async def new(
        self,
        thread_id: str,
        runner: GraphRunner,
        *,
        source: Mapping[str, Any] | None = None,
        actor: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Driver:
        """Return the driver of a thread of a given graph: an existing thread, or one that its input creates.

        `source` says how another process builds the graph; it is kept with the thread. `context` is that
        of a new thread's first invocation.
        """
        if (opened := await self._opened(self._drivers, thread_id)) is not None:
            return opened
        self._refuse_reading()

        def prepare() -> Session:
            graph, store = runner.graph, self._store
            if store.info(thread_id) is not None:
                return Session.open(graph, store, thread_id, signer=self._signer)
            return Session.new(
                graph,
                store,
                thread_id,
                source=source,
                actor=actor,
                agents=fresh_agents(graph),
                signer=self._signer,
                context=context,
            )

        driver = self._drivers[thread_id] = self._driver(thread_id, prepare)
        return driver

    def _refuse_reading(self) -> None:
        if self._read_only:
            raise UsageError("threads are read-only here", self._read_only)

    def adopt(self, driver: LocalDriver) -> None:
        """Keep a driver that somebody else made, by its thread."""
        self._drivers[driver.thread_id] = driver

    @property
    def no_agents(self) -> str:
        """See `Hub.no_agents`."""
        return ""

    @property
    def no_items(self) -> str:
        """See `Hub.no_items`."""
        return "graphs of our own keep everything in their threads"

    async def items(self, prefix: Sequence[str], query: str, limit: int) -> tuple[StoredItem, ...]:
        """See `Hub.items`."""
        raise UsageError("there is no store of items", self.no_items)

    @property
    def no_workers(self) -> str:
        """See `Hub.no_workers`."""
        return "" if self._store.jobs() is not None else "only a store in PostgreSQL has workers"

    async def at_work(self, limit: int) -> AtWork:
        """See `Hub.at_work`."""
        jobs = self._store.jobs()
        if jobs is None:
            raise UsageError("there are no workers here", self.no_workers)
        return await asyncio.to_thread(jobs.at_work, limit)

    async def known_graphs(self) -> tuple[KnownGraph, ...]:
        """See `Hub.known_graphs`."""
        return await asyncio.to_thread(self._known.list) if self._known else ()

    async def start(self, graph: KnownGraph, actor: str | None) -> Driver:
        """See `Hub.start`."""
        self._refuse_reading()
        try:
            runner = await asyncio.to_thread(self._start, graph)
        except NotTrusted as error:
            if not await self._ask(error.question):
                raise
            error.question.agree()
            runner = await asyncio.to_thread(self._start, graph)
        thread_id = await asyncio.to_thread(new_thread_id, self._store, runner.graph.name)
        return await self.new(thread_id, runner, source=runner.source, actor=actor)

    def _start(self, graph: KnownGraph) -> GraphRunner:
        assert self._known is not None
        with one_loads:
            return self._known.build(graph.source)

    async def close(self) -> tuple[str, ...]:
        """Close all drivers; returns what was not committed, a sentence for each thread concerned.

        A deletion ends after the current batch, and a vacuum when it is done; their results are reported,
        too.
        """
        self._closing = True
        lost = []
        while self._upkeep:
            try:
                lost.append(await self._upkeep.pop())
            except HitlError as error:
                lost.append(error.message)
        lost += [await driver.close() for driver in (*self._drivers.values(), *self._lent.values())]
        lost += await asyncio.gather(*self._shutting)
        self._drivers.clear()
        self._lent.clear()
        self._store.close()
        return tuple(sentence for sentence in lost if sentence)

    def _driver(
        self,
        thread_id: str,
        open_session: Callable[[], Session],
        refusals: Mapping[str, str] | None = None,
        make: Callable[..., LocalDriver] = LocalDriver,
    ) -> LocalDriver:
        return make(
            thread_id,
            open_session,
            self._store,
            graph_of=self._graph_of,
            ask=self._ask,
            build=self._build,
            subgraph_runs=self._subgraph_runs,
            unbuilt=self._unbuilt,
            refusals=refusals,
            denied=self._denied,
            observe=self._observe,
        )


async def _asked(ask: Ask, question: Question) -> bool:
    return await ask(question)
