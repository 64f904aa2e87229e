"""Runs a map or a parallel: branches run in parallel, and are committed together.

Specified in docs/spec/branches.md.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from hitl_tui.engine.graph.compensation import check_compensation
from hitl_tui.engine.graph.compiled import FanOutWork, Node, Quorum
from hitl_tui.engine.graph.limits import LimitStop
from hitl_tui.engine.graph.retry import NEVER_RETRIED
from hitl_tui.engine.log.events import BranchEnded, BranchStarted, BranchWaits
from hitl_tui.engine.log.outcomes import BranchStatus, KeptAnswer, ModelUse
from hitl_tui.engine.log.records import tool_of, tool_path
from hitl_tui.engine.log.taint import spread
from hitl_tui.engine.nodes.activity import Activity, AttemptCancelled
from hitl_tui.engine.nodes.attempt import ItemPlace, run_attempt
from hitl_tui.engine.nodes.branches import Branch, branches_of, mark_items
from hitl_tui.engine.nodes.calling import BranchCaller, SyncCaller
from hitl_tui.engine.nodes.overlap import TimedOutAttempts
from hitl_tui.engine.nodes.results import (
    BranchesFailed,
    BranchesWait,
    NodeOutput,
    NodeResult,
    kept_artifacts,
    unused_answers,
)
from hitl_tui.engine.nodes.stopping import stop_at_branch, stop_at_tool
from hitl_tui.engine.state.changes import Change, reduce_calls, without_values
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread.earlier import with_earlier_answer
from hitl_tui.engine.thread.interrupts import InterruptRaised
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError, NodeFailed

T = TypeVar("T")

# Seconds for stopped jobs to clean up; after that they are left running.
_PATIENCE = 2.0


async def race(
    entries: Iterable[T],
    run: Callable[[T], Coroutine[Any, Any, None]],
    *,
    at_once: int,
    is_decided: Callable[[], bool],
    is_halted: Callable[[], bool],
    on_stop: Callable[[T], None],
) -> None:
    """Run entries in their order, each in its own task (and so in its own context).

    Args:
        is_decided: checked whenever one has ended; True stops those that run and starts no more.
        is_halted: checked before one is started; True starts no more and lets those that run end.
        on_stop: called with each entry before its task is cancelled.

    Raises:
        Exception: what `run` raised; the rest is stopped then, as when this itself is cancelled.
    """
    race = _Race(entries, run, at_once=at_once, is_decided=is_decided, is_halted=is_halted)
    try:
        race.start_more()
        await race.finished
    finally:
        left = list(race.running.items())
        for task, entry in left:
            on_stop(entry)
            task.cancel()
        if left:
            await asyncio.wait([task for task, _ in left], timeout=_PATIENCE)


class _Race(Generic[T]):
    """The entries of a `race`: those that wait for their turn, and those that run."""

    def __init__(
        self,
        entries: Iterable[T],
        run: Callable[[T], Coroutine[Any, Any, None]],
        *,
        at_once: int,
        is_decided: Callable[[], bool],
        is_halted: Callable[[], bool],
    ) -> None:
        self.running: dict[asyncio.Task[None], T] = {}
        self._loop = asyncio.get_running_loop()
        self.finished: asyncio.Future[None] = self._loop.create_future()
        self._queue = deque(entries)
        self._run = run
        self._at_once = at_once
        self._is_decided = is_decided
        self._is_halted = is_halted

    def start_more(self) -> None:
        """Start as many as may run, and finish once nothing is left to wait for."""
        if self.finished.done():
            return
        while self._has_turn and not self._is_decided() and not self._is_halted():
            entry = self._queue.popleft()
            task = self._loop.create_task(self._run(entry))
            self.running[task] = entry
            task.add_done_callback(self._ended)
        if self._is_decided() or not self.running:
            self.finished.set_result(None)

    @property
    def _has_turn(self) -> bool:
        return bool(self._queue) and len(self.running) < self._at_once

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self.running[task]
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.finished.done():
            self.finished.set_exception(error)
        self.start_more()


async def run_fanout(
    session: Session,
    node: Node,
    activity: Activity,
    uses: list[ModelUse],
    threads: SyncCaller | None,
) -> NodeOutput:
    """Run the branches of a map or a parallel and reduce what they return, without storing anything.

    Args:
        activity: of the node as a whole; stopping it stops every branch.
        uses: gets the model calls of all branches, also of failed ones.
        threads: where the nodes run; None runs async ones on this loop.

    Raises:
        NodeFailed: no list or too many items, a join that can't be reached, or `on_error="fail"`.
        BranchesWait: some branches ask a person, and all others have ended.
    """
    try:
        branches = branches_of(session.graph, node, session.state, session.cursor)
    except HitlError as error:
        raise _node_failed(node, activity.attempt, error) from error
    callers = BranchCaller(on_this_loop=threads is None)
    try:
        run = _FanOut(session, node, branches, activity=activity, uses=uses, callers=callers)
        return await run.run()
    finally:
        callers.close()


class _FanOut:
    """One run of the branches."""

    def __init__(
        self,
        session: Session,
        node: Node,
        branches: list[Branch],
        *,
        activity: Activity,
        uses: list[ModelUse],
        callers: SyncCaller,
    ) -> None:
        assert isinstance(node.work, FanOutWork)
        self.session = session
        self.node = node
        self.work = node.work
        self.branches = branches
        self.activity = activity
        self.uses = uses
        self.callers = callers
        self.retries = 0
        self.fails_whole = node.work.on_error == "fail"
        """Whether one failed branch fails the node, also because a breakpoint stops at its error."""
        self.limit = ""
        """The limit that was reached before all branches had started or continued."""
        self.succeeded = sum(branch.succeeded for branch in branches)
        self.failed = sum(branch.failed for branch in branches)

    async def run(self) -> NodeOutput:
        session, branches = self.session, self.branches
        for branch in branches:
            if branch.outcome:
                session.emit(BranchEnded(self.node.name, branch.outcome, session.clock()))
        unsubscribe = self.activity.on_cancel(self._stop_all)
        try:
            await race(
                [branch for branch in branches if not branch.outcome and not branch.request],
                self._run_branch,
                at_once=self.work.max_concurrent or max(len(branches), 1),
                is_decided=self._is_decided,
                is_halted=self._is_halted,
                on_stop=self._stop_branch,
            )
        finally:
            unsubscribe()
        self._check_join()
        if self.limit and not self._is_complete():
            mark_items(branches)
            raise LimitStop(self.limit, tuple(branch.state(keep_failure=True) for branch in branches))
        asking = [branch.request for branch in branches if branch.request and not branch.outcome]
        if asking and not self._is_complete():
            mark_items(branches)
            kept = tuple(branch.state(keep_failure=True) for branch in branches)
            raise BranchesWait(asking, kept, self._moved_answers())
        for branch in branches:
            if branch.outcome is None:
                self._end(branch, "cancelled" if branch.started or branch.request else "unneeded")
        return self._reduced_output()

    # -- one branch -------------------------------------------------------------------------------

    async def _run_branch(self, branch: Branch) -> None:
        session = self.session
        branch.started = session.clock()
        first = branch.attempt = session.cursor.attempt
        session.emit(
            BranchStarted(
                self.node.name,
                branch.path,
                branch.node.name,
                branch.index,
                len(self.branches),
                first,
                branch.started,
            )
        )
        try:
            stop_at_branch(session, self.node.name, branch)
            result, changes = await self._attempts(branch, first)
        except InterruptRaised as asked:
            if not self._is_decided():
                branch.request = with_earlier_answer(
                    session, asked.request, asked.earlier.n if asked.earlier else None
                )
                session.emit(BranchWaits(self.node.name, branch.path, asked.request.title))
        except LimitStop as stop:
            self.limit = stop.words
        except NodeFailed as error:
            if not self._is_decided():
                self.failed += 1
                self._end(branch, "failed", error)
        except (asyncio.CancelledError, AttemptCancelled):
            if self.activity.cancelled or self._is_decided():
                return
            inside = HitlError("it was cancelled from inside")
            self.failed += 1
            self._end(branch, "failed", _node_failed(branch.node, branch.attempt, inside, branch.path))
        else:
            # A branch that ends after the join was complete counts as stopped.
            if not self._is_decided():
                self.succeeded += 1
                branch.updates = tuple(
                    (change.channel.name, change.update, tool_of(change.path)) for change in changes
                )
                branch.text = result.text or ""
                branch.lineage = next((change.lineage for change in changes if change.lineage), None)
                self.uses.extend(result.usage or ())
                branch.artifacts = kept_artifacts(result.artifacts, branch.path)
                branch.unused = unused_answers(branch.answers, branch.served)
                if result.compensation is not None:
                    undo = check_compensation(result.compensation, session.graph.compensations)
                    branch.compensation = replace(undo, path=branch.path)
                self._end(branch, "ok")

    async def _attempts(self, branch: Branch, first: int) -> tuple[NodeResult, list[Change]]:
        retry = branch.node.retry
        timed_out = TimedOutAttempts(retry)
        while True:
            branch.tried += 1
            activity = branch.activity = Activity(
                self.node.name, branch.attempt, self.session.sink, branch.path
            )
            activity.budget = self.activity.budget
            activity.calls, activity.streamed = self.activity.calls, self.activity.streamed
            activity.first_input, activity.call_log = self.session.first_input, self.activity.call_log
            activity.item = branch.item
            if self.session.stops:
                activity.before_tool = partial(stop_at_tool, self.session, activity)
            try:
                return await self._attempt(branch, activity)
            except NodeFailed as error:
                if failure := self.session.store_failure:
                    raise failure from error
                timed_out.add(error)
                stops = self.session.stops
                if stops and (why := stops.error(self.session, branch.path, error)):
                    error.message += f" ({why})"
                    self.fails_whole = True
                    raise
                if branch.tried >= retry.max_attempts or isinstance(error.__cause__, NEVER_RETRIED):
                    if branch.tried > 1:
                        error.message += f" (after {branch.tried} attempts)"
                    raise
                if activity.budget and (limit := activity.budget.reached()):
                    raise LimitStop(limit) from error
                wait = retry.wait_after(branch.tried)
                said = error.message + timed_out.note
                activity.retrying(branch.attempt, first + retry.max_attempts - 1, wait, said)
                branch.attempt += 1
                self.retries += 1
                await asyncio.sleep(wait)
                await timed_out.ended()
            finally:
                self.uses.extend(activity.uses)

    async def _attempt(self, branch: Branch, activity: Activity) -> tuple[NodeResult, list[Change]]:
        session = self.session
        cursor = session.cursor
        branch.served = activity.served
        if branch.answers:
            cursor = replace(cursor, answers=branch.answers)
        if session.state.taint:
            activity.note_reads()
        if self.work.over and activity.read is not None:
            activity.read[self.work.over] = None
        result, changes = await run_attempt(
            session.graph,
            branch.node,
            session.state,
            cursor,
            activity,
            agents=session.agents,
            clock=session.clock,
            threads=self.callers,
            place=ItemPlace(branch.item, branch.index),
        )
        branch.read = tuple(activity.read or ())
        if result.usage:
            activity.replace_estimates(result.usage)
        return result, changes

    def _end(self, branch: Branch, status: BranchStatus, error: NodeFailed | None = None) -> None:
        session = self.session
        now = session.clock()
        session.emit(BranchEnded(self.node.name, branch.ended(status, now, error), now))

    @staticmethod
    def _stop_branch(branch: Branch) -> None:
        if branch.activity:
            branch.activity.cancel()

    def _stop_all(self) -> None:
        for branch in self.branches:
            if branch.outcome is None:
                self._stop_branch(branch)

    # -- the join ---------------------------------------------------------------------------------

    def _is_complete(self) -> bool:
        needed = self.work.needed
        return needed is not None and self.succeeded >= needed

    def _is_unreachable(self) -> bool:
        needed = self.work.needed
        return needed is not None and len(self.branches) - self.failed < needed

    def _is_halted(self) -> bool:
        """Whether a limit is reached, so that no more branches start."""
        if not self.limit and self.activity.budget:
            self.limit = self.activity.budget.reached()
        return bool(self.limit)

    def _is_decided(self) -> bool:
        return self._is_complete() or self._is_unreachable() or (self.failed > 0 and self.fails_whole)

    def _check_join(self) -> None:
        """Raise `BranchesFailed` if too many branches have failed."""
        failed = [branch for branch in self.branches if branch.failed]
        if failed and self.fails_whole:
            raise self._failure("", failed)
        if self._is_unreachable():
            of = f"{len(self.branches)} branch{'es' if len(self.branches) != 1 else ''}"
            join = self.work.join if isinstance(self.work.join, Quorum) else f'join "{self.work.join}"'
            raise self._failure(f"{join} of {of} can't be reached: {len(failed)} failed", failed)

    def _failure(self, what: str, failed: Sequence[Branch]) -> BranchesFailed:
        error = failed[0].outcome.error if failed and failed[0].outcome else None
        parts = [f"node {self.node.name!r}, attempt {self.activity.attempt}" if what else "", what]
        parts.append(error.message if error else "")
        failure = BranchesFailed(
            ": ".join(part for part in parts if part),
            error.hint if error else "",
            node=self.node.name,
            attempt=self.activity.attempt,
            details=error.details if error else "",
            frames=failed[0].frames if failed else (),
        )
        mark_items(self.branches)
        if any(branch.succeeded or branch.answers for branch in self.branches):
            failure.branches = tuple(branch.state(keep_failure=False) for branch in self.branches)
        return failure

    # -- the result -------------------------------------------------------------------------------

    def _reduced_output(self) -> NodeOutput:
        """Reduce what the branches returned, in order of their places, then of channel names."""
        began = self.session.state
        state = LiveState(began.values.copy(), began.digests.copy(), began.taint)
        changes: list[Change] = []
        newest: dict[str, int] = {}
        writers: dict[str, Branch] = {}
        for branch in self.branches:
            if not branch.succeeded:
                continue
            try:
                own = reduce_calls(state, self.session.graph.channels, _calls(branch.updates))
            except HitlError as error:
                self._fail_after_others(branch, error)
                continue
            for change in own:
                name = change.channel.name
                state.values[name], state.digests[name] = change.after, change.after_hash
                if name in newest and self.session.sink is None:
                    # Each value holds a whole list that grows with every branch, and nobody watches them.
                    changes[newest[name]] = without_values(changes[newest[name]])
                newest[name] = len(changes)
                changes.append(_of_branch(change, branch))
                if change.channel.reducer.kind == "replace":
                    _override(writers.get(name), name)
                    writers[name] = branch
            if branch.lineage:
                written = [(change.channel.name, branch.lineage) for change in own]
                state.taint = spread(state.taint, written)
        counted = [branch for branch in self.branches if branch.succeeded]
        texts = [f"{branch.path}: {branch.text}" for branch in counted if branch.text]
        return NodeOutput(
            NodeResult(text="\n".join(texts) or None),
            changes,
            "map",
            tuple(branch.outcome for branch in self.branches if branch.outcome),
            retries=self.retries,
            read=tuple(dict.fromkeys(name for branch in counted for name in branch.read)),
            compensations=tuple(branch.compensation for branch in counted if branch.compensation),
            artifacts=tuple(artifact for branch in counted for artifact in branch.artifacts),
            unused=(
                *self._moved_answers(),
                *(kept for branch in counted for kept in branch.unused),
            ),
        )

    def _moved_answers(self) -> Iterator[KeptAnswer]:
        """Yield answers to requests about items that are no longer in their places."""
        marks = {branch.path: branch.item_mark for branch in self.branches}
        for state in self.session.cursor.branches:
            if marks.get(state.path) != state.item:
                yield from unused_answers(state.answers, ())

    def _fail_after_others(self, branch: Branch, error: HitlError) -> None:
        """Fail a branch whose update can't be reduced after those of the others."""
        self.succeeded -= 1
        self.failed += 1
        self._end(branch, "failed", _node_failed(branch.node, branch.attempt, error, branch.path))
        self._check_join()


def _calls(updates: Sequence[tuple[str, Any, str]]) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Yield the updates of a branch, grouped by who made them in a row: a tool, or "" for the node."""
    for tool, group in groupby(updates, key=itemgetter(2)):
        yield tool, [(name, update) for name, update, _ in group]


def _of_branch(change: Change, branch: Branch) -> Change:
    """Return a change of a branch, tainted by what the branch read or brought in."""
    lineage = branch.lineage
    tainted = change.tainted or lineage is not None
    path = tool_path(branch.path, tool_of(change.path))
    return replace(change, path=path, attempt=branch.attempt, tainted=tainted, lineage=lineage)


def _override(earlier: Branch | None, channel: str) -> None:
    """Mark a value that a later branch has replaced."""
    if earlier and earlier.outcome:
        overridden = (*earlier.outcome.overridden, channel)
        earlier.outcome = replace(earlier.outcome, overridden=overridden)


def _node_failed(node: Node, attempt: int, error: HitlError, path: str = "") -> NodeFailed:
    where = f"branch {path!r}" if path else f"node {node.name!r}"
    return NodeFailed(
        f"{where}, attempt {attempt}: {error.message}", error.hint, node=node.name, attempt=attempt
    )
