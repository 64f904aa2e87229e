"""From one thread to another: the list of them, and what is shown where one can't be opened."""

from __future__ import annotations

from abc import abstractmethod

from hitl_tui.errors import HitlError, LogCorrupt
from hitl_tui.ui.screens.run_inside import InsideKeys
from hitl_tui.ui.session import Session


class ThreadKeys(InsideKeys):
    """The part of the run screen that shows other threads in its place."""

    _card_shown_for = ""

    @abstractmethod
    async def begin(self, session: Session) -> None:
        """Show a session."""

    @abstractmethod
    def close_card(self) -> None:
        """Hide the review card."""

    def do_app_threads(self) -> None:
        """List the threads."""
        from hitl_tui.ui.screens.threads import ThreadsScreen

        def chosen(thread_id: str | None) -> None:
            if thread_id and (self.session is None or thread_id != self.session.thread_id):
                self.command(self.open_thread(thread_id))

        if self.hitl.hub is not None:
            current = self.session.thread_id if self.session else ""
            self.app.push_screen(
                ThreadsScreen(self.hitl.hub, current, self.now, self.keymap.bindings["app.threads"]), chosen
            )

    async def open_thread(self, thread_id: str) -> None:
        """Show another thread of the hub; where its log is damaged what is wrong, with the way back here."""
        hub = self.hitl.hub
        assert hub is not None
        driver = await hub.open(thread_id)
        try:
            session = await Session.open(hub, driver)
        except LogCorrupt as error:
            from hitl_tui.ui.damage import Damage, show_damage

            show_damage(self.app, hub, Damage(driver, error), "Back", self._after_damage)
        else:
            await self._change_to(session)

    def _after_damage(self, found: Session | HitlError) -> None:
        if isinstance(found, Session):
            self.command(self._change_to(found))

    async def _change_to(self, session: Session) -> None:
        self.close_card()
        self._card_shown_for = ""
        await self.begin(session)
