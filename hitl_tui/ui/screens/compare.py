"""Two steps, threads or forks side by side, channel by channel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.ui.screens.family import FamilyScreen
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.sizes import BREAKPOINTS
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineBar, LineView, ours
from hitl_tui.ui.widgets.side_by_side import SideBySide
from hitl_tui.ui.work import start_work
from hitl_tui.view.cells import cells, cut, thread_name
from hitl_tui.view.diff_lines import MARKS, Change, Compared, compare_states, side_by_side
from hitl_tui.view.first_difference import FirstDifference, first_difference, first_difference_row
from hitl_tui.view.format import preview, preview_line
from hitl_tui.view.leaves import changed_leaves, has_leaves, leaf_line
from hitl_tui.view.revision import Pair
from hitl_tui.view.rows import part_of
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Role, Span, plain_text
from hitl_tui.view.timeline import Place

_ROLES: Final[dict[Change, Role]] = {
    "same": "dim",
    "changed": "accent",
    "added": "added",
    "removed": "removed",
    "private": "private",
}
_ORDER: Final = ("changed", "added", "removed", "private", "same")
_HEADED: Final = 2
"""Rows that a further value takes besides its own: a blank one and its name."""
_LEAVES: Final = 4
_WORDS: Final = {"added": "only on the right", "removed": "only on the left", "private": "not compared"}


class CompareHead(LineBar):
    """What is compared, and which side the keys move."""

    places: tuple[Place, Place] | None = None
    side = 0

    def bar(self, width: int) -> Line:
        if self.places is None:
            return (ours(" compare ", "brand"),)
        spans: list[Span] = [ours(" compare ", "brand"), Span(" ")]
        room = max((width - 34) // 2, 10)
        for side, (thread_id, step) in enumerate(self.places):
            here = side == self.side
            name = f"{thread_name(thread_id, room)} @ {step}"
            spans += [
                Span("◂ " if here else "  ", "accent"),
                Span(name, "name" if here else "value"),
                Span(" ▸" if here else "  ", "accent"),
            ]
            if side == 0:
                spans.append(Span("  with  ", "dim"))
        return tuple(spans)


class FirstDifferenceBar(LineBar):
    """Where the two threads differ first, and by which updates."""

    first_difference: FirstDifference | None = None

    def bar(self, width: int) -> Line:
        if self.first_difference is None:
            return ()
        way = keymap_of(self.app).shown("compare.difference")
        return (
            Span(" "),
            *first_difference_row(self.first_difference),
            ours(f"  {way}", "key"),
            Span(" goes there", "dim"),
        )


def _change(row: Compared, room: int) -> Line:
    """Return the change of a channel: the parts of lists and objects that differ, else both values."""
    if has_leaves(row.before, row.after):
        leaves = changed_leaves(row.before, row.after, _LEAVES)
        spans = [span for leaf in leaves.first for span in (*leaf_line(leaf), Span("  "))]
        return _cut((*spans, Span("…" if leaves.more else "", "dim")), room)
    half = (room - len(" → ")) // 2
    return (Span(f"{preview(row.before, half)} → {preview(row.after, half)}", "value"),)


def _cut(line: Line, room: int) -> Line:
    """Return the line, or its beginning and an ellipsis, in at most `room` cells."""
    text = plain_text(line)
    if cells(text) <= room:
        return line
    return (*part_of(line, 0, len(cut(text, room, ""))), Span("…", "dim"))


_KEYS = (
    ("compare.side", "Side"), ("compare.back compare.on", "Step"),
    ("compare.place", "Thread"), ("compare.difference", "Difference"), ("compare.swap", "Swap"),
    ("list.up list.down", "Channel"), ("page.close", "Back"), ("list.page_down", "Scroll"),
)  # fmt: skip


class CompareScreen(OverlayScreen):
    """Compares two places; returns nothing."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "compare.tcss"]
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("page.close", "close"),
        bound("compare.side", "other_side", priority=True),
        bound("compare.back", "move(-1)"),
        bound("compare.on", "move(1)"),
        bound("list.up", "select(-1)"),
        bound("list.down", "select(1)"),
        bound("list.page_up", "scroll_values(-1)"),
        bound("list.page_down", "scroll_values(1)"),
        bound("list.first", "select(-1_000_000)"),
        bound("list.last", "select(1_000_000)"),
        bound("compare.place", "ask_place"),
        bound("compare.swap", "swap"),
        bound("compare.difference", "go_to_first_difference"),
    ]
    AUTO_FOCUS = ""

    def __init__(
        self,
        session: ViewSession,
        left: Place,
        right: Place,
        now: Callable[[], int],
        keys: Sequence[str] = (),
    ) -> None:
        """`keys` are those that opened it and close it again."""
        super().__init__(keys)
        self._session = session
        self._now = now
        self._places = [left, right]
        self._states: dict[Place, dict[str, Any]] = {}
        self._rows: tuple[Compared, ...] = ()

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield CompareHead()
        yield FirstDifferenceBar()
        yield LineView("channels", "Channels")
        yield SideBySide()
        yield KeysBar(_KEYS)

    def on_mount(self) -> None:
        """Load both."""
        channels = self.query_one("#channels", LineView)
        channels.can_focus, channels.heeds_keys = False, True
        self.query_one(SideBySide).can_focus = False
        self._load()

    def _load(self) -> None:
        head = self.query_one(CompareHead)
        head.places = (self._places[0], self._places[1])
        head.refresh()
        start_work(self, self._fetch, group="compare", exclusive=True)

    async def _fetch(self) -> None:
        for place in self._places:
            if place not in self._states:
                driver = await self._session.driver_of(place[0])
                self._states[place] = dict(await driver.state_at(place[1]))
        before, after = (self._states[place] for place in self._places)
        rows = await asyncio.to_thread(compare_states, before, after)
        selected = self._selected
        self._rows = tuple(sorted(rows, key=lambda row: _ORDER.index(row.change)))
        channels = self.query_one("#channels", LineView)
        names = [row.channel for row in self._rows]
        channels.cursor_row = names.index(selected) if selected in names else 0 if names else None
        self._write()
        differ = sum(row.change not in ("same", "private") for row in rows)
        words = "no difference" if not differ else f"{differ} of {len(rows)} differ"
        channels.set_titles(f"Channels: {words}")
        channels.styles.height = min(max(len(rows), 1), max(self.size.height // 3, 4)) + 2
        await self._show_values(home=True)
        await self._show_first_difference()

    async def _show_first_difference(self) -> None:
        """Show where two threads differ first; differences after the shown steps don't count."""
        (a, a_step), (b, b_step) = self._places
        bar = self.query_one(FirstDifferenceBar)
        bar.first_difference = None
        if a != b:
            drivers = await self._session.driver_of(a), await self._session.driver_of(b)
            bar.first_difference = await first_difference(*drivers, min(a_step, b_step))
        bar.display = bar.first_difference is not None
        bar.refresh()

    @property
    def _selected(self) -> str:
        row = self.query_one("#channels", LineView).cursor_row
        return self._rows[row].channel if row is not None and row < len(self._rows) else ""

    def _line(self, row: Compared) -> Line:
        role = _ROLES[row.change]
        width = max((cells(sanitise_line(compared.channel, 24)) for compared in self._rows), default=0)
        name = sanitise_line(row.channel, 24)
        what: Line = (Span(_WORDS.get(row.change, ""), "value"),)
        room = max(self.query_one("#channels", LineView).scrollable_content_region.width - width - 4, 20)
        if row.change == "same":
            what = preview_line(row.before, room)
        elif row.change == "changed":
            what = _change(row, room)
        return (
            Span(f"{MARKS[row.change]} ", role),
            Span(name + " " * (width + 2 - cells(name)), "name" if row.change != "same" else "dim"),
            *(Span(span.text, "dim") if row.change == "same" else span for span in what),
        )

    async def _show_values(self, *, home: bool) -> None:
        row = next((compared for compared in self._rows if compared.channel == self._selected), None)
        pane = self.query_one(SideBySide)
        if row is None:
            pane.show_pairs((), home=True)
            return
        pairs = await asyncio.to_thread(side_by_side, row)
        pane.set_titles(row.channel, row.change)
        pane.show_pairs(pairs, await self._others(row, pane.size.height - len(pairs)), home=home)

    async def _others(self, shown: Compared, room: int) -> list[tuple[str, Sequence[Pair]]]:
        """Return other differences, as far as there is room for them below the shown value."""
        others: list[tuple[str, Sequence[Pair]]] = []
        for row in self._rows:
            if room > _HEADED and row is not shown and row.change not in ("same", "private"):
                pairs = (await asyncio.to_thread(side_by_side, row))[: room - _HEADED]
                others.append((row.channel, pairs))
                room -= len(pairs) + _HEADED
        return others

    @on(LineView.Widened, "#channels")
    def _write(self) -> None:
        self.query_one("#channels", LineView).show([self._line(row) for row in self._rows])

    @on(LineView.RowChosen)
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        self._select(event.row)

    def _select(self, row: int) -> None:
        channels = self.query_one("#channels", LineView)
        channels.cursor_row = min(max(row, 0), len(self._rows) - 1)
        top, height = round(channels.scroll_y), channels.size.height
        if not top <= channels.cursor_row < top + height:
            channels.scroll_to(y=max(0, channels.cursor_row - height // 2), animate=False)
        channels.repaint()
        start_work(self, partial(self._show_values, home=True), group="values", exclusive=True)

    def action_select(self, by: int) -> None:
        """Select another channel."""
        if self._rows:
            self._select((self.query_one("#channels", LineView).cursor_row or 0) + by)

    def action_scroll_values(self, by: int) -> None:
        """Scroll both values."""
        self.query_one(SideBySide).turn_pages(by)

    def action_other_side(self) -> None:
        """Let the keys move the other side from now on."""
        head = self.query_one(CompareHead)
        head.side = 1 - head.side
        head.refresh()

    def action_swap(self) -> None:
        """Swap left and right."""
        self._places.reverse()
        self._load()

    def action_go_to_first_difference(self) -> None:
        """Move both sides to the step at which the threads first differ."""
        if parts := self.query_one(FirstDifferenceBar).first_difference:
            self._places = [(thread_id, parts.step) for thread_id, _ in self._places]
            self._load()

    def action_move(self, by: int) -> None:
        """Move to the step before or after, on the chosen side."""
        start_work(self, partial(self._move, by), group="move", exclusive=True)

    async def _move(self, by: int) -> None:
        side = self.query_one(CompareHead).side
        thread_id, step = self._places[side]
        head = (await (await self._session.driver_of(thread_id)).snapshot()).progress.head
        self._places[side] = (thread_id, min(max(step + by, 0), head))
        self._load()

    def action_ask_place(self) -> None:
        """Choose another thread for the chosen side; begin with its newest step."""
        side = self.query_one(CompareHead).side

        def chosen(place: Place | None) -> None:
            if place is not None:
                self._places[side] = place
                self._load()

        others = FamilyScreen(self._session, self._now, others=True, word="Compare")
        self.app.push_screen(others, chosen)
