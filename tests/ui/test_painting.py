"""What is painted again when something changes: the rows that differ, and nothing beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from textual.app import App, ComposeResult
from textual.events import Resize
from textual.geometry import Region, Size
from textual.pilot import Pilot
from textual.screen import Screen as TextualScreen
from textual.strip import Strip

from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
from hitl_tui.ui.app import HitlApp
from hitl_tui.ui.screens.run import RunScreen
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.lines import LineView, RoleScreen
from hitl_tui.view.run_view import open_view
from hitl_tui.view.spans import Line, Span
from hitl_tui.view.step_view import head_step
from tests.support import tape as tapes
from tests.ui.harness import booted, desk, live


class Noted(LineView):
    """Notes which rows are drawn."""

    drawn: list[int]

    def __init__(self) -> None:
        self.drawn = []
        super().__init__("noted", "Title")

    def render_line(self, y: int) -> Strip:
        self.drawn.append(y)
        return super().render_line(y)


class Host(App[None]):
    """One list on a screen of its own."""

    CSS = "LineView { height: 12; width: 40; border: round white; }"

    def __init__(self, view: LineView | None = None) -> None:
        super().__init__()
        self.view = view or Noted()

    def get_default_screen(self) -> RoleScreen:
        view = self.view

        class Only(RoleScreen):
            def compose(self) -> ComposeResult:
                yield view

        return Only()


def rows(*texts: str) -> list[Line]:
    return [(Span(text),) for text in texts]


@asynccontextmanager
async def showing(lines: Sequence[Line]) -> AsyncIterator[tuple[Noted, Pilot[None]]]:
    app = Host()
    async with booted(app, size=(60, 20), paints=True) as pilot:
        app.view.show(lines)
        await settled(pilot)
        app.view.drawn.clear()
        yield app.view, pilot


async def settled(pilot: Pilot[Any]) -> None:
    """Wait until all that was asked for is painted."""
    screen = pilot.app.screen
    await pilot.pause()
    while screen._layout_required or screen._scroll_required or screen._dirty_widgets:
        await pilot.pause()


def text_of(pilot: Pilot[Any]) -> str:
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def test_only_rows_that_differ_are_drawn_again():
    async with showing(rows("one", "two", "three")) as (view, pilot):
        view.show(rows("one", "TWO", "three"))
        await settled(pilot)
        assert view.drawn == [1]
        assert "TWO" in text_of(pilot)


async def test_the_same_rows_again_draw_nothing():
    async with showing(rows("one", "two")) as (view, pilot):
        view.show(rows("one", "two"))
        await settled(pilot)
        assert view.drawn == []


async def test_rows_that_went_away_are_drawn_over():
    async with showing(rows("one", "two", "three")) as (view, pilot):
        view.show(rows("one"))
        await settled(pilot)
        assert view.drawn == [1, 2]
        assert "three" not in text_of(pilot)


async def test_the_cursor_redraws_the_row_it_left_and_the_one_it_came_to():
    async with showing(rows("one", "two", "three")) as (view, pilot):
        view.cursor_row = 0
        view.repaint()
        await settled(pilot)
        view.drawn.clear()
        view.cursor_row = 2
        view.repaint()
        await settled(pilot)
        assert view.drawn == [0, 2]


async def test_only_the_visible_ones_of_many_rows_are_read():
    class Counted(Sequence[Line]):
        asked = 0

        def __len__(self) -> int:
            return 50_000

        def __getitem__(self, at: Any) -> Any:
            type(self).asked += 1
            return (Span(f"row {at}"),)

    async with showing(rows("one")) as (view, pilot):
        lines = Counted()
        view.show(lines)
        await settled(pilot)
        assert "row 0" in text_of(pilot)
        view.scroll_to(y=49_000, animate=False)
        await settled(pilot)
        assert "row 49000" in text_of(pilot)
        assert lines.asked < 100


async def test_a_title_redraws_its_border_and_no_row():
    async with showing(rows("one", "two")) as (view, pilot):
        view.set_titles("Another title", "and one below")
        await settled(pilot)
        assert view.drawn == []
        assert "Another title" in text_of(pilot)
        assert "and one below" in text_of(pilot)


async def test_a_title_that_is_the_same_is_not_set_again(monkeypatch):
    async with showing(rows("one")) as (view, pilot):
        view.set_titles("Same", "below")
        await settled(pilot)
        painted: list[tuple[Region, ...]] = []
        monkeypatch.setattr(view, "refresh", lambda *regions, **_: painted.append(regions))
        view.set_titles("Same", "below")
        assert painted == []


async def test_more_rows_need_a_layout_only_where_a_scroll_bar_comes_or_goes(monkeypatch):
    async with showing(rows("one")) as (view, pilot):
        layouts = 0
        known = view.refresh

        def noted(*regions: Region, layout: bool = False, **options: Any) -> Any:
            nonlocal layouts
            layouts += layout
            return known(*regions, layout=layout, **options)

        monkeypatch.setattr(view, "refresh", noted)
        for count in range(2, 10):
            view.show(rows(*map(str, range(count))))
        assert layouts == 0
        view.show(rows(*map(str, range(50))))
        assert layouts > 0
        while not view.show_vertical_scrollbar:
            await settled(pilot)
        layouts = 0
        for count in range(51, 60):
            view.show(rows(*map(str, range(count))))
            view.scroll_end(animate=False, immediate=True)
        assert layouts == 0
        await settled(pilot)
        assert "58" in text_of(pilot)
        view.show(rows("one"))
        assert layouts > 0
        while view.show_vertical_scrollbar:
            await settled(pilot)


async def test_fewer_rows_than_the_list_is_scrolled_by_are_still_seen():
    async with showing(rows(*map(str, range(100)))) as (view, pilot):
        view.scroll_end(animate=False, immediate=True)
        view.show(rows(*(f"row {number}" for number in range(30))))
        await settled(pilot)
        assert "row 29" in text_of(pilot)


@pytest.mark.slow
async def test_a_step_draws_only_rows_that_it_changes(monkeypatch):
    drawn: list[tuple[str, int]] = []
    known = LineView.render_line

    def noted(view: LineView, y: int) -> Strip:
        drawn.append((str(view.id), y))
        return known(view, y)

    monkeypatch.setattr(LineView, "render_line", noted)
    async with desk(at_end=False, paints=True) as it:
        it.driver.advance_to_step(1)
        await it.shows("Channels at step 1")
        await it.until(lambda: not it.run.shown_value.loading)
        await settled(it.pilot)
        screen: RunScreen = it.run
        rows_on_screen = sum(view.size.height for view in screen.query(LineView))
        drawn.clear()
        screen.show_all()
        await settled(it.pilot)
        assert drawn == []
        it.driver.advance(1)
        await it.until(lambda: drawn)
        await settled(it.pilot)
        assert 0 < len(set(drawn)) < rows_on_screen // 2


async def test_columns_of_short_channel_names_keep_their_distance():
    pane = ChannelsPane()
    app = Host(pane)
    async with booted(app, size=(60, 20), paints=True) as pilot:
        view = open_view(tapes.advisor_tape().end)
        step = head_step(view)
        pane.show_step(
            msgspec.structs.replace(step, rows=(msgspec.structs.replace(step.rows[0], name="n"),)), False
        )
        await settled(pilot)
        assert "channel reducer" in text_of(pilot)


@pytest.mark.parametrize(
    ("size", "wanted"), [((120, 40), ("count", "END", "overwrite")), ((80, 24), ("overwrite", "‹State›"))]
)
async def test_the_first_paint_of_a_thread_has_graph_and_channels_in_their_places(
    size: tuple[int, int], wanted: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = StateGraph({"n": Channel(0)}).add_node("count", lambda state: {"n": state["n"] + 1})
    runner = graph.add_edge(START, "count").add_edge("count", END).compile(checkpointer=MemoryCheckpointer())
    runner.invoke({}, thread_id="t")
    paints: list[str] = []
    display = HitlApp._display

    def noted(app: HitlApp, screen: TextualScreen[Any], renderable: Any) -> None:
        if isinstance(screen, RunScreen):
            paints.append("\n".join(strip.text for strip in screen._compositor.render_strips()))
        display(app, screen, renderable)

    monkeypatch.setattr(HitlApp, "_display", noted)
    async with live(runner, size=size, paints=True):
        assert [word for word in wanted if word not in paints[0]] == []


@pytest.mark.slow
async def test_sizes_that_are_past_do_not_call_up_each_other(monkeypatch: pytest.MonkeyPatch):
    """Two on their way at once, as when a window changes while a screen comes up, kept it busy for ever."""
    async with desk(paints=True) as it:
        pilot, screen, sizes = it.pilot, it.pilot.app.screen, list[Size]()
        await settled(pilot)
        lay_out = screen._refresh_layout

        def noted(size: Size | None = None, scroll: bool = False) -> None:
            if size:
                sizes.append(size)
            lay_out(size, scroll)

        monkeypatch.setattr(screen, "_refresh_layout", noted)
        await pilot.resize_terminal(90, 30)
        for size in (Size(120, 40), Size(90, 30)):
            screen.post_message(Resize(size, size))
            screen.call_later(list)  # else the second would take the place of the first
        for _ in range(20):
            await pilot.pause()
        assert screen.size == Size(90, 30)
        assert sizes == [Size(90, 30)]
