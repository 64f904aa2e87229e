"""Items of a graph's long-term store: a list that letters filter, and the selected value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePath
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from hitl_tui.drivers.protocol import Hub, StoredItem
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.sizes import BREAKPOINTS
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.ui.work import start_work
from hitl_tui.view.format import ago, count
from hitl_tui.view.items import MOST, item_lines, place_of
from hitl_tui.view.rows import wrapped
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span
from hitl_tui.view.value_lines import value_lines

_KEYS: Final = (("find.up find.down", "Select"), ("find.page_down", "Scroll"), ("find.back", "Back"))
_LONGEST: Final = 200


class ItemsScreen(OverlayScreen):
    """Read only; letters are searched in namespaces, keys and values.

    Args:
        now: the time, in microseconds since the epoch.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "items.tcss"]
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("find.back", "close", priority=True),
        bound("find.up", "select(-1)", priority=True),
        bound("find.down", "select(1)", priority=True),
        bound("find.page_up", "scroll_value(-1)", priority=True),
        bound("find.page_down", "scroll_value(1)", priority=True),
    ]
    AUTO_FOCUS = "#find"

    def __init__(self, hub: Hub, now: Callable[[], int]) -> None:
        super().__init__()
        self._hub = hub
        self._now = now
        self._items: Sequence[StoredItem] = ()
        self._at = 0

    def compose(self) -> ComposeResult:
        yield SafeInput(id="find", placeholder="search in namespace, key and value")
        yield LineView("items", "Items")
        yield LineView("item", "")
        yield KeysBar(_KEYS)

    def on_mount(self) -> None:
        """Load the items."""
        for view in self.query(LineView):
            view.can_focus = False
        self.query_one("#items", LineView).heeds_keys = True
        self._look("")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._look(event.value)

    def _look(self, query: str) -> None:
        start_work(self, partial(self._find, query), exclusive=True)

    async def _find(self, query: str) -> None:
        view = self.query_one("#items", LineView)
        try:
            self._items = await self._hub.items((), query, MOST)
        except HitlError as error:
            view.show([(Span(sanitise_line(str(error), _LONGEST), "error"),)])
            return
        now, self._at = self._now(), 0
        number = count(len(self._items), "item")
        view.set_titles("Items", f"the first {number}" if len(self._items) == MOST else number)
        none = "no item matches" if query else "the store is empty"
        lines = item_lines(self._items, lambda item: ago(item.updated_at, now))
        view.show(lines or [(Span(none, "dim"),)], home=True)
        self._show_selected()

    @on(LineView.RowChosen, "#items")
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        self.action_select(event.row - self._at)

    def action_select(self, by: int) -> None:
        """Select another item."""
        if self._items:
            self._at = min(max(self._at + by, 0), len(self._items) - 1)
            self._show_selected()

    @on(LineView.Widened, "#item")
    def _show_selected(self) -> None:
        items, pane = self.query_one("#items", LineView), self.query_one("#item", LineView)
        if not self._items:
            items.cursor_row = None
            pane.set_titles("", "")
            pane.show([])
            return
        items.cursor_row = self._at
        items.reveal(self._at)
        items.repaint()
        item = self._items[self._at]
        pane.set_titles(f"{place_of(item)}  {sanitise_line(item.key, _LONGEST)}", "read only")
        pane.show(_rows(item, max(pane.scrollable_content_region.width, 20)), home=True)

    def action_scroll_value(self, by: int) -> None:
        """Scroll the shown item by pages."""
        self.query_one("#item", LineView).turn_pages(by)


def _rows(item: StoredItem, width: int) -> list[Line]:
    lines = value_lines(item.value, "text")
    return [row for number in range(len(lines)) for row in wrapped(lines[number], width, "value") or [()]]
