"""Running threads on the run screen: step by step or until something waits, with breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hitl_tui.drivers.kept_breakpoints import KeptBreakpoints, kept_breakpoints
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import DoubleText, Run, Step
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.errors import ServerBusy
from hitl_tui.view.keymap import BACK, Option
from hitl_tui.view.session import ViewSession

if TYPE_CHECKING:
    from hitl_tui.engine.commands.command import DoubleTexting
    from hitl_tui.engine.log.events import Progress
    from hitl_tui.ui.screens.run import RunScreen


Pace = Literal["opened", "stepping", "going"]
Start: TypeAlias = Callable[[Driver], Coroutine[Any, Any, None]]


class Stepping:
    """Continues an answered thread, unless it was being stepped through.

    Breakpoints belong to a graph: they are kept for it, and all its threads have them.
    """

    def __init__(self, screen: RunScreen) -> None:
        self.screen = screen
        self._paces: dict[str, Pace] = {}
        self._given = False
        self._looked_at: tuple[ViewSession, Progress] | None = None

    @property
    def going_on(self) -> bool:
        """Whether the user let the shown thread run, so that its requests open by themselves."""
        return self.screen.session is not None and self._pace(self.screen.session) == "going"

    def _pace(self, session: ViewSession) -> Pace:
        return self._paces.get(session.thread_id, "opened")

    def begin(self, session: ViewSession, before: ViewSession | None) -> None:
        """Note the shown thread: an inner one is stepped through if its owner was, any other starts afresh.

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
        """Let it run: its next request opens by itself, and once answered it continues."""
        self._paces[session.thread_id] = "going"

    def step(self, *, into: bool = False) -> None:
        """Run one node.

        Args:
            into: whether to open a subgraph's thread, and show it before its first node.
        """
        session = self.screen.session
        if session is None:
            return
        if into and session.view.graph.kind_of(session.view.progress.next_node or "") == "subgraph":
            self._paces[session.thread_id] = "stepping"
            self.screen.command(partial(self._step_into, session))
        else:
            self._run(lambda driver: driver.execute(Step(False, _armed(session))), "stepping", "run.step")

    async def _step_into(self, session: ViewSession) -> None:
        since = session.view.last_event
        await session.driver.execute(Step(True, _armed(session)))
        await session.driver.ended(since)
        unfinished = (await session.driver.snapshot()).unfinished
        if unfinished is not None and unfinished.child and session is self.screen.session:
            await self.screen.open_thread(unfinished.child)

    def step_out(self) -> None:
        """Finish the inner thread, and the node that runs it; show the outer one."""
        session = self.screen.session
        if session is not None and session.view.owners:
            self.screen.command(partial(self._step_out, session.view.owners[-1].thread_id))

    async def _step_out(self, owner: str) -> None:
        await self.screen.open_thread(owner)
        session = self.screen.session
        if session is not None and session.thread_id == owner:
            self._paces[owner] = "stepping"
            await session.driver.execute(Step(False, _armed(session)))

    def run_to(self, node: str) -> None:
        """Run, and stop before a node."""
        if session := self.screen.session:
            points = (*_armed(session), Breakpoint("before", node))
            self._run(lambda driver: driver.execute(Run(points)), "going", "run.to")

    def continue_(self) -> None:
        """Run until something waits."""
        if session := self.screen.session:
            self._run(lambda driver: self._run_on(session), "going", "run.continue")

    def _run(self, start: Start, pace: Pace, action: str) -> None:
        """Begin a run, but first show what would run again if that has side effects.

        Args:
            action: the action whose key began it, and confirms it, too.
        """
        session = self.screen.session
        if session is None:
            return
        self._paces[session.thread_id] = pace
        if _may_repeat(session):
            self.screen.command(partial(self._try_again, session, start, action))
        else:
            self.screen.command(partial(self.in_turn, session, start))

    async def in_turn(self, session: ViewSession, start: Start) -> None:
        """Begin something; if a server already runs the thread, first ask what to do about that run."""
        try:
            await start(session.driver)
        except ServerBusy:
            from hitl_tui.ui.screens.dialogs import ask_double_texting

            def chosen(strategy: DoubleTexting) -> None:
                self.screen.command(partial(self._make_room, session, strategy, start))

            ask_double_texting(self.screen, chosen)

    async def _make_room(self, session: ViewSession, strategy: DoubleTexting, start: Start) -> None:
        if strategy == "enqueue":
            self.screen.show_message("waiting for the run on the server to end", "Busy")
        await session.driver.execute(DoubleText(strategy, self.screen.actor))
        if session is self.screen.session:
            await self.in_turn(session, start)

    async def _try_again(self, session: ViewSession, start: Start, action: str) -> None:
        """Run again what failed or was stopped; if it has side effects, only after a confirmation."""
        from hitl_tui.ui.screens.dialogs import Dialog, DialogResult
        from hitl_tui.view.repeats import repeat_lines

        repeats = (await session.driver.preview(Run())).repeats
        if repeats is None or not repeats.outside:
            await self.in_turn(session, start)
            return

        def answered(answer: DialogResult | None) -> None:
            if answer is not None and answer.id == "again" and session is self.screen.session:
                self.screen.command(partial(self.in_turn, session, start))

        options = [Option("again", action, "try it again"), BACK]
        self.screen.app.push_screen(Dialog("Try again", repeat_lines(repeats), options), answered)

    def look_at_retry(self, session: ViewSession) -> None:
        """Find out what continuing would run again, to show it beside the failure."""
        progress = session.view.progress
        if not _may_repeat(session):
            session.retry, self._looked_at = None, None
        elif self._looked_at != (session, progress):
            self._looked_at = session, progress
            self.screen.command(partial(self._look_at_retry, session), group="repeats")

    async def _look_at_retry(self, session: ViewSession) -> None:
        session.retry = (await session.driver.preview(Run())).repeats
        if session is self.screen.session:
            self.screen.show_bars()

    async def _run_on(self, session: ViewSession) -> None:
        """Run until something waits, fails or ends, or a breakpoint is reached."""
        await session.driver.execute(Run(_armed(session)))

    def note_pause(self) -> None:
        """The thread is being paused; neither it nor its owners continue by themselves."""
        if session := self.screen.session:
            session.pausing = True
            for thread_id in (session.thread_id, *(owner.thread_id for owner in session.view.owners)):
                self._paces[thread_id] = "stepping"
            self.screen.show_all()

    def again(self) -> None:
        """Continue as the user did last."""
        (self.continue_ if self.going_on else self.step)()

    async def after_answer(self, session: ViewSession) -> None:
        """Run to the next stop, unless the thread was being stepped through when the request opened.

        It does so even if another thread is shown by now.
        """
        if self.screen.stage.show is not None:
            await self.screen.stage.after_answer(session)
            return
        if self._pace(session) == "stepping":
            return
        await session.drain()
        if session is self.screen.session:
            self.screen.show_news(session)
        goes_on = session.view.progress.status in ("waiting", "pending") and not session.driver.refusal(Run)
        if not session.request and goes_on and not (await session.driver.snapshot()).handed:
            self.go_on(session)
            await self.in_turn(session, lambda _driver: self._run_on(session))

    async def come_back(self, session: ViewSession) -> None:
        """Continue a thread that was running when the user left it, unless something waits."""
        if self.going_on and not session.running:
            await self.after_answer(session)
            self.screen.on_progress(session)

    def bring_breakpoints(self, session: ViewSession) -> None:
        """Give a session its graph's kept breakpoints, and the first one those of the command line, too."""
        kept = _kept(session)
        session.breakpoints = kept.load()
        if not self._given:
            self._given = True
            if self.screen.breaks:
                from hitl_tui.drivers.breakpoints import put, read_breakpoints

                for point in read_breakpoints(self.screen.breaks, session.view.graph):
                    session.breakpoints = put(session.breakpoints, point)
        self._report_problem(kept)

    def keep_breakpoints(self, session: ViewSession, breakpoints: tuple[Breakpoint, ...]) -> None:
        """Set the breakpoints of a thread and save them for the next session."""
        session.breakpoints = breakpoints
        kept = _kept(session)
        kept.save(breakpoints)
        self._report_problem(kept)
        self.screen.show_all()

    def _report_problem(self, kept: KeptBreakpoints) -> None:
        if kept.problem:
            self.screen.show_message(kept.problem, "Breakpoints", "warning")

    def toggle_breakpoint(self, session: ViewSession, node: str) -> None:
        """Set a lasting breakpoint, or remove those that stop there."""
        from hitl_tui.drivers.breakpoints import describe, toggled

        before = session.breakpoints
        self.keep_breakpoints(session, toggled(before, node))
        what = describe(Breakpoint("before", node))
        if len(session.breakpoints) > len(before):
            self.screen.show_message(
                f"runs stop {what}; {self.screen.key_hints['run.breaks']} lists them", "Break"
            )
        else:
            self.screen.show_message(f"runs no longer stop {what}", "Break")


def _may_repeat(session: ViewSession) -> bool:
    """Whether a node may have to run again: it failed, or what it asked of models is in no step."""
    progress = session.view.progress
    return not session.running and (progress.status == "failed" or bool(progress.uses))


def _kept(session: ViewSession) -> KeptBreakpoints:
    return kept_breakpoints(session.view.graph.name, session.view.source)


def _armed(session: ViewSession) -> tuple[Breakpoint, ...]:
    """Return the breakpoints that the graph can have as it is now."""
    if not session.breakpoints:
        return ()
    from hitl_tui.drivers.breakpoints import fits

    return tuple(point for point in session.breakpoints if fits(point, session.view.graph))
