"""Breakpoints on screen: set in the graph or in the list, drawn in the picture, shown when they stop."""

from __future__ import annotations

from typing import Any

import pytest
from textual import events
from textual.widgets import Input

from hitl_tui import END, START, Channel, StateGraph
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.stores import MemoryCheckpointer
from hitl_tui.ui.gate import TYPED_SECONDS
from hitl_tui.ui.terminal_input import BurstKey
from hitl_tui.ui.theme import Look
from hitl_tui.ui.widgets.graph import GraphPane
from tests.ui.harness import Desk, desk, live

ADVISOR = Breakpoint("before", "advisor")


@pytest.mark.slow
async def test_b_in_the_graph_toggles_the_breakpoint_of_the_selected_node():
    async with desk(at_end=False) as it:
        it.run.query_one(GraphPane).focus()
        await it.until(lambda: it.run.query_one(GraphPane).chosen == "worker")
        await it.press("down", "b")
        await it.shows("runs stop before advisor", "●", "breakpoints", "● advisor")
        await it.press("c")
        await it.until(lambda: it.commands("run"))
        assert it.commands("run") == [
            {"breakpoints": (Breakpoint("before", "advisor"),), "unattended": False}
        ]
        await it.press("b")
        await it.shows("runs no longer stop before advisor")
        await it.gone("breakpoints")


@pytest.mark.slow
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
    await it.shows("Breakpoints", "new: after", "space: on or off")


@pytest.mark.slow
async def test_a_breakpoint_is_checked_as_one_types_and_set_with_enter():
    async with desk(at_end=False) as it:
        await listed(it)
        await it.press(*"advisor x 3")
        await it.shows("advisor x 3")
        assert it.session.breakpoints == ()
        await it.press("escape", "up", "up", "up", "up", "up", "up")
        await it.press("enter", "end", *": revsion_n > 2")
        await it.shows("column 9: there is no channel 'revsion_n'; did you mean", "^")
        await it.press("enter")
        assert it.session.breakpoints == ()
        await it.write("worker hit 3: revision_n > 2")
        await it.gone("there is no channel")
        await it.press("enter")
        await it.shows("● worker  hit 0 of 3  revision_n > 2")
        await it.press("escape")
        await it.shows("●▶worker", "● worker")
        await it.press("c")
        await it.until(lambda: it.commands("run"))
        point = Breakpoint("before", "worker", "revision_n > 2", 3)
        assert it.commands("run") == [{"breakpoints": (point,), "unattended": False}]


@pytest.mark.slow
async def test_each_kind_of_breakpoint_is_added_disabled_and_removed_in_the_list():
    async with desk(at_end=False) as it:
        await listed(it)
        await it.press("end", "enter", *'after worker log "n={revision_n}"', "enter")
        await it.shows("○ after worker  log “n={revision_n}”")
        await it.press("end", "enter", *"change latest_draft", "enter")
        await it.shows("● change latest_draft")
        await it.press("home", "down", "space")
        await it.shows("○ change latest_draft  off")
        await it.press("delete")
        await it.gone("change latest_draft  off")
        await it.press("B")
        await it.gone("new: after")
        assert it.session.breakpoints == (Breakpoint("after", "worker", log="n={revision_n}"),)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "word"),
    [(events.Key, "build"), (BurstKey, "build"), (BurstKey, "Build")],
    ids=["typed", "in one read", "in one read, with the key that closes the list"],
)
async def test_a_word_that_begins_with_a_key_of_the_list_is_typed_and_switches_nothing(
    kind: type[events.Key], word: str
):
    async with desk(at_end=False) as it:
        await listed(it)
        for letter in word:
            it.app.post_message(kind(letter, letter))
        await it.until(lambda: it.app.screen.query_one(Input).value == word)
        assert it.session.breakpoints == ()


@pytest.mark.slow
async def test_a_letter_after_other_keys_takes_nothing_back():
    async with desk(at_end=False) as it:
        await listed(it)
        it.app.gate._clock = it.clock
        await it.press("b", "down", "u")
        await it.until(lambda: it.app.screen.query_one(Input).value == "u")
        assert len(it.session.breakpoints) == 1


@pytest.mark.slow
async def test_a_letter_some_time_after_the_key_of_the_list_takes_nothing_back():
    async with desk(at_end=False) as it:
        await listed(it)
        it.app.gate._clock = it.clock
        await it.press("b")
        await it.until(lambda: len(it.session.breakpoints) == 1)
        it.clock.advance(TYPED_SECONDS + 0.01)
        await it.press("u")
        await it.until(lambda: it.app.screen.query_one(Input).value == "u")
        assert len(it.session.breakpoints) == 1


@pytest.mark.slow
async def test_breakpoints_are_restored_in_another_session():
    async with desk(at_end=False) as it:
        await listed(it)
        await it.press("space", "escape")
        await it.shows("● worker")
    async with desk(at_end=False) as it:
        await it.shows("● worker")


@pytest.mark.slow
async def test_g_in_the_graph_runs_to_the_chosen_node_and_keeps_nothing():
    async with desk(at_end=False) as it:
        await it.press("G")
        await it.until(lambda: it.run.query_one(GraphPane).chosen == "worker")
        await it.press("down", "f6")
        await it.until(lambda: it.commands("run"))
        assert it.commands("run") == [
            {"breakpoints": (Breakpoint("before", "advisor"),), "unattended": False}
        ]
        assert it.session.breakpoints == ()


@pytest.mark.slow
async def test_breakpoint_glyphs_have_ascii_versions():
    async with desk(at_end=False, look=Look(ascii=True)) as it:
        await listed(it)
        await it.press("space", "down", "enter", "end", *' log "x"', "enter", "escape")
        await it.shows("*>worker", "* worker", "o advisor")


@pytest.mark.parametrize("size", [pytest.param((80, 24), marks=pytest.mark.slow), (40, 12)])
@pytest.mark.slow
async def test_on_a_small_screen_the_list_fits(size: tuple[int, int]):
    async with desk(at_end=False, size=size, ready="") as it:
        await it.press("B")
        await it.shows("worker", "advisor")
        await it.press("enter", "(")
        await it.shows("column")


def nested() -> Any:
    inner = StateGraph({"n": Channel(0)}, name="inner").add_node("one", lambda s: {"n": s["n"] + 1})
    inner.add_edge(START, "one").add_edge("one", END)
    outer = StateGraph({"m": Channel(3)}, name="outer")
    outer.add_subgraph("team", inner, inputs={"m": "n"}, outputs={"n": "m"}).add_node("last", lambda s: {})
    outer.add_edge(START, "team").add_edge("team", "last").add_edge("last", END)
    return outer.compile(checkpointer=MemoryCheckpointer())


@pytest.mark.slow
async def test_f11_steps_into_a_subgraph_and_shift_f11_out_of_it():
    async with live(nested(), inputs={}, ready="team is next") as it:
        await it.press("f11")
        await it.shows("one is next", "team#1")
        await it.press("shift+f11")
        await it.shows("last is next")
        assert it.session.thread_id == "t"
        await it.press("f10")
        await it.shows("reached the end")


@pytest.mark.slow
async def test_f10_steps_over_a_subgraph_and_f5_continues_to_the_breakpoint_of_f9():
    async with live(nested(), inputs={}, ready="team is next") as it:
        await it.press("f10")
        await it.shows("last is next", "step 1")
        assert it.session.thread_id == "t"
    async with live(nested(), inputs={}, ready="team is next") as it:
        it.run.query_one(GraphPane).focus()
        await it.until(lambda: it.run.query_one(GraphPane).chosen == "team")
        await it.press("down", "f9")
        await it.shows("runs stop before last")
        await it.press("f5")
        await it.shows("breakpoint before last")
        await it.press("f5")
        await it.shows("reached the end")
