"""The run screen: panes, keys, time travel, narrow terminals, what is refused and why."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.drivers.node_streams import give_output_back, keep_output
from hitl_tui.stores import Checkpointer
from hitl_tui.ui.screens import run
from hitl_tui.ui.screens.page import OverlayScreen
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.timeline import TimelinePane
from tests.support import tape as tapes
from tests.ui.harness import desk, live
from tests.ui.real import real


async def test_all_panes_show_the_newest_step():
    async with desk() as it:
        await it.shows("WAITING", "Channels at step 4", "latest_draft", "What step 4 changed", "advisor", "◉")
        await it.shows("Picture a lunch box", "2 lines removed, 3 added since step 1")


@pytest.mark.slow
async def test_travel_shows_the_step_in_every_pane_and_says_so():
    async with desk() as it:
        await it.press("left_square_bracket")
        await it.shows(
            "Step 3",
            "not the newest",
            "Channels at step 3",
            "What step 3 changed",
            "Stream of this step",
        )
        await it.press("left_square_bracket", "left_square_bracket")
        await it.shows("Channels at step 1", "Technically it captures")
        await it.gone("Picture a lunch box")
        await it.press("escape")
        await it.shows("Channels at step 4")
        await it.gone("not the newest")
        await it.gone("Stream of this step")


@pytest.mark.slow
async def test_oldest_and_newest_keys():
    async with desk() as it:
        await it.press("0")
        await it.shows("Channels at step 0")
        await it.press("g")
        await it.shows("Channels at step 4")


@pytest.mark.slow
async def test_arrows_travel_in_the_timeline():
    async with desk() as it:
        it.run.query_one(TimelinePane).focus()
        await it.press("left", "left", "right")
        await it.shows("Channels at step 3")


@pytest.mark.slow
async def test_a_click_on_a_step_travels_there():
    async with desk() as it:
        await it.until(lambda: "closure-explainer-b" in it.text())
        row = next(y for y, line in enumerate(it.text().splitlines()) if "● worker ──● advisor" in line)
        column = it.text().splitlines()[row].index("● worker")
        await it.pilot.click(offset=(column, row))
        await it.shows("Channels at step 1")


async def test_a_click_selects_a_channel():
    async with desk() as it:
        row = next(y for y, line in enumerate(it.text().splitlines()) if "revision_n  " in line)
        await it.pilot.click(offset=(it.text().splitlines()[row].index("revision_n"), row))
        await it.until(lambda: it.run.query_one(ChannelsPane).selected == "revision_n")


async def test_step_and_continue_go_to_the_driver():
    async with desk(at_end=False, follow=True) as it:
        await it.press("s")
        await it.until(lambda: it.commands("step"))
        await it.until(lambda: it.driver.left == 0 or it.commands("step"))


@pytest.mark.slow
async def test_an_action_that_can_not_be_done_says_why():
    async with desk() as it:
        await it.press("p")
        await it.shows("p pauses a run, and nothing is running")
        await it.press("s")
        await it.shows("it waits for your decision; d decides")
        assert not it.commands("step")


@pytest.mark.slow
async def test_value_modes():
    async with desk() as it:
        await it.press("3")
        await it.shows("‹json›")
        await it.press("4")
        await it.shows("‹blame›")
        await it.press("1")
        await it.shows("‹text›")


@pytest.mark.slow
async def test_below_100_columns_panes_are_tabs():
    async with desk(size=(80, 24)) as it:
        await it.shows("‹State›", "Channels at step 4", "d decide")
        assert "What step 4 changed" not in it.text()
        await it.press("w")
        await it.shows("‹Changed›", "What step 4 changed")
        await it.press("w", "w")
        await it.shows("‹Graph›", "╭────▼────╮", "reads")
        await it.gone("What step 4 changed")


@pytest.mark.slow
async def test_the_graph_has_more_room_on_a_wide_screen_and_the_usual_one_elsewhere():
    async with desk(size=(180, 40)) as it:
        pane = it.run.query_one("#graph")
        assert pane.outer_size.width == 44
        await it.pilot.resize_terminal(120, 40)
        await it.until(lambda: pane.outer_size.width == 26, "the usual width")


async def test_a_picture_that_the_usual_width_does_not_hold_makes_the_pane_wider():
    ways = {name: name for name in ("second_researcher", "editor")} | {"done": END}
    graph = StateGraph({"n": Channel("editor")}, name="g").add_node("dispatcher", lambda state: {})
    graph.add_edge(START, "dispatcher").add_conditional_edge("dispatcher", lambda s: s["n"], ways)
    for name in ("second_researcher", "editor"):
        graph.add_node(name, lambda state: {}).add_edge(name, "dispatcher")
    async with live(graph.compile(checkpointer=MemoryCheckpointer()), inputs={}) as it:
        await it.shows("│▶dispatcher", "◀", "│ second_researcher ├")
        assert it.run.query_one("#graph").outer_size.width == 33


@pytest.mark.slow
async def test_a_resize_changes_the_layout():
    async with desk() as it:
        await it.pilot.resize_terminal(80, 24)
        await it.shows("‹State›")
        await it.pilot.resize_terminal(120, 40)
        await it.gone("‹State›")
        await it.pilot.resize_terminal(20, 5)
        await it.pilot.resize_terminal(120, 40)
        await it.shows("Channels at step 4")


async def test_a_failed_node_is_shown_at_its_step():
    async with desk(tapes.failed_tape()) as it:
        await it.shows("advisor failed", "KeyError: 'verdict'", "attempt 2", "try again", "the log file")
        await it.press("s")
        await it.until(lambda: it.commands("step"))


async def test_the_reason_of_a_failure_is_shown_apart_from_the_last_steps_changes():
    async with desk(tapes.failed_tape()) as it:
        await it.shows("advisor failed", "the log file")
        assert it.text().count("KeyError: 'verdict'") == 2
        report = it.text().partition("the log file")[2]
        assert report.index("step 1  worker") < report.index("latest_draft  overwrite")


@pytest.mark.slow
async def test_threads_are_listed_searched_and_opened():
    async with desk() as it:
        await it.press("t")
        await it.shows("closure-explainer-b", "waiting", "from step 2 of closure-explainer")
        await it.shows(
            "last writer", "waits for, or how it ended", "closure-explainer · open now", "2 threads"
        )
        await it.press("slash", *"-b")
        await it.shows("found: 1 thread", "To the list")
        await it.until(lambda: "open now" not in it.text(), "the search")
        await it.press("enter", "enter")
        await it.until(lambda: it.session.thread_id == tapes.FORK)


@pytest.mark.slow
async def test_help_lists_every_action():
    from hitl_tui.verbs.actions import ACTIONS

    async with desk(size=(140, 200)) as it:
        await it.press("question_mark")
        await it.shows(*(action.help[:40] for action in ACTIONS))
        await it.shows("Words", "a named value that nodes read and write")
        await it.press("pagedown")
        await it.shows("Signs", "≠ = ✎")
        await it.press("escape")
        await it.shows("Channels at step 4")


@pytest.mark.slow
async def test_fork_asks_for_a_name_and_goes_there():
    async with desk() as it:
        it.driver.results["fork"] = tapes.FORK
        await it.press("left_square_bracket", "f")
        await it.shows("begins at step 3", "closure-explainer-c", "g    fork and go there")
        await it.press("enter")
        await it.shows("Enter  fork and go there")
        await it.press("escape")
        await it.gone("begins at step 3")
        assert not it.commands("fork")


@pytest.mark.slow
async def test_quit_closes_the_hub():
    async with desk() as it:
        await it.press("q")
        await it.until(lambda: it.driver.closed)


@pytest.mark.slow
async def test_inputs_are_asked_for_with_an_example():
    async with desk(at_end=False, ask_inputs=True, ready="begins with") as it:
        await it.press(*"bread", "enter")
        await it.until(lambda: it.commands("start"))
        assert "bread" in str(it.commands("start")[0]["inputs"])


@pytest.mark.slow
async def test_costs_by_agent_node_and_step() -> None:
    async with desk() as it:
        await it.press("dollar_sign")
        await it.shows("has cost", "By agent", "advisor", "opus", "By node", "By step")
        await it.press("dollar_sign")
        await it.shows("Channels at step")


@pytest.mark.slow
async def test_the_viewed_step_is_highlighted_in_the_timeline():
    async with desk() as it:
        await it.press("[", "[")
        await it.shows("[2]")
        timeline = it.run.query_one(TimelinePane)
        chosen = [span.text for span in timeline.line(1) if str(span.role) == "cursor"]
        assert chosen[0] == "●"
        assert "advisor" in chosen


@pytest.mark.slow
async def test_enter_alone_ends_no_thread():
    async with desk() as it:
        await it.press("x")
        await it.shows("cancel the thread")
        await it.press("enter")
        await it.until(lambda: it.app.screen is it.run)
        assert not it.commands("cancel")


@pytest.mark.slow
async def test_the_end_of_a_thread_is_decided_with_the_state_that_was_on_screen():
    async with desk() as it:
        await it.press("x")
        await it.shows("cancel the thread")
        await it.press("e")
        await it.until(lambda: it.commands("cancel"))
        (command,) = it.commands("cancel")
        newest = it.session.view.checkpoints[-1]
        assert command["seen"] == newest.state_hash != b""


@pytest.mark.slow
async def test_what_a_node_prints_is_shown_as_its_text() -> None:
    def speak(state: Any) -> None:
        print("a word from the node")

    def make(store: Checkpointer) -> GraphRunner:
        graph = StateGraph({"n": Channel(0)}).add_node("speak", speak)
        return graph.add_edge(START, "speak").add_edge("speak", END).compile(checkpointer=store)

    before = sys.stdout
    keep_output(lambda lines: None)
    try:
        async with real(make) as it:
            await it.press("s")
            await it.shows("DONE", "a word from the node")
    finally:
        give_output_back()
    assert sys.stdout is before


@pytest.mark.slow
async def test_who_changed_a_value_first_is_said_though_the_same_one_was_written_before():
    graph = StateGraph({"text": Channel("")}, name="same")
    graph.add_node("keep", lambda state: {"text": ""}).add_node("write", lambda state: {"text": "new"})
    graph.add_edge(START, "keep").add_edge("keep", "write").add_edge("write", END)
    runner = graph.compile(checkpointer=MemoryCheckpointer())
    async with live(runner, inputs={}, ready="READY") as it:
        await it.press("c")
        await it.shows("DONE")
        it.run.query_one(ChannelsPane).select("text")
        await it.press("2")
        await it.shows("first written by write at step 2")


@pytest.mark.slow
async def test_below_another_screen_it_draws_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Textual paints the whole of what lies above with each of its frames."""

    async def never(_: int) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(run, "_COVERED_SECONDS", 1000.0)
    async with desk() as it:
        await it.run._rest_while_covered(it.session)
        monkeypatch.setattr(it.driver, "ended", never)
        page = OverlayScreen()
        await it.app.push_screen(page)
        resting = asyncio.create_task(it.run._rest_while_covered(it.session))
        await it.pilot.pause()
        assert not resting.done()
        await page.dismiss(None)
        await it.until(resting.done, "the end of the rest")
