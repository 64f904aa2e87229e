"""The local driver: runs a thread in this process, in a thread of its own (DESIGN, "The driver")."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from hitl_tui.drivers import reading
from hitl_tui.drivers.afterwards import Afterwards
from hitl_tui.drivers.alongside import Alongside
from hitl_tui.drivers.below import Below
from hitl_tui.drivers.breakpoints import Stops
from hitl_tui.drivers.buffer import EventBuffer
from hitl_tui.drivers.disclosing import Disclosing
from hitl_tui.drivers.engine_thread import EngineThread
from hitl_tui.drivers.family import family
from hitl_tui.drivers.graph_file import BuildGraph, graph_notice
from hitl_tui.drivers.holding import Holding
from hitl_tui.drivers.nested import Nested
from hitl_tui.drivers.node_streams import tell_the_rest
from hitl_tui.drivers.protocol import NO_BREAKPOINTS, Capabilities, Preview, Relative, Snapshot, Stamped
from hitl_tui.drivers.trying import Trying
from hitl_tui.engine.graphs.compiled import CompiledGraph
from hitl_tui.engine.humans import answering, decisions
from hitl_tui.engine.humans.preview import preview_answer, preview_edit
from hitl_tui.engine.log.events import (
    AppliedUpdate,
    Event,
    NodeFailed,
    NodeStarted,
    ProgressChanged,
    RunEnded,
    RunStarted,
)
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.nodes.activity import before_end
from hitl_tui.engine.nodes.calling import SyncCaller
from hitl_tui.engine.running.loop import Run
from hitl_tui.engine.thread.graph_change import take_graph
from hitl_tui.engine.thread.recorded import RecordedGraph, recorded_graph
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import GraphInvalid, HitlError, ThreadBusy, UsageError
from hitl_tui.loading.sources import source_file
from hitl_tui.loading.trust import NotTrusted, Question

T = TypeVar("T")
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
        below: Below | None = None,
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
        self._below = below or Below()
        self._buffer = EventBuffer()
        self._engine = EngineThread(f"hitl-tui engine {thread_id}")
        self._callers = SyncCaller()
        self._session: Session | None = None
        self._run: Run | None = None
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
            return reading.snapshot(
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
        return await self._on_engine(lambda session: reading.history(session, self._store, before, limit))

    async def state_at(self, step: int) -> Mapping[str, Any]:
        """All channel values as of a step; private ones are `PRIVATE`."""
        return await self._on_engine(lambda session: reading.values_at(session, self._store, step))

    async def updates_at(self, step: int) -> tuple[AppliedUpdate, ...]:
        """The updates of a step, in the order in which they were reduced."""
        return await self._on_engine(lambda session: reading.updates_at(session, self._store, step))

    async def updates_between(
        self, first: int, last: int, only: str | None = None
    ) -> Mapping[int, tuple[AppliedUpdate, ...]]:
        """The updates of each of the steps `first` to `last`, of one channel or of all."""
        return await self._on_engine(
            lambda session: reading.updates_between(session, self._store, first, last, only)
        )

    async def written_at(self, first: int, last: int) -> Mapping[int, Mapping[str, bool]]:
        """The channels that each of the steps wrote, and whether they differ since."""
        return await self._on_engine(lambda session: reading.written_at(session, self._store, first, last))

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
        return await self._write(lambda session: decisions.start(session, inputs, actor=actor))

    async def step(self) -> None:
        """Run one node; events tell the rest."""
        await self._engine.call(self._launch(partial(Run, once=True, on_limit="pause")))

    async def run(self, *, stop_before: Mapping[str, str] = NO_BREAKPOINTS) -> None:
        """Run until something waits, fails or ends, or one of these breakpoints is reached."""

        async def launch() -> None:
            stops = Stops(stop_before, (await self._with_graph()).graph.info) if stop_before else None
            await self._launch(partial(Run, on_limit="pause", stop_before=stops))

        await self._engine.call(launch())

    async def cancel(self, *, actor: str | None = None, note: str | None = None) -> None:
        """End the thread as cancelled(user), giving up the node in flight."""

        async def end() -> None:
            if self._run and self._task:
                self._run.drop_attempt("the thread was cancelled")
                await asyncio.wait([self._task])
            session = self._opened()
            with session.writing():
                decisions.cancel(session, actor=actor, note=note)

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
            return preview_edit(session, values, as_node, reading.place(session, self._store, step))

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
        return await self._write(
            lambda session: decisions.update_state(
                session, values, expected_step=expected_step, as_node=as_node, actor=actor, note=note
            )
        )

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
        return await self._write(
            lambda session: answering.answer(
                session, request_id, answer, step=step, actor=actor, note=note, seen=seen
            )
        )

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
            why = "you said no to running its graph; `hitl-tui resume --trust` runs it all the same"
            if isinstance(self._opened().graph, RecordedGraph):
                self.capabilities = only_reading(why)
                self._resync()
            refused = NotTrusted(error.question)
            refused.message, refused.hint, refused.details = "it was not run, as you said", why, ""
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

    async def _launch(self, make: Callable[..., Run]) -> None:
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

    async def _drive(self, run: Run, session: Session) -> None:
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
        elif isinstance(event, NodeFailed):
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
