"""From one thread to another: the list of them, and what is shown where one can't be opened."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable

from hitl_tui.errors import HitlError, LogCorrupt
from hitl_tui.ui.actions import BY_ID
from hitl_tui.ui.keymap import Keymap
from hitl_tui.ui.screens.run_inside import InsideKeys
from hitl_tui.ui.session import Session
from hitl_tui.view.waiting_queue import WaitingQueue


class ThreadKeys(InsideKeys):
    """The part of the run screen that shows other threads in its place."""

    _card_shown_for = ""

    def __init__(self, now: Callable[[], int] | None = None, keymap: Keymap | None = None) -> None:
        super().__init__(now, keymap)
        self._queue = WaitingQueue()
        self._one_by_one = asyncio.Lock()

    @abstractmethod
    async def begin(self, session: Session) -> None:
        """Show a session."""

    @abstractmethod
    def close_card(self) -> None:
        """Hide the review card."""

    @abstractmethod
    async def send_decision(self) -> bool:
        """Send at once what could still be taken back; False where it was refused."""

    @abstractmethod
    def do_change_decide(self) -> None:
        """Open the review card."""

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

    def do_app_next(self) -> None:
        """Open the next thread that waits for a human, and its card; once it is answered the run goes on."""

        async def after_the_last_key() -> None:
            async with self._one_by_one:
                await self._open_next()

        self.command(after_the_last_key())

    async def _open_next(self) -> None:
        hub, session = self.hitl.hub, self.session
        assert hub is not None
        assert session is not None
        # Sent first, so that a thread which asks anew is seen to.
        if not await self.send_decision():
            return
        owners = (owner.thread_id for owner in session.view.owners)
        found = await self._queue.following(hub, (session.thread_id, *owners))
        if found is None:
            self.tell("no other thread waits for a human")
            return
        await self.open_thread(found.info.thread_id)
        if self.session is not session and not BY_ID["change.decide"].why_not(self.situation):
            self._continuing = True
            self.do_change_decide()

    async def open_thread(self, thread_id: str) -> None:
        """Show another thread of the hub; where its log is damaged what is wrong, with the way back here.

        A decision that could still be taken back is sent; where it is refused, its card stays.
        """
        hub = self.hitl.hub
        assert hub is not None
        if not await self.send_decision():
            return
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
