"""The find screen, and walking from place to place afterwards."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.drivers.history import HitsCallback, SearchHit
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.view.find import Found, find
from tests.ui.harness import desk, live


@pytest.mark.slow
async def test_a_text_is_found_and_shown_in_place():
    async with desk() as it:
        await it.press("/")
        await it.shows("type what to look for")
        await it.press(*"lexical")
        await it.shows("advisor_feedback, line 2")
        await it.press("enter")
        await it.until(lambda: it.app.screen is it.run)
        await it.until(lambda: "lexical" in it.text())


@pytest.mark.slow
async def test_enter_that_comes_before_the_places_goes_to_the_first_place_of_what_was_typed(
    monkeypatch: pytest.MonkeyPatch,
):
    may_look = threading.Event()

    def slow(query: str, *rest: Any) -> tuple[Found, ...]:
        may_look.wait(20)
        return find(query, *rest)

    async with desk() as it:
        await it.press("/")
        await it.shows("type what to look for")
        monkeypatch.setattr("hitl_tui.ui.widgets.search.find", slow)
        await it.press(*"lexical", "enter")
        may_look.set()
        await it.until(lambda: it.app.screen is it.run and it.run.finding is not None)
        assert it.run.finding is not None
        query, _, row = it.run.finding
        assert (query, row) == ("lexical", 0)


@pytest.mark.slow
async def test_in_a_list_of_texts_the_very_line_is_shown_and_marked():
    async with desk() as it:
        await it.press("/")
        await it.press(*"lunch box")
        await it.shows("messages, line")
        await it.press("enter")
        pane = it.run.query_one(ValuePane)
        await it.until(
            lambda: pane.text is not None and (pane.text.channel, pane.mode) == ("messages", "text")
        )
        assert pane.text is not None
        assert pane.seek is not None
        assert "lunch box" in pane.text.lines[pane.seek[1]]
        shown = [span for y in range(pane.size.height) for span in pane.visible_row(y).line]
        assert ("lunch box", "badge-dim") in [(span.text, span.role) for span in shown]


@pytest.mark.slow
async def test_next_and_previous_match_work_across_steps():
    async with desk() as it:
        await it.press(">")
        await it.shows("no search yet; press /")
        await it.press("/")
        await it.press(*"worker")
        await it.shows("step 3", "step 1")
        await it.press("enter")
        await it.until(lambda: it.app.screen is it.run)
        session = it.session
        assert it.run.finding is not None
        steps = [one.step for one in it.run.finding[1]]
        for at in range(1, len(steps) + 1):
            await it.press(">")
            await it.until(lambda at=at: session.step_view.step == steps[at % len(steps)])
        await it.press("<")
        await it.until(lambda: session.step_view.step == steps[-1])


@pytest.mark.slow
async def test_no_match_is_reported_and_esc_changes_nothing():
    async with desk() as it:
        before = it.run.query_one(ChannelsPane).selected
        await it.press("/")
        await it.press(*"no such words")
        await it.shows("nothing found")
        await it.press("enter", "escape")
        await it.until(lambda: it.app.screen is it.run)
        assert it.run.query_one(ChannelsPane).selected == before
        assert it.run.finding is None


@pytest.mark.slow
async def test_a_long_search_shows_its_progress_and_matches_so_far():
    async with live(asked(), inputs={}) as it:
        await it.press("c")
        await it.shows("step 6")
        whole, found = it.session.driver.search, asyncio.Event()

        async def slow(query: str, report: HitsCallback) -> None:
            hits: list[SearchHit] = []
            await whole(query, lambda some, *_: hits.extend(some))
            report((), 16_384, 100_001)
            await found.wait()
            report(tuple(hits), 32_768, 100_001)
            await asyncio.Event().wait()

        it.session.driver.search = slow  # type: ignore[method-assign]
        await it.press("/", *"said n/a")
        await it.shows("16,384 of 100,001 steps")
        found.set()
        await it.shows("32,768 of 100,001 steps", "step 3  score")
        await it.press("enter")
        await it.until(lambda: it.session.step_view.step == 3)


@pytest.mark.slow
async def test_n_walks_the_places_while_a_search_is_open_and_esc_ends_it():
    async with desk() as it:
        await it.press("/", *"closure")
        await it.shows("places")
        await it.press("enter")
        await it.until(lambda: it.app.screen is it.run)
        await it.shows("1 of", "n Next match")
        await it.press("n")
        await it.shows("2 of")
        assert it.session.thread_id == "closure-explainer"
        await it.press("escape")
        await it.gone("n Next match")
        assert it.run.finding is None


def asked() -> GraphRunner:
    """Six steps, as a person looks for what went wrong: a print, a score that is null at step 3."""

    def score(state: Any, config: Any) -> dict[str, Any]:
        n = state["n"] + 1
        if n == 3:
            config.emit("the model said n/a\n")
        return {"n": n, "score": None if n == 3 else n / 10}

    graph = StateGraph({"n": Channel(0), "score": Channel(0.0)}, name="scores")
    graph.add_node("score", score).add_edge(START, "score")
    graph.add_conditional_edge("score", lambda state: str(state["n"] < 6), {"True": "score", "False": END})
    return graph.compile(checkpointer=MemoryCheckpointer())


@pytest.mark.slow
async def test_what_was_printed_at_a_past_step_is_found_and_is_there_again():
    async with live(asked(), inputs={}) as it:
        await it.press("c")
        await it.shows("step 6")
        await it.press("/", *"said N/A")
        await it.shows("step 3  score", "wrote", "1 place in 7 steps")
        await it.press("enter")
        await it.until(lambda: it.session.step_view.step == 3)
        await it.shows("Stream of this step", "the model said n/a")


@pytest.mark.slow
async def test_a_condition_after_a_question_mark_finds_steps_to_walk_through():
    async with live(asked(), inputs={}) as it:
        await it.press("c")
        await it.shows("step 6")
        await it.press("/", *"? score == nul")
        await it.shows("there is no channel 'nul'", "            ^")
        await it.press("l")
        await it.shows("step 3  score", "0.2 → null", "first at step 3")
        await it.press(*["backspace"] * 7, *"!= null")
        await it.shows("step 0  anna", "2 times in total")
        await it.press("enter")
        await it.until(lambda: it.session.step_view.step == 0)
        await it.press("n")
        await it.until(lambda: it.session.step_view.step == 4)
        await it.press("N")
        await it.until(lambda: it.session.step_view.step == 0)


@pytest.mark.slow
async def test_braces_go_to_the_changes_of_the_selected_channel():
    async with live(asked(), inputs={}) as it:
        await it.press("c")
        await it.shows("step 6")
        it.run.query_one(ChannelsPane).select("score", picked=True)
        for key, step in (("{", 5), ("{", 4), ("{", 3), ("{", 2), ("}", 3)):
            await it.press(key)
            await it.until(lambda step=step: it.session.step_view.step == step)
        it.run.travel((it.session.thread_id, 1))
        await it.until(lambda: it.session.step_view.step == 1)
        await it.press("{")
        await it.shows("nothing changed it before")


@pytest.mark.slow
async def test_with_enough_room_the_search_stays_beside_the_panes():
    async with live(asked(), inputs={}, size=(150, 40)) as it:
        await it.press("c")
        await it.shows("step 6")
        await it.press("/", *"? score != null")  # as fast as one likes: none of it is a key of the run
        await it.shows("When did a condition become true?", "2 times in total", "Timeline")
        await it.press("down", "enter")
        await it.until(lambda: it.session.step_view.step == 4)
        pane = it.run.search_pane
        assert pane is not None
        places = pane.query_one("#places", LineView)
        await it.until(lambda: not pane.has_focus_within)
        assert places.cursor_row == 1
        await it.press("n")
        await it.until(lambda: it.session.step_view.step == 0)
        assert places.cursor_row == 0
        await it.press("/", "home", "ctrl+k", *"said")
        await it.shows("1 place in 7 steps")
        await it.press("enter")
        await it.until(lambda: it.session.step_view.step == 3)
        await it.press("escape")
        await it.gone("When did a condition become true?")
        assert (it.run.finding, it.session.is_past) == (None, False)


@pytest.mark.slow
async def test_a_screen_that_gets_too_narrow_for_the_search_keeps_what_was_found():
    async with live(asked(), inputs={}, size=(150, 40)) as it:
        await it.press("c")
        await it.shows("step 6")
        await it.press("/", *"score")
        await it.shows("places in 7 steps")
        await it.press("enter")
        await it.until(lambda: it.run.finding is not None)
        await it.pilot.resize_terminal(120, 40)
        await it.gone("When did a condition become true?")
        step = it.session.step_view.step
        await it.press("n")
        await it.until(lambda: it.session.step_view.step != step or "2 of" in it.text())
        await it.press("/")
        await it.shows("When did a condition become true?", "Go there")
        assert it.app.screen is not it.run


@pytest.mark.slow
async def test_esc_in_the_field_beside_the_panes_changes_nothing():
    async with live(asked(), inputs={}, size=(150, 40)) as it:
        await it.press("c")
        await it.shows("step 6")
        await it.press("[", "/", *"score", "escape")
        await it.gone("When did a condition become true?")
        assert it.session.step_view.step == 5
        assert it.run.focused is it.run.query_one(ChannelsPane)


@pytest.mark.slow
async def test_a_place_inside_a_subgraph_s_thread_opens_that_and_the_walk_leads_back():
    inner = StateGraph({"text": Channel("")}, name="inner")
    inner.add_node("write", lambda state: {"text": "a needle in here"})
    inner.add_edge(START, "write").add_edge("write", END)
    graph = StateGraph({"word": Channel("")}, name="outer")
    graph.add_subgraph("deep", inner, inputs={}, outputs={})
    graph.add_node("after", lambda state: {"word": "needle"}).add_edge(START, "deep")
    graph.add_edge("deep", "after").add_edge("after", END)
    runner = graph.compile(checkpointer=MemoryCheckpointer())
    runner.invoke({}, thread_id="t")
    async with live(runner, ready="reached the end") as it:
        await it.press("slash", *"needle")
        await it.shows("inside ")
        await it.press("end", "down", "down", "down", "down", "enter")
        await it.until(lambda: it.session.thread_id != "t", "the thread inside")
        await it.shows("a needle in here", "step 1")
        await it.press("N")
        await it.until(lambda: it.session.thread_id == "t", "the thread itself")
        await it.pilot.resize_terminal(150, 40)
        await it.press("/")
        await it.shows("inside ", "Timeline")
        await it.press("pagedown", "enter")
        await it.until(lambda: it.session.thread_id != "t", "the thread inside")
        await it.shows("inside ", "step 1")  # the places are those of the thread that was looked through
