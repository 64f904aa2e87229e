"""The keys of the run screen that go inside a node and out again (SPEC 7)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from hitl_tui.ui.keymap import Keymap
from hitl_tui.ui.screens.run_trust import TrustKeys
from hitl_tui.ui.session import Session
from hitl_tui.ui.widgets.graph import GraphPane

if TYPE_CHECKING:
    from hitl_tui.engine.log.requests import Request
    from hitl_tui.view.inside_place import InsidePlace


class InsideKeys(TrustKeys):
    """The branches of a step as a list, the thread of a subgraph's run as a run of its own."""

    _continuing = False

    def __init__(self, now: Callable[[], int] | None = None, keymap: Keymap | None = None) -> None:
        super().__init__(now, keymap)
        # Threads that were left for one inside them, and whether they were going on.
        self._outside: dict[str, bool] = {}

    @abstractmethod
    async def open_thread(self, thread_id: str) -> None:
        """Show another thread of the hub."""

    @abstractmethod
    def open_card(self, request: Request) -> None:
        """Show the card of a request."""

    @abstractmethod
    async def after_answer(self, session: Session) -> None:
        """Go on where the user was going on."""

    def do_look_inside(self) -> None:
        """Open the branches, or the thread, of the shown step, of the selected node, or of what runs."""
        session = self.session
        if session is None:
            return
        place = session.inside(self.query_one(GraphPane).chosen)
        if place is None:
            self.tell("no branches and no thread of its own here", "Inside", "warning")
        elif place.thread:
            self.enter_thread(place.thread)
        else:
            self._open_branches(session, place)

    def _open_branches(self, session: Session, place: InsidePlace) -> None:
        from hitl_tui.ui.screens.branches import BranchesScreen

        def chosen(path: str | None) -> None:
            request = next((one for one in session.requests if one.path == path), None) if path else None
            if request is not None and session is self.session:
                self.open_card(request)

        keys = (*self.keymap.bindings["look.inside"], *self.keymap.bindings["look.outside"])
        self.app.push_screen(BranchesScreen(session, place, self.now, keys), chosen)

    def enter_thread(self, thread_id: str) -> None:
        """Open the thread of a subgraph's run; esc comes back."""
        if self.session is not None:
            self._outside[self.session.thread_id] = self._continuing
            self.command(self.open_thread(thread_id))

    def stop_going_on(self) -> None:
        """Neither this thread nor those that were left for it go on by themselves."""
        self._continuing = False
        self._outside = dict.fromkeys(self._outside, False)

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
                self._outside[session.thread_id] = self._continuing
                self.command(self._enter_at(thread_id, step))
            elif step is not None:
                self.travel((session.thread_id, step))

        self.app.push_screen(CheckScreen(session.driver, self.keymap.bindings["look.check"]), chosen)

    async def _enter_at(self, thread_id: str, step: int | None) -> None:
        """Open a thread inside at one of its steps, where it can be opened."""
        await self.open_thread(thread_id)
        if step is not None and self.session is not None and self.session.thread_id == thread_id:
            self.travel((thread_id, step))

    def do_look_outside(self) -> None:
        """Back to the thread that this one runs for."""
        if self.session is not None and self.session.view.owners:
            self.command(self._leave_thread(self.session.view.owners[-1].thread_id))

    async def _leave_thread(self, owner: str) -> None:
        """Show the owner; where it was going on when it was left, it goes on unless something waits."""
        await self.open_thread(owner)
        session = self.session
        if session is not None and self._outside.pop(owner, False) and not session.running:
            self._continuing = True
            await self.after_answer(session)
            self.on_progress(session)
