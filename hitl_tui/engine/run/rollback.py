"""Rollback: runs the compensation handlers of a thread and its subgraphs, the last one first, each as a step.

Specified in docs/spec/rollback.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.commands.command import Rollback
from hitl_tui.engine.commands.decisions import decision_entry
from hitl_tui.engine.graph.compensation import UNDO_FAILED, UNDONE, RollbackEntry, unknown_handler
from hitl_tui.engine.graph.compiled import Node
from hitl_tui.engine.log.events import AttemptDropped, AttemptFailed, NodeStarted
from hitl_tui.engine.log.outcomes import ErrorInfo, ModelUse
from hitl_tui.engine.log.records import ROLLBACK, ROLLED_BACK, Checkpoint, Cursor, LedgerEntry, Status
from hitl_tui.engine.log.redaction import hiding
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.nodes.activity import Activity, AttemptCancelled
from hitl_tui.engine.nodes.calling import SyncCaller
from hitl_tui.engine.nodes.children import graph_inside, open_child, started_children, threads_of_step
from hitl_tui.engine.nodes.results import NodeOutput
from hitl_tui.engine.run.loop import RunLoop
from hitl_tui.engine.run.subgraph import ChildEvents
from hitl_tui.engine.state.changes import Change
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.thread.canaries import refuse_canary
from hitl_tui.engine.thread.journal import StepFacts, with_use
from hitl_tui.engine.thread.logged import check_steps, decisions, logged_graph
from hitl_tui.engine.thread.private import without_private
from hitl_tui.engine.thread.rebuild import state_at
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import STORE_FAILURES, GraphInvalid, HitlError, NodeFailed, UnknownThread

_PAGE = 256


class ChildRollback(msgspec.Struct, frozen=True):
    """The thread of a subgraph, undone as a whole at its place among its parent's steps.

    Attributes:
        node: the subgraph's node.
        entries: what can be undone of it and of its child threads.
        is_over: nothing is left to do: it has been rolled back.
        own: this thread started it; False for a step from before a fork, whose parent started it.
    """

    thread_id: str
    node: str
    entries: tuple[RollbackEntry, ...] = ()
    is_over: bool = False
    own: bool = True

    @property
    def remains(self) -> bool:
        """Whether a rollback of the parent has to roll it back."""
        return self.own and (not self.is_over or any(entry.remains for entry in self.entries))


def rollback_entries(store: Store | None, cursor: Cursor) -> tuple[RollbackEntry, ...]:
    """Return all entries of a thread and its child threads, in the order in which a rollback runs them.

    Entries that a fork shares with its parent are included. Private values in their arguments are hidden.
    """
    entries: list[RollbackEntry] = []
    for undo in undo_order(store, cursor):
        entries += undo.entries if isinstance(undo, ChildRollback) else [_shown(store, cursor, undo)]
    return tuple(entries)


def _shown(store: Store | None, cursor: Cursor, entry: RollbackEntry) -> RollbackEntry:
    """Return an entry for display: its arguments without the values that are private at its step."""
    info = store.info(cursor.thread_id) if store and entry.args is not None else None
    if store is None or info is None:
        return entry
    channels = logged_graph(store, info, cursor).channels
    names = [channel.name for channel in channels if channel.visibility == "private"]
    private: dict[str, Any] = {
        name: cursor.context[name] for name in cursor.private_context if name in cursor.context
    }
    if names:
        defaults = {channel.name: channel.default for channel in channels}
        before, after = (
            state_at(store, cursor.thread_id, step, defaults, names) for step in (entry.step - 1, entry.step)
        )
        private |= {name: [before.get(name), after.get(name)] for name in names}
    return msgspec.structs.replace(entry, args=hiding(private)(entry.args))


def undo_order(store: Store | None, cursor: Cursor) -> list[RollbackEntry | ChildRollback]:
    """Return what a thread has to undo, the last entry first."""
    if store is None:
        return []
    children = started_children(store, cursor.thread_id)
    if not children and not cursor.compensated:
        return []
    # A visit without a step is ordered by when it started.
    start_by_child = {name: info.created_at for name, info in children.items()}
    info = store.info(cursor.thread_id)
    shared = info.fork_step if info else -1
    outcomes = _outcomes(decisions(store, cursor.thread_id))
    order: list[RollbackEntry | ChildRollback] = []
    for checkpoint in _checkpoints(store, cursor.thread_id):
        threads = threads_of_step(checkpoint)
        for name in threads:
            start_by_child.pop(name, None)
        order += [
            _child_rollback(store, name, node_of(children[name]))
            for name in _take_since(start_by_child, checkpoint.at)
        ]
        inherited = checkpoint.step <= shared
        order += _of_step(checkpoint, outcomes, inherited)
        order += [_child_rollback(store, name, checkpoint.node, own=not inherited) for name in threads]
    return order + [
        _child_rollback(store, name, node_of(children[name])) for name in _take_since(start_by_child, 0)
    ]


def node_of(info: ThreadInfo) -> str:
    """Return the subgraph's node for which a thread ran."""
    return info.owner.node if info.owner else ""


def _checkpoints(store: Store, thread_id: str) -> Iterator[Checkpoint]:
    """Yield the checkpoints of a thread, newest first."""
    before: int | None = None
    while points := store.checkpoints(thread_id, before, _PAGE):
        yield from points
        before = points[-1].step


def _take_since(start_by_child: dict[str, int], at: int) -> list[str]:
    """Remove and return the threads that started at a time or later, newest first."""
    names = [name for name, start in start_by_child.items() if start >= at][::-1]
    for name in names:
        del start_by_child[name]
    return names


def _child_rollback(store: Store, thread_id: str, node: str, *, own: bool = True) -> ChildRollback:
    cursor = store.cursor(thread_id)
    if cursor is None:
        return ChildRollback(thread_id, node, own=own)
    entries = [_entry_of_child(entry, thread_id, own) for entry in rollback_entries(store, cursor)]
    is_over = (cursor.status, cursor.reason) == ROLLED_BACK
    return ChildRollback(thread_id, node, tuple(entries), is_over, own)


def _entry_of_child(entry: RollbackEntry, thread_id: str, own: bool) -> RollbackEntry:
    state = entry.state if own or entry.state == "done" else "inherited"
    return msgspec.structs.replace(entry, thread=entry.thread or thread_id, state=state)


def _of_step(
    point: Checkpoint, outcomes: Mapping[tuple[int, int], Sequence[LedgerEntry]], inherited: bool
) -> Iterator[RollbackEntry]:
    for index in reversed(range(len(point.compensations))):
        compensation = point.compensations[index]
        node = compensation.path or point.node
        entry = RollbackEntry(
            point.step, index, point.invocation, node, compensation.handler, compensation.args, "open"
        )
        yield _with_outcome(entry, outcomes.get((point.step, index), ()), inherited)


def _outcomes(ledger: Iterable[LedgerEntry]) -> dict[tuple[int, int], list[LedgerEntry]]:
    """Return what the ledger says about each entry, oldest first."""
    outcomes: dict[tuple[int, int], list[LedgerEntry]] = {}
    for entry in ledger:
        if entry.kind in (UNDONE, UNDO_FAILED):
            outcomes.setdefault((entry.data["step"], entry.data["index"]), []).append(entry)
    return outcomes


def _with_outcome(entry: RollbackEntry, outcome: Sequence[LedgerEntry], inherited: bool) -> RollbackEntry:
    """Return an entry with its outcome so far."""
    state: Literal["open", "done", "failed", "inherited"] = "inherited" if inherited else "open"
    error, failures = "", [entry for entry in outcome if entry.kind == UNDO_FAILED]
    if outcome and outcome[-1].kind == UNDONE:
        state = "done"
    elif failures:
        state, error = "inherited" if inherited else "failed", failures[-1].note or ""
    return msgspec.structs.replace(entry, state=state, error=error, attempts=len(failures))


class RollbackReport(msgspec.Struct, frozen=True):
    """The result of a rollback: the thread's status, and all entries in the order in which they run."""

    thread_id: str
    status: Status
    reason: str
    step: int
    entries: tuple[RollbackEntry, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is left to undo."""
        return self.status != "failed" and not any(entry.remains for entry in self.entries)


class RollbackLoop(RunLoop):
    """One rollback of a thread; driven, paused and reported like a run.

    Args:
        command: who rolls back, and why, for the record.

    Attributes:
        failed: what could not be undone, here and in child threads: (thread, why).
    """

    def __init__(self, session: Session, command: Rollback, *, threads: SyncCaller | None = None) -> None:
        super().__init__(session, threads=threads)
        self._command = command
        self._todo: list[RollbackEntry | ChildRollback] = []
        self._entry: RollbackEntry | ChildRollback | None = None
        self.failed: list[tuple[str, ErrorInfo]] = []

    def _running_if_paused(self) -> None:
        return None  # what there is to undo is checked first

    def _begin(self) -> bool:
        """Set the thread rolling back; return False if it is rolled back already."""
        session = self.session
        refuse_canary(session.store, session.info)
        cursor = session.cursor
        if session.store is not None:
            check_steps(session.store, cursor)
        self._todo = [undo for undo in undo_order(session.store, cursor) if undo.remains][::-1]
        if not self._todo and (cursor.status, cursor.reason) == ROLLED_BACK:
            return False
        ledger: list[LedgerEntry] = []
        for request in cursor.pending:
            self._write_down(ledger, "withdrawn", request=request, actor=self._command.actor)
        data = {"entries": [_named(entry) for undo in reversed(self._todo) for entry in _remaining(undo)]}
        actor, note = self._command.actor, self._command.note
        self._write_down(ledger, "rollback", actor=actor, note=note, data=data)
        # An attempt that a crash or a person ended counts if it was an attempt to undo.
        attempt = cursor.attempt if cursor.position == ROLLBACK else 1
        session.commit_cursor(
            replace(
                cursor,
                status="running",
                reason="",
                position=ROLLBACK,
                pending=(),
                answers=(),
                branches=(),
                first_call=0,
                counted=0,
                passed=(),
                error=None,
                attempt=attempt,
            ),
            ledger,
        )
        return True

    def _next(self, first: bool) -> str:
        session = self.session
        if session.cursor.status != "running":
            return ""
        if not self._todo:
            return self._finish()
        if self._pause_asked:
            return self._stop("waiting", "paused")
        entry = self._entry = self._todo.pop()
        if isinstance(entry, ChildRollback):
            return f"<{ROLLBACK}>/{entry.node}"
        # Not stored by itself: earlier attempts are in the ledger.
        attempt = max(session.cursor.attempt, entry.attempts + 1)
        session.cursor = replace(session.cursor, attempt=attempt)
        return entry.runs_as

    async def _run_node(self, name: str) -> bool:
        if isinstance(self._entry, ChildRollback):
            return await self._roll_back_child(self._entry, name)
        entry = self._current_entry
        handlers = self.session.graph.compensations
        if entry.handler in handlers:
            await super()._run_node(name)
        else:
            session = self.session
            session.emit(NodeStarted(name, session.cursor.head + 1, session.cursor.attempt, session.clock()))
            self._fail(unknown_handler(entry.handler, handlers), name)
        return self.session.cursor.status == "running"

    async def _roll_back_child(self, below: ChildRollback, name: str) -> bool:
        """Roll back the thread of a subgraph; return False if that was paused or stopped."""
        session, started = self.session, self.session.clock()
        try:
            child = child_session(session, below)
            if child is None:
                return True
            inner = RollbackLoop(child, self._command, threads=self._threads)
            self._inner = inner
            activity = Activity(name, session.cursor.attempt, session.sink)
            self._watch_attempt(activity)
            await ChildRollbackRun(session, below.node, child).run(inner, activity)
        except HitlError as error:
            if isinstance(error, STORE_FAILURES):
                raise
            self._record_unreachable(error, name, below)
            return True
        except (asyncio.CancelledError, AttemptCancelled):
            self._wait_before_node((), started)
            if not self._stop_reason:
                raise
            self._dropped(name)
            return False
        finally:
            self._activity = self._inner = None
        if child.cursor.status == "waiting":
            self._stop("waiting", "paused")
            return False
        self.failed += inner.failed
        return True

    def _dropped(self, name: str) -> None:
        task = asyncio.current_task()
        if task:
            task.uncancel()
        self.session.emit(AttemptDropped(name, self.session.cursor.attempt, self._stop_reason))
        self._stop_reason = ""

    def _record_unreachable(self, error: HitlError, name: str, below: ChildRollback) -> None:
        """Record that a child thread can't be undone now; the others still are."""
        session = self.session
        info = ErrorInfo(name, 1, error.title, error.message, error.hint)
        self.failed.append((below.thread_id, info))
        ledger: list[LedgerEntry] = []
        data = {"node": name, "thread": below.thread_id}
        self._write_down(ledger, "failed", actor=self._command.actor, note=error.message, data=data)
        session.commit_cursor(replace(session.cursor, error=info), ledger)
        session.emit(AttemptFailed(info))

    def _called(self, name: str) -> tuple[Node, Cursor]:
        entry = self._current_entry
        handler = self.session.graph.compensations[entry.handler]
        node = Node(
            name=name,
            function=lambda state, config: handler.function(state, config, thaw(entry.args)),
            reads=None,
            writes=None,
            retry=handler.retry,
            timeout=handler.timeout,
            takes_config=True,
        )
        # Its idempotency key belongs to the entry, so it is the same at each try.
        return node, replace(self.session.cursor, iteration=entry.step - 1, invocation=entry.invocation)

    def _commit(self, name: str, output: NodeOutput, uses: Sequence[ModelUse], started: int) -> None:
        result, changes = output.result, output.changes
        if result.compensation is not None:
            raise HitlError("it returned a compensation", "what undoes a step can't be undone itself")
        session = self.session
        ledger: list[LedgerEntry] = []
        step = session.cursor.head + 1
        self._write_down(
            ledger, UNDONE, step=step, actor=self._command.actor, data=_named(self._current_entry)
        )
        all_uses = (*uses, *(result.usage or ()))
        duration = session.clock() - started
        session.commit_step(
            replace(with_use(session.cursor, all_uses, duration), attempt=1, uses=(), calls=()),
            changes,
            StepFacts(
                source="rollback",
                node=name,
                actor=self._command.actor,
                note=self._command.note,
                text=result.text,
                duration=duration,
                uses=(*session.cursor.uses, *all_uses),
                calls=(*session.cursor.calls, *self._calls),
                attempt=session.cursor.attempt,
                read=output.read,
            ),
            ledger=ledger,
        )

    def _fail(
        self,
        error: HitlError,
        node: str,
        cursor: Cursor | None = None,
        reason: str = "",
        updates: Sequence[Change] = (),
    ) -> str:
        """Record a failure; the earlier entries are still undone."""
        session = self.session
        if not isinstance(error, NodeFailed):
            without_private(error, session.private((change.channel.name, change.after) for change in updates))
        attempt = error.attempt if isinstance(error, NodeFailed) else session.cursor.attempt
        details = error.details if isinstance(error, NodeFailed) else ""
        info = ErrorInfo(node, attempt, error.title, error.message, error.hint, details)
        self.failed.append((session.thread_id, info))
        ledger: list[LedgerEntry] = []
        data = {**_named(self._current_entry), "attempt": attempt}
        self._write_down(ledger, UNDO_FAILED, actor=self._command.actor, note=error.message, data=data)
        session.commit_cursor(replace(cursor or session.cursor, attempt=1, error=info), ledger)
        session.emit(AttemptFailed(info))
        return ""

    def _open(self, requests: Sequence[Request], cursor: Cursor | None = None) -> None:
        request = requests[0]
        asked = HitlError(f"it asks a human: {request.title!r}", "a handler must not ask a person")
        self._fail(asked, request.node, cursor)

    def _finish(self) -> str:
        """End the thread: cancelled if everything is undone, otherwise failed with the remaining entries."""
        cursor = self.session.cursor
        if self.failed:
            cursor = replace(cursor, status="failed", reason="node_error", attempt=1, error=self._remains())
        else:
            cursor = replace(cursor, status="cancelled", reason="rolled_back", position="end", error=None)
        ledger: list[LedgerEntry] = []
        data = {"failed": len(self.failed)}
        self._write_down(ledger, "rolled_back", actor=self._command.actor, data=data)
        self.session.commit_cursor(cursor, ledger)
        return ""

    def _remains(self) -> ErrorInfo:
        last = self.failed[-1][1]
        own = self.session.thread_id
        where = ["" if thread == own else f" of {thread}" for thread, _ in self.failed]
        failures = zip(self.failed, where, strict=True)
        what = "; ".join(f"{info.node}{inside}: {info.message}" for (_, info), inside in failures)
        return ErrorInfo(
            last.node,
            last.attempt,
            "The rollback is not complete",
            f"{len(self.failed)} could not be undone: {what}",
            "fix the cause and roll back again: what is already undone is left alone",
            last.details,
        )

    @property
    def _current_entry(self) -> RollbackEntry:
        assert isinstance(self._entry, RollbackEntry)
        return self._entry

    def _write_down(self, written: list[LedgerEntry], kind: str, **facts: Any) -> None:
        """Add a ledger entry to those of the same commit."""
        written.append(decision_entry(self.session, written, kind, **facts))


def rollback_report(session: Session) -> RollbackReport:
    """Return the report of a thread's rollback."""
    cursor = session.cursor
    entries = rollback_entries(session.store, cursor)
    return RollbackReport(session.thread_id, cursor.status, cursor.reason, cursor.head, entries)


def _remaining(undo: RollbackEntry | ChildRollback) -> list[RollbackEntry]:
    return [entry for entry in undo.entries if entry.remains] if isinstance(undo, ChildRollback) else [undo]


def _named(entry: RollbackEntry) -> dict[str, object]:
    facts = {"step": entry.step, "index": entry.index, "node": entry.node, "handler": entry.handler}
    return {**facts, "thread": entry.thread} if entry.thread else facts


def child_session(session: Session, below: ChildRollback) -> Session | None:
    """Open the thread to undo; None if it can't be opened and has nothing to undo.

    Raises:
        GraphInvalid: the graph has no such subgraph any more.
        UnknownThread: it is not in this store.
    """
    missing = session.store is None or session.store.info(below.thread_id) is None
    if missing:
        if not session.cursor.compensated:
            return None
        raise UnknownThread(
            f"the thread {below.thread_id!r} is not in this store, so what it did can't be undone",
            "roll back where it ran",
        )
    if graph_inside(session.graph, below.node) is None:
        if not any(entry.remains for entry in below.entries):
            return None
        raise GraphInvalid(
            f"the graph has no subgraph {below.node!r}, in which the thread {below.thread_id!r} ran",
            "roll back with the graph as it was",
        )
    return open_child(session, session.graph.nodes[below.node], below.thread_id)


class ChildRollbackRun:
    """One rollback of a child thread.

    The parent's watchers get its events, and the parent counts its spending.
    """

    def __init__(self, session: Session, node: str, child: Session) -> None:
        self.session = session
        self.child = child
        child.sink = ChildEvents(session, node, child).pass_on

    async def run(self, rollback: RollbackLoop, activity: Activity) -> None:
        """Undo as much as possible; stopping the activity stops the handler that runs.

        Raises:
            ThreadBusy: another run or process holds it.
        """
        before = self.child.cursor
        unsubscribe = activity.on_cancel(rollback.give_up)
        try:
            async with aclosing(rollback.steps()) as steps:
                async for _ in steps:
                    pass
        finally:
            unsubscribe()
            self._count(before, self.child.cursor)

    def _count(self, before: Cursor, after: Cursor) -> None:
        """Count what the handlers have spent as the parent's spending, too."""
        with_use = (after.tokens_in - before.tokens_in, after.tokens_out - before.tokens_out)
        cost = after.cost - before.cost
        if not any(with_use) and not cost and after.cost_known == before.cost_known:
            return
        cursor = self.session.cursor
        self.session.commit_cursor(
            replace(
                cursor,
                tokens_in=cursor.tokens_in + with_use[0],
                tokens_out=cursor.tokens_out + with_use[1],
                cost=cursor.cost + cost,
                cost_known=cursor.cost_known and after.cost_known,
            )
        )
