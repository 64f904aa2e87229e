"""The local driver: runs a thread in this process, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec.structs import replace

from hitl_tui.drivers import reading
from hitl_tui.drivers.buffer import EventBuffer
from hitl_tui.drivers.engine_thread import EngineThread
from hitl_tui.drivers.graph_file import BuildGraph, graph_notice, repeats_under
from hitl_tui.drivers.nested import Follower, Runner, SubgraphRuns
from hitl_tui.drivers.node_streams import flush_output
from hitl_tui.drivers.protocol import (
    Check,
    Checked,
    ContextField,
    Relative,
    Snapshot,
    Stamped,
    command_refusal,
)
from hitl_tui.drivers.watching import RunSupervisor, ThreadWatch, ask_to_pause
from hitl_tui.engine import commands
from hitl_tui.engine.commands import (
    COMMANDS,
    Allow,
    Answer,
    Cancel,
    CancelAttempt,
    ClearTurns,
    Command,
    ConfigureAgents,
    Declassify,
    DoubleText,
    ExtendLimits,
    Fork,
    HandOver,
    LookAt,
    Note,
    NoteExport,
    Pause,
    PrepareGraph,
    ReloadGraph,
    Rerun,
    Reveal,
    Revoke,
    Rollback,
    Run,
    Start,
    Step,
    UpdateState,
    WriteTest,
    verb,
)
from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.log.events import (
    AppliedUpdate,
    AttemptFailed,
    Event,
    NodeStarted,
    Preview,
    ProgressChanged,
    RunEnded,
    RunStarted,
    StepCommitted,
    ThreadForked,
)
from hitl_tui.engine.log.outcomes import Frame
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.repeats import Repeats
from hitl_tui.engine.log.store import Right, Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.nodes.calling import SyncCaller
from hitl_tui.engine.nodes.children import graph_inside
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread.agent_settings import AgentInfo
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.engine.thread.rebuild import Decoded
from hitl_tui.engine.thread.recorded import RecordedGraph, recorded_graph
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import GraphInvalid, HitlError, ThreadBusy, UsageError
from hitl_tui.loading.trust import NotTrusted, Question

if TYPE_CHECKING:
    from hitl_tui.drivers.breakpoints import Hits, RunStops
    from hitl_tui.drivers.history import Asked, HitsCallback, MomentsCallback, Sample
    from hitl_tui.drivers.protocol import Previewed
    from hitl_tui.drivers.routes import RouteTaken
    from hitl_tui.engine.audit.lineage import Arrival
    from hitl_tui.engine.graph.compensation import RollbackEntry
    from hitl_tui.engine.run.loop import RunLoop

R = TypeVar("R")

GraphOf: TypeAlias = Callable[[ThreadInfo], Awaitable[CompiledGraph]]
AskIfAny: TypeAlias = Callable[[Question], Awaitable[bool | None]]
Callback: TypeAlias = Callable[..., object]
Unbuilt: TypeAlias = Callable[[str, HitlError], str]
Observe: TypeAlias = Callable[[Session], Callable[[Event], object]]
log = logging.getLogger(__name__)

_NEARLY_ALL = frozenset({NodeStarted, StepCommitted})
"""In a fast run nearly all events are of these kinds."""
_QUIT_PATIENCE = 3.0
_STOP_PATIENCE = 10.0
"""Seconds to wait until another process releases a thread that is cancelled here."""
_TRIES, _BETWEEN_TRIES = 40, 0.025


class LocalDriver:
    """One thread of a local store, run by its own engine thread.

    Args:
        open_session: opens (or prepares) the thread; called on the engine's thread.
        store: the store of the thread.
        graph_of: builds the thread's graph from its record, when something runs; None never does.
        ask: asks a person whether an untrusted graph may be built; returns None if nobody can be asked.
        build: builds the graph again when its file was saved; None never does.
        subgraph_runs: the runs inside other runs; None if only this thread is open.
        unbuilt: returns why a thread whose graph can't be built can only be viewed.
        refusals: commands that are unavailable as long as the graph is not loaded, by verb, each with the
            reason.
        denied: commands that the store never allows this login, by verb, each with the reason.
        observe: returns a callback for each event of the thread as it happens, on the engine's thread.
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
        subgraph_runs: SubgraphRuns | None = None,
        unbuilt: Unbuilt | None = None,
        refusals: Mapping[str, str] | None = None,
        denied: Mapping[str, str] | None = None,
        observe: Observe | None = None,
    ) -> None:
        self.thread_id = thread_id
        self._refusals = refusals or {}
        self._denied = denied or {}
        self._graph_of = graph_of
        self._ask = ask
        self._unbuilt = unbuilt
        self._building = asyncio.Lock()
        self._open_session = open_session
        self._observe = observe
        self._store = store
        self._decoded = Decoded()
        self._build = build
        self._subgraph_runs = subgraph_runs or SubgraphRuns()
        self._buffer = EventBuffer()
        self._engine = EngineThread(f"hitl-tui engine {thread_id}")
        self._callers = SyncCaller(self._engine.takes_jobs)
        self._session: Session | None = None
        self._run: RunLoop | None = None
        self._supervisor: RunSupervisor | None = None
        self._task: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._watch: ThreadWatch | None = None
        self._follower: Follower | None = None
        self._handlers: dict[type[Command[Any]], Callable[[Any], Coroutine[Any, Any, Any]]] = {
            Cancel: self._cancel,
            CancelAttempt: self._cancel_attempt,
            DoubleText: self._free_thread,
            Fork: self._fork,
            LookAt: self._look,
            Pause: self._pause,
            PrepareGraph: self._prepare_graph,
            ReloadGraph: self._reload_graph,
            Rerun: self._rerun,
            Rollback: self._roll_back,
            Run: self._run_on,
            Step: self._step,
            WriteTest: self._write_test,
        }
        """Handlers of commands that need more than one commit; used on the engine's thread."""

    @property
    def birth(self) -> bytes:
        """The thread's unique id, which differs from that of others with its name; b"" before it exists."""
        session = self._session
        return session.info.birth if session and session.exists else b""

    # What can be viewed

    async def snapshot(self) -> Snapshot:
        """Return everything a screen needs at the start."""

        def look(session: Session) -> Snapshot:
            self._catch_up()
            running = self._run is not None and bool(self._run.node_in_flight)
            running = running or (self._follower is not None and self._follower.live)
            # While a node runs, its events are emitted again, so that a screen sees it running.
            last_event = self._buffer.before(NodeStarted) if running else self._buffer.last
            return reading.snapshot(
                session,
                self._store,
                refusals={**self._refusals, **self._denied},
                last_event=last_event,
                page=reading.PAGE,
                held_by=self._watch.holder if self._watch else "",
                graph_changed=self._watch.graph_changed if self._watch else None,
                repeats=file.repeats if self._watch and (file := self._watch.graph_file) else None,
                attending=self._watch.watcher.attending if self._watch else (),
                handed=self._is_handed(),
                notice=session.notice,
                signing_key=session.signer.key if session.signer else "",
            )

        return await self._on_engine(look)

    async def history(self, before: int | None = None, limit: int = reading.PAGE) -> tuple[Checkpoint, ...]:
        """Return checkpoints before a step (None: from the head), newest first."""
        return await self._on_engine(lambda session: reading.history(session, self._store, before, limit))

    async def state_at(self, step: int) -> Mapping[str, Any]:
        """Return all channel values at a step; private ones are `PRIVATE`."""
        return await self._on_engine(
            lambda session: reading.values_at(session, self._store, step, self._decoded)
        )

    async def visits(self, step: int) -> Mapping[str, int]:
        """Return how often each node ran in the steps up to one of them."""
        return await self._on_engine(lambda session: reading.visits(session, self._store, step))

    async def updates(
        self, first: int, last: int, only: str | None = None
    ) -> Mapping[int, tuple[AppliedUpdate, ...]]:
        """Return the updates of each of the steps `first` to `last`, of one channel or of all."""
        return await self._on_engine(
            lambda session: reading.updates(
                session, self._store, first, last, only=only, decoded=self._decoded
            )
        )

    async def written(self, first: int, last: int) -> Mapping[int, Mapping[str, bool]]:
        """Return the channels that each of the steps wrote, and whether they differ since."""
        return await self._on_engine(lambda session: reading.written(session, self._store, first, last))

    async def family(self) -> tuple[Relative, ...]:
        """Return the thread's ancestors and forks with their newest checkpoints."""
        return await self._on_engine(
            lambda session: (
                reading.family(self._store, self.thread_id, reading.PAGE) if session.exists else ()
            )
        )

    def events(self, since: int) -> Sequence[Stamped]:
        """Return events with a number greater than `since`, without waiting."""
        return self._buffer.since(since)

    async def changed(self, since: int) -> None:
        """Wait until there is an event with a number greater than `since`."""
        await self._buffer.changed(since)

    async def ended(self, since: int) -> None:
        """Wait until a run has ended by an event with a number greater than `since`."""
        await self._buffer.ended(since)

    async def context_fields(self) -> tuple[ContextField, ...]:
        """Return (): graphs of our own declare no context."""
        return ()

    async def agents(self) -> tuple[AgentInfo, ...]:
        """Return the thread's agents as they are for the next step."""
        from hitl_tui.engine.commands.agents import agents_of

        return await self._on_engine(lambda session: agents_of(session, self._store), graph=True)

    async def code(self, node: str) -> tuple[Frame, ...]:
        """Return the functions of a node and of the route after it, as they are in their files."""
        from hitl_tui.engine.nodes.frames import Masks, code_of, file_of

        def look(session: Session) -> tuple[Frame, ...]:
            names = [node] if node else list(session.graph.nodes)
            values, channels = session.state.values, session.graph.channels.items()
            private = [(name, channel) for name, channel in channels if channel.visibility == "private"]
            masks = Masks({name: [values.get(name), channel.default] for name, channel in private})
            functions = (each for name in names for each in self._functions(session, name))
            frames = (frame for function in functions if (frame := code_of(function, masks)))
            if node:
                return tuple(frames)
            first = next(frames, None)
            return (file_of(first, masks),) if first else ()

        return await self._on_engine(look)

    async def where(self, node: str) -> tuple[tuple[Frame, ...], ...]:
        """Return where a node that runs here is now; see `Driver`."""
        from hitl_tui.engine.nodes.attempt import masks_of
        from hitl_tui.engine.nodes.calling import running_stacks
        from hitl_tui.engine.nodes.frames import stack_frames

        def look(session: Session) -> tuple[tuple[Frame, ...], ...]:
            masks = masks_of(session.graph, session.state)
            stacks = running_stacks(self._functions(session, node))
            return tuple(frames for stack in stacks if (frames := stack_frames(stack, masks)))

        return await self._on_engine(look)

    async def route(self, step: int, *, load: bool = False) -> RouteTaken | None:
        """Return the result of the routing function after a step for its state; see `Driver`."""
        from hitl_tui.drivers.routes import route_after

        return await self._on_engine(lambda session: route_after(session, self._store, step), graph=load)

    def _functions(self, session: Session, node: str) -> tuple[Any, ...]:
        """Return the functions that a node calls, and the routing function after it."""
        return () if isinstance(session.graph, RecordedGraph) else session.graph.functions(node)

    async def rollback_entries(self) -> tuple[RollbackEntry, ...]:
        """Return what can be undone, in the order in which a rollback runs it, with its status."""

        from hitl_tui.engine.run.rollback import rollback_entries

        def look(session: Session) -> tuple[RollbackEntry, ...]:
            return rollback_entries(self._store, session.cursor) if session.exists else ()

        return await self._on_engine(look)

    async def lineage(self, channel: str, step: int) -> tuple[Arrival, ...]:
        """Return why a channel is tainted at a step: every route of the taint, oldest first."""
        from hitl_tui.engine.audit.lineage import lineage

        def look(session: Session) -> tuple[Arrival, ...]:
            return lineage(self._store.records(session.thread_id, 0, step), channel)

        return await self._on_engine(look)

    async def check(self, kind: Check, watch: Callable[[int, int], object]) -> Checked:
        """Check the thread's log in a separate thread, so that neither the run nor the screen waits."""
        # The log itself describes its channels, so a thread that can't be opened can still be searched.
        graph: CompiledGraph | None = None
        if kind != "log":
            graph = await self._on_engine(lambda session: session.graph, graph=True)
        return await asyncio.to_thread(self._checked, graph, kind, watch)

    def _checked(
        self, graph: CompiledGraph | None, kind: Check, watch: Callable[[int, int], object]
    ) -> Checked:
        if kind == "replay" and graph is not None:
            from hitl_tui.engine.audit.replay import replay

            again = replay(self._store, graph, self.thread_id, watch)
            return Checked(kind, again.mismatches, again.steps, again.records, nodes=again.nodes)
        from hitl_tui.engine.audit.verify import verify_tree

        strict = kind == "strict" and graph is not None
        report = verify_tree(
            self._store, self.thread_id, graph, strict=strict, answers=kind == "strict", watch=watch
        )
        changes: tuple[str, ...] = ()
        if graph is not None and strict and report.mismatches:
            from hitl_tui.loading.compatibility import changes_since

            changes = changes_since(self._store, self.thread_id, graph.info)
        return Checked(
            kind,
            report.mismatches,
            report.checkpoints,
            report.records,
            unchecked=report.unchecked,
            changes=changes,
        )

    async def search(self, query: str, report: HitsCallback) -> None:
        """Search all steps for a text, in a separate thread."""
        from hitl_tui.drivers.history import search

        await self._read_aside(lambda session, stop: search(session, self._store, query, stop(report)))

    async def ask(self, expression: str, report: MomentsCallback) -> Asked:
        """Find the steps at which a condition became true, in a separate thread."""
        from hitl_tui.drivers.history import ask

        return await self._read_aside(
            lambda session, stop: ask(session, self._store, expression, stop(report))
        )

    async def series(
        self, expressions: Sequence[str], last: int, most: int
    ) -> tuple[tuple[Sample, ...], ...]:
        """Return the values of expressions over the run up to a step, read in a separate thread."""
        from hitl_tui.drivers.history import series

        return await self._read_aside(
            lambda session, _: series(session, self._store, expressions, last, most)
        )

    async def _read_aside(self, read: Callable[[Session, Callable[[Callback], Callback]], R]) -> R:
        """Read the log in a thread, so that neither the run nor the screen waits for it.

        Args:
            read: gets the session, and a function that makes a callback raise once nobody waits any more.
        """
        session = await self._on_engine(lambda session: session)
        over = threading.Event()

        def stoppable(callback: Callback) -> Callback:
            def call(*found: Any) -> object:
                if over.is_set():
                    raise asyncio.CancelledError
                return callback(*found)

            return call

        try:
            return await asyncio.to_thread(read, session, stoppable)
        finally:
            over.set()

    async def graph_inside(self, node: str) -> CompiledGraph | None:
        """Return the graph of a subgraph's node, None if there is no such node any more."""
        return await self._on_engine(lambda session: graph_inside(session.graph, node), graph=True)

    # Actions

    def refusal(self, command: type[Command[Any]]) -> str:
        """Return why a kind of command can't be carried out; "" if it can."""
        return command_refusal(self._denied, command) or command_refusal(self._refusals, command)

    async def execute(self, command: Command[R]) -> R:
        """Carry out a command; a run, a rollback or a step is accepted, and events report the rest."""

        async def work() -> R:
            self._opened()
            if why := self.refusal(type(command)):
                what = "is read-only" if self.refusal(Run) else f"takes no {verb(type(command))}"
                raise UsageError(f"thread {self.thread_id!r} {what}", why)
            result: R = await self._handlers.get(type(command), self._commit)(command)
            return result

        return await self._engine.call(work())

    async def preview(self, command: Previewed) -> Preview:
        """Return what a command would do, before it is committed."""
        from hitl_tui.engine.commands.preview import preview, preview_agents

        async def work() -> Preview:
            if isinstance(command, (Fork, Rerun, Run, Step)):
                return await self._preview_repeats(command)
            # A card shows where its answers lead before anybody wants to run anything, so nobody is asked.
            session = await self._with_graph(ask=not isinstance(command, Answer))
            if isinstance(command, ConfigureAgents):
                return await preview_agents(session, command)
            previewed = preview(session, command)
            if isinstance(command, UpdateState) and previewed.forks and command.expected_step is not None:
                return replace(previewed, repeats=await self._repeats_after(session, command.expected_step))
            return previewed

        return await self._engine.call(work())

    async def expire(self) -> None:
        """Apply passed deadlines as the gates say, and escalate requests that are due.

        Raises:
            ThreadBusy: another process writes it.
        """
        await self._engine.call(self._expire())

    async def close(self) -> str:
        """Stop at once; committed steps are kept. Returns what was not committed, "" for nothing."""

        async def leave_run() -> str:
            lost = ""
            if self._run and self._task:
                node = self._run.node_in_flight
                if self._run.stop_attempt("quit"):
                    lost = (
                        f"thread {self.thread_id!r}: node {node!r} was running, nothing of it was saved; "
                        "it will run again when the thread is resumed"
                    )
                await asyncio.wait([self._task], timeout=_QUIT_PATIENCE)
            await self._unfollow()
            self._callers.close()
            return lost

        if self._engine.stopped:
            return ""
        try:
            return await self._engine.call(leave_run())
        finally:
            self._engine.stop()

    async def _unfollow(self) -> None:
        """Stop following the thread."""
        if self._follower:
            self._subgraph_runs.leave(self.thread_id)
        if self._watch:
            await self._watch.end()

    # Commands, on the engine's thread

    async def _commit(self, command: Command[R]) -> R:
        """Carry out a command that is one commit, with the thread held for writing."""
        if command.takes_graph:
            await self._with_graph()
        for _ in range(_TRIES):
            try:
                return self._write(command)
            except ThreadBusy:
                if self._session is None or self._session.cursor.status == "running":
                    raise
            # Nothing runs, so another process is in the middle of an edit or an answer like this one.
            await asyncio.sleep(_BETWEEN_TRIES)
        return self._write(command)

    def _write(self, command: Command[R]) -> R:
        session = self._opened()
        self._refuse_inside()
        self._catch_up()
        with session.writing():
            result = commands.execute(session, command)
        self._watch_deadlines()
        return result

    async def _step(self, command: Step) -> None:
        stops = await self._stops(command.breakpoints)
        await self._launch(_loop, once=True, into=command.into, on_limit="pause", stops=stops)

    async def _run_on(self, command: Run) -> None:
        stops = await self._stops(command.breakpoints)
        await self._launch(_loop, on_limit="pause", stops=stops)

    @cached_property
    def _hits(self) -> Hits:
        """Return how often the breakpoints were hit in this thread."""
        from hitl_tui.drivers.breakpoints import Hits

        return Hits()

    async def _stops(self, breakpoints: Sequence[Breakpoint]) -> RunStops | None:
        if not breakpoints:
            return None
        from hitl_tui.drivers.breakpoints import RunStops

        return RunStops(breakpoints, (await self._with_graph()).graph.info, self._hits)

    async def _roll_back(self, command: Rollback) -> None:
        from hitl_tui.engine.run.rollback import RollbackLoop

        await self._launch(RollbackLoop, command=command)

    async def _pause(self, command: Pause) -> str:
        if self._run:
            if self._supervisor and command.actor:
                self._supervisor.paused_here = command
            self._run.pause()
        elif above := self._above:
            await above.execute(command)
        else:
            holder = await ask_to_pause(self._store, self.thread_id, command, patience=command.wait)
            self._catch_up()
            return holder
        return ""

    async def _cancel_attempt(self, command: CancelAttempt) -> None:
        if self._run:
            self._run.stop_attempt("stopped by you")
        elif above := self._above:
            await above.execute(command)

    async def _free_thread(self, _command: DoubleText) -> None:
        """Do nothing: no server runs the thread."""

    async def _cancel(self, command: Cancel) -> None:
        if self._run and self._task:
            self._run.stop_attempt("the thread was cancelled")
            await asyncio.wait([self._task])
        elif self._above is None:
            asks = Pause(command.actor, command.note)
            await ask_to_pause(self._store, self.thread_id, asks, patience=_STOP_PATIENCE, at_once=True)
        session = self._opened()
        with session.writing():
            commands.execute(session, command)

    async def _look(self, command: LookAt) -> None:
        if self._watch:
            self._watch.looking.at(command.request_id, command.actor)

    async def _fork(self, command: Fork) -> str:
        new_thread_id = commands.execute(await self._with_graph(), command)
        self._emit(ThreadForked(new_thread_id, command.step))
        return new_thread_id

    async def _preview_repeats(self, command: Fork | Rerun | Run | Step) -> Preview:
        """Return what a fork, a rerun or continuing would run again; a graph is built only for a rerun."""
        from hitl_tui.engine.audit.rerun import repeats_of_retry

        repeats: Repeats | None
        session = self._opened()
        self._catch_up()
        if isinstance(command, Rerun):
            repeats = (await self._mended())[1]
        elif isinstance(command, Fork):
            repeats = await self._repeats_after(session, command.step)
        else:
            repeats = repeats_of_retry(session.cursor, session.declared)
        forks = isinstance(command, (Fork, Rerun))
        return Preview(updates=(), problems={}, next_node=None, rebinds=(), forks=forks, repeats=repeats)

    async def _repeats_after(self, session: Session, step: int) -> Repeats | None:
        """Return what a fork from a step would run again."""
        from hitl_tui.engine.audit.rerun import repeats_after

        if not session.exists:
            return None
        look = partial(repeats_after, self._store, session.cursor, step, session.declared)
        return await asyncio.to_thread(look)

    async def _write_test(self, command: WriteTest) -> str:
        from hitl_tui.engine.audit.step_test import step_test
        from hitl_tui.stores.transfer import private_names

        name, graph, private = self.thread_id, command.graph, command.private
        if private and (why := self.refusal(NoteExport)):
            raise UsageError("private values can't be taken from this thread", why)
        write = partial(step_test, self._store, name, command.step, graph=graph, private=private)
        text = await asyncio.to_thread(write)
        if private and command.actor is not None:
            names = await asyncio.to_thread(private_names, self._store, name)
            step = "" if command.step is None else f"@{command.step}"
            self._write(NoteExport(tuple(sorted(names)), command.actor, f"a test of {name}{step}"))
        return text

    async def _rerun(self, command: Rerun) -> str:
        from hitl_tui.engine.commands.forking import fork

        graph, repeats = await self._mended()
        session = self._opened()
        over = session.cursor.status in ("completed", "cancelled")
        if repeats is None or (over and not repeats.nodes and not repeats.rerouted):
            raise UsageError(
                f"every step of thread {self.thread_id!r} is still valid: nothing has to run again",
                "a fork from a step runs everything after it again",
            )
        parent = Session(
            graph,
            self._store,
            session.info,
            session.cursor,
            LiveState({}, {}),
            clock=session.clock,
            signer=session.signer,
        )
        forking = Fork(repeats.step, command.new_thread_id, actor=command.actor, note=command.note)
        new_thread_id = fork(parent, forking, rerouted=repeats.rerouted)
        self._emit(ThreadForked(new_thread_id, repeats.step))
        return new_thread_id

    async def _mended(self) -> tuple[CompiledGraph, Repeats | None]:
        """Return the graph as its code is now, and which steps are valid under it."""
        session = self._opened()
        if not self._is_broken:
            await self._with_graph()
        file = self._watch.graph_file if self._watch else None
        if file is not None:
            await file.look()
        if file is not None and file.changed is not None and file.graph is None:
            raise GraphInvalid("; ".join(file.changed), "fix the file and save it")
        graph = (file.graph if file else None) or session.graph
        if isinstance(graph, RecordedGraph):
            raise UsageError(f"thread {self.thread_id!r} is read-only", self.refusal(PrepareGraph))
        return graph, await repeats_under(session, graph)

    async def _prepare_graph(self, _command: PrepareGraph) -> None:
        await self._with_graph()

    async def _reload_graph(self, command: ReloadGraph) -> tuple[str, ...]:
        if not self._is_broken:
            await self._with_graph()
        watch = self._watch
        file = watch.graph_file if watch else None
        if watch is None or file is None:
            raise UsageError("the graph of this thread does not come from a file that can be reloaded")
        self._refuse_running()
        try:
            differences = await file.reload(command.actor)
        except NotTrusted as error:
            await self._agree(error)
            differences = await file.reload(command.actor)
        self._refusals = {}
        watch.deadlines.watch()
        self._resync()
        return differences

    # On the engine's thread

    def _opened(self) -> Session:
        if self._session is None:
            session = self._open_session()
            if not self.refusal(Cancel):
                session.recover()
            if session.exists and not isinstance(session.graph, RecordedGraph):
                logged = recorded_graph(self._store, session.info, session.cursor)
                session.notice = ". ".join(filter(None, (session.notice, graph_notice(session, logged))))
            session.sink = self._observed(session) if self._observe else self._emit
            session.on_moved = self._resync
            self._session = session
            self._watch = ThreadWatch(
                session,
                self._store,
                emit=self._emit_in_order,
                together=self._buffer.together,
                resync=self._resync,
                busy=lambda: self._task is not None and not self._task.done(),
                inside=lambda: self._above is not None,
                expire=None if self.refusal(Answer) else self._expire,
            )
            self._watch.begin()
            if not isinstance(session.graph, RecordedGraph):
                self._follow_graph_file()
            # Receive events of the threads below, and of this one inside another run.
            session.on_below = partial(self._subgraph_runs.pass_on, self)
            self._follower = Follower(
                asyncio.get_running_loop(),
                session.cursor.head,
                catch_up=self._watch.watcher.catch_up,
                emit=self._emit,
            )
            self._subgraph_runs.follow(self.thread_id, self._follower)
        return self._session

    def _observed(self, session: Session) -> Callable[[Event], None]:
        assert self._observe is not None
        observe, emit = self._observe(session), self._emit

        def both(event: Event) -> None:
            observe(event)
            emit(event)

        return both

    def _is_handed(self) -> bool:
        """Whether the thread was handed to the workers."""
        jobs = self._store.jobs()
        return jobs is not None and jobs.is_handed(self.thread_id)

    def _refuse_running(self) -> None:
        if self._run is not None and not self._run.ended:
            raise ThreadBusy(f"thread {self.thread_id!r} is running", "pause it first")

    @property
    def _above(self) -> Runner | None:
        """Return the run inside which this thread runs now."""
        return self._subgraph_runs.runner(self.thread_id)

    def _refuse_inside(self) -> None:
        above = self._above
        if above is not None:
            raise ThreadBusy(
                f"thread {self.thread_id!r} runs inside {above.thread_id!r}", "pause it first, or wait"
            )

    def _catch_up(self) -> None:
        """Emit what another process has committed, before this one adds to it."""
        if self._watch and self._session and self._session.exists and self._run is None:
            self._watch.watcher.look()

    def _resync(self) -> None:
        """Let every watcher take a new snapshot."""
        self._buffer.skip()
        if self._session:
            if self._follower:
                self._follower.skip_to(self._session.cursor.head)
            self._emit(ProgressChanged(self._session.progress))

    async def _on_engine(self, work: Callable[[Session], R], *, graph: bool = False) -> R:
        """Run `work` on the session, on the engine's thread.

        `graph` says that it needs a graph that can run; otherwise the one in the log is enough.
        """

        async def job() -> R:
            return work(await self._with_graph() if graph else self._opened())

        return await self._engine.call(job())

    @property
    def _is_broken(self) -> bool:
        """Whether the graph could not be built, and was not fixed since."""
        return bool(self.refusal(PrepareGraph))

    async def _with_graph(self, *, ask: bool = True) -> Session:
        """Return the session on a graph that can run; until one is needed, it is on the graph in its log.

        Args:
            ask: ask the person if they don't trust the graph yet.

        Raises:
            NotTrusted: nothing of it was imported.
            GraphInvalid, UsageError: the graph can't be built.
        """
        session = self._opened()
        async with self._building:
            if isinstance(session.graph, RecordedGraph):
                if self._is_broken or self._graph_of is None:
                    raise UsageError(f"thread {self.thread_id!r} is read-only", self.refusal(PrepareGraph))
                await self._build_graph(session, self._graph_of, ask=ask)
        return session

    async def _build_graph(self, session: Session, graph_of: GraphOf, *, ask: bool) -> None:
        from hitl_tui.engine.thread.graph_change import take_graph

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
                from hitl_tui.loading.sources import source_file

                mendable = self._build is not None and source_file(session.info.source) is not None
                self._refusals = only_reading(self._unbuilt(self.thread_id, error), can_reload=mendable)
                self._follow_graph_file()
                self._resync()
            raise
        take_graph(session, graph)
        if notice := graph_notice(session, logged):
            session.notice = ". ".join(filter(None, (session.notice, notice)))
            self._resync()
        self._follow_graph_file()
        if self._watch:
            self._watch.deadlines.apply_due()

    async def _agree(self, error: NotTrusted) -> None:
        """Ask the person about a graph; a refused one is not asked about again, and not run.

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
                self._refusals = only_reading(refused.hint)
                self._resync()
            raise refused
        error.question.agree()

    def _follow_graph_file(self) -> None:
        if self._watch:
            self._watch.follow_graph_file(self._build)

    async def _expire(self) -> None:
        """Apply passed deadlines as the gates say."""
        from hitl_tui.engine.commands.answering import expire

        # Nobody wants to run anything now, so a graph that would need a question is left alone.
        session = await self._with_graph(ask=False)
        with session.writing():
            expire(session)

    async def _launch(self, make: Callable[..., RunLoop], **options: Any) -> None:
        """Start a run; returns once it has started, or found nothing to do."""
        if self._task and not self._task.done():
            self._refuse_running()
            await asyncio.wait([self._task])
        session = await self._with_graph()
        self._refuse_inside()
        self._catch_up()
        self._run = make(session, threads=self._callers, **options)
        self._started = asyncio.get_running_loop().create_future()
        self._task = self._engine.drive(self._drive(self._run, session))
        await asyncio.shield(self._started)

    async def _drive(self, run: RunLoop, session: Session) -> None:
        supervisor = self._supervisor = RunSupervisor(session, run)
        try:
            # Reads and pauses get their turn whenever a node is called.
            async for _ in run.steps():
                pass
        except HitlError as error:
            self._settle(error)
        except Exception as error:
            log.exception("the run of thread %s broke", self.thread_id)
            self._settle(HitlError(f"{type(error).__name__}: {error}", "the log file has the details"))
        finally:
            supervisor.end()
            self._run = self._supervisor = None
            self._settle(None)
            self._watch_deadlines()

    def _settle(self, error: HitlError | None) -> None:
        if self._started and not self._started.done():
            if error:
                self._started.set_exception(error)
            else:
                self._started.set_result(None)

    def _emit_in_order(self, event: Event) -> None:
        """Emit what was found in the store, after the events before it."""
        if isinstance(event, StepCommitted) and self._follower:
            self._follower.step_is_next(event.checkpoint.step)
        self._emit(event)

    def _emit(self, event: Event) -> None:
        self._buffer.add(event)
        if type(event) in _NEARLY_ALL:
            return
        if isinstance(event, AttemptFailed):
            log.warning("%s\n%s", event.error.message, event.error.details)
        elif isinstance(event, (RunStarted, RunEnded)):
            self._settle(None)
        elif isinstance(event, ProgressChanged):
            self._watch_deadlines()

    def _watch_deadlines(self) -> None:
        if self._watch:
            self._watch.deadlines.watch()


def only_reading(why: str, *, can_reload: bool = False) -> dict[str, str]:
    """Return the commands that a thread without its graph refuses, by verb.

    Args:
        why: why it has no graph.
        can_reload: the graph can be loaded again once its file is fixed.
    """
    return {
        verb(kind): why
        for kind in COMMANDS
        if kind.takes_graph or (kind in (ReloadGraph, Rerun) and not can_reload)
    }


def denied_to(rights: frozenset[Right]) -> dict[str, str]:
    """Return the commands that a database login may not carry out, by verb, each with the reason.

    Answers are never among them, since anyone who runs a thread also continues it at a plain breakpoint.
    """
    denied: dict[str, str] = {}
    for right, kinds, role in (
        ("decide", _DECIDING, "hitl_reviewer"),
        ("run", _RUNNING, "hitl_worker"),
        ("operate", _OPERATING, "hitl_operator"),
    ):
        if right not in rights:
            also = "" if right == "operate" else " or a hitl_operator"
            denied |= {verb(kind): f"your login of the database is not a {role}{also}" for kind in kinds}
    return denied


_RUNNING = (Start, Step, Run, DoubleText, CancelAttempt)
_DECIDING = (
    *(UpdateState, ExtendLimits, Cancel, HandOver, Allow, Revoke, Declassify, Reveal, NoteExport),
    *(ConfigureAgents, ClearTurns, Note),
)
_OPERATING = (Fork, Rerun, Rollback)


def refusing_all(why: str) -> dict[str, str]:
    """Return all commands, by verb, each with the reason for refusing it: nothing is written at all."""
    return {verb(kind): why for kind in COMMANDS}


def _loop(session: Session, **options: Any) -> RunLoop:
    """Return the engine thread for a driver; one that only views needs none."""
    from hitl_tui.engine.nodes.activity import before_end
    from hitl_tui.engine.run.loop import RunLoop

    if flush_output not in before_end:
        before_end.append(flush_output)
    return RunLoop(session, **options)
