"""The keys of the run screen about breakpoints: nodes before which a run stops, kept while the app runs."""

from __future__ import annotations

from hitl_tui.drivers.breakpoints import describe, read_breakpoints
from hitl_tui.drivers.protocol import Driver
from hitl_tui.ui.screens.run_trust import TrustKeys
from hitl_tui.ui.session import Session
from hitl_tui.ui.widgets.graph import GraphPane


class BreakpointKeys(TrustKeys):
    """Breakpoints belong to a thread; a fork begins with those of the thread that it was opened from."""

    _kept: dict[str, dict[str, str]] | None = None

    def attach(self, session: Session) -> None:
        """Show a session, with the breakpoints that its thread had when it was shown last."""
        before = self.session
        if self._kept is None:
            self._kept = {session.thread_id: read_breakpoints(self.hitl.start.breaks, session.view.graph)}
        forked = before is not None and session.view.parent == before.thread_id
        begins = dict(before.breakpoints) if forked and before is not None else {}
        session.breakpoints = self._kept.setdefault(session.thread_id, begins)
        super().attach(session)

    async def going_on(self, driver: Driver) -> None:
        """Run until something waits, fails or ends, or a breakpoint is reached."""
        await driver.run(stop_before=dict(self.session.breakpoints) if self.session else {})

    def do_run_break(self) -> None:
        """Set or take away the breakpoint of the node that is chosen in the graph, or list them."""
        node = self.query_one(GraphPane).chosen
        if node and self.session:
            self.toggle_breakpoint(self.session, node)
        else:
            self.do_run_breaks()

    def toggle_breakpoint(self, session: Session, node: str) -> None:
        """Set a breakpoint for always, or take away the one that is there."""
        if session.breakpoints.pop(node, None) is None:
            session.breakpoints[node] = ""
            self.tell(f"runs stop {describe(node)}; {self.ways['run.breaks']} gives it a condition", "Break")
        else:
            self.tell(f"runs no longer stop {describe(node)}", "Break")
        self.show_all()

    def do_run_breaks(self) -> None:
        """List the nodes with their breakpoints."""
        from hitl_tui.ui.screens.breakpoints import BreakpointsScreen

        session = self.session
        if session is None:
            return
        node = self.query_one(GraphPane).chosen or session.view.progress.next_node or ""
        self.app.push_screen(BreakpointsScreen(session, node), lambda _: self.show_all())
