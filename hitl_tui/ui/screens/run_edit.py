"""Editor over the run screen: for a channel on request, or by itself after that made a node fail."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hitl_tui.engine.log.outcomes import ErrorInfo
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.verbs.actions import BY_ID
from hitl_tui.view.session import ViewSession

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen


class Editing:
    """Opens the editor by itself, once, if a node has failed because of a channel."""

    def __init__(self, screen: RunScreen) -> None:
        self.screen = screen
        self._seen: ErrorInfo | None = None

    def begin(self, session: ViewSession) -> None:
        """Ignore failures from before the session is shown."""
        self._seen = session.view.error

    def open_failed_channel(self, session: ViewSession) -> bool:
        """Open the editor if a node has just failed because of a channel; return whether it did."""
        error, seen = session.view.error, self._seen
        self._seen = error
        failed = error is not None and error is not seen and session.view.progress.status == "failed"
        channel = error.channel if failed and error is not None else ""
        free = not self.screen.review.card_open and not session.is_past and self.screen.on_top
        if not channel or not free or BY_ID["change.edit"].disabled_reason(self.screen.situation):
            return False
        self._mend(session, channel)
        return True

    def _mend(self, session: ViewSession, channel: str) -> None:
        """Open the editor on the channel that caused a failure; after the fix, continue as the user did."""
        from hitl_tui.ui.screens.edit import FailedValueScreen

        def done(applied: str | None) -> None:
            if applied and session is self.screen.session:
                self.screen.stepping.again()

        self.screen.app.push_screen(FailedValueScreen(session, channel, self.screen.actor), done)

    def edit_selected(self) -> None:
        """Edit the selected channel."""
        self.edit_channel(self.screen.query_one(ChannelsPane).selected)

    def edit_channel(self, channel: str) -> None:
        """Open the editor on a channel at the shown step."""
        from hitl_tui.ui.screens.edit import EditScreen

        session = self.screen.session
        if session is None or not channel:
            return
        deciding = self.screen.review.card_open
        self.screen.review.close_card()

        def done(thread_id: str | None) -> None:
            if thread_id and thread_id != session.thread_id:
                self.screen.command(partial(self.screen.open_thread, thread_id))
                return
            if thread_id:
                self.screen.travel(None)
            if deciding:
                self.screen.command(partial(self._decide_again, session))

        self.screen.app.push_screen(EditScreen(session, channel, self.screen.actor), done)

    async def _decide_again(self, session: ViewSession) -> None:
        """Go back to the card that the editor was opened from; the request may be about a new step by now."""
        await session.drain()
        self.screen.show_news(session)
        if session is self.screen.session and session.request is not None:
            self.screen.review.open_card(session.request)
