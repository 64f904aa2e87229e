"""The keys of the run screen that run a thread, and whether it goes on by itself after a question."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from hitl_tui.drivers.protocol import Driver
from hitl_tui.ui.screens.run_keys import RunKeys
from hitl_tui.ui.session import Session

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen


class SteppingKeys(RunKeys):
    """Step, continue, pause, cancel; a thread that was going on goes on once it is answered."""

    going_on = False
    """Whether the user let the thread run on, so that it does after an answer, too."""

    def __init__(self, screen: RunScreen) -> None:
        super().__init__(screen)
        # Threads that were left for one inside them, and whether they were going on.
        self._left: dict[str, bool] = {}

    def do_run_step(self) -> None:
        """Run one node."""
        self._run(lambda driver: driver.step(), going_on=False)

    def do_run_continue(self) -> None:
        """Run until something waits."""
        self._run(self._run_on, going_on=True)

    def _run(self, start: Callable[[Driver], Coroutine[Any, Any, None]], *, going_on: bool) -> None:
        session = self.session
        if session is None:
            return
        self.going_on = going_on
        self.screen.command(start(session.driver))

    async def _run_on(self, driver: Driver) -> None:
        """Run until something waits, fails or ends, or a breakpoint is reached."""
        await driver.run(stop_before=dict(self.session.breakpoints) if self.session else {})

    def do_run_pause(self) -> None:
        """Stop at the next node boundary."""
        if self.session:
            self.session.pausing = True
            self._stop_going_on()
            self.screen.show_all()
            self.screen.command(self.session.driver.pause())

    def _stop_going_on(self) -> None:
        """Neither this thread nor those that were left for it go on by themselves."""
        self.going_on = False
        self._left = dict.fromkeys(self._left, False)

    def do_run_cancel(self) -> None:
        """Ask what to give up."""
        from hitl_tui.ui.screens.dialogs import ask_cancel

        session = self.session
        if session is None:
            return
        ask_cancel(self.screen, session.driver, session.view.running_node, self.screen.hitl.actor)

    def again(self) -> None:
        """Go on as the user did last."""
        (self.do_run_continue if self.going_on else self.do_run_step)()

    async def after_answer(self, session: Session) -> None:
        """Go on where the user was going on when the question came up."""
        if self.going_on and session is self.session:
            await session.drain()
            self.screen.show_all()
            if not session.request and session.view.progress.status in ("waiting", "pending"):
                await self._run_on(session.driver)

    def leave(self, session: Session) -> None:
        """Note, before a thread is left for one inside it, whether it was going on."""
        self._left[session.thread_id] = self.going_on

    async def come_back(self, session: Session) -> None:
        """Where a thread was going on when it was left, it goes on unless something waits."""
        if self._left.pop(session.thread_id, False) and not session.running:
            self.going_on = True
            await self.after_answer(session)
            self.screen.on_progress(session)
