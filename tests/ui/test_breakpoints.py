"""Breakpoints on screen: chosen in the graph or in the list, shown in the picture, told when they stop."""

from __future__ import annotations

import pytest

from hitl_tui.ui.theme import Look
from hitl_tui.ui.widgets.graph import GraphPane
from tests.ui.harness import Desk, desk


async def test_b_in_the_graph_sets_and_takes_away_the_chosen_nodes_breakpoint():
    async with desk(at_end=False) as it:
        it.run.query_one(GraphPane).focus()
        await it.until(lambda: it.run.query_one(GraphPane).chosen == "worker")
        await it.press("down", "b")
        await it.shows("runs stop before advisor", "■", "breaks advisor")
        await it.press("c")
        await it.until(lambda: it.commands("run"))
        assert it.commands("run") == [{"stop_before": {"advisor": ""}}]
        await it.press("b")
        await it.shows("runs no longer stop before advisor")
        await it.gone("■")


async def test_a_node_is_chosen_with_the_mouse_and_no_longer_when_the_pane_is_left():
    async with desk(at_end=False) as it:
        pane = it.run.query_one(GraphPane)
        assert pane.picture is not None
        await it.pilot.click(pane, offset=(5, pane.picture.node_rows["advisor"] + 1))
        await it.until(lambda: pane.chosen == "advisor")
        await it.press("tab")
        await it.until(lambda: pane.chosen == "")


async def listed(it: Desk) -> None:
    await it.press("b")
    await it.shows("Breakpoints", "stop before worker where", "space or b: on and off")


async def test_a_condition_is_checked_as_one_types_and_set_with_enter():
    async with desk(at_end=False) as it:
        await listed(it)
        await it.press("enter", *"revsion_n > 2")
        await it.shows("column 1: there is no channel 'revsion_n'; did you mean", "^")
        await it.press("enter")
        assert it.session.breakpoints == {}
        await it.press("home", *["delete"] * 20, *"revision_n > 2")
        await it.gone("there is no channel")
        await it.press("enter")
        await it.shows("□ worker", "revision_n > 2")
        await it.press("escape")
        await it.shows("□▶worker", "breaks worker", "revision_n > 2")
        await it.press("c")
        await it.until(lambda: it.commands("run"))
        assert it.commands("run") == [{"stop_before": {"worker": "revision_n > 2"}}]


async def test_the_list_sets_takes_away_and_closes_with_the_keys_that_open_it():
    async with desk(at_end=False) as it:
        await listed(it)
        await it.press("b", "down", "space")
        await it.shows("■ worker", "■ advisor")
        await it.press("space")
        await it.gone("■ advisor")
        await it.press("B")
        await it.gone("space or b")
        await it.press("B")
        await it.shows("■ worker")


async def test_in_ascii_the_glyphs_have_twins():
    async with desk(at_end=False, look=Look(ascii=True)) as it:
        await listed(it)
        await it.press("b", "down", "enter", "1", "enter", "escape")
        await it.shows("B>worker", "? advisor")


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
async def test_on_a_small_screen_the_list_fits(size: tuple[int, int]):
    async with desk(at_end=False, size=size, ready="") as it:
        await it.press("B")
        await it.shows("worker", "advisor", "always")
        await it.press("enter", "(")
        await it.shows("column")
