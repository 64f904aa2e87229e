"""The run of one node up to its commit: its attempts, or its branches (SPEC 5, 7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from hitl_tui.engine.graphs.compensation import check_compensation
from hitl_tui.engine.graphs.compiled import Node
from hitl_tui.engine.graphs.retry import NEVER_RETRIED
from hitl_tui.engine.graphs.work import SubgraphWork
from hitl_tui.engine.log.events import NodeStarted
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.nodes.activity import Activity
from hitl_tui.engine.nodes.attempt import run_attempt
from hitl_tui.engine.nodes.calling import SyncCaller
from hitl_tui.engine.nodes.fanout import run_fanout
from hitl_tui.engine.nodes.made import Made
from hitl_tui.engine.running.subgraph import run_subgraph
from hitl_tui.engine.thread.session import Session, replace
from hitl_tui.errors import NodeFailed

if TYPE_CHECKING:
    from hitl_tui.engine.running.loop import Run


async def work(
    session: Session,
    node: Node,
    cursor: Cursor,
    uses: list[ModelUse],
    *,
    threads: SyncCaller | None,
    begun: Callable[[Activity], None],
    inner: Callable[[Session], Run],
) -> Made:
    """Run a node with its retries; nothing of it is committed yet.

    Args:
        cursor: what the node's config tells of.
        uses: gets every model call, of failed attempts, too.
        threads: where the node's function runs; None runs it inline.
        begun: told of each attempt's activity, by which it can be given up.
        inner: makes a run of the thread of a subgraph.

    Raises:
        NodeFailed: its last attempt failed; says how many there were.
        InterruptRaised, BranchesWait: it asks a human.
        ChildStopped: the thread of a subgraph was stopped.
    """
    first = attempt = session.cursor.attempt
    while True:
        activity = Activity(node.name, attempt, session.sink)
        activity.first_input = session.first_input
        begun(activity)
        session.emit(NodeStarted(node.name, session.cursor.head + 1, attempt, session.clock()))
        if isinstance(node.work, SubgraphWork):
            return await run_subgraph(session, node, activity, inner)
        if node.work is not None:
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
            undo = result.compensation
            compensations = () if undo is None else (check_compensation(undo, session.graph.compensations),)
            return Made(result, changes, read=tuple(activity.read or ()), compensations=compensations)
        except NodeFailed as error:
            tried = attempt - first + 1
            if tried >= node.retry.max_attempts or isinstance(error.__cause__, NEVER_RETRIED):
                if tried > 1:
                    error.message += f" (after {tried} attempts)"
                raise
            wait = node.retry.wait_after(tried)
            activity.retrying(attempt, first + node.retry.max_attempts - 1, wait, error.message)
            attempt += 1
            session.commit_cursor(
                replace(session.cursor, attempt=attempt, retries=session.cursor.retries + 1)
            )
            await asyncio.sleep(wait)
        finally:
            uses.extend(activity.uses)
