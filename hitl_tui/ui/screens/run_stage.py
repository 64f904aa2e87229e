"""Run screen for an audience: a pane in the spotlight, the last key, and a presentation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from hitl_tui.engine.commands import Pause
from hitl_tui.errors import HitlError
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.footer import FooterBar
from hitl_tui.ui.widgets.graph import GraphPane
from hitl_tui.ui.widgets.timeline import TimelinePane
from hitl_tui.ui.work import start_work
from hitl_tui.view.keys import written
from hitl_tui.view.session import ViewSession

if TYPE_CHECKING:
    from hitl_tui.loading.stage_file import StopTable
    from hitl_tui.ui.screens.run import RunScreen
    from hitl_tui.view.stage import Performance

PANES: Final = ("graph", "channels", "value", "lens", "stream", "timeline")
_OVER: Final = ("completed", "cancelled", "failed")


class Stage:
    """What an audience sees besides the thread itself.

    Attributes:
        show: the presentation; None for none.
        pane: the pane in the spotlight, "" for none.
    """

    def __init__(self, screen: RunScreen, show: Performance | None) -> None:
        self.screen = screen
        self.show = show
        self.pane = ""
        self._shows_keys = False
        self._asked_at: StopTable | None = None

    # The spotlight and the keys

    def switch_spotlight(self) -> None:
        """Show the focused pane large and alone, or all of them again."""
        focused = self.screen.focused
        name = focused.id if focused is not None and focused.id in PANES else "value"
        self.spotlight("" if self.pane else name or "value")

    def spotlight(self, pane: str) -> None:
        """Show a pane large and alone; "" shows all of them again."""
        if pane == self.pane:
            return
        screen = self.screen
        screen.read_styles("stage")
        with screen.app.batch_update():
            for name in (self.pane, pane):
                if name:
                    screen.toggle_class(f"-spot-{name}")
                    shown = screen.query_one(f"#{name}")
                    shown.toggle_class("-spot")
                    if isinstance(shown, GraphPane | TimelinePane):
                        shown.is_alone = name == pane
            screen.set_class(bool(pane), "-spotlight")
            self.pane = pane
            if pane == "graph" and self.show is not None:
                screen.set_focus(None)  # the audience sees where the run is, not a cursor
            elif pane:
                screen.query_one(f"#{pane}").focus(scroll_visible=False)
        screen.call_after_refresh(screen.show_all)

    def switch_keys(self) -> None:
        """Show the last pressed key, or hide it."""
        self._shows_keys = not self._shows_keys
        self.screen.query_one(FooterBar).show_key("" if not self._shows_keys else " ")

    def pressed(self, key: str) -> None:
        """Show a pressed key that types no text."""
        if self._shows_keys:
            self.screen.query_one(FooterBar).show_key(written(key))

    def save_picture(self) -> None:
        """Write the screen as SVG to a new file in the current directory; a browser downloads it."""
        from hitl_tui.ui.new_files import write_file
        from hitl_tui.ui.pictures import picture_name, screen_svg

        session = self.screen.session
        place = (session.thread_id, session.step_view.step) if session else ("hitl-tui", 0)
        svg = screen_svg(self.screen.app, place[0])
        write_file(self.screen, picture_name(*place), svg.encode(), "image/svg+xml", "Picture")

    # The presentation

    @property
    def facts(self) -> dict[str, Any]:
        """Return what the presentation adds to the situation."""
        facts: dict[str, Any] = {"recorded": getattr(self.screen.app, "recording", None) is not None}
        if self.show is not None:
            facts |= {"show": True, "pace": f"{self.show.tempo.pace:g}×", "held": self.show.tempo.held}
        return facts

    @property
    def takes_keys(self) -> bool:
        """Whether the keys of a presentation work: during a decision they belong to the card."""
        return self.show is not None and not self.screen.review.card_open and not self.screen.situation.typing

    def next(self) -> None:
        """Go to the next stop; if something waits, show its card with what the script suggests."""
        show, session = self.show, self.screen.session
        if show is None or session is None or (session.running and show.live):
            return
        if any(not request.breakpoint for request in session.requests) and not session.refusals:
            self.screen.review.decide()
            self._suggest(session)
        else:
            self.go_on(session)

    def _suggest(self, session: ViewSession) -> None:
        stop, card = self._stop, self.screen.review.card
        if stop is not None and stop.answer and card is not None:
            card.suggest(stop.answer, stop.words)

    @property
    def _stop(self) -> StopTable | None:
        return getattr(self.show, "shown", None)

    def make_room(self) -> None:
        """Make room for a card; once it is answered the presentation continues from this stop."""
        self._asked_at = self._stop
        self.spotlight("")

    def card_closed(self, session: ViewSession) -> None:
        """Restore the spotlight of the stop, or of one that was reached while the card was open."""
        stop = self._stop
        if stop is not None and (session.requests or stop is not self._asked_at):
            self.spotlight(stop.spotlight or "")

    async def after_answer(self, session: ViewSession) -> None:
        """Continue, unless the answer alone has led to the next stop, or to the end."""
        await session.drain()
        if session is self.screen.session:
            self.screen.show_news(session)
            if self._stop is self._asked_at and session.view.progress.status not in _OVER:
                self.go_on(session)

    def go_on(self, session: ViewSession) -> None:
        """Run to the next stop."""
        if self.show is not None and session is self.screen.session:
            # Several stops may be at one place.
            if not session.running and (stop := self.show.arrive(session.view)) is not None:
                self._present(session, stop)
                self.publish()
                return
            self.show.going = True
            self.spotlight("")
            self.screen.travel(None)
            self.publish()
            start_work(self.screen, partial(self._go, self.show, session), group="stage", exclusive=True)

    async def _go(self, show: Performance, session: ViewSession) -> None:
        try:
            while show.going and session is self.screen.session:
                if session.view.progress.status in _OVER and show.live:
                    break
                await show.go_on(session.driver, lambda: session.view.last_event)
                await session.drain()
                self.screen.show_news(session)
                view = session.view
                waits = any(not request.breakpoint for request in session.requests)
                if show.going and (waits or view.progress.status in _OVER or view.progress.reason == "limit"):
                    show.going = False
        finally:
            show.going = False
            self.publish()

    def on_progress(self, session: ViewSession) -> None:
        """Follow the thread: a stop may have been reached, whatever led there."""
        show = self.show
        if show is None:
            return
        stop = None if session.running else show.arrive(session.view)
        if stop is not None:
            self._present(session, stop)
        self.publish()

    def _present(self, session: ViewSession, stop: StopTable) -> None:
        """Show a stop as the script wants it."""
        if stop.pace is not None and self.show is not None:
            self.show.tempo.pace = stop.pace
        if stop.channel:
            self.screen.query_one(ChannelsPane).select(stop.channel)
        if stop.view is not None:
            self.screen.shown_value.set_mode(stop.view)
        if not self.screen.review.card_open:
            self.spotlight(stop.spotlight or "")

    def publish(self) -> None:
        """Update caption, bars and other terminals for the state of the presentation."""
        session = self.screen.session
        if self.show is not None and session is not None:
            self.show.publish(session.thread_id)
            self.show_caption(session)
            self.screen.show_bars()

    def show_caption(self, session: ViewSession) -> None:
        """Show the caption for the audience; during a decision the card has the room."""
        if self.show is not None:
            self.screen.read_styles("stage")
            caption = self.show.caption(session.view)
            if self.show.going and session.running:
                self.spotlight(caption.spotlight)
            from hitl_tui.ui.widgets.caption import CaptionBox

            self.screen.query_one(CaptionBox).show_caption(caption, self.screen.size.width)

    def look_back(self) -> None:
        """Pause a tape while a past step is shown."""
        if self.show is not None and not self.show.live:
            self.show.tempo.held = True

    def hold(self) -> None:
        """Hold everything in the middle of a word, or continue."""
        if self.show is not None:
            self.show.tempo.held = not self.show.tempo.held
            self.publish()

    def faster(self) -> None:
        """Speed up."""
        if self.show is not None:
            self.show.tempo.faster()
            self.publish()

    def slower(self) -> None:
        """Slow down."""
        if self.show is not None:
            self.show.tempo.slower()
            self.publish()

    def start(self) -> None:
        """Go back to the start: a new thread; the old one is kept."""
        if self.show is not None:
            self.screen.command(partial(self._start, self.show), group="stage")

    async def _start(self, show: Performance) -> None:
        before = self.screen.session
        show.going = False
        if before is not None and before.running and not before.refusals:
            await before.driver.execute(Pause(self.screen.actor))
        try:
            driver = await show.restart()
        except HitlError as error:
            self.screen.complain(error)
            return
        self.spotlight("")
        self.screen.travel(None)
        if driver is not None:
            await self.screen.threads.change_to(await ViewSession.open(self.screen.hub, driver))
        self.publish()

    @property
    def place(self) -> str:
        """Return where the presentation is, for the header; "" without one."""
        if self.show is None:
            return ""
        wide = self.screen.size.width >= 100
        words = f"{self.show.title} · {self.show.place}" if wide and self.show.place else self.show.place
        return words or self.show.title
