"""Search on the run screen: its input, and the keys that walk its matches."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.view.session import ViewSession

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen
    from hitl_tui.ui.widgets.search import Finding, SearchPane

_DOCKED: Final = 140
"""Cells from which the search is beside the other panes."""


class Search:
    """Search of the shown thread, and its matches one after another.

    With enough room its pane is beside the others, else on a screen of its own.

    Attributes:
        finding: the search, its matches, and which one is shown; None before the first one is shown.
    """

    def __init__(self, screen: RunScreen) -> None:
        self._screen = screen
        self.finding: Finding | None = None
        self.pane: SearchPane | None = None
        self._query = ""
        self._thread = ""  # that was searched

    @property
    def open(self) -> bool:
        """Whether a search is open: from the first shown match until esc or another thread."""
        return self.finding is not None

    @property
    def coming(self) -> bool:
        """Whether the pane is about to take input."""
        return self.pane is not None and not self.pane.is_mounted

    def begin(self, session: ViewSession) -> None:
        """Follow the shown thread: a search stays open in threads with matches, and ends in any other."""
        places = self.finding[1] if self.finding else ()
        if session.thread_id not in {self._thread, *(place.thread for place in places)}:
            self.close()

    def close(self) -> None:
        """Close the search; the next one begins with its text."""
        if self.finding is None and self.pane is None:
            return
        if self.finding is not None:
            self._query, self.finding = self.finding[0], None
            self._screen.query_one(ValuePane).mark("")
        self._undock()
        self._screen.show_all()

    def ask(self) -> None:
        """Ask what to search for, and which match to show."""
        from hitl_tui.ui.screens.find import FindScreen
        from hitl_tui.ui.widgets.search import SearchPane

        session = self._screen.session
        if session is None:
            return
        key_hints = (self._screen.key_hints["app.next"], self._screen.key_hints["app.before"])
        query = self.finding[0] if self.finding else self._query
        self._thread = session.thread_id
        if not self._has_room:
            self._undock()
            self._screen.app.push_screen(FindScreen(session, query, key_hints), self._go_to_found)
        elif self.pane is not None:
            self.pane.ask(session)
        else:
            self.pane = SearchPane(session, query)
            self._screen.read_styles("search")
            self._screen.add_class("-searching")
            self._screen.query_one("#right").mount(self.pane, before=0)
            self._screen.call_after_refresh(self._screen.show_all)

    @property
    def _has_room(self) -> bool:
        review = self._screen.review
        taken = review.card_open or review.followed_open or self._screen.stage.pane
        return self._screen.size.width >= _DOCKED and not taken

    def resize(self) -> None:
        """Remove the pane if there is no room for it any more; the search stays open."""
        if self._screen.size.width < _DOCKED:
            self._undock()

    def _undock(self) -> None:
        if self.pane is not None:
            self.pane.remove()
            self.pane = None
            self._screen.remove_class("-searching")
            self._screen.query_one(ChannelsPane).focus()

    def go(self, finding: Finding) -> None:
        """Show the match that was chosen in the pane; keys are the run's again."""
        self._screen.query_one(ChannelsPane).focus()
        self._go_to_found(finding)

    def walk(self, by: int) -> None:
        """Show the next match, or the previous one."""
        if self.finding is not None:
            query, places, at = self.finding
            if self.pane is not None and self.pane.looked_for == query:
                places = self.pane.places  # there may be more of them by now
            self._go_to_found((query, places, (at + by) % len(places)))

    def _go_to_found(self, finding: Finding | None) -> None:
        """Show a match: its step, its channel, and the line in it."""
        from hitl_tui.ui.widgets.search import CONDITION

        session = self._screen.session
        if finding is None or session is None:
            return
        query, places, at = self.finding = finding
        place = places[at]
        if self.pane is not None:
            self.pane.point_at(at)
        if (thread_id := place.thread or self._thread) != session.thread_id:
            self._screen.command(partial(self._go_to_thread, thread_id, finding))
            return
        if place.step != session.step_view.step:
            self._screen.travel((session.thread_id, place.step))
        if place.channel:
            pane = self._screen.query_one(ValuePane)
            pane.seek = (place.channel, place.line)
            pane.mark("" if query.strip().startswith(CONDITION) else query)
            self._screen.query_one(ChannelsPane).select(place.channel, picked=True)
            self._screen.shown_value.set_mode("text")
            pane.show_sought()
        self._screen.show_bars()
        self._screen.show_message(f"{place.where}, {at + 1} of {len(places)}", f"“{query}”")

    async def _go_to_thread(self, thread_id: str, finding: Finding) -> None:
        """Open the thread of a match, and show the match."""
        await self._screen.threads.open(thread_id)
        if self._screen.session is not None and self._screen.session.thread_id == thread_id:
            self._go_to_found(finding)
