"""Running a graph inside a node, on a thread of its own.

Specified in docs/spec/branches.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hitl_tui.engine.commands.command import Start
from hitl_tui.engine.commands.decisions import start
from hitl_tui.engine.graph.compiled import Node, SubgraphWork
from hitl_tui.engine.log.events import (
    AttemptDropped,
    AttemptFailed,
    BreakpointHit,
    ChildMoved,
    Event,
    ModelCalled,
    NodeRetrying,
    NodeStarted,
    PriceUnknown,
    RunEnded,
    RunStarted,
    StepCommitted,
    TextStreamed,
    ToolCalled,
)
from hitl_tui.engine.log.outcomes import BranchOutcome, BranchState, ChildLink, ModelUse
from hitl_tui.engine.log.records import Cursor, Limits
from hitl_tui.engine.log.taint import Lineage
from hitl_tui.engine.nodes.activity import Activity
from hitl_tui.engine.nodes.children import describe_cancelled, new_child_id, open_child, requests_of_child
from hitl_tui.engine.nodes.results import BranchesFailed, BranchesWait, ChildStopped, NodeOutput, NodeResult
from hitl_tui.engine.state.changes import Change, reduce_updates
from hitl_tui.engine.state.channel import RUN_INPUTS
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import STORE_FAILURES, HitlError, NodeFailed, ThreadBusy

if TYPE_CHECKING:
    from hitl_tui.engine.run.loop import RunLoop


class ChildEvents:
    """Passes the events of a child thread on to its parent, without the child's values.

    Attributes:
        uses: the model calls of the child's steps, as far as its events reported them.
    """

    def __init__(self, session: Session, node: str, child: Session) -> None:
        self.session = session
        self.node = node
        self.child = child
        self.uses: list[ModelUse] = []
        self._running = ""

    def pass_on(self, event: Event) -> None:
        """Pass an event of the child on to the parent; this is the child's sink."""
        node, child = self.node, self.child
        if child.on_below:
            child.on_below(child.thread_id, event)
        if isinstance(event, (TextStreamed, ModelCalled, NodeRetrying)):
            self.session.emit(replace(event, node=node, path=f"{node}/{event.path or event.node}"))
        elif isinstance(event, (ToolCalled, BreakpointHit, PriceUnknown)):
            self.session.emit(replace(event, node=node))
        elif isinstance(event, ChildMoved):
            self.session.emit(replace(event, node=node, path=f"{node}/{event.path}"))
        elif isinstance(event, (NodeStarted, RunStarted, StepCommitted, AttemptFailed, RunEnded)):
            self._running = event.node if isinstance(event, NodeStarted) else ""
            if isinstance(event, StepCommitted):
                self.uses.extend(event.checkpoint.uses)
            self.session.emit(ChildMoved(node, node, child.thread_id, self._running, child.progress))


_ALL = 1 << 31
_TRIES, _BETWEEN_TRIES = 40, 0.025


async def run_subgraph(
    session: Session, node: Node, activity: Activity, make_run: Callable[[Session], RunLoop]
) -> NodeOutput:
    """Run or continue the child thread of this visit, and reduce its outputs.

    Args:
        activity: of the node; stopping it stops the child's node.
        make_run: makes a run of the child thread with the options of the parent's run.

    Raises:
        NodeFailed: the child thread failed or was cancelled.
        BranchesWait: it asks a human.
        ChildStopped: it was paused, a limit stopped it, or somebody else runs it.
        StoreUnusable, LogCorrupt, StaleWriter: the store failed, not the node.
    """
    assert isinstance(node.work, SubgraphWork)
    return await _Visit(session, node, node.work, activity).run(make_run)


class _Visit:
    """One visit to a subgraph's node, or its continuation after it had to wait."""

    def __init__(self, session: Session, node: Node, work: SubgraphWork, activity: Activity) -> None:
        self.session = session
        self.node = node
        self.work = work
        self.activity = activity
        self.events: ChildEvents | None = None

    async def run(self, make_run: Callable[[Session], RunLoop]) -> NodeOutput:
        link = self.session.cursor.child or self._begin_visit()
        try:
            child = open_child(self.session, self.node, link.thread_id)
            self.events = ChildEvents(self.session, self.node.name, child)
            child.sink, child.on_below = self.events.pass_on, self.session.on_below
            run = make_run(child)
            await self._run_child(child, link, run)
        except ThreadBusy as busy:
            raise self._child_is_busy(link.thread_id, busy) from busy
        except (NodeFailed, *STORE_FAILURES):
            raise
        except HitlError as error:
            raise self._failed(link.thread_id, f"can't run: {error.message}", error.hint) from error
        return self._outcome(child, run.stopped_by)

    def _begin_visit(self) -> ChildLink:
        """Store the child's name before the child is made, so that it is found after a crash in between.

        That also fixes the route to the node, because the child's requests are asked there.
        """
        session = self.session
        link = ChildLink(new_child_id(session, self.node))
        states = (BranchState(self.node.name, child=link),)
        at_node = f"node:{self.node.name}"
        session.commit_cursor(replace(session.cursor, position=at_node, branches=states))
        return link

    async def _run_child(self, child: Session, link: ChildLink, run: RunLoop) -> None:
        unsubscribe = self.activity.on_cancel(run.give_up)
        try:
            if child.cursor.head < 0:
                inputs, tainted = self._inputs()
                with child.writing():
                    self._start(child, inputs, tainted)
            for tries_left in reversed(range(_TRIES)):
                try:
                    await self._run_steps(child, link, run)
                    break
                except ThreadBusy:
                    # Wait for a person's answer or edit to be stored; a run would take longer than this.
                    if run.ended or not tries_left:
                        raise
                await asyncio.sleep(_BETWEEN_TRIES)
                child.reload()
        finally:
            unsubscribe()
            self._roll_up(child, link)

    async def _run_steps(self, child: Session, link: ChildLink, run: RunLoop) -> None:
        child.cursor = replace(child.cursor, limits=self._limits(child.cursor, link))
        async with aclosing(run.steps()) as steps:
            async for _ in steps:
                pass

    def _child_is_busy(self, thread_id: str, busy: ThreadBusy) -> ChildStopped:
        """Return the stop for a child that another process runs; the parent waits before its node."""
        why = f"{busy.message}; continue once that has ended"
        self.session.emit(AttemptDropped(self.node.name, self.activity.attempt, why))
        return ChildStopped("waiting", "paused", f"{thread_id} was busy")

    def _outcome(self, child: Session, stopped_by: str) -> NodeOutput:
        cursor = child.cursor
        if cursor.status == "completed":
            return self._node_output(child)
        if cursor.pending:
            raise BranchesWait(requests_of_child(self.session, child), self.session.cursor.branches)
        if cursor.status == "waiting" or cursor.reason == "limit":
            where = f"in {child.thread_id}"
            note = f"{stopped_by} {where}" if stopped_by else where
            raise ChildStopped(cursor.status, cursor.reason, note)
        if cursor.status == "cancelled":
            # It is never resumed: resuming the parent starts another child.
            raise self._failed(child.thread_id, *describe_cancelled(child), child)
        why = cursor.error.message if cursor.error else cursor.reason
        failure = self._failed(child.thread_id, f"failed: {why}", "", child)
        failure.branches = self.session.cursor.branches
        raise failure

    def _failed(
        self, thread_id: str, what: str, hint: str = "", child: Session | None = None
    ) -> BranchesFailed:
        error = child.cursor.error if child else None
        failure = BranchesFailed(
            f"node {self.node.name!r}, attempt {self.activity.attempt}: its thread {thread_id!r} {what}",
            error.hint if error else hint,
            node=self.node.name,
            attempt=self.activity.attempt,
            details=error.details if error else "",
            frames=error.frames if error else (),
        )
        failure.branches = () if child else self.session.cursor.branches
        return failure

    # -- what goes in and comes out ---------------------------------------------------------------

    def _start(self, child: Session, inputs: dict[str, Any], tainted: dict[str, Lineage]) -> None:
        """Commit the child's input, with the parent's context."""
        cursor = self.session.cursor
        start(child, Start(inputs, context=cursor.context), tainted, cursor.private_context)

    def _inputs(self) -> tuple[dict[str, Any], dict[str, Lineage]]:
        """Return the child's input, copies of the parent's values, and which of them are tainted."""
        session = self.session
        view = session.view()
        inputs = {name: getattr(session.cursor, name) for name in RUN_INPUTS}
        inputs = {name: value for name, value in inputs.items() if value is not None}
        tainted: dict[str, Lineage] = {}
        for source, target in self.work.inputs:
            value = view[source]
            channel = self.work.graph.channels.get(target)
            if value is None and channel and channel.reducer.kind != "replace":
                continue  # nothing to copy: null is neither an entry nor a number
            inputs[target] = value
            mark = session.state.taint.get(source.partition(".")[0])
            if mark:
                tainted[target] = Lineage(0, self.node.name, sources=mark.sources)
        return inputs, tainted

    def _node_output(self, child: Session) -> NodeOutput:
        session = self.session
        path = f"{self.node.name}#{child.thread_id.rpartition('#')[2]}"
        values = [(target, child.state.values[source]) for source, target in self.work.outputs]
        try:
            changes = reduce_updates(session.state, session.graph.channels, values)
        except HitlError as error:
            raise self._failed(
                child.thread_id, f"has an output that does not fit: {error.message}"
            ) from error
        outcome = BranchOutcome(
            path,
            self.node.name,
            0,
            "ok",
            attempts=session.cursor.attempt,
            duration=child.cursor.active,
            thread=child.thread_id,
        )
        return NodeOutput(
            NodeResult(),
            [self._tainted_output(child, change, path) for change in changes],
            "subgraph",
            (outcome,),
            read=tuple(name for name, _ in self.work.inputs if name not in RUN_INPUTS),
            counted=self._uses_of(child),
        )

    def _tainted_output(self, child: Session, change: Change, path: str) -> Change:
        """Return an output with its path, tainted if its value is."""
        sources = [source for source, target in self.work.outputs if target == change.channel.name]
        marks = [child.state.taint[name] for name in sources if name in child.state.taint]
        change = replace(change, path=path)
        if not marks:
            return change
        named = tuple(dict.fromkeys(source for mark in marks for source in mark.sources))
        lineage = Lineage(self.session.cursor.head + 1, self.node.name, sources=named)
        return replace(change, tainted=True, lineage=lineage)

    # -- limits and spending ----------------------------------------------------------------------

    def _limits(self, child: Cursor, link: ChildLink) -> Limits:
        """Return the child's own limits, but at most what is left of the parent's.

        Limits set by a person are kept.
        """
        own, outer, parent = self.work.graph.limits, self.session.limits, self.session.cursor
        tokens = parent.tokens_in + parent.tokens_out - link.tokens_in - link.tokens_out
        left = Limits(
            _smaller_limit(own.max_iterations, _remaining(outer.max_iterations, parent.iteration)),
            _smaller_limit(own.max_tokens, _remaining(outer.max_tokens, tokens)),
            _smaller_limit(own.max_cost_usd, _remaining(outer.max_cost_usd, parent.cost - link.cost)),
            _smaller_limit(
                own.max_seconds, _remaining(outer.max_seconds, (parent.active - child.active) / 1e6)
            ),
            "stop" if "stop" in (own.on_unknown_price, outer.on_unknown_price) else "warn",
        )
        if child.iteration == 0:
            return left
        given = child.limits
        return Limits(
            _larger_limit(given.max_iterations, left.max_iterations),
            _larger_limit(given.max_tokens, left.max_tokens),
            _larger_limit(given.max_cost_usd, left.max_cost_usd),
            _larger_limit(given.max_seconds, left.max_seconds),
            given.on_unknown_price,
        )

    def _roll_up(self, child: Session, link: ChildLink) -> None:
        """Count what the child has spent since the last count: exactly once, whatever happens next.

        What can be undone in the child counts as the parent's own, which forks of the parent share.
        """
        session, spent = self.session, child.cursor
        now = ChildLink(link.thread_id, spent.tokens_in, spent.tokens_out, spent.cost, spent.cost_known)
        uses = link.uses if replace(link, uses=()) == now else (*self._uses_of(child), *spent.open_uses)
        now = replace(now, uses=uses)
        cursor = session.cursor
        compensated = cursor.compensated or spent.compensated
        if (now, compensated) == (link, cursor.compensated):
            return
        session.commit_cursor(
            replace(
                cursor,
                tokens_in=cursor.tokens_in + now.tokens_in - link.tokens_in,
                tokens_out=cursor.tokens_out + now.tokens_out - link.tokens_out,
                cost=cursor.cost + now.cost - link.cost,
                cost_known=cursor.cost_known and now.cost_known,
                branches=(BranchState(self.node.name, child=now),),
                compensated=compensated,
            )
        )

    def _uses_of(self, child: Session) -> tuple[ModelUse, ...]:
        """Return the model calls of the child's steps, as a checkpoint of the parent names them."""
        if child.store is None:
            return tuple(self.events.uses) if self.events else ()
        points = child.store.checkpoints(child.thread_id, None, _ALL)
        return tuple(use for point in reversed(points) for use in point.uses)


def _remaining(limit: Any, used: Any) -> Any:
    return None if limit is None else max(limit - used, 0)


def _smaller_limit(first: Any, other: Any) -> Any:
    return other if first is None else first if other is None else min(first, other)


def _larger_limit(first: Any, other: Any) -> Any:
    return None if first is None or other is None else max(first, other)
