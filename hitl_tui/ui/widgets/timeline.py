"""Timeline of checkpoints: a click or the arrow keys travel along it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from hitl_tui.drivers.protocol import Relative
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.widgets.lines import LineView, ours
from hitl_tui.view.cells import cells
from hitl_tui.view.format import count
from hitl_tui.view.keymap import Keymap
from hitl_tui.view.notes import noted_steps
from hitl_tui.view.run_view import RunView
from hitl_tui.view.spans import Line, Span
from hitl_tui.view.timeline import Direction, Place, TimelineLayout, layout

MAX_ROWS = 5
_WIDE = 100
_NARROW_ROWS = 3
"""Rows on screens that are less wide."""
_TALL = 40
"""Rows of a screen from which the whole family of threads has room."""
_SHARE = 5


class TimelinePane(LineView):
    """Steps of this thread and its relatives, in a window around the shown one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("travel.back", "travel('left')"),
        bound("travel.on", "travel('right')"),
        bound("list.up", "travel('up')"),
        bound("list.down", "travel('down')"),
    ]

    class Travel(Message):
        """A key asks for the step next to the shown one."""

        def __init__(self, direction: Direction) -> None:
            super().__init__()
            self.direction = direction

    class Chosen(Message):
        """A step was clicked."""

        def __init__(self, place: Place) -> None:
            super().__init__()
            self.place = place

    def __init__(self, keymap: Keymap, me: str) -> None:
        super().__init__("timeline", "Timeline")
        self.is_alone = False
        """Whether it is the only pane on screen."""
        self._me = me
        keys = [keymap.shown(name) for name in ("travel.down", "travel.up")]
        self._keys = " ".join(key for key in keys if key) or "up and down"
        self._all = keymap.shown("look.family")
        self._layout: TimelineLayout | None = None
        self._below: tuple[Line, ...] = ()
        self._shown: tuple[RunView, Sequence[Relative], Place | None] | None = None
        self._state: tuple[object, ...] = ()
        self._drawn: tuple[object, object] = (None, None)
        self._ledger: Sequence[LedgerEntry] = ()
        self._noted: frozenset[int] = frozenset()

    def show_view(self, view: RunView, family: Sequence[Relative], place: Place | None) -> None:
        """Show a view of the thread with a step selected; lay it out again only if necessary."""
        self._shown = (view, family, place)
        progress = view.progress
        if view.ledger is not self._ledger:
            self._ledger, self._noted = view.ledger, noted_steps(view.ledger)
        state = (
            progress.status,
            progress.next_node,
            progress.pending,
            view.running_node,
            self._noted,
            place,
            self.size.width,
            self.app.size.height,
            self.is_alone,
        )
        if state == self._state and view.checkpoints is self._drawn[0] and family is self._drawn[1]:
            return
        self._state, self._drawn = state, (view.checkpoints, family)
        self._lay_out()

    @property
    def rows_left(self) -> int:
        """Return how many rows are free below the steps."""
        rows = len(self._layout.rows) if self._layout else 0
        return self.scrollable_content_region.height - rows

    def show_below(self, lines: tuple[Line, ...]) -> None:
        """Show further lines in the rows below the steps, while it is alone on screen."""
        if lines != self._below:
            self._below = lines
            self._lay_out()

    def _lay_out(self) -> None:
        if self._shown is None or self.size.width < 8:
            return
        view, family, place = self._shown
        screen, alone = self.app.size.height, self.is_alone
        tall, width = alone or screen >= _TALL, self.scrollable_content_region.width
        self._layout = layout(view, family, place, width, me=self._me, whole=tall)
        rows = self._layout.rows
        nothing: tuple[Line, ...] = ((Span("steps appear here", "dim"),),)
        self.show((*(rows or nothing), *self._below))
        most = screen // _SHARE if tall else MAX_ROWS if self.app.size.width >= _WIDE else _NARROW_ROWS
        height = screen if alone else min(max(len(rows), 2), most)
        self.styles.height = "1fr" if alone else height + 2
        at = self._layout.selected or self._layout.head
        if at is not None and len(rows) > height:
            self.call_after_refresh(self.reveal, at.row)
        hidden = self._layout.hidden + max(len(rows) - height, 0)
        everything = f", {self._all} all" if self._all else ""
        more = f"{count(hidden, 'more line')}: {self._keys}{everything}"
        self.set_titles("Timeline", more if hidden else "")

    def line(self, row: int) -> Line:
        """Return a row; the shown step is highlighted."""
        line = super().line(row)
        chosen = self._layout.selected if self._layout else None
        if chosen is None or chosen.row != row:
            return line
        spans: list[Span] = []
        x = 0
        for span in line:
            inside = chosen.x0 <= x < chosen.x1
            spans.append(ours(span.text, "cursor") if inside else span)
            x += cells(span.text)
        return tuple(spans)

    def on_resize(self, event: events.Resize) -> None:
        """Lay out for the new width."""
        self._lay_out()

    def action_travel(self, direction: Direction) -> None:
        """Ask for the step next to the shown one."""
        self.post_message(self.Travel(direction))

    def on_click(self, event: events.Click) -> None:
        """Travel to the clicked step."""
        event.stop()
        offset = event.get_content_offset(self)
        if offset is None or self._layout is None:
            return
        row = offset.y + round(self.scroll_y)
        place = self._layout.at(row, offset.x)
        if place is not None:
            self.post_message(self.Chosen(place))
