"""The keys of the run screen that run a thread, and whether it goes on by itself after a question."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal

from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Pause, Run, Step
from hitl_tui.ui.screens.run_keys import RunKeys
from hitl_tui.view.session import Session

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen


Pace = Literal["opened", "stepping", "going"]


class SteppingKeys(RunKeys):
    """Step, continue, pause, cancel; an answered thread goes on, unless it was being stepped through."""

    def __init__(self, screen: RunScreen) -> None:
        super().__init__(screen)
        self._paces: dict[str, Pace] = {}

    @property
    def going_on(self) -> bool:
        """Whether the user let the shown thread run on, so that its questions come up by themselves."""
        return self.session is not None and self._pace(self.session) == "going"

    def _pace(self, session: Session) -> Pace:
        return self._paces.get(session.thread_id, "opened")

    def begin(self, session: Session, before: Session | None) -> None:
        """A thread is shown: one inside another is stepped through as that was, any other is as just opened.

        Args:
            before: the session that was shown until now.
        """
        owners = [owner.thread_id for owner in session.view.owners]
        left = [owner.thread_id for owner in before.view.owners] if before else []
        if session.running:
            self.go_on(session)
        elif before is not None and before.thread_id in owners and self._pace(before) == "stepping":
            self._paces[session.thread_id] = "stepping"
        elif session.thread_id not in left:
            self._paces.pop(session.thread_id, None)

    def go_on(self, session: Session) -> None:
        """Its next question comes up by itself, and once answered it goes on."""
        self._paces[session.thread_id] = "going"

    def do_run_step(self) -> None:
        """Run one node."""
        self._run(lambda driver: driver.execute(Step()), "stepping")

    def do_run_continue(self) -> None:
        """Run until something waits."""
        if session := self.session:
            self._run(lambda driver: self._run_on(session), "going")

    def _run(self, start: Callable[[Driver], Coroutine[Any, Any, None]], pace: Pace) -> None:
        session = self.session
        if session is None:
            return
        self._paces[session.thread_id] = pace
        self.screen.command(start(session.driver))

    async def _run_on(self, session: Session) -> None:
        """Run until something waits, fails or ends, or a breakpoint is reached."""
        await session.driver.execute(Run(dict(session.breakpoints)))

    def do_run_pause(self) -> None:
        """Stop at the next node boundary; neither this thread nor those it runs for go on by themselves."""
        if session := self.session:
            session.pausing = True
            for thread_id in (session.thread_id, *(owner.thread_id for owner in session.view.owners)):
                self._paces[thread_id] = "stepping"
            self.screen.show_all()
            self.screen.command(session.driver.execute(Pause()))

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
        """Go on to the next stop, unless the thread was being stepped through when the question came up.

        It does so as well where another thread is shown by now.
        """
        if self._pace(session) == "stepping":
            return
        await session.drain()
        if session is self.session:
            self.screen.bring_up(session)
        if not session.request and session.view.progress.status in ("waiting", "pending"):
            self.go_on(session)
            await self._run_on(session)

    async def come_back(self, session: Session) -> None:
        """Where a thread was going on when it was left, it goes on unless something waits."""
        if self.going_on and not session.running:
            await self.after_answer(session)
            self.screen.on_progress(session)
