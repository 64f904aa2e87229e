"""A thread as it stands: what its graph makes of its cursor and its state."""

from __future__ import annotations

from typing import Any

from hitl_tui.engine.channels.state import LiveState, WorkflowState
from hitl_tui.engine.graphs.compiled import CompiledGraph
from hitl_tui.engine.graphs.termination import RunTotals
from hitl_tui.engine.log.events import PRIVATE, Progress
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.thread.spending import open_uses
from hitl_tui.errors import HitlError


class Outlook:
    """The cursor and the state of a thread, and where they lead."""

    graph: CompiledGraph
    cursor: Cursor
    state: LiveState
    _routed: tuple[str, LiveState, str] | None = None

    @property
    def progress(self) -> Progress:
        """Where the thread stands, for status lines."""
        cursor = self.cursor
        return Progress(
            status=cursor.status,
            reason=cursor.reason,
            head=cursor.head,
            position=cursor.position,
            next_node=self._peek_next(),
            invocation=cursor.invocation,
            iteration=cursor.iteration,
            visits=cursor.visits,
            tokens_in=cursor.tokens_in,
            tokens_out=cursor.tokens_out,
            cost=cursor.cost,
            cost_known=cursor.cost_known,
            active=cursor.active,
            limits=cursor.limits,
            pending=cursor.pending,
            error=cursor.error,
            uses=open_uses(cursor),
        )

    @property
    def exists(self) -> bool:
        """True once the thread has been written."""
        return self.cursor.version > 0

    def view(self, state: LiveState | None = None) -> WorkflowState:
        """The whole state as routes, gates and conditions read it."""
        extras = {"goal": self.cursor.goal, "constraints": self.cursor.constraints}
        return WorkflowState((state or self.state).values, self.graph.channels, None, extras)

    def shown(self) -> dict[str, Any]:
        """All values as streams tell them: those of private channels stay behind (SPEC 8)."""
        channels = self.graph.channels
        return {
            name: PRIVATE if channels[name].visibility == "private" else value
            for name, value in self.state.values.items()
        }

    def route(self) -> str:
        """The node after the one at a "route:" position, by the state as it is; "" for a dead end."""
        return self.route_from(self.cursor.position.partition(":")[2], self.state)

    def route_from(self, node: str, state: LiveState) -> str:
        """The node after `node` by a state; a routing function is asked once for each state."""
        known = self._routed
        if known and known[0] == node and known[1] is state:
            return known[2]
        target = self.graph.route(node, self.view(state))
        self._routed = (node, state, target)
        return target

    def terminated(self, state: LiveState | None = None) -> str:
        """What the termination condition says of a state once a node has run, "" while it does not hold.

        Raises:
            HitlError: the condition, a user's function, raised.
        """
        condition = self.graph.termination
        if condition is None or self.cursor.iteration == 0:
            return ""
        totals = RunTotals(turns=self.cursor.iteration, cost=self.cursor.cost)
        try:
            return condition.met(self.view(state), totals)
        except HitlError:
            raise
        except Exception as error:
            raise HitlError(
                f"the termination condition {condition.reason!r} raised {type(error).__name__}: {error}"
            ) from error

    def _peek_next(self) -> str | None:
        """The next node as it would be decided now, for display."""
        if not self.cursor.position.startswith("route:"):
            return self.cursor.next_node
        try:
            return self.route() or None
        except HitlError:
            return None
