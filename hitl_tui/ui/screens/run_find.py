"""The keys of the run screen that look for a text in the open thread, and go to where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hitl_tui.ui.screens.run_keys import RunKeys
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.value import ValuePane

if TYPE_CHECKING:
    from hitl_tui.ui.screens.find import Finding


class FindKeys(RunKeys):
    """Asking what to look for, and walking from place to place."""

    finding: Finding | None = None
    """What is looked for, where it stands, and which place is shown; None while no search is open."""
    _query = ""

    @property
    def open(self) -> bool:
        """Whether a search goes on: from the first place gone to until esc or another thread."""
        return self.finding is not None

    def close(self) -> None:
        """The search is over; its text is where the next one begins."""
        if self.finding is not None:
            self._query, self.finding = self.finding[0], None
            self.screen.query_one(ValuePane).mark("")
            self.screen.show_all()

    def do_look_find(self) -> None:
        """Ask what to look for, and where to go."""
        from hitl_tui.ui.screens.find import FindScreen

        if self.session is None:
            return
        ways = (self.screen.ways["look.next"], self.screen.ways["look.previous"])
        query = self.finding[0] if self.finding else self._query
        self.screen.app.push_screen(FindScreen(self.session, query, ways), self._go_to_found)

    def do_look_next(self) -> None:
        """The next place where it stands."""
        self._walk(1)

    def do_look_previous(self) -> None:
        """The place before."""
        self._walk(-1)

    def _walk(self, by: int) -> None:
        if self.finding is not None:
            query, found, at = self.finding
            self._go_to_found((query, found, (at + by) % len(found)))

    def _go_to_found(self, finding: Finding | None) -> None:
        """Show a place: its step, its channel, and the line in it."""
        session = self.session
        if finding is None or session is None:
            return
        query, found, at = self.finding = finding
        place = found[at]
        if place.step != session.step_view.step:
            self.screen.travel((session.thread_id, place.step))
        if place.channel:
            pane = self.screen.query_one(ValuePane)
            pane.seek = (place.channel, place.line)
            pane.mark(query)
            self.screen.query_one(ChannelsPane).picked = True
            self.screen.query_one(ChannelsPane).select(place.channel)
            self.screen.shown_value.set_mode("text")
            pane.show_sought()
        self.screen.show_bars()
        self.screen.tell(f"{place.where}, {at + 1} of {len(found)}", f"“{query}”")
