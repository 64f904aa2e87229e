"""Going down into the thread of a subgraph to undo it, as a part of its parent's rollback (SPEC 13)."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.nodes.activity import Activity
from hitl_tui.engine.subgraphs.children import graph_inside, open_child
from hitl_tui.engine.subgraphs.inside_events import InsideEvents
from hitl_tui.engine.thread.session import Session, replace
from hitl_tui.engine.undo.undo_order import Below
from hitl_tui.errors import GraphInvalid, UnknownThread

if TYPE_CHECKING:
    from hitl_tui.engine.undo.rollback import Rollback


def child_below(session: Session, below: Below) -> Session | None:
    """The thread to undo; None where it can't be had and there is nothing to undo of it.

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


class Descent:
    """One rollback of a child thread; its parent's watchers are told, and its spending is counted."""

    def __init__(self, session: Session, node: str, child: Session) -> None:
        self.session = session
        self.child = child
        child.sink = InsideEvents(session, node, child).tell

    async def run(self, rollback: Rollback, activity: Activity) -> None:
        """Undo it as far as it goes; giving up the activity gives up the handler that runs.

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
        spent = (after.tokens_in - before.tokens_in, after.tokens_out - before.tokens_out)
        cost = after.cost - before.cost
        if not any(spent) and not cost and after.cost_known == before.cost_known:
            return
        cursor = self.session.cursor
        self.session.commit_cursor(
            replace(
                cursor,
                tokens_in=cursor.tokens_in + spent[0],
                tokens_out=cursor.tokens_out + spent[1],
                cost=cursor.cost + cost,
                cost_known=cursor.cost_known and after.cost_known,
            )
        )
