"""How threads are run on the run screen: step by step or on and on, and up to which breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal

from hitl_tui.drivers.breakpoints import describe, read_breakpoints
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Pause, Run, Step
from hitl_tui.view.session import ViewSession

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen


Pace = Literal["opened", "stepping", "going"]


class Stepping:
    """An answered thread goes on, unless it was being stepped through.

    Breakpoints belong to a thread; a fork begins with those of the thread that it was opened from.
    """

    def __init__(self, screen: RunScreen) -> None:
        self.screen = screen
        self._paces: dict[str, Pace] = {}
        self._breakpoints: dict[str, dict[str, str]] | None = None

    @property
    def going_on(self) -> bool:
        """Whether the user let the shown thread run on, so that its questions come up by themselves."""
        return self.screen.session is not None and self._pace(self.screen.session) == "going"

    def _pace(self, session: ViewSession) -> Pace:
        return self._paces.get(session.thread_id, "opened")

    def begin(self, session: ViewSession, before: ViewSession | None) -> None:
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

    def go_on(self, session: ViewSession) -> None:
        """Its next question comes up by itself, and once answered it goes on."""
        self._paces[session.thread_id] = "going"

    def step(self) -> None:
        """Run one node."""
        self._run(lambda driver: driver.execute(Step()), "stepping")

    def continue_(self) -> None:
        """Run until something waits."""
        if session := self.screen.session:
            self._run(lambda driver: self._run_on(session), "going")

    def _run(self, start: Callable[[Driver], Coroutine[Any, Any, None]], pace: Pace) -> None:
        session = self.screen.session
        if session is None:
            return
        self._paces[session.thread_id] = pace
        self.screen.command(start(session.driver))

    async def _run_on(self, session: ViewSession) -> None:
        """Run until something waits, fails or ends, or a breakpoint is reached."""
        await session.driver.execute(Run(dict(session.breakpoints)))

    def pause(self) -> None:
        """Stop at the next node boundary; neither this thread nor those it runs for go on by themselves."""
        if session := self.screen.session:
            session.pausing = True
            for thread_id in (session.thread_id, *(owner.thread_id for owner in session.view.owners)):
                self._paces[thread_id] = "stepping"
            self.screen.show_all()
            self.screen.command(session.driver.execute(Pause()))

    def again(self) -> None:
        """Go on as the user did last."""
        (self.continue_ if self.going_on else self.step)()

    async def after_answer(self, session: ViewSession) -> None:
        """Go on to the next stop, unless the thread was being stepped through when the question came up.

        It does so as well where another thread is shown by now.
        """
        if self.screen.stage.show is not None:
            self.screen.stage.go_on(session)
            return
        if self._pace(session) == "stepping":
            return
        await session.drain()
        if session is self.screen.session:
            self.screen.show_news(session)
        if not session.request and session.view.progress.status in ("waiting", "pending"):
            self.go_on(session)
            await self._run_on(session)

    async def come_back(self, session: ViewSession) -> None:
        """Where a thread was going on when it was left, it goes on unless something waits."""
        if self.going_on and not session.running:
            await self.after_answer(session)
            self.screen.on_progress(session)

    def bring_breakpoints(self, session: ViewSession, before: ViewSession | None) -> None:
        """Give a session the breakpoints that its thread had when it was shown last.

        Args:
            before: the session that was shown until now.
        """
        if self._breakpoints is None:
            given = read_breakpoints(self.screen.breaks, session.view.graph)
            self._breakpoints = {session.thread_id: given}
        forked = before is not None and session.view.parent == before.thread_id
        begins = dict(before.breakpoints) if forked and before is not None else {}
        session.breakpoints = self._breakpoints.setdefault(session.thread_id, begins)

    def toggle_breakpoint(self, session: ViewSession, node: str) -> None:
        """Set a breakpoint for always, or take away the one that is there."""
        if session.breakpoints.pop(node, None) is None:
            session.breakpoints[node] = ""
            self.screen.tell(
                f"runs stop {describe(node)}; {self.screen.ways['run.breaks']} gives it a condition", "Break"
            )
        else:
            self.screen.tell(f"runs no longer stop {describe(node)}", "Break")
        self.screen.show_all()
