"""The runner: a compiled graph with a store, and everything you can do to its threads.

Specified in docs/spec/graphs.md and docs/spec/data.md.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, get_args

from hitl_tui.engine import commands
from hitl_tui.engine.commands import (
    Answer,
    Cancel,
    Command,
    ConfigureAgents,
    Declassify,
    ExtendLimits,
    Fork,
    Note,
    Reveal,
    Rollback,
    Start,
    UpdateState,
)
from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.graph.limits import OnLimit
from hitl_tui.engine.graph.names_elsewhere import RUNNING, refuse_attribute
from hitl_tui.engine.graph.options import check_callback, check_choice
from hitl_tui.engine.graph.runner_calls import checks_calls
from hitl_tui.engine.log.events import AppliedUpdate, Event, RunEnded
from hitl_tui.engine.log.records import Checkpoint, Limits
from hitl_tui.engine.log.signing import Signer, Signers
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import Stamp, ThreadInfo, check_thread_id
from hitl_tui.engine.nodes.children import graph_of_child
from hitl_tui.engine.state.listing import printable
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.engine.thread.agent_settings import AgentInfo, Settings, fresh_agents
from hitl_tui.engine.thread.rebuild import applied_updates, state_at
from hitl_tui.engine.thread.run_inputs import check_same_context
from hitl_tui.engine.thread.session import Session, now_us
from hitl_tui.errors import HitlError, UnknownThread, UsageError

if TYPE_CHECKING:
    from hitl_tui.engine.audit.anchor import Anchor
    from hitl_tui.engine.audit.costs import CostReport, RunInfo
    from hitl_tui.engine.audit.findings import VerifyReport
    from hitl_tui.engine.audit.replay import ReplayReport
    from hitl_tui.engine.nodes.results import RunResult, StepResult
    from hitl_tui.engine.run.loop import RunLoop
    from hitl_tui.engine.run.rollback import RollbackReport

R = TypeVar("R")


Resume = Literal["cursor", "entry"]
OnStep = Callable[[str, WorkflowState], Any]
OnEvent = Callable[[Event], Any]
RunT = TypeVar("RunT", bound="RunLoop")


@checks_calls
class GraphRunner:
    """Runs threads of one graph.

    Args:
        graph: from `StateGraph.compile`.
        store: where threads are kept; None keeps them only in memory.
        signer: signs decisions that name a person, for example `SshSigner`.
    """

    def __init__(
        self, graph: CompiledGraph, store: Store | None = None, signer: Signer | None = None
    ) -> None:
        self.graph = graph
        self.store = store
        self.signer = signer
        self.source: Mapping[str, Any] = {}
        # By thread: when it was created (another thread may get its name later), and its agents.
        self._agents: dict[str, tuple[bytes, dict[str, Any]]] = {}
        # The thread that ran last and the store's stamp after that run; empty while it is in use.
        self._last: list[tuple[Session, Stamp]] = []

    def __repr__(self) -> str:
        store = f", store={type(self.store).__name__}" if self.store is not None else ""
        return f"GraphRunner({self.graph.name!r}, nodes={list(self.graph.nodes)}{store})"

    if not TYPE_CHECKING:  # or a type checker would take any name for one of ours

        def __getattr__(self, name: str) -> NoReturn:
            refuse_attribute(self, "a GraphRunner", name, RUNNING)

    def with_store(self, store: Store, source: Mapping[str, Any] | None = None) -> GraphRunner:
        """Return a runner of the same graph on another store; `source` says how to build the graph again."""
        runner = GraphRunner(self.graph, store, self.signer)
        runner.source = dict(source or self.source)
        return runner

    def invoke(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        thread_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        max_iterations: int | None = None,
        resume: Resume = "cursor",
        on_step: OnStep | None = None,
        on_event: OnEvent | None = None,
        on_limit: OnLimit = "stop",
        verbose: bool = False,
    ) -> RunResult:
        """Run a thread until it waits, ends or fails, and return where it stopped.

        Args:
            inputs: channel updates for step 0 or, in a later invocation, for the next step; never dropped.
            thread_id: the thread to start or to resume; a new id by default.
            context: JSON that nodes, routes and tools read as `config.context`; kept with the invocation that
                starts here, and used again wherever that is resumed.
            max_iterations: node runs allowed in this invocation, instead of the thread's own limit, which is
                not changed.
            resume: True continues at the cursor; False starts at the entry node with the current state.
            on_step: called as (node, state) after each committed node.
            on_event: called with every event.
            on_limit: what happens at a limit: "stop" ends the run, "ask" asks a person.
            verbose: print a line for each step.

        Raises:
            NodeFailed: a node failed; the thread is kept and can be resumed.
            ThreadBusy: another run holds the thread.
        """
        from hitl_tui.engine.run.sync import run_sync

        return run_sync(
            self.ainvoke(
                inputs,
                thread_id=thread_id,
                context=context,
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
        context: Mapping[str, Any] | None = None,
        max_iterations: int | None = None,
        resume: Resume = "cursor",
        on_step: OnStep | None = None,
        on_event: OnEvent | None = None,
        on_limit: OnLimit = "stop",
        verbose: bool = False,
    ) -> RunResult:
        """Do what `invoke` does, in a running event loop."""
        check_choice("on_limit", on_limit, get_args(OnLimit))
        check_callback("on_step", on_step)
        callback = _EventCallback(on_event)
        session = self._prepare(
            inputs, thread_id, callback.sink, context=context, max_iterations=max_iterations, resume=resume
        )
        run = callback.by(_run_loop(session, on_limit=on_limit))
        async with aclosing(run.steps()) as steps:
            async for node in steps:
                if verbose:
                    print(_step_line(session, node))
                if on_step and not callback.error:
                    on_step(node, session.view())
        self._keep_open(session)
        callback.raise_any(run.error)
        return result_of(session)

    def stream(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        thread_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        max_iterations: int | None = None,
        resume: Resume = "cursor",
        on_event: OnEvent | None = None,
        on_limit: OnLimit = "stop",
    ) -> Iterator[StepResult]:
        """Do what `invoke` does, and yield after each committed node; leaving early pauses the thread."""
        from hitl_tui.engine.run.sync import run_on

        loop = asyncio.new_event_loop()
        steps = self.astream(
            inputs,
            thread_id=thread_id,
            context=context,
            max_iterations=max_iterations,
            resume=resume,
            on_event=on_event,
            on_limit=on_limit,
        )
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
        context: Mapping[str, Any] | None = None,
        max_iterations: int | None = None,
        resume: Resume = "cursor",
        on_event: OnEvent | None = None,
        on_limit: OnLimit = "stop",
    ) -> AsyncGenerator[StepResult, None]:
        """Do what `stream` does, in a running event loop."""
        from hitl_tui.engine.nodes.results import StepResult

        latest: list[AppliedUpdate] = []

        def listen(event: Event) -> None:
            if hasattr(event, "updates"):
                latest[:] = event.updates
            if on_event:
                on_event(event)

        check_choice("on_limit", on_limit, get_args(OnLimit))
        check_callback("on_event", on_event)
        callback = _EventCallback(listen)
        session = self._prepare(
            inputs, thread_id, callback.sink, context=context, max_iterations=max_iterations, resume=resume
        )
        run = callback.by(_run_loop(session, on_limit=on_limit))
        async with aclosing(run.steps()) as steps:
            async for node in steps:
                cursor = session.cursor
                yield StepResult(node, cursor.head, cursor.iteration, tuple(latest), session.shown())
        callback.raise_any(run.error)

    def step(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        thread_id: str | None = None,
        context: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
    ) -> RunResult:
        """Run one node; raises the errors of `invoke`."""
        from hitl_tui.engine.run.sync import run_sync

        return run_sync(self._step(inputs, thread_id, context, on_event))

    async def _step(
        self,
        inputs: Mapping[str, Any] | None,
        thread_id: str | None,
        context: Mapping[str, Any] | None,
        on_event: OnEvent | None,
    ) -> RunResult:
        callback = _EventCallback(on_event)
        session = self._prepare(inputs, thread_id, callback.sink, context=context)
        run = callback.by(_run_loop(session, once=True))
        async with aclosing(run.steps()) as steps:
            async for _ in steps:
                pass
        self._keep_open(session)
        callback.raise_any(run.error)
        return result_of(session)

    def get_state(self, thread_id: str, step: int | None = None) -> dict[str, Any]:
        """Return all channel values at a step, the newest by default."""
        store = self._store()
        if step is None and (kept := self._take_kept(thread_id)):
            self._last.append(kept)
            return dict(kept[0].state.values)
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
        """Return checkpoints before a step (None: from the newest), newest first."""
        return self._store().checkpoints(thread_id, before, limit)

    def updates(self, thread_id: str, step: int) -> tuple[AppliedUpdate, ...]:
        """Return the updates of a step as they went through their reducers."""
        store = self._store()
        defaults = {name: channel.default for name, channel in self._graph_of(thread_id).channels.items()}
        values = state_at(store, thread_id, step - 1, defaults) if step > 0 else defaults
        return applied_updates(store.records(thread_id, step, step), values)[0]

    def update_state(
        self,
        thread_id: str,
        values: Mapping[str, Any],
        *,
        expected_step: int | None = None,
        as_node: str | None = None,
        actor: str | None = None,
        note: str | None = None,
    ) -> int:
        """Set channel values as a new step, without reducers; return the step.

        Args:
            expected_step: the head when the edit was made; the edit is refused if the head is another step
                now.
            as_node: continue as if this node had just run.

        Raises:
            StaleWriter, ThreadBusy, UndeclaredChannel, SchemaMismatch, ValueRejected: nothing is stored.
        """
        return self._execute(thread_id, UpdateState(values, expected_step, as_node, actor, note))

    def answer(
        self,
        thread_id: str,
        request_id: str,
        value: Any,
        *,
        step: int,
        actor: str | None = None,
        note: str | None = None,
    ) -> int:
        """Answer a pending request about `step`; return the newest step.

        Raises:
            AnswerRefused: late, unknown, duplicate, stale, unauthorised or not signed; the refusal is
                recorded.
            SigningFailed: nothing was stored.
        """
        return self._execute(thread_id, Answer(request_id, value, step, actor, note))

    def fork(
        self,
        thread_id: str,
        step: int,
        new_thread_id: str,
        *,
        changes: Mapping[str, Any] | None = None,
        agents: Settings | None = None,
        actor: str | None = None,
        note: str | None = None,
    ) -> str:
        """Make a new thread from a committed step; return its id.

        Args:
            changes: channel values to start with.
            agents: different settings of agents, such as {"worker": {"model": "...", "temperature": 0}}.
        """
        parent = Session.open(
            self._graph_of(thread_id),
            self._store(),
            thread_id,
            agents={},
            with_state=False,
            signer=self.signer,
        )
        return commands.execute(parent, Fork(step, new_thread_id, changes, agents, actor, note))

    def declassify(
        self, thread_id: str, channel: str, *, actor: str, reason: str, expected_step: int | None = None
    ) -> int:
        """Clear a channel's taint as a new step that changes no value; return the step.

        Args:
            reason: why its value may be trusted now; kept in the ledger.
            expected_step: the head when it was checked; refused if the head is another step now.

        Raises:
            UsageError, StaleWriter, ThreadBusy, UndeclaredChannel: nothing is stored.
        """
        return self._execute(thread_id, Declassify(channel, actor, reason, expected_step))

    def reveal(self, thread_id: str, channel: str, *, actor: str, step: int | None = None) -> Any:
        """Return a channel's value at a step (the newest by default), and note that in the ledger."""
        return self._execute(thread_id, Reveal(channel, actor, step))

    def note(self, thread_id: str, text: str, *, step: int | None = None, actor: str | None = None) -> None:
        """Leave a note on a step (the newest by default), for others to read; kept in the ledger.

        Raises:
            UsageError, UnknownThread, ThreadBusy: nothing is stored.
        """
        self._execute(thread_id, Note(text, step, actor))

    def cancel(self, thread_id: str, *, actor: str | None = None, note: str | None = None) -> None:
        """End a thread as cancelled(user)."""
        self._execute(thread_id, Cancel(actor, note))

    def extend_limits(
        self, thread_id: str, *, actor: str | None = None, note: str | None = None, **limits: float | None
    ) -> None:
        """Raise limits (named as in `Limits`), so that a thread that one has stopped can continue; logged."""
        self._execute(thread_id, ExtendLimits(limits, actor, note))

    def agent_infos(self, thread_id: str) -> tuple[AgentInfo, ...]:
        """Return the thread's agents as they will be in the next step: settings, use, turns."""
        from hitl_tui.engine.commands.agents import agents_of

        return agents_of(self.open(thread_id), self.store)

    def configure_agent(
        self,
        thread_id: str,
        agent: str,
        *,
        actor: str | None = None,
        note: str | None = None,
        **settings: Any,
    ) -> None:
        """Change `model`, `instructions`, `temperature` or `api_base` of an agent from the next step on.

        None resets a setting to the graph's value. The change is logged and kept with the thread.

        Raises:
            UsageError: no such agent or setting.
        """
        self._execute(thread_id, ConfigureAgents({agent: settings}, actor, note))

    def _execute(self, thread_id: str, command: Command[R]) -> R:
        session = self.open(thread_id)
        with session.writing():
            return commands.execute(session, command)

    def rollback(
        self,
        thread_id: str,
        *,
        actor: str | None = None,
        note: str | None = None,
        on_event: OnEvent | None = None,
    ) -> RollbackReport:
        """Undo the side effects of a thread's nodes, the last one first.

        Each entry runs its handler once, as a step `<rollback>/NODE`. A handler that fails is recorded, and
        the others still run. The thread ends as cancelled(rolled_back); or as failed, with the entries that
        remain, which the next rollback tries again.

        Raises:
            ThreadBusy: the thread is running.
        """
        from hitl_tui.engine.run.sync import run_sync

        return run_sync(self.arollback(thread_id, actor=actor, note=note, on_event=on_event))

    async def arollback(
        self,
        thread_id: str,
        *,
        actor: str | None = None,
        note: str | None = None,
        on_event: OnEvent | None = None,
    ) -> RollbackReport:
        """Do what `rollback` does, in a running event loop."""
        from hitl_tui.engine.run.rollback import RollbackLoop, rollback_report

        callback = _EventCallback(on_event)
        session = self.open(thread_id, callback.sink)
        run = callback.by(RollbackLoop(session, Rollback(actor, note)))
        async with aclosing(run.steps()) as steps:
            async for _ in steps:
                pass
        callback.raise_any(None)
        return rollback_report(session)

    def anchor(self, thread_id: str) -> Anchor:
        """Return the newest hashes of a thread, to be kept outside the store: `str()` of them is one line.

        Raises:
            UnknownThread, LogCorrupt: there is no thread, or its log is damaged.
        """
        from hitl_tui.engine.audit.anchor import anchor

        return anchor(self._store(), thread_id, now_us())

    def verify(
        self,
        thread_id: str,
        strict: bool = False,
        *,
        anchor: Anchor | Sequence[Anchor] = (),
        signers: Signers | None = None,
        since: int = 0,
        watch: Callable[[int, int], object] | None = None,
    ) -> VerifyReport:
        """Check the log of a thread and of its subgraphs' threads against its hashes; changes nothing.

        A long thread in a SQLite store is checked on all cores; a strict check runs in one process.

        Args:
            strict: reduce every update again with this graph's reducers.
            anchor: an earlier `anchor` of the thread; its log must contain that, and only continue it.
            signers: checks the signatures of decisions, for example `AllowedSigners`.
            since: check only this step, which an anchor must be about, and those after it.
            watch: called now and then with (steps checked, all steps); an error that it raises ends the
                check.
        """
        from hitl_tui.engine.audit.anchor import Anchor
        from hitl_tui.engine.audit.verify import verify_tree

        anchors = (anchor,) if isinstance(anchor, Anchor) else anchor
        return verify_tree(
            self._store(),
            thread_id,
            self._graph_of(thread_id),
            strict=strict,
            anchors=anchors,
            signers=signers,
            since=since,
            watch=watch,
        )

    def replay(self, thread_id: str) -> ReplayReport:
        """Run the graph on the recorded results of its nodes, in order; changes nothing.

        Routes and termination conditions are really called; nodes and models are not.

        Raises:
            ReplayMismatch: the graph leads to another node than was recorded; names both.
        """
        from hitl_tui.engine.audit.replay import replay

        report = replay(self._store(), self._graph_of(thread_id), thread_id)
        report.check()
        return report

    def run_info(self, thread_id: str) -> RunInfo:
        """Return the record of a thread: how it was started, and with which graph."""
        from hitl_tui.engine.audit.costs import run_info

        return run_info(
            Session.open(self._graph_of(thread_id), self._store(), thread_id, agents={}, with_state=False)
        )

    def cost_report(self, thread_id: str | None = None) -> CostReport:
        """Return calls, tokens and cost by agent, provider and model; also by node and by step.

        Args:
            thread_id: None for all threads of the store together.
        """
        from hitl_tui.engine.audit.costs import cost_report

        agents = self.graph.agents if thread_id is None else self._graph_of(thread_id).agents
        return cost_report(self._store(), thread_id, agents.values())

    def to_mermaid(self) -> str:
        """Return the graph as Mermaid text."""
        from hitl_tui.engine.graph import drawing

        return drawing.to_mermaid(self.graph.info)

    def to_dot(self) -> str:
        """Return the graph as Graphviz text."""
        from hitl_tui.engine.graph import drawing

        return drawing.to_dot(self.graph.info)

    def open(self, thread_id: str, on_event: OnEvent | None = None) -> Session:
        """Open a thread of the store; raises `UnknownThread`."""
        check_callback("on_event", on_event)
        store = self._store()
        info = store.info(thread_id)
        graph = self._graph_for(info)
        agents = self._agents_of(graph, info)
        return Session.open(graph, store, thread_id, agents=agents, sink=on_event, signer=self.signer)

    def _agents_of(self, graph: CompiledGraph, info: ThreadInfo | None) -> dict[str, Any]:
        """Return a thread's own agents.

        Their chat histories are not in its state, and last as long as this process.

        The histories of a deleted thread are dropped: a new thread with its name starts with none.
        """
        known = self._agents.get(info.thread_id) if info else None
        if info is None or not info.birth or known is None or known[0] != info.birth:
            agents = fresh_agents(graph)
            if info and info.birth:
                self._agents[info.thread_id] = info.birth, agents
            return agents
        return known[1]

    def _keep_open(self, session: Session) -> None:
        """Keep a thread open for its next step, if it is the same as when it is opened from the store."""
        cursor = session.cursor
        waits = cursor.pending or cursor.branches or cursor.answers or cursor.first_call
        if self.store is None or waits or session.children or session.state.other:
            return
        if session.stamp is not None:
            session.sink = None
            self._last = [(session, session.stamp)]

    def _take_kept(self, thread_id: str) -> tuple[Session, Stamp] | None:
        """Take out the thread that ran last, if it is this one and nobody has written to the store since."""
        try:
            session, stamp = self._last.pop()
        except IndexError:  # there is none, or something else in this process uses it
            return None
        if self.store is None or session.thread_id != thread_id or session.graph is not self.graph:
            return None
        return (session, stamp) if self.store.stamp(thread_id) == stamp else None

    def _graph_of(self, thread_id: str) -> CompiledGraph:
        """Return the graph of a thread: this one, or the subgraph inside it that the thread runs."""
        return self._graph_for(self.store.info(thread_id) if self.store else None)

    def _graph_for(self, info: ThreadInfo | None) -> CompiledGraph:
        return graph_of_child(self.graph, info.source, self.source) if info else self.graph

    def _store(self) -> Store:
        if self.store is None:
            raise UsageError("this runner keeps nothing", "compile(checkpointer=...) to keep threads")
        return self.store

    def _check_kept(self) -> None:
        """Refuse to run a graph that stops for a person where nothing would keep its thread."""
        if self.store is not None:
            return
        from hitl_tui.engine.graph.composition import asks_humans

        if asking := asks_humans(self.graph):
            raise UsageError(
                f"{asking} needs a store, or a stopped run could not continue",
                "compile(checkpointer=SQLiteCheckpointer(path)), or MemoryCheckpointer(); "
                "`hitl-tui run` brings its own store",
            )

    def _prepare(
        self,
        inputs: Mapping[str, Any] | None,
        thread_id: str | None,
        sink: OnEvent | None,
        *,
        context: Mapping[str, Any] | None,
        max_iterations: int | None = None,
        resume: Resume = "cursor",
    ) -> Session:
        """Return the thread with its input committed, ready to run."""
        self._check_kept()
        check_choice("resume", resume, get_args(Resume))
        check_callback("on_event", sink)
        if max_iterations is not None:
            Limits(max_iterations=max_iterations)  # refuses an invalid context
        if thread_id is None:
            name = f"{self.graph.name}-{uuid.uuid4().hex[:8]}"
        else:
            name = check_thread_id(thread_id)
        if kept := self._take_kept(name):
            session = kept[0]
            session.sink, session.signer = sink, self.signer
        elif self.store is not None and self.store.info(name) is not None:
            session = self.open(name, sink)
        else:
            agents = fresh_agents(self.graph)
            session = Session.new(
                self.graph,
                self.store,
                name,
                source=self.source,
                agents=agents,
                sink=sink,
                signer=self.signer,
            )
            if session.info.birth:
                self._agents[name] = session.info.birth, agents
        session.max_iterations = max_iterations
        from_entry = resume == "entry" and session.cursor.head >= 0
        if inputs or session.cursor.head < 0 or from_entry:
            with session.writing():
                given = {} if inputs is None else inputs
                commands.execute(session, Start(given, from_entry=from_entry, context=context))
        elif context is not None:
            check_same_context(session.cursor, context)
        return session


def _run_loop(session: Session, **options: Any) -> RunLoop:
    """Make the loop that runs a thread, imported late: a graph that is only shown needs none."""
    from hitl_tui.engine.run.loop import RunLoop

    return RunLoop(session, **options)


def _step_line(session: Session, node: str) -> str:
    """Describe a step in one line: the node that ran, the next one, and what has been spent."""
    progress = session.progress
    leads = progress.next_node if progress.status == "running" else f"{progress.status} ({progress.reason})"
    price = f"${progress.cost:.4f}"
    if not progress.cost_known:
        price = f"at least {price}" if progress.cost else "price unknown"
    spent = f"{progress.tokens_in + progress.tokens_out} tokens, {price}"
    line = f"step {progress.head}: {node} -> {leads or 'nowhere'}; {spent}"
    return printable(line)


class _EventCallback:
    """Calls a caller's `on_event`; an error in it stops the run before the next node, and is raised then.

    The events that it got are committed already, so no commit and no node is to blame for the error.
    """

    def __init__(self, on_event: OnEvent | None) -> None:
        check_callback("on_event", on_event)
        self.sink = self._call if on_event else None
        self.error: Exception | None = None
        self._on_event = on_event
        self._run: RunLoop | None = None

    def by(self, run: RunT) -> RunT:
        """Set the run that emits the events, and return it."""
        self._run = run
        if self.error:
            run.pause()
        return run

    def raise_any(self, failure: HitlError | None) -> None:
        """Raise the error of the run or of the callback, if there is one."""
        if error := failure or self.error:
            raise error

    def _call(self, event: Event) -> None:
        if self._on_event is None or (self.error and not isinstance(event, RunEnded)):
            return
        try:
            self._on_event(event)
        except Exception as error:
            self.error = self.error or error
            if self._run:
                self._run.pause()


def result_of(session: Session) -> RunResult:
    """Return the status and state of a thread, as a run returns it."""
    from hitl_tui.engine.nodes.results import RunResult

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
        private=[name for name, known in session.graph.channels.items() if known.visibility == "private"],
    )
