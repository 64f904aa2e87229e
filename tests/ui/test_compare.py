"""The compare screen: two steps, threads or forks side by side."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
from hitl_tui.ui.screens.compare import CompareScreen
from hitl_tui.ui.widgets.side_by_side import SideBySide
from hitl_tui.view.revision import Pair
from hitl_tui.view.word_diff import Fragment
from tests.support import tape as tapes
from tests.support.spec import spec
from tests.ui.harness import desk, live

pytestmark = spec("11")


@pytest.mark.slow
async def test_the_newest_step_beside_the_one_before_it():
    async with desk() as it:
        await it.press("=")
        await it.shows(f"{tapes.THREAD} @ 3", f"{tapes.THREAD} @ 4", "differ", "≠ advisor_feedback")
        await it.press("=")
        await it.until(lambda: it.app.screen is it.run)


@pytest.mark.slow
async def test_a_past_step_beside_the_newest_and_both_sides_move():
    async with desk() as it:
        await it.press("0")
        await it.shows("not the newest")
        await it.press("=")
        await it.shows(f"◂ {tapes.THREAD} @ 0 ▸", f"{tapes.THREAD} @ 4")
        await it.press("]")
        await it.shows(f"{tapes.THREAD} @ 1")
        await it.press("tab", "[", "[", "[")
        await it.shows(f"◂ {tapes.THREAD} @ 1 ▸", "no difference")
        await it.press("[", "[", "[")
        await it.shows(f"◂ {tapes.THREAD} @ 0 ▸")
        await it.press("x")
        await it.until(lambda: it.text().index("@ 0") < it.text().index("@ 1"), "the sides swapped")
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run)


@pytest.mark.slow
async def test_another_thread_is_chosen_from_a_list():
    async with desk() as it:
        await it.press("=")
        await it.shows("differ")
        await it.press("/")
        await it.shows("of the family", tapes.FORK)
        await it.press("home", "enter")
        await it.shows(f"◂ {tapes.FORK} @ 5 ▸")
        await it.press("[")
        await it.shows(f"◂ {tapes.FORK} @ 4 ▸")


@pytest.mark.slow
async def test_other_differing_values_are_shown_below_the_selected_one():
    async with desk() as it:
        await it.press("0", "=")
        await it.shows("≠ advisor_feedback")
        assert "── advisor_feedback" not in it.text()
        await it.press("down", "down", "down")
        await it.shows("─ revision_n ─", "── messages", "variables it was born with.")
        await it.press("up")
        await it.shows("─ advisor_feedback ─", "── messages")


@pytest.mark.slow
async def test_what_changed_in_a_list_ends_in_an_ellipsis_where_it_is_cut():
    async with desk(size=(80, 24), ready="") as it:
        await it.press("0", "=")
        await it.shows("≠ messages")
        row = next(line for line in it.text().splitlines() if "≠ messages" in line)
        assert row.rstrip(" │").endswith("…"), row


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12)])
@pytest.mark.slow
async def test_channels_and_lines_are_walked_on_any_size(size: tuple[int, int]):
    async with desk(size=size, ready="") as it:
        await it.press("0", "=")
        await it.until(lambda: isinstance(it.app.screen, CompareScreen) and "differ" in it.text())
        for key in ("down", "down", "pagedown", "pageup", "up", "j", "k"):
            await it.press(key)
        await it.shows("compare")


def count(state: Any, config: Any) -> dict[str, Any]:
    return {"n": state["n"] + 1}


@pytest.mark.slow
async def test_comparing_two_threads_jumps_to_their_first_difference():
    graph = StateGraph({"n": Channel(0), "other": Channel("")}).add_node("count", count)
    graph.add_edge(START, "count").add_conditional_edge(
        "count", lambda state: "on" if state["n"] % 100 < 5 else "end", {"on": "count", "end": END}
    )
    runner = graph.compile(checkpointer=MemoryCheckpointer())
    runner.invoke({}, thread_id="t")
    runner.fork("t", 2, "t-b", changes={"n": 102}, actor="ada")
    runner.invoke(thread_id="t-b")
    async with live(runner, ready="reached the end") as it:
        await it.press("=", "/")
        await it.shows("of the family")
        await it.press("end", "enter")
        await it.shows("◂ t-b @ 6 ▸", "First difference at step 3, by ada and by count: n")
        await it.press("P")
        await it.shows("◂ t-b @ 3 ▸", "t @ 3", "102 → 3")
        await it.press("[")
        await it.gone("First difference")


@pytest.mark.slow
async def test_a_value_begins_at_its_first_difference():
    async with desk(size=(120, 24)) as it:
        await it.press("=")
        await it.shows("≠ advisor_feedback")
        values = it.app.screen.query_one(SideBySide)
        same = [Pair(parts := (Fragment("same", f"line {number}"),), parts, "same") for number in range(60)]
        old, new = (Fragment("removed", "old words"),), (Fragment("added", "new words"),)
        values.show_pairs([*same, Pair(old, new, "changed")], home=True)
        await it.shows("old words", "new words")
        first = Pair((Fragment("removed", "first"),), (Fragment("added", "other"),), "changed")
        values.show_pairs([first, *same], home=True)
        await it.shows("first", "other", "line 1")
