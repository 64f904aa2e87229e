"""A thread as it stands: what its graph makes of its cursor and its state."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec.structs import replace

from hitl_tui.engine.channels.state import LiveState, WorkflowState
from hitl_tui.engine.graphs.compiled import CompiledGraph
from hitl_tui.engine.graphs.termination import RunTotals
from hitl_tui.engine.log.events import PRIVATE, Progress
from hitl_tui.engine.log.records import END, Cursor, Limits
from hitl_tui.engine.thread.spending import open_uses
from hitl_tui.errors import HitlError


class WayOn(NamedTuple):
    """Where a thread goes on: a node, END or "" for a dead end; `ended` is the termination met, if any."""

    target: str
    ended: str = ""


class Outlook:
    """The cursor and the state of a thread, and where they lead."""

    graph: CompiledGraph
    cursor: Cursor
    state: LiveState
    max_iterations: int | None = None
    """Of the `invoke` that runs now, in place of the thread's own; it is written nowhere (SPEC 15)."""
    _routed: tuple[str, LiveState, str] | None = None
    _ended: tuple[LiveState, RunTotals, str] | None = None

    @property
    def limits(self) -> Limits:
        """What the run that goes on now may use up."""
        limits = self.cursor.limits
        return limits if self.max_iterations is None else replace(limits, max_iterations=self.max_iterations)

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
            limits=self.limits,
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

    def way_on(
        self, position: str | None = None, state: LiveState | None = None, cursor: Cursor | None = None
    ) -> WayOn:
        """Where a position leads to, by default the thread's own.

        Termination is asked before a routing function: a run that is over asks no router (SPEC 15).

        Raises:
            HitlError: the condition or the routing function raised, or it gave an unknown key.
        """
        kind, _, name = (self.cursor.position if position is None else position).partition(":")
        state = self.state if state is None else state
        asks = kind == "route" and name in self.graph.routes
        target = END if kind == "end" else name
        if kind == "route":
            target = "" if asks else self.route_from(name, state)
        if target == END:
            return WayOn(END)
        if ended := self.terminated(state, cursor):
            return WayOn(END, ended)
        return WayOn(self.route_from(name, state) if asks else target)

    def route_from(self, node: str, state: LiveState) -> str:
        """The node after `node` by a state; a routing function is asked once for each state."""
        known = self._routed
        if known and known[0] == node and known[1] is state:
            return known[2]
        target = self.graph.route(node, self.view(state))
        self._routed = (node, state, target)
        return target

    def led_on(self, cursor: Cursor, node: str, state: LiveState) -> Cursor:
        """A cursor behind `node`, with the way on as far as it is settled.

        A conditional edge stays undecided, so that it follows the state as a human may edit it,
        but for END: nothing more will run, so the thread is done.
        """
        if node in self.graph.routes:
            try:
                target, ended = self.way_on(f"route:{node}", state, cursor)
            except HitlError:
                return cursor  # told when the route is taken, with the step safely committed
            if target != END or ended:
                return cursor
        else:
            target = self.graph.edges.get(node, "")
        if target == END:
            return replace(cursor, position="end", status="completed", reason="end")
        return replace(cursor, position=f"node:{target}")

    def terminated(self, state: LiveState | None = None, cursor: Cursor | None = None) -> str:
        """What the termination condition says of a state once a node has run, "" while it does not hold.

        It is asked once for each state.

        Raises:
            HitlError: the condition, a user's function, raised.
        """
        condition = self.graph.termination
        state, cursor = state or self.state, cursor or self.cursor
        if condition is None or cursor.iteration == 0:
            return ""
        totals = RunTotals(turns=cursor.iteration, cost=cursor.cost)
        known = self._ended
        if known and known[0] is state and known[1] == totals:
            return known[2]
        try:
            ended = condition.met(self.view(state), totals)
        except HitlError:
            raise
        except Exception as error:
            raise HitlError(
                f"the termination condition {condition.reason!r} raised {type(error).__name__}: {error}"
            ) from error
        self._ended = (state, totals, ended)
        return ended

    def _peek_next(self) -> str | None:
        """The next node as it would be decided now, for display."""
        if not self.cursor.position.startswith("route:"):
            return self.cursor.next_node
        try:
            return self.way_on().target or None
        except HitlError:
            return None
