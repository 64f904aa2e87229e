"""What a terminal of 60 by 18 cells still shows: whose turn it is, all answers, and the way back."""

from __future__ import annotations

import pytest

from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
from tests.ui.harness import desk, live

SMALL = (60, 18)


@pytest.mark.slow
async def test_on_a_narrow_screen_the_header_shows_the_request_instead_of_the_app_name():
    async with desk(size=SMALL, ready="") as it:
        await it.shows("WAITING")
        await it.press("escape")
        await it.shows("Approve this draft?")
        assert "hitl-tui" not in it.text().splitlines()[0]


@pytest.mark.slow
async def test_a_dialog_with_two_fields_shows_all_of_its_answers():
    async with desk(size=SMALL, ready="") as it:
        await it.shows("WAITING")
        await it.press("escape", "f")
        await it.shows("why (optional; it is logged)", "fork and go there", "fork and stay here", "go back")


@pytest.mark.slow
async def test_every_page_says_how_to_leave_it():
    async with desk(size=SMALL, ready="") as it:
        await it.shows("WAITING")
        await it.press("escape")
        for key in ("=", "A", "V", "$", "?", "t"):
            await it.press(key)
            await it.shows("esc Back")
            await it.press("escape")
            await it.until(lambda: it.app.screen is it.run, f"the run after {key}")


@pytest.mark.slow
async def test_the_key_back_to_the_newest_step_comes_first():
    async with desk(size=SMALL, ready="") as it:
        await it.press("escape", "[")
        await it.shows("not the newest   esc newest")
        assert "edit in" not in it.text()


@pytest.mark.slow
async def test_the_footer_keeps_the_keys_that_do_something_now():
    async with desk(size=SMALL, ready="") as it:
        await it.press("escape")
        await it.shows("d Decide  e Edit  f Fork  ? Help")
        await it.press("[")
        await it.shows("not the newest", "e Edit  f Fork  [ ] Steps  ? Help")
        assert "Decide" not in it.text().splitlines()[-1]


@pytest.mark.slow
async def test_help_has_what_an_action_does_below_its_name():
    async with desk(size=SMALL, ready="") as it:
        await it.press("escape", "?")
        await it.shows("Keys, words and signs")
        await it.press(*"failed")
        await it.shows("Step", "Run one node; on a failed node, try it again", "disabled: it waits")
        name, words = (
            next(y for y, row in enumerate(it.text().splitlines()) if word in row)
            for word in (" Step", "Run one node")
        )
        assert words == name + 1


async def test_long_names_and_reducers_show_that_they_are_cut_and_leave_room_for_the_value():
    name = "a_name_that_is_as_long_as_names_may_be_or_nearly"
    by_type = 'by_type({"note": "append", "draft": "overwrite"})'
    graph = (
        StateGraph({name: Channel([], reducer=by_type), "n": Channel(0)}, name="g")
        .add_node("one", lambda state: {"n": 1})
        .add_edge(START, "one")
        .add_edge("one", END)
    )
    async with live(graph.compile(checkpointer=MemoryCheckpointer()), inputs={}) as it:
        await it.shows("a_name_that_is_as_l… by_type(…) list 0", "n                    overwrite  0")


@pytest.mark.slow
async def test_a_page_keeps_the_header_of_the_run():
    async with desk(size=(80, 24), ready="WAITING") as it:
        for key in ("?", "$", "A", "H", "L", "V", "=", "t", "/", "W"):
            await it.press(key)
            await it.until(
                lambda: it.app.screen is not it.run and it.app.screen.is_mounted, f"the page of {key}"
            )
            await it.until(lambda: "WAITING" in it.text().splitlines()[0], f"the header above {key}")
            await it.press("escape")
            await it.until(lambda: it.app.screen is it.run, f"the run after {key}")
