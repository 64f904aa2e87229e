"""Table of channels: what the shown step did to each, its reducer and its value on one line."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message

from hitl_tui.ui.bindings import bound
from hitl_tui.ui.widgets.lines import LineView, Row
from hitl_tui.view.cells import cut
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span
from hitl_tui.view.step_view import ChannelRow, StepView

_NAMES = 16
_REDUCERS = 12
_MARK_ROLES: dict[str, Role] = {"+": "ok", "≠": "warning", "=": "dim", "✎": "human", " ": "dim"}


class ChannelsPane(LineView):
    """Channels with a cursor; the first row has the column names and doesn't scroll.

    `picked` is True once the user has moved the cursor; until then it follows the changes.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("list.up", "move(-1)"),
        bound("list.down", "move(1)"),
        bound("list.page_up", "move(-10)"),
        bound("list.page_down", "move(10)"),
    ]

    class Selected(Message):
        """Another channel was selected; `picked` if the user selected it."""

        def __init__(self, name: str, picked: bool) -> None:
            super().__init__()
            self.name = name
            self.picked = picked

    def __init__(self) -> None:
        super().__init__("channels", "Channels")
        self.all_rows: tuple[ChannelRow, ...] = ()
        self.channel_rows: tuple[ChannelRow, ...] = ()
        """Channels that pass the filter."""
        self.word = ""
        self._only_changed = False
        self._step_titles = ("Channels", "")
        self.selected = ""
        self.picked = False
        self._lead = "  "
        """Prefix of each name: what the step did, then a mark for untrusted data."""
        self._names = 8
        self._reducers = 7
        self.shows_reducers = True
        self._below: tuple[Line, ...] = ()

    @property
    def rows_left(self) -> int:
        """Return how many rows are free below the table."""
        return self.scrollable_content_region.height - len(self.channel_rows) - 1

    def show_below(self, lines: tuple[Line, ...]) -> None:
        """Show further lines in the rows below the table, while it is alone on screen."""
        if lines != self._below:
            self._below = lines
            self.repaint()

    def show_step(self, step: StepView, is_past: bool) -> None:
        """Show the channels of a step; the selected one stays selected."""
        if step.rows is self.all_rows:
            return
        self.all_rows = step.rows
        state = "not the newest step" if is_past else "newest" if step.checkpoint else ""
        self._step_titles = (f"Channels at step {step.step}" if step.checkpoint else "Channels", state)
        self.set_class(is_past, "-past")
        self._show_rows()

    def filter_rows(self, word: str, *, only_changed: bool) -> None:
        """Show only the channels with `word` in their names, or of these only what the step changed."""
        self.word, self._only_changed = word, only_changed
        self._show_rows()

    def _is_shown(self, row: ChannelRow) -> bool:
        return self.word.casefold() in row.name.casefold() and (row.mark != " " or not self._only_changed)

    def _show_rows(self) -> None:
        rows = self.channel_rows = tuple(row for row in self.all_rows if self._is_shown(row))
        self._lead = "   " if any(row.tainted for row in rows) else "  "
        self._measure()
        self._reducers = max([7, *(cell_len(_short(row.reducer, _REDUCERS)) for row in rows)])
        self.set_extent(Size(0, len(rows) + 1))
        title, state = self._step_titles
        if len(rows) < len(self.all_rows):
            word = f" “{sanitise_line(self.word, _NAMES)}”" if self.word else ""
            changed = " changed" if self._only_changed else ""
            state = f"{len(rows)} of {len(self.all_rows)}{changed}{word}"
        self.set_titles(title, state)
        if rows and self.selected not in {row.name for row in rows}:
            self.select(rows[0].name)
        else:
            self._place_cursor()
        self.repaint()

    def _measure(self) -> None:
        """Make the name column as wide as the longest name, and leave most of the room to the values."""
        most = max(_NAMES, self.scrollable_content_region.width * 2 // 5)
        self._names = min(max([7, *(cell_len(row.name) for row in self.channel_rows)]), most)

    def on_resize(self, event: events.Resize) -> None:
        """Lay out the columns for another width."""
        super().on_resize(event)
        self._measure()
        self.repaint()

    @property
    def selected_row(self) -> ChannelRow | None:
        """Row of the cursor."""
        return next((row for row in self.channel_rows if row.name == self.selected), None)

    def select(self, name: str, *, picked: bool = False) -> None:
        """Move the cursor to a channel.

        Args:
            picked: whether the user moves it.
        """
        self.picked = self.picked or picked
        if name and name != self.selected:
            self.selected = name
            self._place_cursor()
            self.post_message(self.Selected(name, picked))
            self.repaint()

    def _place_cursor(self) -> None:
        index = next((i for i, row in enumerate(self.channel_rows) if row.name == self.selected), None)
        self.cursor_row = index
        if index is not None and self.size.height > 1:
            top, room = round(self.scroll_y), self.size.height - 1
            if not top <= index < top + room:
                self.scroll_to(y=index if index < top else index - room + 1, animate=False)

    def action_move(self, by: int) -> None:
        """Move the cursor by a number of rows."""
        if self.channel_rows:
            row = min(max((self.cursor_row or 0) + by, 0), len(self.channel_rows) - 1)
            self.select(self.channel_rows[row].name, picked=True)

    def visible_row(self, y: int) -> Row:
        """Return the row of column names, or a channel."""
        if y == 0:
            reducer = "reducer".ljust(self._reducers + 1) if self.shows_reducers else ""
            return Row((Span(f"{self._lead}{'channel'.ljust(self._names + 1)}{reducer}value", "dim"),))
        index = self._at[1] + y - 1
        if index >= len(self.channel_rows):
            below = index - len(self.channel_rows)
            return Row(self._below[below] if below < len(self._below) else ())
        return self.grounded(self._channel_line(self.channel_rows[index]), self.ground(index))

    def _channel_line(self, row: ChannelRow) -> Line:
        name = cut(row.name, self._names)
        return (
            Span(row.mark, _MARK_ROLES[row.mark]),
            Span((UNICODE.tainted if row.tainted else "").ljust(len(self._lead) - 1), "warning"),
            Span(set_cell_size(name, self._names + 1), "name" if row.mark != " " else "plain"),
            *(
                (Span(set_cell_size(_short(row.reducer, self._reducers), self._reducers + 1), "dim"),)
                if self.shows_reducers
                else ()
            ),
            *((Span("tainted ", "warning"),) if row.tainted else ()),
            *row.value,
        )

    def on_click(self, event: events.Click) -> None:
        """Select a channel with the mouse."""
        event.stop()
        offset = event.get_content_offset(self)
        index = round(self.scroll_y) + offset.y - 1 if offset and offset.y > 0 else -1
        if 0 <= index < len(self.channel_rows):
            self.select(self.channel_rows[index].name, picked=True)


def _short(reducer: str, room: int) -> str:
    """Return a reducer in short; in a narrow column its arguments are cut first."""
    name, kind, _ = reducer.partition("(")
    return reducer if cell_len(reducer) <= room else cut(f"{name}(…)" if kind else name, room)
