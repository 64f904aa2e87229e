"""From one thread to another: the list of them, and what is shown where one can't be opened."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hitl_tui.errors import HitlError, LogCorrupt
from hitl_tui.ui.screens.run_keys import RunKeys
from hitl_tui.view.actions import BY_ID
from hitl_tui.view.session import Session
from hitl_tui.view.threads import WaitingQueue

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen


class ThreadKeys(RunKeys):
    """Shows other threads in the place of the one that is shown."""

    def __init__(self, screen: RunScreen) -> None:
        super().__init__(screen)
        self._queue = WaitingQueue()
        self._one_by_one = asyncio.Lock()

    def do_app_threads(self) -> None:
        """List the threads."""
        from hitl_tui.ui.screens.threads import ThreadsScreen

        def chosen(thread_id: str | None) -> None:
            if thread_id and (self.session is None or thread_id != self.session.thread_id):
                self.screen.command(self.open(thread_id))

        hub = self.screen.hitl.hub
        if hub is not None:
            current = self.session.thread_id if self.session else ""
            keys = self.screen.keymap.bindings["app.threads"]
            self.screen.app.push_screen(ThreadsScreen(hub, current, self.screen.now, keys), chosen)

    def do_app_next(self) -> None:
        """Open the next thread that waits for a human, and its card; once it is answered the run goes on."""

        async def after_the_last_key() -> None:
            async with self._one_by_one:
                await self._open_next()

        self.screen.command(after_the_last_key())

    async def _open_next(self) -> None:
        hub, session, review = self.screen.hitl.hub, self.session, self.screen.review
        assert hub is not None
        assert session is not None
        # Sent first, so that a thread which asks anew is seen to.
        if not await review.send_decision():
            return
        owners = (owner.thread_id for owner in session.view.owners)
        found = await self._queue.following(hub, (session.thread_id, *owners))
        if found is None:
            self.screen.tell("no other thread waits for a human")
            return
        await self.open(found.info.thread_id)
        opened = self.session
        decides = opened is not session and not BY_ID["change.decide"].why_not(self.screen.situation)
        if opened is not None and decides:
            self.screen.stepping.go_on(opened)
            review.do_change_decide()

    async def open(self, thread_id: str) -> None:
        """Show another thread of the hub; where its log is damaged what is wrong, with the way back here.

        A decision that could still be taken back is sent; where it is refused, its card stays.
        """
        hub = self.screen.hitl.hub
        assert hub is not None
        if not await self.screen.review.send_decision():
            return
        driver = await hub.open(thread_id)
        try:
            session = await Session.open(hub, driver)
        except LogCorrupt as error:
            from hitl_tui.ui.screens.damaged import Damage, show_damage

            show_damage(self.screen.app, hub, Damage(driver, error), "Back", self._after_damage)
        else:
            await self._change_to(session)

    def _after_damage(self, found: Session | HitlError) -> None:
        if isinstance(found, Session):
            self.screen.command(self._change_to(found))

    async def _change_to(self, session: Session) -> None:
        self.screen.review.forget()
        await self.screen.begin(session)
