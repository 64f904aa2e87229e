"""The keys of the run screen about breakpoints: nodes before which a run stops, kept while the app runs."""

from __future__ import annotations

from hitl_tui.drivers.breakpoints import describe, read_breakpoints
from hitl_tui.ui.screens.run_keys import RunKeys
from hitl_tui.ui.widgets.graph import GraphPane
from hitl_tui.view.session import Session


class BreakpointKeys(RunKeys):
    """Breakpoints belong to a thread; a fork begins with those of the thread that it was opened from."""

    _kept: dict[str, dict[str, str]] | None = None

    def bring(self, session: Session, before: Session | None) -> None:
        """Give a session the breakpoints that its thread had when it was shown last.

        Args:
            before: the session that was shown until now.
        """
        if self._kept is None:
            given = read_breakpoints(self.screen.hitl.start.breaks, session.view.graph)
            self._kept = {session.thread_id: given}
        forked = before is not None and session.view.parent == before.thread_id
        begins = dict(before.breakpoints) if forked and before is not None else {}
        session.breakpoints = self._kept.setdefault(session.thread_id, begins)

    def do_run_break(self) -> None:
        """Set or take away the breakpoint of the node that is chosen in the graph, or list them."""
        node = self.screen.query_one(GraphPane).chosen
        if node and self.session:
            self._toggle(self.session, node)
        else:
            self.do_run_breaks()

    def _toggle(self, session: Session, node: str) -> None:
        """Set a breakpoint for always, or take away the one that is there."""
        if session.breakpoints.pop(node, None) is None:
            session.breakpoints[node] = ""
            self.screen.tell(
                f"runs stop {describe(node)}; {self.screen.ways['run.breaks']} gives it a condition", "Break"
            )
        else:
            self.screen.tell(f"runs no longer stop {describe(node)}", "Break")
        self.screen.show_all()

    def do_run_breaks(self) -> None:
        """List the nodes with their breakpoints."""
        from hitl_tui.ui.screens.breakpoints import BreakpointsScreen

        session = self.session
        if session is None:
            return
        node = self.screen.query_one(GraphPane).chosen or session.view.progress.next_node or ""
        self.screen.app.push_screen(BreakpointsScreen(session, node), lambda _: self.screen.show_all())
