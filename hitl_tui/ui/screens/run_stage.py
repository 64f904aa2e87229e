"""The run screen for an audience: a presentation from a script, or a tape."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from textual.app import ComposeResult

from hitl_tui.engine.commands import Pause
from hitl_tui.engine.log.requests import Request
from hitl_tui.errors import HitlError
from hitl_tui.ui.screens.run import RunScreen
from hitl_tui.ui.widgets.caption import CaptionBox
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.work import start_work
from hitl_tui.view.actions import Situation
from hitl_tui.view.session import ViewSession
from hitl_tui.view.status import StatusLine
from hitl_tui.view.timeline import Place

if TYPE_CHECKING:
    from hitl_tui.loading.stage_file import StopTable
    from hitl_tui.view.stage import Performance

_OVER: Final = ("completed", "cancelled", "failed")
_WIDE: Final = 100


class StageScreen(RunScreen):
    """Run screen that follows a presentation from stop to stop, with a caption for the audience.

    Args:
        performance: the presentation; all other arguments are those of `RunScreen`.
    """

    def __init__(self, performance: Performance, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "reviewing": False})
        self.performance = performance
        self._asked_at: StopTable | None = None

    def compose_caption(self) -> ComposeResult:
        """Yield the caption."""
        yield CaptionBox()

    @property
    def situation(self) -> Situation:
        """Situation, with what the presentation adds to it."""
        tempo = self.performance.tempo
        return msgspec.structs.replace(super().situation, show=True, pace=f"{tempo.pace:g}×", held=tempo.held)

    @property
    def takes_stage_keys(self) -> bool:
        """Whether the keys of the presentation work: during a decision they belong to the card."""
        return not self.card_open and not self.situation.typing

    def status_line(self, session: ViewSession) -> tuple[str, StatusLine]:
        """Return what the audience reads in the header: where the presentation is, and whose turn it is."""
        where, line = super().status_line(session)
        show = self.performance
        words = f"{show.title} · {show.place}" if self.size.width >= _WIDE and show.place else show.place
        place = words or show.title
        if not place:
            return where, line
        turn = line.turn.partition(" — ")[0]
        return "", msgspec.structs.replace(
            line, turn=turn, brief=turn, step=place, tokens="", cost="", elapsed=""
        )

    def show_panes(self, session: ViewSession) -> None:
        """Update the panes and the caption."""
        super().show_panes(session)
        self._show_caption(session)

    def _show_caption(self, session: ViewSession) -> None:
        """Show the caption for the audience; during a decision the card has the room."""
        self.read_styles("stage")
        caption = self.performance.caption(session.view)
        if self.performance.going and session.running:
            self.spotlight(caption.spotlight)
        self.query_one(CaptionBox).show_caption(caption, self.size.width)

    def focus_spotlit(self, pane: str) -> None:
        """Move the focus to a pane; in the graph the audience sees where the run is, not a cursor."""
        if pane == "graph":
            self.set_focus(None)
        else:
            super().focus_spotlit(pane)

    # Stops.

    @property
    def _stop(self) -> StopTable | None:
        return getattr(self.performance, "shown", None)

    def next_stop(self) -> None:
        """Go to the next stop; if something waits, show its card with what the script suggests."""
        session = self.session
        if session is None or (session.running and self.performance.live):
            return
        if any(not request.breakpoint for request in session.requests) and not session.refusals:
            self.decide()
            stop = self._stop
            if stop is not None and stop.answer and self.card is not None:
                self.card.suggest(stop.answer, stop.words)
        else:
            self._go_on(session)

    def _go_on(self, session: ViewSession) -> None:
        """Run to the next stop."""
        if session is not self.session:
            return
        # Several stops may be at one place.
        if not session.running and (stop := self.performance.arrive(session.view)) is not None:
            self._present(session, stop)
            self._publish()
            return
        self.performance.going = True
        self.spotlight("")
        self.travel(None)
        self._publish()
        start_work(self, partial(self._run_to_stop, session), group="stage", exclusive=True)

    async def _run_to_stop(self, session: ViewSession) -> None:
        show = self.performance
        try:
            while show.going and session is self.session:
                if session.view.progress.status in _OVER and show.live:
                    break
                await show.go_on(session.driver, lambda: session.view.last_event)
                await session.drain()
                self.show_news(session)
                progress = session.view.progress
                waits = any(not request.breakpoint for request in session.requests)
                if show.going and (waits or progress.status in _OVER or progress.reason == "limit"):
                    show.going = False
        finally:
            show.going = False
            self._publish()

    def on_progress(self, session: ViewSession) -> None:
        """Follow the thread: a stop may have been reached, whatever led there."""
        stop = None if session.running else self.performance.arrive(session.view)
        if stop is not None:
            self._present(session, stop)
        self._publish()
        super().on_progress(session)

    def _present(self, session: ViewSession, stop: StopTable) -> None:
        """Show a stop as the script wants it."""
        if stop.pace is not None:
            self.performance.tempo.pace = stop.pace
        if stop.channel:
            self.query_one(ChannelsPane).select(stop.channel)
        if stop.view is not None:
            self.shown_value.set_mode(stop.view)
        if not self.card_open:
            self.spotlight(stop.spotlight or "")

    def open_card(self, request: Request, *, summoned: bool = False) -> None:
        """Show the card of a request; once it is answered the presentation continues from this stop."""
        self._asked_at = self._stop
        super().open_card(request, summoned=summoned)

    def card_closed(self, session: ViewSession) -> None:
        """Restore the spotlight of the stop, or of one that was reached while the card was open."""
        stop = self._stop
        if stop is not None and (session.requests or stop is not self._asked_at):
            self.spotlight(stop.spotlight or "")

    async def after_answer(self, session: ViewSession) -> None:
        """Continue, unless the answer alone has led to the next stop, or to the end."""
        await session.drain()
        if session is self.session:
            self.show_news(session)
            if self._stop is self._asked_at and session.view.progress.status not in _OVER:
                self._go_on(session)

    # Pace.

    def travel(self, place: Place | None) -> None:
        """Show another step; a tape is paused while a past one is shown."""
        super().travel(place)
        if place is not None and self.session is not None and not self.performance.live:
            self.performance.tempo.held = True

    def hold(self) -> None:
        """Hold everything in the middle of a word, or continue."""
        self.performance.tempo.held = not self.performance.tempo.held
        self._publish()

    def faster(self) -> None:
        """Speed up."""
        self.performance.tempo.faster()
        self._publish()

    def slower(self) -> None:
        """Slow down."""
        self.performance.tempo.slower()
        self._publish()

    def start_again(self) -> None:
        """Go back to the start: a new thread; the old one is kept."""
        self.command(self._start_again, group="stage")

    async def _start_again(self) -> None:
        before = self.session
        self.performance.going = False
        if before is not None and before.running and not before.refusals:
            await before.driver.execute(Pause(self.actor))
        try:
            driver = await self.performance.restart()
        except HitlError as error:
            self.complain(error)
            return
        self.spotlight("")
        self.travel(None)
        if driver is not None:
            await self.change_to(await ViewSession.open(self.hub, driver))
        self._publish()

    def _publish(self) -> None:
        """Update caption, bars and other terminals for the state of the presentation."""
        if self.session is not None:
            self.performance.publish(self.session.thread_id)
            self._show_caption(self.session)
            self.show_bars()
