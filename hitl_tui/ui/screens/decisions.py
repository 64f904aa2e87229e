"""All decisions of the store: search by words, time, thread and person; open one's step, or fork there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePath
from typing import ClassVar, Final, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Input

from hitl_tui.drivers.decided import DecisionSearch
from hitl_tui.drivers.protocol import Hub
from hitl_tui.ui.bindings import LIST_MOVES, bound, keymap_of
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineView, Row
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.ui.work import start_work
from hitl_tui.view.decisions import (
    EXAMPLE,
    DecisionColumns,
    columns_of,
    decision_line,
    detail_lines,
    heading,
    read_filter,
    with_mine,
)
from hitl_tui.view.followed import DecisionOutcome, followed
from hitl_tui.view.format import count
from hitl_tui.view.spans import Line, Span, trusted

_PAGE: Final = 50
_NEAR: Final = 20
_KEYS: Final = (
    ("decisions.open", "Open"), ("decisions.fork", "Fork"), ("decisions.search", "Search"),
    ("decisions.mine", "Only mine"), ("decisions.stats", "Stats"),
    ("list.up list.down", "Select"), ("decisions.back", "Back"),
)  # fmt: skip
_KEYS_OF_SEARCH: Final = (("enter decisions.back", "To the list"),)


class DecisionChoice(NamedTuple):
    """A step to open: that of a decision, or with `fork` the one from which a fork decides again.

    `about` is the channel that was decided about, "" for none.
    """

    thread: str
    step: int
    about: str = ""
    fork: bool = False


class DecisionList(LineView):
    """Decisions, a row each, below the names of the columns."""

    class Moved(Message):
        """The cursor is on another row."""

    BINDINGS: ClassVar[list[BindingType]] = [*LIST_MOVES]

    def __init__(self) -> None:
        super().__init__("decisions", "Decisions")
        self.rows: Sequence[DecisionOutcome] = ()
        self._columns = DecisionColumns(0, 0, 0, 0, 0, 0)

    @property
    def selected(self) -> DecisionOutcome | None:
        """The decision of the cursor's row."""
        at = self.cursor_row
        return self.rows[at] if at is not None and at < len(self.rows) else None

    def show_rows(self, rows: Sequence[DecisionOutcome], none: str) -> None:
        """Show these decisions; `none` says why there is none."""
        self.rows = rows
        if not rows:
            self.cursor_row = None
            self.show([(Span(none, "dim"),)], home=True)
            return
        self.cursor_row = min(self.cursor_row or 0, len(rows) - 1)
        self._measure()
        self.lines = range(len(rows))  # type: ignore[assignment]
        self.set_extent(Size(0, len(rows) + 1))
        self.repaint()

    def _measure(self) -> None:
        self._columns = columns_of(self.rows, self.scrollable_content_region.width)

    def on_resize(self, event: events.Resize) -> None:
        """Lay out the columns for another width."""
        super().on_resize(event)
        self._measure()
        self.repaint()

    def visible_row(self, y: int) -> Row:
        """Return the row of column names, or a decision."""
        if not self.rows:
            return super().visible_row(y)
        if y == 0:
            return Row(heading(self._columns))
        at = self._at[1] + y - 1
        return self.grounded(self.line(at), self.ground(at)) if at < len(self.rows) else Row(())

    def line(self, row: int) -> Line:
        """Return a row."""
        return decision_line(self.rows[row], self._columns) if self.rows else self.lines[row]

    def row_at(self, event: events.MouseEvent) -> int | None:
        """Return the row under the mouse."""
        offset = event.get_content_offset(self)
        row = round(self.scroll_y) + offset.y - 1 if offset is not None and offset.y else -1
        return row if 0 <= row < len(self.rows) else None

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        if self.rows:
            self.select(min(max((self.cursor_row or 0) + by, 0), len(self.rows) - 1))

    def select(self, row: int) -> None:
        """Put the cursor on a row."""
        self.cursor_row = row
        self.reveal(row, self.size.height - 1)
        self.post_message(self.Moved())

    def on_click(self, event: events.Click) -> None:
        """Select with one click, open with the second."""
        event.stop()
        row = self.row_at(event)
        if row is not None:
            if row == self.cursor_row or event.chain > 1:
                self.post_message(self.RowChosen(self, row))
            self.select(row)


class DecisionsScreen(OverlayScreen):
    """Returns a `DecisionChoice`, or None.

    Args:
        me: whose decisions `by:me` finds.
        keys: the keys that opened it and close it again.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "decisions.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("decisions.open", "open"),
        bound("decisions.fork", "fork"),
        bound("decisions.search", "search"),
        bound("decisions.mine", "mine"),
        bound("decisions.stats", "stats"),
        bound("decisions.back", "back"),
        bound("decisions.close", "close"),
    ]
    AUTO_FOCUS = "#decisions"

    def __init__(self, hub: Hub, me: str, now: Callable[[], int], keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        self._hub = hub
        self._me = me
        self._now = now
        self._list = DecisionList()
        self._rows: list[DecisionOutcome] = []
        self._typed = ""
        self._problems: tuple[str, ...] = ()
        self._found: DecisionSearch | None = None

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield SafeInput(id="search", placeholder=EXAMPLE)
        yield self._list
        yield LineView("detail")
        yield KeysBar(_KEYS)

    def on_mount(self) -> None:
        """Show the newest decisions."""
        self.query_one("#detail", LineView).can_focus = False
        self.query_one(Input).border_title = "search"
        self._look("")

    # Searching.

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        if event.value.strip() != self._typed:
            self._look(event.value.strip())

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._list.focus()

    def _look(self, typed: str) -> None:
        """Search again from the newest decision."""
        self._typed = typed
        wanted, self._problems = read_filter(typed, self._now(), self._me)
        self._found = self._hub.decisions(wanted)
        self._rows = []
        self._list.cursor_row = None
        self._list.scroll_to(0, 0, animate=False)
        self._read_more()

    def _read_more(self) -> None:
        if self._found is not None:
            start_work(self, partial(self._read, self._found), group="search", exclusive=True)

    async def _read(self, search: DecisionSearch) -> None:
        """Read on until another page is found, and show how far it is."""
        wanted = len(self._rows) + _PAGE
        while len(self._rows) < wanted and not search.ended:
            page = await asyncio.to_thread(search.page, wanted - len(self._rows))
            if search is not self._found or not self.display:
                return
            self._rows += map(followed, page)
            self._show(search)

    def _show(self, search: DecisionSearch) -> None:
        self._list.show_rows(self._rows, self._none(search))
        number = count(len(self._rows), "decision")
        if search.ended:
            shown = number
        elif len(self._rows) % _PAGE == 0 and self._rows:
            shown = f"the newest {number}"
        else:
            shown = f"{number}, {search.looked:,} searched…"
        self._list.set_titles("Decisions", shown)
        self._show_detail()

    def _none(self, search: DecisionSearch) -> str:
        if self._problems:
            return "; ".join(self._problems)
        if not search.ended:
            return f"searching… {search.looked:,}"
        if self._typed:
            return (
                f"no decision matches; {keymap_of(self.app).key_hint('decisions.search')} changes the search"
            )
        return "nobody has decided anything in this store yet"

    # The selected decision.

    @on(DecisionList.Moved)
    def _moved(self) -> None:
        self._show_detail()
        search = self._found
        if search and not search.ended and (self._list.cursor_row or 0) + _NEAR > len(self._rows):
            self._read_more()

    @on(LineView.Widened)
    def _widened(self, event: LineView.Widened) -> None:
        if event.view.id == "detail":
            self._show_detail()

    def _show_detail(self) -> None:
        pane, decision = self.query_one("#detail", LineView), self._list.selected
        width = max(pane.scrollable_content_region.width, _PAGE)
        lines = [] if decision is None else detail_lines(decision, width)
        if self._rows and self._problems:
            lines = [(trusted("; ".join(self._problems), "warning"),), *lines]
        pane.show(lines, home=True)

    @on(LineView.RowChosen)
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        if event.view is self._list:
            self._list.cursor_row = event.row
            self.action_open()

    def action_open(self) -> None:
        """Open the thread at the step of the decision."""
        if (decision := self._list.selected) is not None:
            self.dismiss(DecisionChoice(decision.thread, decision.step, _about(decision)))

    def action_fork(self) -> None:
        """Open the step from which the decision can be made again, and fork there."""
        if (decision := self._list.selected) is not None:
            self.dismiss(DecisionChoice(decision.thread, decision.before, _about(decision), fork=True))

    # The search field.

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Show the keys of the widget with the focus."""
        if self.display:  # while it is being removed, its parts go one by one
            footer = self.query_one(KeysBar)
            footer.entries = _KEYS_OF_SEARCH if event.widget is self.query_one(Input) else _KEYS
            footer.refresh()

    def action_search(self) -> None:
        """Type in the search field."""
        field = self.query_one(Input)
        field.focus()
        field.select_all()

    def action_stats(self) -> None:
        """Show what the decisions of the store measure."""
        from hitl_tui.ui.screens.page import PageScreen
        from hitl_tui.view.stats import stats_lines, stats_of

        async def lines() -> Sequence[Line]:
            found = stats_of(await self._hub.reviews(), self._me)
            return stats_lines(found, page.query_one("#help", LineView).scrollable_content_region.width)

        page = PageScreen("What reviews measure", lines, keymap_of(self.app).bindings["decisions.stats"])
        self.app.push_screen(page)

    def action_mine(self) -> None:
        """Show only the person's own decisions, or everybody's again."""
        self.query_one(Input).value = with_mine(self._typed)

    def action_back(self) -> None:
        """Go from the search to the list, or from the list to the run."""
        if self._list.has_focus:
            self.dismiss(None)
        else:
            self._list.focus()


def _about(decision: DecisionOutcome) -> str:
    return next(iter(decision.subjects), "")
