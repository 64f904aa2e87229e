"""The local driver: runs a thread in this process, in a thread of its own (DESIGN, "The driver")."""

from __future__ import annotations

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias, TypeVar

from hitl_tui.drivers.breakpoints import Stops
from hitl_tui.drivers.buffer import EventBuffer
from hitl_tui.drivers.graph_file import BuildGraph, graph_notice
from hitl_tui.drivers.nested import Follower, Runner, SubgraphRuns
from hitl_tui.drivers.node_streams import tell_the_rest
from hitl_tui.drivers.protocol import (
    NO_BREAKPOINTS,
    Capabilities,
    Check,
    Checked,
    Preview,
    Relative,
    Snapshot,
    Stamped,
    Unfinished,
)
from hitl_tui.drivers.watching import Alongside, Holding
from hitl_tui.engine import commands
from hitl_tui.engine.audit.lineage import Arrival, lineage
from hitl_tui.engine.audit.replay import replay
from hitl_tui.engine.audit.verify import verify_tree
from hitl_tui.engine.commands import (
    Answer,
    Cancel,
    ClearTurns,
    Command,
    ConfigureAgents,
    Declassify,
    ExtendLimits,
    Fork,
    Reveal,
    Rollback,
    Start,
    UpdateState,
    answering,
)
from hitl_tui.engine.commands.agents import agents_of, changed_agent
from hitl_tui.engine.commands.preview import preview_answer, preview_edit
from hitl_tui.engine.graph.compensation import RollbackEntry
from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.log.events import (
    PRIVATE,
    AppliedUpdate,
    AttemptFailed,
    Event,
    NodeStarted,
    ProgressChanged,
    RunEnded,
    RunStarted,
    StepCommitted,
    ThreadForked,
)
from hitl_tui.engine.log.records import Checkpoint, UpdateRecord
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import Owner, ThreadInfo
from hitl_tui.engine.nodes.activity import before_end
from hitl_tui.engine.nodes.calling import SyncCaller
from hitl_tui.engine.nodes.children import graph_inside, link_of
from hitl_tui.engine.run.loop import RunLoop
from hitl_tui.engine.run.rollback import RollbackLoop, rollback_entries
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread.agent_settings import AgentInfo, Settings
from hitl_tui.engine.thread.graph_change import take_graph
from hitl_tui.engine.thread.journal import CHANNELS
from hitl_tui.engine.thread.rebuild import applied_updates, live_state, state_at
from hitl_tui.engine.thread.recorded import RecordedGraph, recorded_graph
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import GraphInvalid, HitlError, ThreadBusy, UnknownThread, UsageError
from hitl_tui.loading.sources import source_file
from hitl_tui.loading.trust import NotTrusted, Question

MOST = 40
"""Relatives shown at most: the thread's own line first, then forks by age."""


def family(store: Store, thread_id: str, page: int) -> tuple[Relative, ...]:
    """The thread, its parents and the forks of all of them, each with its newest checkpoints."""
    line: list[ThreadInfo] = []
    info = store.info(thread_id)
    while info is not None:
        line.append(info)
        info = store.info(info.parent) if info.parent else None
    found = {one.thread_id: one for one in line}
    queue = list(line)
    while queue and len(found) < MOST:
        for child in store.children(queue.pop(0).thread_id):
            if child.thread_id not in found and len(found) < MOST:
                found[child.thread_id] = child
                queue.append(child)
    relatives = []
    for one in found.values():
        summary = store.summary(one.thread_id)
        if summary is not None:
            newest = store.checkpoints(one.thread_id, None, page)
            # A fork that was carried here without its parent owns all of its steps.
            shared = one.fork_step if one.parent else -1
            own = tuple(checkpoint for checkpoint in reversed(newest) if checkpoint.step > shared)
            relatives.append(Relative(one.thread_id, one.parent, shared, summary, own))
    return tuple(relatives)


T = TypeVar("T")


class DriverPart(ABC):
    """A part of the local driver, which does the work that it asks for."""

    thread_id: str
    _store: Store
    _engine: EngineThread

    @abstractmethod
    async def _on_engine(self, work: Callable[[Session], T], *, graph: bool = False) -> T:
        """What `work` makes of the session, on the engine's thread.

        Args:
            graph: it takes a graph that can run; without it the one of the log will do.
        """

    @abstractmethod
    async def _write(self, work: Callable[[Session], T], *, graph: bool = True) -> T:
        """As `_on_engine`, with the thread held for writing.

        Raises:
            ThreadBusy: it runs.
        """

    @abstractmethod
    async def _commit(self, command: Command[T]) -> T:
        """Carry out a command that is one commit."""

    @abstractmethod
    async def _launch(self, make: Callable[..., RunLoop]) -> None:
        """Start a run; returns once it has begun, or found nothing to do."""

    @abstractmethod
    def _tell(self, event: Event) -> None:
        """Tell those who watch."""


class EngineThread:
    """A daemon thread with an event loop; it never keeps the process alive."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's loop and wait for it on the caller's."""
        return await asyncio.wrap_future(self.submit(work))

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Hand a coroutine over; the future may be waited for from any thread.

        Raises:
            HitlError: the thread has been stopped: nobody would ever answer.
        """
        if self.stopped:
            work.close()
            raise HitlError("the thread has been closed", "open it again")
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self) -> None:
        """End the loop once it has done what it is doing."""
        self.stopped = True
        self.loop.call_soon_threadsafe(self.loop.stop)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()


class Afterwards(DriverPart):
    """Part of the local driver."""

    async def rollback_entries(self) -> tuple[RollbackEntry, ...]:
        """What can be undone, in the order in which a rollback runs it, with what became of it."""

        def look(session: Session) -> tuple[RollbackEntry, ...]:
            return rollback_entries(self._store, session.cursor) if session.exists else ()

        entries: tuple[RollbackEntry, ...] = await self._on_engine(look)
        return entries

    async def rollback(self, *, actor: str | None = None, note: str | None = None) -> None:
        """Undo what the thread's nodes did outside; events tell the rest."""
        await self._engine.call(self._launch(partial(RollbackLoop, command=Rollback(actor, note))))

    async def check(self, kind: Check, watch: Callable[[int, int], object]) -> Checked:
        """Check the thread's log in a thread of its own, so that neither the run nor the screen waits."""
        # The log tells of its channels itself; what can't be opened can still be looked through.
        graph: CompiledGraph | None = None
        if kind != "log":
            graph = await self._on_engine(lambda session: session.graph, graph=True)
        return await asyncio.to_thread(self._checked, graph, kind, watch)

    def _checked(
        self, graph: CompiledGraph | None, kind: Check, watch: Callable[[int, int], object]
    ) -> Checked:
        if kind == "replay" and graph is not None:
            again = replay(self._store, graph, self.thread_id, watch)
            return Checked(kind, again.mismatches, again.steps, again.records, nodes=again.nodes)
        found = verify_tree(self._store, self.thread_id, graph, strict=kind == "strict", watch=watch)
        return Checked(kind, found.mismatches, found.checkpoints, found.records, unchecked=found.unchecked)


class Disclosing(DriverPart):
    """Part of the local driver."""

    async def lineage(self, channel: str, step: int) -> tuple[Arrival, ...]:
        """Why a channel is tainted at a step: every way by which it came in, oldest first."""

        def look(session: Session) -> tuple[Arrival, ...]:
            return lineage(self._store.records(session.thread_id, 0, step), channel)

        return await self._on_engine(look)

    async def declassify(
        self, channel: str, *, expected_step: int, actor: str, reason: str, seen: bytes = b""
    ) -> int:
        """Clear a channel's taint as a new step; returns it."""
        return await self._commit(Declassify(channel, actor, reason, expected_step, seen))

    async def reveal(self, channel: str, step: int, *, actor: str) -> Any:
        """A channel's value at a step though it is private; the ledger keeps who has seen it."""
        return await self._commit(Reveal(channel, actor, step))

    async def extend_limits(
        self, limits: Mapping[str, float | None], *, actor: str | None = None, note: str | None = None
    ) -> None:
        """Raise limits, so that a thread stopped by one may go on; logged."""
        await self._commit(ExtendLimits(limits, actor, note))


class Nested(DriverPart):
    """Part of the local driver.

    A thread that runs inside the run of another one is paused, and its node given up, by that run.
    """

    _run: RunLoop | None
    _below: SubgraphRuns
    _follower: Follower | None = None

    @property
    def _above(self) -> Runner | None:
        """In whose run this thread runs now."""
        return self._below.runner(self.thread_id)

    async def pause(self) -> None:
        """Stop at the next node boundary."""

        def ask(_session: Session) -> Runner | None:
            if self._run:
                self._run.pause()
                return None
            return self._above

        above = await self._on_engine(ask)
        if above is not None:
            await above.pause()

    async def cancel_attempt(self) -> None:
        """Give up the node in flight; the thread waits before that node."""

        def drop(_session: Session) -> Runner | None:
            if self._run:
                self._run.drop_attempt("cancelled by hand")
                return None
            return self._above

        above = await self._on_engine(drop)
        if above is not None:
            await above.cancel_attempt()

    async def graph_inside(self, node: str) -> CompiledGraph | None:
        """The graph of a subgraph's node, None where there is no such node any more."""
        return await self._on_engine(lambda session: graph_inside(session.graph, node), graph=True)

    def _begin_following(self, session: Session, catch_up: Callable[[], None]) -> None:
        """Hear what the threads below do, and what this one does inside the run of another."""
        session.on_below = partial(self._below.tell, self)
        loop = asyncio.get_running_loop()
        self._follower = Follower(loop, session.cursor.head, catch_up=catch_up, tell=self._tell)
        self._below.follow(self.thread_id, self._follower)

    def _end_following(self) -> None:
        if self._follower:
            self._below.leave(self.thread_id)

    def _tell_in_order(self, event: Event) -> None:
        """Tell what was found in the store, after what happened before it."""
        if isinstance(event, StepCommitted) and self._follower:
            self._follower.step_is_next(event.checkpoint.step)
        self._tell(event)

    def _refuse_inside(self) -> None:
        above = self._above
        if above is not None:
            raise ThreadBusy(
                f"thread {self.thread_id!r} runs inside {above.thread_id!r}", "pause it first, or wait"
            )


class Trying(DriverPart):
    """The part of a local driver that makes forks and changes agents."""

    async def fork(
        self,
        step: int,
        new_thread_id: str,
        *,
        changes: Mapping[str, Any] | None = None,
        agents: Settings | None = None,
        actor: str | None = None,
        note: str | None = None,
    ) -> str:
        """Make a new thread from a committed step; returns its id."""

        def make(session: Session) -> str:
            commands.execute(session, Fork(step, new_thread_id, changes, agents, actor, note))
            self._tell(ThreadForked(new_thread_id, step))
            return new_thread_id

        return await self._on_engine(make, graph=True)

    async def agents(self) -> tuple[AgentInfo, ...]:
        """The thread's agents as they are for the next step."""
        return await self._on_engine(lambda session: agents_of(session, self._store), graph=True)

    async def configure_agent(
        self, agent: str, settings: Mapping[str, Any], *, actor: str | None = None, note: str | None = None
    ) -> None:
        """Change settings of an agent from the next step on; logged."""
        await self._commit(ConfigureAgents({agent: settings}, actor, note))

    async def doubts(self, agent: str, settings: Mapping[str, Any]) -> str:
        """What an agent with other settings would lack to be called."""
        changed = await self._on_engine(lambda session: changed_agent(session, agent, settings), graph=True)
        lacks = getattr(changed, "lacks", None)
        # Asking the provider's library may import it, which takes seconds.
        return await asyncio.to_thread(lacks) if lacks else ""

    async def clear_turns(self, agent: str, *, actor: str | None = None, note: str | None = None) -> int:
        """Let an agent forget its turns; returns how many it had.  Logged."""
        return await self._commit(ClearTurns(agent, actor, note))


def snapshot(
    session: Session,
    store: Store,
    capabilities: Capabilities,
    *,
    last_event: int,
    page: int,
    held_by: str,
    graph_changed: tuple[str, ...] | None,
) -> Snapshot:
    """Everything a screen needs to begin.

    Args:
        held_by: the other process that runs the thread, "" for none.
        graph_changed: what differs since the file of the graph was saved.
        last_event: the number of the newest event that is in it.
        page: checkpoints to give at most.
    """
    head = session.cursor.head
    return Snapshot(
        thread_id=session.thread_id,
        graph=session.graph.info,
        progress=session.progress,
        values=_public(session, session.state.values),
        checkpoints=history(session, store, None, page)[::-1],
        updates=updates_at(session, store, head) if head >= 0 else (),
        ledger=tuple(store.ledger(session.thread_id)) if session.exists else (),
        parent=session.info.parent,
        fork_step=session.info.fork_step,
        capabilities=capabilities,
        last_event=last_event,
        notice=session.notice,
        held_by=held_by,
        graph_changed=graph_changed,
        owners=_owners(session, store),
        unfinished=_unfinished(session),
        signing_key=session.signer.key if session.signer else "",
    )


def _owners(session: Session, store: Store) -> tuple[Owner, ...]:
    """The threads that a subgraph's thread runs for, the outermost first."""
    owners: list[Owner] = []
    info: ThreadInfo | None = session.info
    while info is not None and info.owner is not None:
        owners.append(info.owner)
        info = store.info(info.owner.thread_id)
    return tuple(reversed(owners))


def _unfinished(session: Session) -> Unfinished | None:
    """What the cursor keeps of the branches of the node it stands at; their values stay there."""
    cursor = session.cursor
    kind, _, node = cursor.position.partition(":")
    if not cursor.branches or kind != "node":
        return None
    child = link_of(cursor)
    return Unfinished(
        node,
        cursor.head + 1,
        0 if child else len(cursor.branches),
        tuple(kept.outcome for kept in cursor.branches if kept.outcome),
        child.thread_id if child else "",
    )


def history(session: Session, store: Store, before: int | None, limit: int) -> tuple[Checkpoint, ...]:
    """Checkpoints before a step (None: from the head), newest first."""
    return tuple(store.checkpoints(session.thread_id, before, limit)) if session.exists else ()


def values_at(session: Session, store: Store, step: int) -> dict[str, Any]:
    """All channel values as of a step."""
    if step == session.cursor.head:
        return _public(session, session.state.values)
    return _public(session, state_at(store, session.thread_id, step, _defaults(session)))


def updates_at(session: Session, store: Store, step: int) -> tuple[AppliedUpdate, ...]:
    """The updates of a step, in the order in which they were reduced."""
    return updates_between(session, store, step, step)[step]


def updates_between(
    session: Session, store: Store, first: int, last: int, only: str | None = None
) -> dict[int, tuple[AppliedUpdate, ...]]:
    """The updates of each of the steps `first` to `last`, of one channel or of all."""
    thread_id = session.thread_id
    records: dict[int, list[UpdateRecord]] = {step: [] for step in range(first, last + 1)}
    for record in store.records(thread_id, first, last):
        if only in (None, record.channel):
            records[record.step].append(record)
    written = {record.channel for some in records.values() for record in some}
    # From some steps on there are other channels than before, with values that no record has.
    anew = {one.step for one in store.ledger(thread_id) if one.kind == CHANNELS} if first < last else ()
    found: dict[int, tuple[AppliedUpdate, ...]] = dict.fromkeys(records, ())
    values: dict[str, Any] | None = None
    for step, some in records.items():
        if some:
            if values is None:
                values = _defaults(session)
                if step > 0:
                    values = state_at(store, thread_id, step - 1, values, only=written)
            found[step], values = applied_updates(some, values)
        if step in anew:
            values = None
    return found


def written_at(session: Session, store: Store, first: int, last: int) -> dict[int, dict[str, bool]]:
    """The channels that each of the steps `first` to `last` wrote, and whether their hashes differ since."""
    found: dict[int, dict[str, bool]] = {step: {} for step in range(first, last + 1)}
    for record in store.records(session.thread_id, first, last) if session.exists else ():
        written = found[record.step]
        changed = record.previous_hash != record.next_hash
        written[record.channel] = changed or written.get(record.channel, False)
    return found


def place(session: Session, store: Store, step: int) -> tuple[Checkpoint, LiveState]:
    """A committed step with its state; raises `UnknownThread` where there is none."""
    checkpoint = store.checkpoint(session.thread_id, step)
    if checkpoint is None:
        raise UnknownThread(f"thread {session.thread_id!r} has no step {step}", "choose a committed step")
    return checkpoint, live_state(store, session.thread_id, step, session.graph.channels)


def _defaults(session: Session) -> dict[str, Any]:
    return {name: channel.default for name, channel in session.graph.channels.items()}


def _public(session: Session, values: Mapping[str, Any]) -> dict[str, Any]:
    channels = session.graph.channels
    return {
        name: PRIVATE if channels[name].visibility == "private" else value
        for name, value in values.items()
        if name in channels
    }


GraphOf: TypeAlias = Callable[[ThreadInfo], Awaitable[CompiledGraph]]
AskIfAny: TypeAlias = Callable[[Question], Awaitable[bool | None]]
Unbuilt: TypeAlias = Callable[[str, HitlError], str]
log = logging.getLogger(__name__)

PAGE = 50
_QUIT_PATIENCE = 3.0
_TRIES, _BETWEEN_TRIES = 40, 0.025

before_end.append(tell_the_rest)


class LocalDriver(Afterwards, Disclosing, Nested, Trying):
    """One thread of a local store, run by an engine thread of its own.

    Args:
        open_session: opens (or prepares) the thread; called on the engine's thread.
        store: where the thread lives.
        graph_of: builds the thread's graph from its record, once something wants to run; None never does.
        ask: asks a person whether a graph may be built that they don't trust yet; it gives None where nobody
            can be asked.
        build: makes the graph again when its file was saved; None never does.
        below: what runs inside the runs of others; None where only this thread is open.
        unbuilt: says of a graph that can't be built why the thread can only be looked at.
        capabilities: what may be done.
    """

    def __init__(
        self,
        thread_id: str,
        open_session: Callable[[], Session],
        store: Store,
        *,
        graph_of: GraphOf | None = None,
        ask: AskIfAny | None = None,
        build: BuildGraph | None = None,
        below: SubgraphRuns | None = None,
        unbuilt: Unbuilt | None = None,
        capabilities: Capabilities | None = None,
    ) -> None:
        self.thread_id = thread_id
        self.capabilities = capabilities or Capabilities()
        self._graph_of = graph_of
        self._ask = ask
        self._unbuilt = unbuilt
        self._building = asyncio.Lock()
        self._open_session = open_session
        self._store = store
        self._build = build
        self._below = below or SubgraphRuns()
        self._buffer = EventBuffer()
        self._engine = EngineThread(f"hitl-tui engine {thread_id}")
        self._callers = SyncCaller()
        self._session: Session | None = None
        self._run: RunLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._replay_from = 0
        self._alongside: Alongside | None = None

    # What there is to see

    async def snapshot(self) -> Snapshot:
        """Everything a screen needs to begin."""

        def look(session: Session) -> Snapshot:
            self._catch_up()
            running = self._run is not None and bool(self._run.node_in_flight)
            running = running or (self._follower is not None and self._follower.live)
            # While a node runs, its own events are told again, so that a screen sees it at work.
            last_event = self._replay_from if running else self._buffer.last
            return snapshot(
                session,
                self._store,
                self.capabilities,
                last_event=last_event,
                page=PAGE,
                held_by=self._alongside.holder if self._alongside else "",
                graph_changed=self._alongside.graph_changed if self._alongside else None,
            )

        return await self._on_engine(look)

    async def history(self, before: int | None = None, limit: int = PAGE) -> tuple[Checkpoint, ...]:
        """Checkpoints before a step (None: from the head), newest first."""
        return await self._on_engine(lambda session: history(session, self._store, before, limit))

    async def state_at(self, step: int) -> Mapping[str, Any]:
        """All channel values as of a step; private ones are `PRIVATE`."""
        return await self._on_engine(lambda session: values_at(session, self._store, step))

    async def updates_at(self, step: int) -> tuple[AppliedUpdate, ...]:
        """The updates of a step, in the order in which they were reduced."""
        return await self._on_engine(lambda session: updates_at(session, self._store, step))

    async def updates_between(
        self, first: int, last: int, only: str | None = None
    ) -> Mapping[int, tuple[AppliedUpdate, ...]]:
        """The updates of each of the steps `first` to `last`, of one channel or of all."""
        return await self._on_engine(lambda session: updates_between(session, self._store, first, last, only))

    async def written_at(self, first: int, last: int) -> Mapping[int, Mapping[str, bool]]:
        """The channels that each of the steps wrote, and whether they differ since."""
        return await self._on_engine(lambda session: written_at(session, self._store, first, last))

    async def family(self) -> tuple[Relative, ...]:
        """The thread's parent line and forks with their newest checkpoints."""
        return await self._on_engine(
            lambda session: family(self._store, self.thread_id, PAGE) if session.exists else ()
        )

    def events(self, since: int) -> Sequence[Stamped]:
        """Events with a number greater than `since`, without waiting."""
        return self._buffer.since(since)

    async def changed(self, since: int) -> None:
        """Wait until there is an event with a number greater than `since`."""
        await self._buffer.changed(since)

    # What one can do

    async def start(self, inputs: Mapping[str, Any], *, actor: str | None = None) -> int:
        """Commit the input as a step without running anything."""
        return await self._commit(Start(inputs, actor))

    async def step(self) -> None:
        """Run one node; events tell the rest."""
        await self._engine.call(self._launch(partial(RunLoop, once=True, on_limit="pause")))

    async def run(self, *, stop_before: Mapping[str, str] = NO_BREAKPOINTS) -> None:
        """Run until something waits, fails or ends, or one of these breakpoints is reached."""

        async def launch() -> None:
            stops = Stops(stop_before, (await self._with_graph()).graph.info) if stop_before else None
            await self._launch(partial(RunLoop, on_limit="pause", stop_before=stops))

        await self._engine.call(launch())

    async def cancel(self, *, actor: str | None = None, note: str | None = None) -> None:
        """End the thread as cancelled(user), giving up the node in flight."""

        async def end() -> None:
            if self._run and self._task:
                self._run.drop_attempt("the thread was cancelled")
                await asyncio.wait([self._task])
            session = self._opened()
            with session.writing():
                commands.execute(session, Cancel(actor, note))

        await self._engine.call(end())

    async def preview(
        self,
        values: Mapping[str, Any],
        *,
        step: int | None = None,
        as_node: str | None = None,
        answer: tuple[str, Any] | None = None,
    ) -> Preview:
        """What setting `values` at a step (None: head) would do, or answering (request id, answer)."""

        def look(session: Session) -> Preview:
            if answer is not None:
                return preview_answer(session, *answer)
            if step is None or step == session.cursor.head:
                return preview_edit(session, values, as_node, None)
            return preview_edit(session, values, as_node, place(session, self._store, step))

        async def job() -> Preview:
            # A card shows where its answers lead before anybody wants to run anything: that asks nobody.
            return look(await self._with_graph(ask=answer is None))

        return await self._engine.call(job())

    async def update_state(
        self,
        values: Mapping[str, Any],
        *,
        expected_step: int,
        as_node: str | None = None,
        actor: str | None = None,
        note: str | None = None,
    ) -> int:
        """Set channel values as a new step; returns it."""
        return await self._commit(UpdateState(values, expected_step, as_node, actor, note))

    async def answer(
        self,
        request_id: str,
        answer: Any,
        *,
        step: int,
        actor: str | None = None,
        note: str | None = None,
        seen: bytes = b"",
    ) -> int:
        """Answer a request bound to `step`; returns the head after it."""
        return await self._commit(Answer(request_id, answer, step, actor, note, seen))

    async def reload_graph(self, *, actor: str | None = None) -> tuple[str, ...]:
        """Go on with the graph as its file is now; returns what is different, in words."""

        async def reload() -> tuple[str, ...]:
            if not self._is_broken:
                await self._with_graph()
            alongside = self._alongside
            file = alongside.graph_file if alongside else None
            if alongside is None or file is None:
                raise UsageError("the graph of this thread comes from no file that can be loaded again")
            self._refuse_running()
            try:
                found = await file.reload(actor)
            except NotTrusted as error:
                await self._agree(error)
                found = await file.reload(actor)
            self.capabilities = Capabilities()
            alongside.deadlines.watch()
            self._resync()
            return found

        return await self._engine.call(reload())

    async def close(self) -> str:
        """Stop at once; committed steps stay. Returns what was not committed, "" for nothing."""

        async def put_down() -> str:
            lost = ""
            if self._run and self._task:
                node = self._run.node_in_flight
                if self._run.drop_attempt("quit"):
                    lost = (
                        f"thread {self.thread_id!r}: node {node!r} was running, nothing of it was committed; "
                        "it will run again when the thread is resumed"
                    )
                await asyncio.wait([self._task], timeout=_QUIT_PATIENCE)
            self._end_following()
            if self._alongside:
                self._alongside.end()
            self._callers.close()
            return lost

        if self._engine.stopped:
            return ""
        try:
            return await self._engine.call(put_down())
        finally:
            self._engine.stop()

    # On the engine's thread

    def _opened(self) -> Session:
        if self._session is None:
            session = self._open_session()
            session.recover()
            if session.exists and not isinstance(session.graph, RecordedGraph):
                logged = recorded_graph(self._store, session.info, session.cursor)
                session.notice = ". ".join(filter(None, (session.notice, graph_notice(session, logged))))
            session.sink = self._tell
            session.on_moved = self._resync
            self._session = session
            self._alongside = Alongside(
                session,
                self._store,
                tell=self._tell_in_order,
                resync=self._resync,
                busy=lambda: self._task is not None and not self._task.done(),
                inside=lambda: self._above is not None,
                expire=self._expire if self.capabilities.can_answer else None,
            )
            self._alongside.begin()
            if not isinstance(session.graph, RecordedGraph):
                self._follow_graph_file()
            self._begin_following(session, self._alongside.watcher.catch_up)
        return self._session

    def _refuse_running(self) -> None:
        if self._run is not None and not self._run.ended:
            raise ThreadBusy(f"thread {self.thread_id!r} is running", "pause it first")

    def _catch_up(self) -> None:
        """Tell what another process has committed, before this one adds to it."""
        if self._alongside and self._session and self._session.exists and self._run is None:
            self._alongside.watcher.look()

    def _resync(self) -> None:
        """Let every watcher take a new snapshot."""
        self._buffer.skip()
        if self._session:
            if self._follower:
                self._follower.skip_to(self._session.cursor.head)
            self._tell(ProgressChanged(self._session.progress))

    async def _on_engine(self, work: Callable[[Session], T], *, graph: bool = False) -> T:
        async def job() -> T:
            return work(await self._with_graph() if graph else self._opened())

        return await self._engine.call(job())

    async def prepare(self) -> None:
        """Build the thread's graph, if that has not been done yet."""

        async def job() -> None:
            await self._with_graph()

        await self._engine.call(job())

    @property
    def _is_broken(self) -> bool:
        """Whether the graph could not be built, and was not mended since."""
        return not self.capabilities.can_run

    async def _with_graph(self, *, ask: bool = True) -> Session:
        """The session on a graph that can run; until something wants to, it is on the one of its log.

        Args:
            ask: ask the person where they don't trust the graph yet.

        Raises:
            NotTrusted: nothing of it was imported.
            GraphInvalid, UsageError: the graph can't be built.
        """
        session = self._opened()
        async with self._building:
            if isinstance(session.graph, RecordedGraph):
                if self._is_broken or self._graph_of is None:
                    raise UsageError(
                        f"thread {self.thread_id!r} can only be looked at", self.capabilities.why_not
                    )
                await self._build_graph(session, self._graph_of, ask=ask)
        return session

    async def _build_graph(self, session: Session, graph_of: GraphOf, *, ask: bool) -> None:
        logged = session.graph
        try:
            try:
                graph = await graph_of(session.info)
            except NotTrusted as error:
                if not ask:
                    raise
                await self._agree(error)
                graph = await graph_of(session.info)
        except NotTrusted:
            raise
        except (GraphInvalid, UsageError) as error:
            if self._unbuilt is not None:
                log.warning("%s: %s\n%s", self.thread_id, error, error.details)
                mendable = self._build is not None and source_file(session.info.source) is not None
                self.capabilities = only_reading(self._unbuilt(self.thread_id, error), can_reload=mendable)
                self._follow_graph_file()
                self._resync()
            raise
        take_graph(session, graph)
        if told := graph_notice(session, logged):
            session.notice = ". ".join(filter(None, (session.notice, told)))
            self._resync()
        self._follow_graph_file()
        if self._alongside:
            self._alongside.deadlines.apply_due()

    async def _agree(self, error: NotTrusted) -> None:
        """Ask the person about a graph; one they don't want is never asked about again, and not run.

        Raises:
            NotTrusted: nobody can be asked, or the answer is no.
        """
        answer = await self._ask(error.question) if self._ask is not None else None
        if answer is None:
            raise error
        if not answer:
            refused = NotTrusted(error.question)
            refused.message, refused.details = "you said no to running its graph", ""
            refused.hint = self._unbuilt(self.thread_id, refused) if self._unbuilt else "it can be looked at"
            if isinstance(self._opened().graph, RecordedGraph):
                self.capabilities = only_reading(refused.hint)
                self._resync()
            raise refused
        error.question.agree()

    def _follow_graph_file(self) -> None:
        if self._alongside:
            self._alongside.follow_graph_file(self._build)

    async def _expire(self) -> None:
        """Let what nobody answered in time be answered as its gate says."""
        # It is nobody's wish to run anything now: a graph that one would be asked about is left alone.
        session = await self._with_graph(ask=False)
        with session.writing():
            answering.expire(session)

    async def _write(self, work: Callable[[Session], T], *, graph: bool = True) -> T:
        def write() -> T:
            session = self._opened()
            self._refuse_inside()
            self._catch_up()
            with session.writing():
                result = work(session)
            self._watch_deadlines()
            return result

        async def job() -> T:
            if graph:
                await self._with_graph()
            for _ in range(_TRIES):
                try:
                    return write()
                except ThreadBusy:
                    if self._session is None or self._session.cursor.status == "running":
                        raise
                # Nothing runs, so another process is in the middle of an edit or an answer like this one.
                await asyncio.sleep(_BETWEEN_TRIES)
            return write()

        return await self._engine.call(job())

    async def _commit(self, command: Command[T]) -> T:
        return await self._write(
            lambda session: commands.execute(session, command), graph=command.takes_graph
        )

    async def _launch(self, make: Callable[..., RunLoop]) -> None:
        """Start a run; returns once it has begun, or found nothing to do."""
        if self._task and not self._task.done():
            self._refuse_running()
            await asyncio.wait([self._task])
        session = await self._with_graph()
        self._refuse_inside()
        self._catch_up()
        self._run = make(session, threads=self._callers)
        self._started = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._drive(self._run, session))
        await asyncio.shield(self._started)

    async def _drive(self, run: RunLoop, session: Session) -> None:
        holding = Holding(session, run)
        try:
            async for _ in run.steps():
                # Reads and pauses get their turn between nodes that never wait for anything.
                await asyncio.sleep(0)
        except HitlError as error:
            self._settle(error)
        except Exception as error:
            log.exception("the run of thread %s broke", self.thread_id)
            self._settle(HitlError(f"{type(error).__name__}: {error}", "the log file has the details"))
        finally:
            holding.end()
            self._run = None
            self._settle(None)
            self._watch_deadlines()

    def _settle(self, error: HitlError | None) -> None:
        if self._started and not self._started.done():
            if error:
                self._started.set_exception(error)
            else:
                self._started.set_result(None)

    def _tell(self, event: Event) -> None:
        number = self._buffer.add(event)
        if isinstance(event, NodeStarted):
            self._replay_from = number - 1
        elif isinstance(event, AttemptFailed):
            log.warning("%s\n%s", event.error.message, event.error.details)
        elif isinstance(event, (RunStarted, RunEnded)):
            self._settle(None)
        elif isinstance(event, ProgressChanged):
            self._watch_deadlines()

    def _watch_deadlines(self) -> None:
        if self._alongside:
            self._alongside.deadlines.watch()


def only_reading(why: str, *, can_reload: bool = False) -> Capabilities:
    """What can be done with a thread without its graph.

    Args:
        why: why it can't be done, in words.
        can_reload: the graph can be loaded again once its file was mended.
    """
    return Capabilities(
        can_run=False,
        can_edit=False,
        can_edit_past=False,
        can_fork=False,
        can_answer=False,
        can_roll_back=False,
        can_check=False,
        can_reload=can_reload,
        why_not=why,
    )
