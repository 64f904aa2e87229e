"""Outcome of a person's decisions in a thread, shown in place of the card and kept up to date."""

from __future__ import annotations

from typing import Final

from textual import on

from hitl_tui.errors import HitlError
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.work import start_work
from hitl_tui.view.followed import followed_in, outcome_lines
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span, untrusted

_LOOKS_EVERY: Final = 0.5
_NARROWEST: Final = 20
_MOST: Final = 20
"""Number of decisions that are shown; `hitl-tui decisions` has all of them."""


class FollowedPane(LineView):
    """Decisions and their outcome, newest first; read again whenever the thread has moved.

    Args:
        way: the key to close it.
    """

    def __init__(self, session: ViewSession, person: str, way: str) -> None:
        super().__init__("followed")
        self._session = session
        self._person = person
        self._way = way
        self._shown_of: object = None

    def on_mount(self) -> None:
        """Show the outcome, now and whenever the thread has moved."""
        self.set_titles("What followed your decisions", f"{self._way} closes")
        self.show([(Span("looking…", "dim"),)])
        self.set_interval(_LOOKS_EVERY, self._look)
        self._look()
        self.focus()

    def _look(self) -> None:
        view = self._session.view
        moment = view.progress.head, view.progress.status, len(view.ledger), self._width
        if moment != self._shown_of:
            self._shown_of = moment
            start_work(self, self._load, group="followed", exclusive=True)

    @property
    def _width(self) -> int:
        return max(self.scrollable_content_region.width, _NARROWEST)

    @on(LineView.Widened)
    def _widened(self, event: LineView.Widened) -> None:
        event.stop()
        self._look()

    async def _load(self) -> None:
        try:
            self.show(await self._lines())
        except HitlError as error:
            self.show([(untrusted(error.message, "error"),)])

    async def _lines(self) -> list[Line]:
        session, view = self._session, self._session.view
        decisions = await followed_in(session.driver, view.progress, view.ledger, self._person, _MOST)
        if not decisions:
            return [(Span(f"{sanitise_line(self._person, 40)} has decided nothing in this thread", "dim"),)]
        return outcome_lines(decisions, self._width)
