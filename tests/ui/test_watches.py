"""Watches above the channels: added and removed by a key, shown at every step, saved for the graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui.drivers.history import Sample
from hitl_tui.ui.screens.watches import WatchesPane
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.view.watches import WatchedValue, read_watches
from tests.ui.harness import live
from tests.ui.test_find import asked


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "data" / "watches.json"
    monkeypatch.setattr("hitl_tui.ui.screens.run_panes.watches_file", lambda: file)
    return file


@pytest.mark.slow
async def test_a_watch_shows_its_value_and_its_history(file: Path):
    async with live(asked(), inputs={}) as it:
        await it.press("c")
        await it.shows("step 6")
        await it.press("W", *"n * 2")
        await it.press("enter")
        await it.shows("Watches at step 6", "≠ n * 2  12", "▁▂▃▅▆▇█")
        await it.press("W", *"score > 0.15", "enter")
        await it.shows("score > 0.15")
        await it.press("#", "3", "enter")
        await it.shows("Watches at step 3", "null can't be compared with")
        it.run.travel((it.session.thread_id, 0))
        await it.shows("Watches at step 0", "false")
        await it.press("#", "9", "enter")
        await it.shows("there is no step 9; the newest is 6")
        await it.press("&", *"sco", "enter")
        await it.shows("1 of ", "“sco”")
        assert [row.name for row in it.run.query_one(ChannelsPane).channel_rows] == ["score"]
        await it.press("&", "tab", "a")
        await it.gone("“sco”")
    assert read_watches(file) == {"scores": ("n * 2", "score > 0.15")}
    async with live(asked(), inputs={}) as it:
        await it.shows("Watches at step 0", "n * 2")
        await it.press("W", *"n * 2", "enter")
        await it.gone("n * 2")
        await it.press("W", "up", "enter")
        await it.until(lambda: not it.run.query(WatchesPane))
    assert read_watches(file) == {}


@pytest.mark.slow
async def test_an_invalid_watch_is_reported_with_its_column_and_can_be_fixed():
    async with live(asked(), inputs={}) as it:
        await it.press("W", *"len(facts)")
        await it.shows("there is no channel 'facts'", "      ^")
        await it.press("enter")
        await it.shows("there is no channel 'facts'")
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run)
        assert not it.run.query(WatchesPane)


async def test_a_strip_read_before_the_first_layout_is_painted_after_it():
    async with live(asked(), inputs={}) as it:
        pane = WatchesPane()
        mounted = it.run.query_one("#middle").mount(pane)
        pane.fill([WatchedValue("n", " ", 1)], [[Sample(0, 0), Sample(1, 1)]])
        assert not pane.size
        await mounted
        await it.shows("n  1  ▁█")
