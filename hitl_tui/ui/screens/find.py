"""Asking the open thread and its history: type a text or a condition, choose a place, go there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from hitl_tui.drivers.history import Moment, SearchHit
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.view.cells import cells, cut
from hitl_tui.view.find import MOST, Found, find, found_in_history, found_moments
from hitl_tui.view.format import count
from hitl_tui.view.hits import answer_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span, untrusted

Finding = tuple[str, tuple[Found, ...], int]
"""What was searched for, where it stands, and which of these places was chosen."""
_WHERE = 24
CONDITION: Final = "?"
"""What a condition begins with; anything else is a text."""
_PAUSE: Final = 0.1
"""Seconds without a key after which the history is looked through."""


class FindFooter(KeysBar):
    """The keys of this screen, and what to press for the next place and the one before afterwards."""

    def __init__(self, ways: tuple[str, str]) -> None:
        super().__init__((("find.go", "Go there"), ("find.up find.down", "Select"), ("find.back", "Back")))
        self.ways = ways

    def bar(self, width: int) -> Line:
        walk = Span(f"  then {self.ways[0]} next, {self.ways[1]} the one before", "dim")
        return (*super().bar(width), walk)


class FindScreen(OverlayScreen):
    """Comes back with a `Finding`, or None."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "find.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("find.back", "close", priority=True),
        bound("find.go", "go", priority=True),
        bound("find.up", "select(-1)", priority=True),
        bound("find.down", "select(1)", priority=True),
        bound("find.page_up", "select(-10)", priority=True),
        bound("find.page_down", "select(10)", priority=True),
    ]
    AUTO_FOCUS = "#find"

    def __init__(self, session: ViewSession, query: str, ways: tuple[str, str]) -> None:
        """`ways` are what to press for the next place and the one before."""
        super().__init__()
        self._session = session
        self._query = query
        self._ways = ways
        self._found: tuple[Found, ...] = ()
        self._looked_for: str | None = None
        self._goes = False  # once what stands in the field has been looked for
        self._over = False

    def compose(self) -> ComposeResult:
        hint = "a text in any step; or ? and a condition, as in: ? score == null"
        yield SafeInput(self._query, id="find", placeholder=hint)
        yield LineView("places", "Places")
        yield FindFooter(self._ways)

    def on_mount(self) -> None:
        """Search for what was searched for last."""
        self.query_one("#places", LineView).can_focus = False
        self._search(self._query)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._search(event.value)

    def _search(self, query: str) -> None:
        self._goes = self._over = False
        self.run_worker(self._look(query), group="find", exclusive=True, exit_on_error=False)

    async def _look(self, query: str) -> None:
        """Look in what is shown at once, and in the history once nothing more is typed for a moment."""
        session = self._session
        condition = query.strip().startswith(CONDITION)
        local = () if condition else await asyncio.to_thread(find, query, session.view, session.step_view)
        self._query, self._found, self._looked_for = query, local, query
        asked = query.strip().removeprefix(CONDITION).strip()
        self._show("looking…" if asked else "type what to look for")
        self.query_one("#places", LineView).cursor_row = 0 if local else None
        try:
            if asked:
                await asyncio.sleep(_PAUSE)
                await (self._ask(asked) if condition else self._look_back(query, local))
        except HitlError as error:
            self._show_refused(error)
            return
        finally:
            self._over = True
        if self._goes:
            self._go(self.query_one("#places", LineView).cursor_row)

    async def _look_back(self, query: str, local: tuple[Found, ...]) -> None:
        told = 0

        def more(hits: tuple[SearchHit, ...], looked: int, of: int) -> None:
            nonlocal told
            told = of
            self._add(query, tuple(found_in_history(hits, local)), f"{looked:,} of {of:,} steps")

        await self._session.driver.search(query, self._on_screen(more))
        await asyncio.sleep(0)  # what was told last is on its way
        told_places = (
            count(len(self._found), "place") if len(self._found) < MOST else f"the first {MOST} places"
        )
        self._show("nothing found", f"{told_places} in {told:,} steps")

    async def _ask(self, expression: str) -> None:
        def more(moments: tuple[Moment, ...], looked: int, of: int) -> None:
            self._add(self._query, tuple(found_moments(moments)), f"{looked:,} of {of:,} steps")

        answer = await self._session.driver.ask(expression, self._on_screen(more))
        await asyncio.sleep(0)
        self._show("it never holds", answer_line(answer))

    def _on_screen(self, more: Callable[[tuple[Any, ...], int, int], None]) -> Callable[..., None]:
        """Tell on the screen's loop what comes from any thread."""
        loop = asyncio.get_running_loop()

        def told(*found: Any) -> None:
            loop.call_soon_threadsafe(more, *found)

        return told

    def _add(self, query: str, places: tuple[Found, ...], progress: str) -> None:
        if query != self._looked_for or not self.is_running:
            return
        first = not self._found
        self._found = (*self._found, *places)[:MOST]
        self._show("looking…", progress)
        if first and places:
            self.query_one("#places", LineView).cursor_row = 0
            if self._goes:
                self._go(0)

    def _show(self, nothing: str, told: str = "") -> None:
        places = self.query_one("#places", LineView)
        row = places.cursor_row
        lines = [_line(place) for place in self._found] or [(Span(nothing, "dim"),)]
        places.show(lines, home=not row)
        places.cursor_row = row
        places.set_titles("Places", told if self._found or told else "")

    def _show_refused(self, error: HitlError) -> None:
        text = f"{error.message}\n{error.hint}" if error.hint else error.message
        lines = [(untrusted(line, "warning"),) for line in text.splitlines()]
        self._found = ()
        places = self.query_one("#places", LineView)
        places.cursor_row = None
        places.show(lines, home=True)
        places.set_titles("Places", "")

    def action_go(self) -> None:
        """Go to the selected place; to the first one of what was typed just before, once it is found."""
        typed = self.query_one("#find", Input).value
        if typed != self._looked_for or not (self._found or self._over):
            self._goes = True
        else:
            self._go(self.query_one("#places", LineView).cursor_row)

    @on(LineView.RowChosen)
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        self._go(event.row)

    def _go(self, row: int | None) -> None:
        if row is not None and row < len(self._found):
            self.dismiss((self._query, self._found, row))

    def action_select(self, by: int) -> None:
        """Another place."""
        places = self.query_one("#places", LineView)
        if not self._found:
            return
        row = places.cursor_row = min(max((places.cursor_row or 0) + by, 0), len(self._found) - 1)
        places.reveal(row)

    def on_resize(self, event: events.Resize) -> None:
        """The selected place stays in view."""
        self.action_select(0)


def _line(place: Found) -> Line:
    where = cut(place.where, _WHERE)
    return (
        Span(where + " " * (_WHERE + 2 - cells(where)), "name"),
        Span(place.before, "dim"),
        Span(place.match, "accent"),
        Span(place.after, "dim"),
    )
