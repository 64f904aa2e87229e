"""The runner: a compiled graph with a store, and everything one can do to its threads (SPEC 5, 11)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Literal, TypeVar, get_args

from hitl_tui.engine.channels.state import WorkflowState
from hitl_tui.engine.graphs.compiled import CompiledGraph
from hitl_tui.engine.graphs.kinds_given import check_callback, check_choice
from hitl_tui.engine.graphs.limits import check_limits
from hitl_tui.engine.humans import decisions
from hitl_tui.engine.humans.agent_changes import AgentControl
from hitl_tui.engine.humans.control import ThreadControl
from hitl_tui.engine.log.events import AppliedUpdate, Event, RunEnded
from hitl_tui.engine.log.records import Checkpoint, Limits
from hitl_tui.engine.log.signing import Signer
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.nodes.results import RunResult, StepResult
from hitl_tui.engine.reports.reporting import Reporting
from hitl_tui.engine.running.loop import OnLimit, Run
from hitl_tui.engine.running.syncing import run_on, run_sync
from hitl_tui.engine.thread.agent_settings import fresh_agents
from hitl_tui.engine.thread.rebuild import applied_updates, state_at
from hitl_tui.engine.thread.session import Session
from hitl_tui.engine.undo.rollback import Rollback, RollbackReport, rollback_report
from hitl_tui.errors import HitlError, UnknownThread, UsageError, in_words

Resume = Literal["cursor", "entry"]
OnStep = Callable[[str, WorkflowState], Any]
OnEvent = Callable[[Event], Any]
RunT = TypeVar("RunT", bound=Run)


class GraphRunner(Reporting, ThreadControl, AgentControl):
    """Runs threads of one graph.

    Args:
        graph: from `StateGraph.compile`.
        store: where threads live; None keeps nothing.
        signer: signs what is decided about its threads under a name, as `SshSigner`.
    """

    def __init__(
        self, graph: CompiledGraph, store: Store | None = None, signer: Signer | None = None
    ) -> None:
        self.graph = graph
        self.store = store
        self.signer = signer
        self.source: Mapping[str, Any] = {}
        self._agents: dict[str, dict[str, Any]] = {}

    def with_store(self, store: Store, source: Mapping[str, Any] | None = None) -> GraphRunner:
        """The same graph on another store; `source` says how to build the graph again."""
        runner = GraphRunner(self.graph, store, self.signer)
        runner.source = dict(source or self.source)
        return runner

    def invoke(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        thread_id: str | None = None,
        max_iterations: int | None = None,
        resume: Resume = "cursor",
        on_step: OnStep | None = None,
        on_event: OnEvent | None = None,
        on_limit: OnLimit = "stop",
        verbose: bool = False,
    ) -> RunResult:
        """Run a thread until it waits, ends or fails, and return where it stopped.

        Args:
            inputs: channel updates for step 0 or, later, the next step; never dropped.
            thread_id: the thread to start or to resume; a new id by default.
            max_iterations: node runs allowed in this invocation, in place of the thread's own limit, which
                stays as it is.
            resume: go on at the cursor, or start at the entry node on the state as it is.
            on_step: called as (node, state) after each committed node.
            on_event: called with every event.
            on_limit: what a reached limit does.
            verbose: print a line a step.

        Raises:
            NodeFailed: a node failed; the thread is kept and may be resumed.
            ThreadBusy: another run holds the thread.
        """
        return run_sync(
            self.ainvoke(
                inputs,
                thread_id=thread_id,
                max_iterations=max_iterations,
                resume=resume,
                on_step=on_step,
                on_event=on_event,
                on_limit=on_limit,
                verbose=verbose,
            )
        )

    async def ainvoke(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        thread_id: str | None = None,
        max_iterations: int | None = None,
        resume: Resume = "cursor",
        on_step: OnStep | None = None,
        on_event: OnEvent | None = None,
        on_limit: OnLimit = "stop",
        verbose: bool = False,
    ) -> RunResult:
        """As `invoke`, in a running event loop."""
        check_choice("on_limit", on_limit, get_args(OnLimit))
        check_callback("on_step", on_step)
        told = _Told(on_event)
        session = self._prepare(inputs, thread_id, max_iterations, resume, told.sink)
        run = told.by(Run(session, on_limit=on_limit))
        async with aclosing(run.steps()) as steps:
            async for node in steps:
                if verbose:
                    print(_line(session, node))
                if on_step and not told.error:
                    on_step(node, session.view())
        told.raise_any(run.error)
        return result_of(session)

    def stream(
        self, inputs: Mapping[str, Any] | None = None, *, thread_id: str | None = None, **options: Any
    ) -> Iterator[StepResult]:
        """As `invoke`, yielding after each committed node; leaving early pauses the thread."""
        loop = asyncio.new_event_loop()
        steps = self.astream(inputs, thread_id=thread_id, **options)
        try:
            while True:
                try:
                    yield run_on(loop, anext(steps))
                except StopAsyncIteration:
                    return
        finally:
            run_on(loop, steps.aclose())
            loop.close()

    async def astream(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        thread_id: str | None = None,
        max_iterations: int | None = None,
        resume: Resume = "cursor",
        on_event: OnEvent | None = None,
        on_limit: OnLimit = "stop",
    ) -> AsyncGenerator[StepResult, None]:
        """As `stream`, in a running event loop."""
        latest: list[AppliedUpdate] = []

        def listen(event: Event) -> None:
            if hasattr(event, "updates"):
                latest[:] = event.updates
            if on_event:
                on_event(event)

        check_choice("on_limit", on_limit, get_args(OnLimit))
        check_callback("on_event", on_event)
        told = _Told(listen)
        session = self._prepare(inputs, thread_id, max_iterations, resume, told.sink)
        run = told.by(Run(session, on_limit=on_limit))
        async with aclosing(run.steps()) as steps:
            async for node in steps:
                cursor = session.cursor
                yield StepResult(node, cursor.head, cursor.iteration, tuple(latest), session.shown())
        told.raise_any(run.error)

    def step(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        thread_id: str | None = None,
        on_event: OnEvent | None = None,
    ) -> RunResult:
        """Run one node; raises as `invoke`."""
        return run_sync(self._step(inputs, thread_id, on_event))

    async def _step(
        self, inputs: Mapping[str, Any] | None, thread_id: str | None, on_event: OnEvent | None
    ) -> RunResult:
        told = _Told(on_event)
        session = self._prepare(inputs, thread_id, None, "cursor", told.sink)
        run = told.by(Run(session, once=True))
        async with aclosing(run.steps()) as steps:
            async for _ in steps:
                pass
        told.raise_any(run.error)
        return result_of(session)

    def get_state(self, thread_id: str, step: int | None = None) -> dict[str, Any]:
        """All channel values as of a step, the newest by default."""
        store = self._store()
        cursor = store.cursor(thread_id)
        if cursor is None:
            raise UnknownThread(
                f"there is no thread {thread_id!r}", "see `list_threads()` of the checkpointer"
            )
        defaults = {name: channel.default for name, channel in self._graph_of(thread_id).channels.items()}
        if step is None and cursor.head < 0:
            return defaults
        return state_at(store, thread_id, cursor.head if step is None else step, defaults)

    def history(self, thread_id: str, before: int | None = None, limit: int = 50) -> list[Checkpoint]:
        """Checkpoints before a step (None: from the newest), newest first."""
        return self._store().checkpoints(thread_id, before, limit)

    def updates(self, thread_id: str, step: int) -> tuple[AppliedUpdate, ...]:
        """The updates of a step as they went through their reducers."""
        store = self._store()
        defaults = {name: channel.default for name, channel in self._graph_of(thread_id).channels.items()}
        values = state_at(store, thread_id, step - 1, defaults) if step > 0 else defaults
        return applied_updates(store.records(thread_id, step, step), values)[0]

    def rollback(
        self,
        thread_id: str,
        *,
        actor: str | None = None,
        note: str | None = None,
        on_event: OnEvent | None = None,
    ) -> RollbackReport:
        """Undo what the nodes of a thread did outside its state, last one first (SPEC 13).

        Each entry runs its handler once, as a step `<rollback>/NODE`. A handler that fails is recorded
        and the others still run. The thread ends cancelled(rolled_back), or failed with the entries that
        remain, which the next rollback tries again.

        Raises:
            ThreadBusy: the thread is running.
        """
        return run_sync(self.arollback(thread_id, actor=actor, note=note, on_event=on_event))

    async def arollback(
        self,
        thread_id: str,
        *,
        actor: str | None = None,
        note: str | None = None,
        on_event: OnEvent | None = None,
    ) -> RollbackReport:
        """As `rollback`, in a running event loop."""
        told = _Told(on_event)
        session = self.open(thread_id, told.sink)
        run = told.by(Rollback(session, actor=actor, note=note))
        async with aclosing(run.steps()) as steps:
            async for _ in steps:
                pass
        told.raise_any(None)
        return rollback_report(session)

    def open(self, thread_id: str, on_event: OnEvent | None = None) -> Session:
        """A thread of the store; raises `UnknownThread`."""
        check_callback("on_event", on_event)
        return Session.open(
            self._graph_of(thread_id),
            self._store(),
            thread_id,
            agents=self.agents(thread_id),
            sink=on_event,
            signer=self.signer,
        )

    def agents(self, thread_id: str) -> dict[str, Any]:
        """The thread's own agents: each thread has its own chat histories, which are no state (seed 000)."""
        return self._agents.setdefault(thread_id, fresh_agents(self._graph_of(thread_id)))

    def _prepare(
        self,
        inputs: Mapping[str, Any] | None,
        thread_id: str | None,
        max_iterations: int | None,
        resume: Resume,
        sink: OnEvent | None,
    ) -> Session:
        """The thread with its input committed, ready to run."""
        check_choice("resume", resume, get_args(Resume))
        check_callback("on_event", sink)
        if max_iterations is not None:
            check_limits(Limits(max_iterations=max_iterations))
        if thread_id is not None and not isinstance(thread_id, str):
            raise UsageError(
                f"the thread id is {in_words(thread_id)}", f"give text, as thread_id='{thread_id}'"
            )
        name = thread_id or f"{self.graph.name}-{uuid.uuid4().hex[:8]}"
        if self.store is not None and self.store.info(name) is not None:
            session = self.open(name, sink)
        else:
            session = Session.new(
                self.graph,
                self.store,
                name,
                source=self.source,
                agents=self.agents(name),
                sink=sink,
                signer=self.signer,
            )
        session.max_iterations = max_iterations
        from_entry = resume == "entry" and session.cursor.head >= 0
        if inputs or session.cursor.head < 0 or from_entry:
            with session.writing():
                decisions.start(session, inputs, from_entry=from_entry)
        return session


def _line(session: Session, node: str) -> str:
    """A step in one line: what ran, where it leads and what has been spent."""
    progress = session.progress
    leads = progress.next_node if progress.status == "running" else f"{progress.status} ({progress.reason})"
    spent = f"{progress.tokens_in + progress.tokens_out} tokens, ${progress.cost:.4f}"
    line = f"step {progress.head}: {node} -> {leads or 'nowhere'}; {spent}"
    return line if line.isprintable() else repr(line)


class _Told:
    """A caller's `on_event`: its error stops the run before the next node, and is raised then.

    What was told already is committed, so no commit and no node is to blame for it.
    """

    def __init__(self, on_event: OnEvent | None) -> None:
        check_callback("on_event", on_event)
        self.sink = self._tell if on_event else None
        self.error: Exception | None = None
        self._on_event = on_event
        self._run: Run | None = None

    def by(self, run: RunT) -> RunT:
        """The run whose events they are."""
        self._run = run
        if self.error:
            run.pause()
        return run

    def raise_any(self, failure: HitlError | None) -> None:
        """Raise what went wrong in the run, or in the callback."""
        if error := failure or self.error:
            raise error

    def _tell(self, event: Event) -> None:
        if self._on_event is None or (self.error and not isinstance(event, RunEnded)):
            return
        try:
            self._on_event(event)
        except Exception as error:
            self.error = self.error or error
            if self._run:
                self._run.pause()


def result_of(session: Session) -> RunResult:
    """Where a thread stands, as a run returns it."""
    cursor = session.cursor
    return RunResult(
        thread_id=session.thread_id,
        status=cursor.status,
        reason=cursor.reason,
        step=cursor.head,
        state=session.state.values,
        pending=cursor.pending,
        error=cursor.error,
        output=session.graph.output,
    )
