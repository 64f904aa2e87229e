"""The keys of the run screen that go inside a node and out again (SPEC 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hitl_tui.ui.screens.run_keys import RunKeys
from hitl_tui.ui.widgets.graph import GraphPane
from hitl_tui.view.session import Session

if TYPE_CHECKING:
    from hitl_tui.view.run_view import InsidePlace


class InsideKeys(RunKeys):
    """The branches of a step as a list, the thread of a subgraph's run as a run of its own."""

    def do_look_inside(self) -> None:
        """Open the branches, or the thread, of the shown step, of the selected node, or of what runs."""
        session = self.session
        if session is None:
            return
        place = session.inside(self.screen.query_one(GraphPane).chosen)
        if place is None:
            self.screen.tell("no branches and no thread of its own here", "Inside", "warning")
        elif place.thread:
            self.enter_thread(place.thread)
        else:
            self._open_branches(session, place)

    def _open_branches(self, session: Session, place: InsidePlace) -> None:
        from hitl_tui.ui.screens.branches import BranchesScreen

        def chosen(path: str | None) -> None:
            request = next((one for one in session.requests if one.path == path), None) if path else None
            if request is not None and session is self.session:
                self.screen.review.open_card(request)

        keys = (*self.screen.keymap.bindings["look.inside"], *self.screen.keymap.bindings["look.outside"])
        self.screen.app.push_screen(BranchesScreen(session, place, self.screen.now, keys), chosen)

    def enter_thread(self, thread_id: str) -> None:
        """Open the thread of a subgraph's run; esc comes back."""
        if self.session is not None:
            self.screen.command(self.screen.threads.open(thread_id))

    def do_look_check(self) -> None:
        """Check the log; comes back to the step of what was found, here or in a thread inside."""
        from hitl_tui.ui.screens.check import CheckScreen

        session = self.session
        if session is None:
            return

        def chosen(found: tuple[str, int | None] | None) -> None:
            if found is None or session is not self.session:
                return
            thread_id, step = found
            if thread_id:
                self.screen.command(self._enter_at(thread_id, step))
            elif step is not None:
                self.screen.travel((session.thread_id, step))

        self.screen.app.push_screen(
            CheckScreen(session.driver, self.screen.keymap.bindings["look.check"]), chosen
        )

    async def _enter_at(self, thread_id: str, step: int | None) -> None:
        """Open a thread inside at one of its steps, where it can be opened."""
        await self.screen.threads.open(thread_id)
        if step is not None and self.session is not None and self.session.thread_id == thread_id:
            self.screen.travel((thread_id, step))

    def do_look_outside(self) -> None:
        """Back to the thread that this one runs for."""
        if self.session is not None and self.session.view.owners:
            self.screen.command(self._leave_thread(self.session.view.owners[-1].thread_id))

    async def _leave_thread(self, owner: str) -> None:
        """Show the owner; where it was going on when it was left, it goes on unless something waits."""
        await self.screen.threads.open(owner)
        session = self.session
        if session is not None:
            await self.screen.stepping.come_back(session)
