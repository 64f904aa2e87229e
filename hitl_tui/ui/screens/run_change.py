"""The keys of the run screen that change a thread: edit a channel, mend what failed, fork, roll back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hitl_tui.engine.commands import ReloadGraph
from hitl_tui.ui.failures import Failures
from hitl_tui.ui.screens.run_keys import RunKeys
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.view.actions import BY_ID
from hitl_tui.view.session import Session

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen


class ChangeKeys(RunKeys):
    """A human's hand on a thread; the editor opens by itself where a node failed by what a channel holds."""

    def __init__(self, screen: RunScreen) -> None:
        super().__init__(screen)
        self._failures = Failures()

    def begin(self, session: Session) -> None:
        """What has failed before a session is shown is not news."""
        self._failures.begin(session)

    def mend_failure(self, session: Session) -> bool:
        """Where a node has just failed by what a channel holds, open that; False where nothing opened."""
        channel = self._failures.to_mend(session)
        free = not self.screen.review.card_open and not session.is_past and self.screen.on_top
        if not channel or not free or BY_ID["change.edit"].why_not(self.screen.situation):
            return False
        self._mend(session, channel)
        return True

    def _mend(self, session: Session, channel: str) -> None:
        """Open the editor on what a node failed by; once it is mended, go on as the user did."""
        from hitl_tui.ui.screens.edit import MendScreen

        def done(applied: str | None) -> None:
            if applied and session is self.session:
                self.screen.stepping.again()

        self.screen.app.push_screen(MendScreen(session, channel, self.screen.hitl.actor), done)

    def do_change_edit(self) -> None:
        """Edit the selected channel."""
        self.edit_channel(self.screen.query_one(ChannelsPane).selected)

    def edit_channel(self, channel: str) -> None:
        """Open the editor on a channel at the shown step."""
        from hitl_tui.ui.screens.edit import EditScreen

        session = self.session
        if session is None or not channel:
            return
        deciding = self.screen.review.card_open
        self.screen.review.close_card()

        def done(thread_id: str | None) -> None:
            if thread_id and thread_id != session.thread_id:
                self.screen.command(self.screen.threads.open(thread_id))
                return
            if thread_id:
                self.screen.travel(None)
            if deciding:
                self.screen.command(self._decide_again(session))

        self.screen.app.push_screen(EditScreen(session, channel, self.screen.hitl.actor), done)

    async def _decide_again(self, session: Session) -> None:
        """Back to the card that the editor was opened from; the request may be about a new step by now."""
        await session.drain()
        self.screen.bring_up(session)
        if session is self.session and session.request is not None:
            self.screen.review.open_card(session.request)

    def do_change_extend(self) -> None:
        """Ask for new limits."""
        from hitl_tui.ui.screens.dialogs import ask_limits

        if self.session:
            ask_limits(self.screen, self.session, self.screen.hitl.actor)

    def do_change_fork(self) -> None:
        """Ask for a name and fork the shown step."""
        from hitl_tui.ui.screens.dialogs import ask_fork

        if self.session:
            ask_fork(self.screen, self.session, self.screen.hitl.actor)

    def do_change_rollback(self) -> None:
        """Show what would be undone, and ask."""
        from hitl_tui.ui.screens.rollback import ask_rollback

        if self.session:
            self.screen.command(ask_rollback(self.screen, self.session.driver, self.screen.hitl.actor))

    def do_app_reload(self) -> None:
        """Go on with the graph as it is in its file now."""
        if self.session:
            self.screen.command(self._reload_graph(self.session))

    async def _reload_graph(self, session: Session) -> None:
        found = await session.driver.execute(ReloadGraph(self.screen.hitl.actor))
        self.screen.tell("; ".join(found) or "the graph was loaded again", "Reloaded" if found else "")
