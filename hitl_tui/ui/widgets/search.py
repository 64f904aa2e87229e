"""Search in a thread and its history: type a text or a condition, choose a place, go there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input
from textual.worker import Worker

from hitl_tui.drivers.history import Moment, SearchHit
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.ui.work import start_work
from hitl_tui.view.cells import cells, cut
from hitl_tui.view.find import MOST, Found, find, found_in_history, found_moments
from hitl_tui.view.format import count
from hitl_tui.view.hits import answer_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span, untrusted

Finding = tuple[str, tuple[Found, ...], int]
"""What was searched for, the places found, and which of these was chosen."""
_WHERE: Final = 24
_NARROW: Final = 80
"""Cells below which a place is described in fewer words."""
_WHERE_NARROW: Final = 16
CONDITION: Final = "?"
"""Prefix of a condition; anything else is a text."""
_PAUSE: Final = 0.1
"""Seconds without a key after which the history is searched."""


class SearchPane(Vertical):
    """Field for what to search for, above the places where it was found.

    Attributes:
        looked_for: what was searched for.
        places: the places found so far.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("find.back", "leave", priority=True),
        bound("find.go", "go", priority=True),
        bound("find.up", "select(-1)", priority=True),
        bound("find.down", "select(1)", priority=True),
        bound("find.page_up", "select(-10)", priority=True),
        bound("find.page_down", "select(10)", priority=True),
    ]

    class Chosen(Message):
        """A place was chosen to go to."""

        def __init__(self, finding: Finding) -> None:
            super().__init__()
            self.finding = finding

    class Left(Message):
        """The search was closed."""

    def __init__(self, session: ViewSession, query: str) -> None:
        super().__init__(id="search")
        self.session = session
        self.looked_for: str | None = None
        self.places: tuple[Found, ...] = ()
        self._begins = query
        self._goes = False  # once the text of the field has been searched for
        self._over = False

    def compose(self) -> ComposeResult:
        hint = "a text; or a condition, as in: ? score == null"
        field = SafeInput(self._begins, id="find", placeholder=hint)
        field.border_title = "When did a condition become true?"
        yield field
        yield LineView("places", "Places")

    def on_mount(self) -> None:
        """Show the last search."""
        self.query_one("#places", LineView).can_focus = False
        self.screen.set_focus(self.query_one("#find", Input))
        self._search(self._begins)

    def ask(self, session: ViewSession) -> None:
        """Take input from now on, and search again for the text of the field, in the session as it is now."""
        self.session = session
        field = self.query_one("#find", Input)
        field.focus()
        field.select_all()
        self._search(field.value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._search(event.value)

    def _search(self, query: str) -> None:
        self._goes = self._over = False
        start_work(self, partial(self._look, query), group="find", exclusive=True)

    async def _look(self, query: str) -> None:
        """Search the shown step at once, and the history after a moment without typing."""
        session = self.session
        condition = query.strip().startswith(CONDITION)
        local = () if condition else await asyncio.to_thread(find, query, session.view, session.step_view)
        self.looked_for, self.places = query, local
        asked = query.strip().removeprefix(CONDITION).strip()
        self._show("looking…" if asked else "type what to look for")
        self.query_one("#places", LineView).cursor_row = 0 if local else None
        try:
            if asked:
                await asyncio.sleep(_PAUSE)
                await (self._ask(query, asked) if condition else self._look_back(query, local))
        except HitlError as error:
            self._show_refused(error)
            return
        finally:
            self._over = True
        if self._goes:
            self._go(self.query_one("#places", LineView).cursor_row)

    async def _look_back(self, query: str, local: tuple[Found, ...]) -> None:
        looked_steps = 0

        def more(hits: tuple[SearchHit, ...], looked: int, of: int) -> None:
            nonlocal looked_steps
            looked_steps = of
            self._add(query, tuple(found_in_history(hits, local)), f"{looked:,} of {of:,} steps")

        await self.session.driver.search(query, self._on_screen(more))
        await asyncio.sleep(0)  # the last report is not handled yet
        where_looked = (
            count(len(self.places), "place") if len(self.places) < MOST else f"the first {MOST} places"
        )
        self._show("nothing found", f"{where_looked} in {count(looked_steps, 'step')}")

    async def _ask(self, query: str, expression: str) -> None:
        def more(moments: tuple[Moment, ...], looked: int, of: int) -> None:
            self._add(query, tuple(found_moments(moments)), f"{looked:,} of {of:,} steps")

        answer = await self.session.driver.ask(expression, self._on_screen(more))
        await asyncio.sleep(0)
        self._show("it is never true", answer_line(answer))

    def _on_screen(self, more: Callable[[tuple[Any, ...], int, int], None]) -> Callable[..., None]:
        """Return a function that passes results from any thread to the screen's loop."""
        loop = asyncio.get_running_loop()

        def pass_on(*found: Any) -> None:
            loop.call_soon_threadsafe(more, *found)

        return pass_on

    def _add(self, query: str, places: tuple[Found, ...], progress: str) -> None:
        if query != self.looked_for or not self.is_running:
            return
        first = not self.places
        self.places = (*self.places, *places)[:MOST]
        self._show("looking…", progress)
        if first and places:
            self.query_one("#places", LineView).cursor_row = 0
            if self._goes:
                self._go(0)

    def _show(self, nothing: str, looked: str = "") -> None:
        places = self.query_one("#places", LineView)
        row = places.cursor_row
        places.show(self._rows or [(Span(nothing, "dim"),)], home=not row)
        places.cursor_row = row
        places.set_titles("Places", looked)

    @property
    def _rows(self) -> list[Line]:
        where = _WHERE if self.size.width >= _NARROW else _WHERE_NARROW
        return [_line(place, where) for place in self.places]

    def _show_refused(self, error: HitlError) -> None:
        text = f"{error.message}\n{error.hint}" if error.hint else error.message
        lines = [(untrusted(line, "warning"),) for line in text.splitlines()]
        self.places = ()
        places = self.query_one("#places", LineView)
        places.cursor_row = None
        places.show(lines, home=True)
        places.set_titles("Places", "")

    def action_go(self) -> None:
        """Go to the selected place; for a text typed just before, to the first one once it is found."""
        typed = self.query_one("#find", Input).value
        if typed != self.looked_for or not (self.places or self._over):
            self._goes = True
        else:
            self._go(self.query_one("#places", LineView).cursor_row)

    @on(LineView.RowChosen)
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        self._go(event.row)

    def _go(self, row: int | None) -> None:
        if row is not None and row < len(self.places):
            self.post_message(self.Chosen((self.looked_for or "", self.places, row)))

    def action_leave(self) -> None:
        """Close the search."""
        self.post_message(self.Left())

    def action_select(self, by: int) -> None:
        """Select another place."""
        self.point_at((self.query_one("#places", LineView).cursor_row or 0) + by)

    def point_at(self, row: int) -> None:
        """Select a place."""
        if self.places:
            places = self.query_one("#places", LineView)
            places.cursor_row = min(max(row, 0), len(self.places) - 1)
            places.reveal(places.cursor_row)

    def on_resize(self, event: events.Resize) -> None:
        """Lay the rows out again; the selected place stays in view."""
        if self.places:
            self.query_one("#places", LineView).show(self._rows)
            self.action_select(0)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Let the screen report what goes wrong."""
        self.screen.post_message(event)


def _line(place: Found, room: int) -> Line:
    where = cut(place.where, room)
    return (
        Span(where + " " * (room + 2 - cells(where)), "name"),
        Span(place.before, "dim"),
        Span(place.match, "accent"),
        Span(place.after, "dim"),
    )
