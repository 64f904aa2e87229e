"""The run loop: from the cursor to the next stop, one node at a time.

Specified in docs/spec/graphs.md and docs/spec/threads.md.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final

from msgspec.structs import replace

from hitl_tui.engine.commands.answering import approve_allowed, expire, pass_breakpoints
from hitl_tui.engine.commands.decisions import DONE, refuse_rolling_back
from hitl_tui.engine.graph.compensation import check_compensation
from hitl_tui.engine.graph.compiled import Node, SubgraphWork
from hitl_tui.engine.graph.limits import Budget, LimitStop, OnLimit, is_bounded_inside, limit_reached
from hitl_tui.engine.graph.retry import NEVER_RETRIED
from hitl_tui.engine.log.events import (
    AttemptDropped,
    AttemptFailed,
    NodeStarted,
    ProgressChanged,
    RunEnded,
    RunStarted,
)
from hitl_tui.engine.log.outcomes import ErrorInfo, Frame, KeptAnswer, ModelUse, StreamedText, ToolUse
from hitl_tui.engine.log.records import END, ROLLBACK, Cursor, LedgerEntry, Status
from hitl_tui.engine.log.redaction import hiding
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.nodes.activity import Activity, AttemptCancelled, StreamKeeper, newest_texts
from hitl_tui.engine.nodes.attempt import masks_of, run_attempt
from hitl_tui.engine.nodes.calling import SyncCaller
from hitl_tui.engine.nodes.children import abandon, can_continue, refresh
from hitl_tui.engine.nodes.overlap import TimedOutAttempts, still_runs
from hitl_tui.engine.nodes.results import (
    BranchesFailed,
    BranchesWait,
    ChildStopped,
    NodeOutput,
    kept_artifacts,
    unused_answers,
)
from hitl_tui.engine.state.changes import Change, after
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.allowances import allowances_for
from hitl_tui.engine.thread.breakpoints import Stops
from hitl_tui.engine.thread.canaries import refuse_canary
from hitl_tui.engine.thread.earlier import with_earlier_answer
from hitl_tui.engine.thread.graph_change import note_graph
from hitl_tui.engine.thread.interrupts import (
    InterruptRaised,
    ask,
    make_request,
    unanswered_request,
    unused_entry,
    with_request,
    withdrawal_entries,
)
from hitl_tui.engine.thread.journal import StepFacts, with_branches, with_use
from hitl_tui.engine.thread.listed import for_lists
from hitl_tui.engine.thread.logged import logged_digest
from hitl_tui.engine.thread.private import hidden_error, without_private
from hitl_tui.engine.thread.reopening import reopen_changed
from hitl_tui.engine.thread.session import Session
from hitl_tui.engine.thread.taint_policy import guard, tainted_reads
from hitl_tui.errors import STORE_FAILURES, HitlError, NodeFailed, described


def report_failure(session: Session, node: str, error: Exception) -> None:
    """Report why a run ended; the log gets it with the next commit that succeeds.

    Args:
        node: the one that runs or is next; a store that can't be used is not blamed on it.
    """
    cursor = session.cursor
    if not isinstance(error, HitlError):
        error = HitlError(described(error), "the log file has the details")
    private = session.private()
    details = hiding(private)("".join(traceback.format_exception(error.__cause__ or error)))
    without_private(error, private)
    blamed = "" if isinstance(error, STORE_FAILURES) else node
    info = ErrorInfo(blamed, cursor.attempt, error.title, error.message, error.hint, details)
    if cursor.status == "running":
        session.cursor = replace(
            cursor, status="failed", reason="node_error", attempt=cursor.attempt + 1, error=info
        )
        # Releasing the thread may take a while now; show that it has failed before that.
        session.emit(ProgressChanged(session.progress))
    session.emit(AttemptFailed(info))


async def work(
    session: Session,
    node: Node,
    cursor: Cursor,
    uses: list[ModelUse],
    *,
    threads: SyncCaller | None,
    on_attempt: Callable[[Activity], None],
    inner: Callable[[Session], RunLoop],
) -> NodeOutput:
    """Run a node with its retries, without committing anything.

    Args:
        cursor: the node's config is made from it.
        uses: gets every model call, of failed attempts, too.
        threads: where the node's function runs; None runs it inline.
        on_attempt: called with each attempt's activity, which can stop it.
        inner: makes a run for the thread of a subgraph.

    Raises:
        NodeFailed: its last attempt failed; says how many there were.
        InterruptRaised, BranchesWait: it asks a human.
        ChildStopped: the thread of a subgraph was stopped.
        LimitStop: a limit was reached before a model call.
    """
    first = attempt = session.cursor.attempt
    budget = _budget(session, uses) if is_bounded_inside(session.cursor.limits) else None
    timed_out = TimedOutAttempts(node.retry)
    while True:
        activity = Activity(node.name, attempt, session.sink)
        activity.first_input, activity.call_log = session.first_input, session.call_log
        activity.budget = budget
        if session.stops:
            from hitl_tui.engine.nodes.stopping import stop_at_tool

            activity.before_tool = partial(stop_at_tool, session, activity)
            if node.work is None and session.stops.shows_return(node.name):
                activity.on_return = partial(session.stops.returned, node.name)
        on_attempt(activity)
        if session.sink:
            session.emit(NodeStarted(node.name, session.cursor.head + 1, attempt, session.clock()))
        if isinstance(node.work, SubgraphWork):
            from hitl_tui.engine.run.subgraph import run_subgraph

            return await run_subgraph(session, node, activity, inner)
        if node.work is not None:
            from hitl_tui.engine.nodes.fanout import run_fanout

            return await run_fanout(session, node, activity, uses, threads)
        try:
            result, changes = await run_attempt(
                session.graph,
                node,
                session.state,
                cursor,
                activity,
                agents=session.agents,
                clock=session.clock,
                threads=threads,
            )
            if result.usage:
                activity.replace_estimates(result.usage)
            undo = result.compensation
            compensations = () if undo is None else (check_compensation(undo, session.graph.compensations),)
            return NodeOutput(
                result,
                changes,
                read=tuple(activity.read or ()),
                compensations=compensations,
                artifacts=kept_artifacts(result.artifacts) if result.artifacts else (),
                unused=unused_answers(cursor.answers, activity.served) if cursor.answers else (),
            )
        except NodeFailed as error:
            if failure := session.store_failure:
                raise failure from error
            timed_out.add(error)
            tried = attempt - first + 1
            if session.stops and (why := session.stops.error(session, node.name, error)):
                error.message += f" ({why})"
                raise
            if tried >= node.retry.max_attempts or isinstance(error.__cause__, NEVER_RETRIED):
                if tried > 1:
                    error.message += f" (after {tried} attempts)"
                raise
            if budget and (limit := budget.reached()):
                raise LimitStop(limit) from error
            wait = node.retry.wait_after(tried)
            activity.retrying(
                attempt, first + node.retry.max_attempts - 1, wait, error.message + timed_out.note
            )
            attempt += 1
            with session.committing:  # a call that is still running may complete at the same time
                session.commit_cursor(
                    replace(session.cursor, attempt=attempt, retries=session.cursor.retries + 1)
                )
            await asyncio.sleep(wait)
            await timed_out.ended()
        finally:
            uses.extend(activity.uses)


def _budget(session: Session, uses: Sequence[ModelUse]) -> Budget:
    budget = Budget(session.cursor, session.limits, session.clock, session.report_unknown_price)
    for use in uses:
        budget.count(use)
    return budget


_CANCEL_PATIENCE = 5.0
_POLL_SECONDS = 0.05


async def await_cancel(session: Session) -> None:
    """Wait a moment until another process, which has stopped this run to cancel its thread, has done so.

    The decision belongs to the person there, with what they saw and their signature, so it is not made here.
    """
    end = time.monotonic() + _CANCEL_PATIENCE
    while (session.cursor.status, session.cursor.reason) == ("waiting", "paused") and time.monotonic() < end:
        await asyncio.sleep(_POLL_SECONDS)
        session.reload()


class RunLoop:
    """One run of a thread, or one step of it.

    Args:
        once: stop after one node.
        on_limit: what a reached limit does: end the run, or wait for a human.
        into: with `once`: pause the thread of a subgraph before its first node.
        stops: the breakpoints of the run.
        threads: where sync nodes run; None runs them inline.
    """

    def __init__(
        self,
        session: Session,
        *,
        once: bool = False,
        on_limit: OnLimit = "stop",
        into: bool = False,
        stops: Stops | None = None,
        threads: SyncCaller | None = None,
    ) -> None:
        self.session = session
        self.error: HitlError | None = None
        self.ended = False
        self._once = once
        self._on_limit = on_limit
        self._into = into
        self._stops = stops
        self._due_breakpoint = ""
        self.stopped_by = ""
        """The breakpoint that has stopped the run."""
        self._threads = threads
        self._pause_asked, self._stop_reason = False, ""
        self.is_being_cancelled = False
        """Whether another process has stopped the run in order to cancel the thread."""
        self._run_error: HitlError | None = None
        self._activity: Activity | None = None
        self._calls: list[ToolUse] = []
        self._streams = StreamKeeper()
        self._inner: RunLoop | None = None
        self._task: asyncio.Task[object] | None = None

    @property
    def node_in_flight(self) -> str:
        """The node that runs now, "" between nodes."""
        return self._activity.node if self._activity else ""

    def pause(self) -> None:
        """Stop at the next node boundary, in subgraphs as well."""
        self._pause_asked = True
        if self._inner:
            self._inner.pause()

    def end_with_error(self, error: HitlError) -> None:
        """End at the next node boundary with an error that no node has caused."""
        self._run_error = error
        self.pause()

    def give_up(self) -> None:
        """Stop the node in flight, since its run ends."""
        if self._activity:
            self._activity.cancel()

    def stop_attempt(self, why: str) -> bool:
        """Stop the node in flight; return False if there is none. Call it on the run's event loop."""
        if self._activity is None or self._task is None:
            self._pause_asked = True
            return False
        self._stop_reason = why
        self._activity.cancel()
        self._task.cancel()
        return True

    async def steps(self) -> AsyncGenerator[str, None]:
        """Run until something stops the thread; yields the node's name after each commit.

        Leaving early pauses the thread. A run that has started ends with exactly one `RunEnded`.
        """
        session = self.session
        if session.cursor.status not in DONE and not session.cursor.pending:
            refuse_canary(session.store, session.info)
        session.stops = self._stops
        self._task = asyncio.current_task()
        started, broken = False, None
        try:
            with session.writing(self._running_if_paused()) as taken, session.keeping_lease():
                try:
                    if taken or self._begin():
                        started = True
                        if session.sink:
                            session.emit(RunStarted(session.thread_id, session.progress))
                        first = True
                        while node := self._next(first):
                            before = session.state
                            if not (await self._run_node(node) or await self._rerun_allowed(node)):
                                break
                            first = False
                            if self._stops:
                                self._due_breakpoint = self._stops.after(session, node, before)
                            yield node
                except Exception as error:
                    broken = hidden_error(error, self.session.private())
                    if broken is error:
                        raise
                    raise broken from None
                finally:
                    self.ended = started or broken is None
                    if self.ended:
                        self._leave(broken)
        finally:
            session.stops = None
            # The next run or edit can have the thread only now.
            if self.is_being_cancelled:
                await await_cancel(session)
            if self.ended and session.sink:
                session.emit(RunEnded(session.progress))

    def _leave(self, broken: Exception | None) -> None:
        if broken:
            report_failure(self.session, self.node_in_flight or self.session.cursor.next_node or "", broken)
        elif self.session.cursor.status == "running":
            self._stop("waiting", "paused")

    def _running_if_paused(self) -> Cursor | None:
        """Return a running cursor for a thread that is just paused and needs no other checks.

        Otherwise None.
        """
        session, cursor = self.session, self.session.cursor
        paused = (cursor.status, cursor.reason) == ("waiting", "paused") and not cursor.pending
        if not paused or cursor.branches or cursor.position == ROLLBACK:
            return None
        if logged_digest(session.info, cursor) != session.graph.digest:
            return None
        return replace(cursor, status="running", reason="", error=None)

    def _begin(self) -> bool:
        """Set the cursor running; return False if there is nothing to run."""
        session = self.session
        if expire(session) or session.cursor.status in DONE or session.cursor.head < 0:
            return False
        refuse_rolling_back(session)
        note_graph(session)
        reopen_changed(session)
        if session.cursor.branches:
            refresh(session, runs_next=True)
        pass_breakpoints(session)
        self._approve_allowed()
        cursor = session.cursor
        if cursor.status in DONE or (cursor.pending and not can_continue(session)):
            return False
        # If the cursor says "running", its process has died: otherwise we would not have the lease.
        attempt = cursor.attempt + 1 if cursor.status == "running" else cursor.attempt
        session.commit_cursor(replace(cursor, status="running", reason="", attempt=attempt, error=None))
        return True

    def _next(self, first: bool) -> str:
        """Return the node to run now, or "" after stopping the cursor with a reason."""
        session, cursor = self.session, self.session.cursor
        if cursor.status != "running" or (session.graph.after and self._ask_after()):
            return ""
        try:
            # A route is not stored before its node commits: an edit until then may still change it.
            name, ended = session.next_target()
        except HitlError as error:
            return self._fail(error, cursor.position.partition(":")[2])
        if ended:
            return self._stop("completed", "termination", ended)
        if name == END:
            return self._stop("completed", "end")
        if not name:
            return self._stop("failed", "dead_end")
        limit = limit_reached(cursor, session.limits)
        if limit:
            return self._stop_at_limit(limit)
        if self._run_error:
            raise self._run_error
        if self._pause_asked or self._due_breakpoint or (self._once and not first):
            return self._stop_paused(self._due_breakpoint)
        # Breakpoints don't stop a single step before its own node.
        if self._stops and not self._once and (why := self._stops.before(session, name, first)):
            return self._stop_paused(why)
        if name in session.graph.before and (request := unanswered_request(session, name, "before")):
            self._open([request])
            return ""
        return self._guarded(name) if session.state.taint else name

    def _ask_after(self) -> bool:
        """Ask the gate after the last node if it has no valid answer; return whether it was asked."""
        session, cursor = self.session, self.session.cursor
        kind, _, node = cursor.position.partition(":")
        if kind != "route":
            node = next((gate.node for gate in cursor.passed if gate.when == "after"), "")
        # A plain breakpoint stops only where its node has just run.
        is_gate = session.graph.after.get(node) is not None
        request = unanswered_request(session, node, "after") if is_gate else None
        if request is None:
            return False
        if cursor.branches:  # these belong to the node that the route has led to, which may change now
            abandon(session)
            cursor = with_branches(session.cursor)
        self._open([request], cursor)
        return True

    def _guarded(self, name: str) -> str:
        """Return the node's name, or "" if its policy on taint has stopped the run before it."""
        stop = guard(self.session, self.session.graph.nodes[name])
        if isinstance(stop, Request):
            self._open([stop])
        elif stop:
            self._fail(stop, name, reason="policy")
        return "" if stop else name

    def _stop_paused(self, why: str) -> str:
        self.stopped_by = why
        return self._stop("waiting", "paused", why)

    def _stop_at_limit(self, words: str, cursor: Cursor | None = None) -> str:
        return self._stop("waiting" if self._on_limit == "pause" else "failed", "limit", words, cursor)

    def _stop(self, status: Status, reason: str, note: str = "", cursor: Cursor | None = None) -> str:
        session = self.session
        cursor = replace(cursor or session.cursor, status=status, reason=reason)
        entries = []
        if note:
            data = {"reason": reason}
            entries.append(journal.ledger_entry(cursor, "stop", at=session.clock(), note=note, data=data))
        session.commit_cursor(cursor, entries, last=True)
        return ""

    def _open(self, requests: Sequence[Request], cursor: Cursor | None = None) -> None:
        # The answers will be for this node, so the route to it is fixed now.
        ask(self.session, requests, cursor or self.session.cursor)

    def _enter(self, child: Session) -> RunLoop:
        stops = self._stops.inside(self._activity.node) if self._stops and self._activity else None
        self._inner = RunLoop(child, on_limit=self._on_limit, threads=self._threads, stops=stops)
        if self._into:
            self._inner.pause()
        return self._inner

    def _watch_attempt(self, activity: Activity) -> None:
        activity.calls, activity.streamed = self._calls, self._streams
        self._activity = activity

    async def _rerun_allowed(self, name: str) -> bool:
        """Run a node again as long as all its requests are allowed calls; return False if the run stops."""
        session = self.session
        while session.cursor.status == "waiting" and not self._pause_asked:
            if not self._approve_allowed() or session.cursor.pending:
                return False
            session.commit_cursor(replace(session.cursor, status="running", reason=""))
            if await self._run_node(name):
                return True
        return False

    def _approve_allowed(self) -> bool:
        """Approve the pending requests that are allowed calls; return whether there were any."""
        session = self.session
        if session.store is None or not any(request.shape for request in session.cursor.pending):
            return False
        known = allowances_for(session.store, session.info)
        return bool(known) and approve_allowed(session, known)

    def _with_taint(self, name: str, request: Request) -> Request:
        """Return a node's request, marked if it may be based on untrusted data."""
        if not request.shape:
            return request
        node, activity = self.session.graph.nodes[name], self._activity
        outside = activity is None or bool(activity.tainted_by) or bool(tainted_reads(self.session, node))
        return replace(request, tainted=outside or bool(request.path))

    def _open_branches(self, name: str, wait: BranchesWait, cursor: Cursor) -> None:
        """Open the requests of a node's branches."""
        self._note_unused(name, wait.unused)
        asked = [request if request.thread else self._with_taint(name, request) for request in wait.requests]
        self._open(asked, replace(cursor, branches=wait.branches))

    async def _run_node(self, name: str) -> bool:
        """Run a node with its retries and commit it; return False if nothing was committed."""
        session = self.session
        started = session.clock()
        uses: list[ModelUse] = []
        if self._calls or self._streams.used:
            self._calls, self._streams = [], StreamKeeper()
        attempt = session.cursor.attempt
        session.store_failure = None
        try:
            node, called = self._called(name)
            if session.cursor.first_call:
                self._count_recorded(name, uses)
            try:
                output = await work(
                    session,
                    node,
                    called,
                    uses,
                    threads=self._threads,
                    on_attempt=self._watch_attempt,
                    inner=self._enter,
                )
            finally:
                if session.calls:
                    session.end_calls()
        except STORE_FAILURES:
            self._keep_uses(uses, started, attempt)
            raise
        except InterruptRaised as interrupt:
            self._ask(name, interrupt, self._waiting_cursor(uses, started))
            return False
        except LimitStop as limit:
            self._stop_inside(limit, uses, started)
            return False
        except ChildStopped as stop:
            self._stop(stop.status, stop.reason, stop.note, self._after_attempt(uses, started))
            return False
        except BranchesWait as wait:
            self._open_branches(name, wait, self._waiting_cursor(uses, started))
            return False
        except (asyncio.CancelledError, AttemptCancelled):
            await self._note_running_code()
            self._wait_before_node(uses, started)
            if not self._stop_reason:
                raise
            self._emit_dropped(name, attempt)
            return False
        except NodeFailed as error:
            self._fail_node(name, error, replace(self._after_attempt(uses, started), pending=()))
            return False
        finally:
            self._activity = self._inner = None
        try:
            self._commit(name, output, uses, started)
        except STORE_FAILURES:
            self._keep_uses(uses, started, attempt)
            raise
        except HitlError as error:
            self._fail(error, name, self._after_attempt(uses, started), updates=output.changes)
            return False
        return True

    def _ask(self, name: str, interrupt: InterruptRaised, cursor: Cursor) -> None:
        """Open a node's request.

        What its attempt used is spent, although the node starts again with the answer.
        """
        new = with_earlier_answer(
            self.session, interrupt.request, interrupt.earlier.n if interrupt.earlier else None
        )
        self._open([self._with_taint(name, new)], cursor)

    def _fail_node(self, name: str, error: NodeFailed, cursor: Cursor) -> None:
        """End a run whose node has failed; branches that have completed are kept."""
        if isinstance(error, BranchesFailed):
            cursor = with_branches(cursor, error.branches)
        self._fail(error, name, cursor)

    def _stop_inside(self, limit: LimitStop, uses: Sequence[ModelUse], started: int) -> None:
        """Stop at a limit that was reached inside a node; branches that have completed are kept."""
        cursor = replace(self._after_attempt(uses, started), pending=())
        if limit.branches:
            cursor = with_branches(cursor, limit.branches)
        self._stop_at_limit(limit.words, cursor)

    def _count_recorded(self, name: str, uses: list[ModelUse]) -> None:
        """Count the recorded calls of an attempt whose process died before it counted them."""
        for record in self.session.uncounted_calls(name):
            uses.extend(record.uses)
            if record.tool:
                self._calls.append(record.tool)

    def _keep_uses(self, uses: Sequence[ModelUse], started: int, attempt: int) -> None:
        """Count what an attempt used when nothing can be written now; the next commit stores it."""
        self.session.cursor = replace(self._after_attempt(uses, started), attempt=attempt)

    def _note_unused(self, name: str, answers: Sequence[KeptAnswer]) -> None:
        """Record which answers of a node no request can use any more."""
        session, entries = self.session, list[LedgerEntry]()
        for kept in answers:
            at = journal.after_entries(session.cursor, entries)
            entries.append(unused_entry(session, at, kept, name))
        if entries:
            session.commit_cursor(session.cursor, entries)

    def _waiting_cursor(self, uses: Sequence[ModelUse], started: int) -> Cursor:
        cursor = with_use(self.session.cursor, uses, self.session.clock() - started)
        return replace(
            cursor,
            uses=(*cursor.uses, *uses),
            calls=(*cursor.calls, *self._calls),
            counted=cursor.ledger_n if cursor.first_call else 0,
        )

    def _called(self, name: str) -> tuple[Node, Cursor]:
        """Return the node with a name, and the cursor from which its config is made."""
        return self.session.graph.nodes[name], self.session.cursor

    def _commit(self, name: str, output: NodeOutput, uses: Sequence[ModelUse], started: int) -> None:
        session = self.session
        result, changes = output.result, output.changes
        state = after(session.state, changes)
        all_uses = (*uses, *(result.usage or ()))
        for use in result.usage or ():
            session.report_unknown_price(use)
        now = session.clock()
        duration, before = now - started, session.cursor
        cursor = replace(
            _without_node_fields(with_use(before, all_uses, duration) if all_uses else before),
            active=before.active + duration,
            position=f"route:{name}",
            iteration=before.iteration + 1,
            visits={**before.visits, name: before.visits.get(name, 0) + 1},
            retries=before.retries + output.retries,
            compensated=before.compensated or bool(output.compensations),
        )
        if session.graph.termination is not None:
            session.note_changes(changes, output.source, cursor)
        ledger = withdrawal_entries(session) if before.pending else []
        for kept in output.unused:
            ledger.append(unused_entry(session, journal.after_entries(before, ledger), kept, name))
        if name in session.graph.after:
            at_step = replace(cursor, head=cursor.head + 1)
            request = make_request(session, name, "after", cursor=at_step, state=state)
            request = for_lists(session, request, state, () if cursor.visits[name] == 1 else None)
            ledger.append(
                journal.request_entry(journal.after_entries(cursor, ledger), request, session.clock())
            )
            cursor = with_request(cursor, request)
        else:
            cursor = session.cursor_after_node(cursor, name, state)
        step = StepFacts(
            source=output.source,
            node=name,
            text=self._hiding(changes)(result.text) if result.text else result.text,
            duration=duration + _kept_duration(before) if before.branches else duration,
            uses=(*before.uses, *output.counted, *all_uses),
            calls=(*before.calls, *self._calls),
            streamed=self._output_since_step(before, changes) if self._streams.used else before.streamed,
            attempt=before.attempt,
            compensations=output.compensations,
            artifacts=output.artifacts,
            read=output.read,
            branches=output.branches,
        )
        pauses = self._once and self._will_pause(cursor, state)
        session.commit_step(cursor, changes, step, state=state, ledger=ledger, pauses=pauses, at=now)

    def _will_pause(self, cursor: Cursor, state: LiveState) -> bool:
        """Whether a single step will surely pause after its node, so that one commit stores both.

        Not if something else may stop it, or if a watcher needs the events one after the other.
        """
        session = self.session
        if session.sink or self._run_error or cursor.status != "running":
            return False
        try:
            target, ended = session.next_target(cursor.position, state, cursor)
        except HitlError:
            return False
        return not ended and target not in ("", END) and not limit_reached(cursor, session.limits)

    def _wait_before_node(self, uses: Sequence[ModelUse], started: int) -> None:
        """Let the thread wait before a node that was stopped."""
        cursor = self._after_attempt(uses, started)
        self.session.commit_cursor(replace(cursor, status="waiting", reason="paused"))

    async def _note_running_code(self) -> None:
        """Add to the reason of a stop that code of the node still runs, as nothing can stop a sync node."""
        if not self._stop_reason:
            return
        activity, self._activity = self._activity, None  # stopping it again would break the wait
        if activity and await still_runs(activity.code):
            self._stop_reason += "; its code still runs in its thread"

    def _emit_dropped(self, name: str, attempt: int) -> None:
        """Emit that `stop_attempt` has stopped the node.

        The run ends normally, so its task is not cancelled.
        """
        if task := asyncio.current_task():
            task.uncancel()
        self.session.emit(AttemptDropped(name, attempt, self._stop_reason))
        self._stop_reason = ""

    def _after_attempt(self, uses: Sequence[ModelUse], started: int) -> Cursor:
        """Return the cursor after an attempt that committed nothing; its cost counts."""
        cursor = with_use(self.session.cursor, uses, self.session.clock() - started)
        return replace(
            cursor,
            attempt=cursor.attempt + 1,
            uses=(*cursor.uses, *uses),
            calls=(*cursor.calls, *self._calls),
            counted=cursor.ledger_n if cursor.first_call else 0,
            streamed=self._output_since_step(cursor),
        )

    def _output_since_step(self, cursor: Cursor, changes: Sequence[Change] = ()) -> tuple[StreamedText, ...]:
        """Return what was printed and streamed since the last step, without private values.

        Private values among the changes of this step are hidden, too. A node writes its output again when
        it runs again with an answer.
        """
        if not self._streams.used:
            return cursor.streamed
        hide = self._hiding(changes)
        texts = (replace(text, text=hide(text.text), end=hide(text.end)) for text in self._streams.texts)
        return newest_texts((*cursor.streamed, *texts))

    def _hiding(self, changes: Iterable[Change]) -> Callable[[Any], Any]:
        """Return a function that hides private values, including those in changes."""
        written = ((change.channel.name, change.after) for change in changes)
        return hiding(self.session.private(written))

    def _fail(
        self,
        error: HitlError,
        node: str,
        cursor: Cursor | None = None,
        reason: str = "node_error",
        updates: Sequence[Change] = (),
    ) -> str:
        session = self.session
        if not isinstance(error, NodeFailed):  # its message has no private values
            written = ((change.channel.name, change.after) for change in updates)
            without_private(error, session.private(written))
        self.error = error
        attempt = error.attempt if isinstance(error, NodeFailed) else session.cursor.attempt
        details, frames = "", tuple[Frame, ...]()
        if isinstance(error, NodeFailed):
            details, frames = error.details, error.frames
        elif error.__cause__ is not None:  # for example, raised by a routing function
            from hitl_tui.engine.nodes.frames import frames_of

            frames = frames_of(error.__cause__, masks_of(session.graph, session.state))
        info = ErrorInfo(
            node, attempt, error.title, error.message, error.hint, details, error.channel, frames
        )
        cursor = replace(cursor or session.cursor, status="failed", reason=reason, error=info)
        entry = journal.ledger_entry(
            cursor, "failed", at=session.clock(), note=error.message, data={"node": node}
        )
        session.commit_cursor(cursor, [entry])
        session.emit(AttemptFailed(info))
        return ""


_NODE_FIELDS: Final[Mapping[str, Any]] = {
    "attempt": 1,
    "passed": (),
    "answers": (),
    "branches": (),
    "first_call": 0,
    "counted": 0,
    "uses": (),
    "calls": (),
    "streamed": (),
    "pending": (),
}
"""Fields of a cursor that are about the node at its position, with their values before that node starts."""
_node_fields = attrgetter(*_NODE_FIELDS)
_INITIAL_NODE_FIELDS = tuple(_NODE_FIELDS.values())


def _kept_duration(cursor: Cursor) -> int:
    """Return how long the branches kept from before a stop took, in microseconds; they ran in parallel."""
    return max((kept.outcome.duration for kept in cursor.branches if kept.outcome), default=0)


def _without_node_fields(cursor: Cursor) -> Cursor:
    """Reset the cursor's fields about the node that is done; most cursors need no change."""
    return cursor if _node_fields(cursor) == _INITIAL_NODE_FIELDS else replace(cursor, **_NODE_FIELDS)
