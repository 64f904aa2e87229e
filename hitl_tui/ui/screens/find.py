"""Finding a text in the open thread: type, choose a place, go there."""

from __future__ import annotations

import asyncio
from pathlib import PurePath
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.view.cells import cells, cut
from hitl_tui.view.find import MOST, Found, find
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span

Finding = tuple[str, tuple[Found, ...], int]
"""What was searched for, where it stands, and which of these places was chosen."""
_WHERE = 24


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

    def compose(self) -> ComposeResult:
        yield SafeInput(self._query, id="find", placeholder="find in channels, values, steps and notes")
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
        self._goes = False
        self.run_worker(self._look(query), group="find", exclusive=True, exit_on_error=False)

    async def _look(self, query: str) -> None:
        session = self._session
        hits = await asyncio.to_thread(find, query, session.view, session.step_view)
        self._query, self._found, self._looked_for = query, hits, query
        places = self.query_one("#places", LineView)
        places.cursor_row = 0 if hits else None
        nothing = "nothing found" if query.strip() else "type what to look for"
        places.show([_line(place) for place in hits] or [(Span(nothing, "dim"),)], home=True)
        count = f"{len(hits)} places" if len(hits) < MOST else f"the first {MOST} places"
        places.set_titles("Places", count if hits else "")
        if self._goes:
            self._go(places.cursor_row)

    def action_go(self) -> None:
        """Go to the selected place; to the first one of what was typed just before, once it is found."""
        if self.query_one("#find", Input).value != self._looked_for:
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
