"""A show from a script on the run screen: stops, captions, spotlight, suggestions, pace, and a new start."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph, append
from hitl_tui.agents.tempo import TEMPO
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.engine.commands import Answer, Cancel, Start
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.loading.stage_file import read_script
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.screens.run_panes import PANES
from hitl_tui.ui.screens.run_stage import StageScreen
from hitl_tui.ui.theme import Look
from hitl_tui.ui.widgets.graph import GraphPane
from hitl_tui.view.show_state import ShowFile
from hitl_tui.view.stage import ScriptShow, check_script
from tests.ui.harness import Screen, booted

SCRIPT = """
[show]
graph = "unused"
title = "a small show"
pace = 8

[[stops]]
at = "start"
title = "It begins."

[[stops]]
after = "write"
visit = 2
title = "Written twice."
text = "A quiet line."
spotlight = "value"
channel = "draft"

[[stops]]
at = "question"
title = "Now you decide."
spotlight = "channels"
answer = "revise"
words = "Shorter."
notes = "Breathe."

[[stops]]
when = "len(log) > 2"
title = "Three lines."
spotlight = "graph"

[[stops]]
at = "end"
title = "Done."
"""


def runner() -> GraphRunner:
    def write(state: dict[str, object]) -> dict[str, object]:
        return {"draft": f"draft {len(state['log'])}", "log": "written"}  # type: ignore[arg-type]

    def route(state: dict[str, object]) -> str:
        return "more" if len(state["log"]) < 2 else "ask"  # type: ignore[arg-type]

    choices = [
        GateChoice("approve", "good", values={"log": "agreed"}),
        GateChoice("revise", "no", text="required"),
    ]
    return (
        StateGraph({"draft": Channel(""), "log": Channel([], reducer=append())}, name="small")
        .add_node("write", write)
        .add_node("judge", lambda state: {"log": "judged"})
        .add_edge(START, "write")
        .add_conditional_edge("write", route, {"more": "write", "ask": "judge"})
        .add_edge("judge", END)
        .compile(
            checkpointer=MemoryCheckpointer(),
            interrupt_before=[Gate("judge", title="Good?", choices=choices)],
        )
    )


@pytest.fixture(autouse=True)
def tempo() -> None:
    TEMPO.pace, TEMPO.held = 1.0, False


@asynccontextmanager
async def stage(
    tmp_path: Path, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Screen, ScriptShow, ShowFile]]:
    path = tmp_path / "show.toml"
    path.write_text(SCRIPT)
    script = read_script(path)
    graph = runner()
    check_script(script, graph.graph.info)
    assert graph.store is not None
    hub = LocalHub(graph.store, lambda info: graph)
    others = ShowFile(tmp_path, path)
    made = 0

    async def new_thread() -> Driver:
        nonlocal made
        made += 1
        driver = await hub.new(f"t{made}", graph)
        await driver.execute(Start({}, "anna"))
        return driver

    async def open_driver() -> tuple[Hub, Driver]:
        return hub, await new_thread()

    show = ScriptShow(script, new_thread, others)
    app = HitlApp(AppStart(open_driver, "anna", perform=lambda: show), Look(""))
    async with booted(app, size=size) as pilot:
        screen = Screen(app, pilot)
        await screen.shows("It begins.")
        yield screen, show, others
    await hub.close()


async def ask(screen: Screen) -> None:
    """Go on until the card is open."""
    for place in ("stop 2 of 5", "stop 3 of 5"):
        await screen.press("space")
        await screen.shows(place)
    await screen.press("space")
    await screen.until(lambda: screen.run.card_state == "open", "the card")


@pytest.mark.slow
async def test_space_runs_to_the_next_stop_with_its_caption_and_spotlight(tmp_path: Path) -> None:
    async with stage(tmp_path) as (screen, _, _):
        assert "a small show · stop 1 of 5" in screen.text()
        await screen.press("space")
        await screen.shows("Written twice.", "A quiet line.", "stop 2 of 5", "draft 1")
        assert screen.session.view.progress.head == 2
        await screen.gone("Channels")
        await screen.press("escape")
        await screen.shows("Channels", "Graph")


@pytest.mark.slow
async def test_a_question_comes_up_with_what_is_suggested_and_is_decided_by_a_person_alone(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as (screen, _, _):
        await ask(screen)
        await screen.shows("Shorter.")
        await screen.until(lambda: screen.card.review.chosen == "revise", "the suggested answer")
        assert screen.session.requests
        assert screen.run.spotlit == ""
        await screen.press("escape")
        await screen.shows("Now you decide.", "space Next stop")
        assert screen.run.spotlit == "channels"


@pytest.mark.slow
async def test_a_stop_that_is_reached_while_the_card_is_open_has_its_spotlight_once_that_is_closed(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as (screen, _, _):
        await ask(screen)
        (request,) = screen.session.requests
        await screen.session.driver.execute(Answer(request.id, {"choice": "approve"}, request.step, "ben"))
        await screen.shows("Three lines.", "stop 4 of 5", "ben decided first")
        assert screen.run.spotlit == ""
        await screen.press("enter")
        await screen.until(lambda: not screen.run.card_open, "the card being closed")
        assert screen.run.spotlit == "graph"


@pytest.mark.slow
async def test_stops_at_an_expression_and_at_the_end_follow_an_answer(tmp_path: Path) -> None:
    async with stage(tmp_path) as (screen, _, _):
        await ask(screen)
        await screen.until(lambda: screen.card.review.state == "open", "the moment to read is over")
        await screen.press("enter")
        await screen.shows("Three lines.")
        await screen.until(lambda: screen.run.spotlit == "graph", "the spotlight, once the card is closed")
        await screen.press("space")
        await screen.shows("Done.", "stop 5 of 5")


@pytest.mark.slow
async def test_an_answer_that_ends_the_thread_leads_to_the_stop_at_its_end(tmp_path: Path) -> None:
    async with stage(tmp_path) as (screen, show, _):
        for place in ("stop 2 of 5", "stop 3 of 5"):
            await screen.press("space")
            await screen.shows(place)
        await screen.session.driver.execute(Cancel("anna"))
        await screen.shows("Done.", "stop 5 of 5")
        await screen.press("space")
        await screen.until(lambda: not show.going, "nothing goes on behind the end")
        await screen.shows("Done.")


@pytest.mark.slow
async def test_home_begins_a_new_thread_and_the_old_one_stays(tmp_path: Path) -> None:
    async with stage(tmp_path) as (screen, _, _):
        await screen.press("space")
        await screen.shows("stop 2 of 5")
        await screen.press("home")
        await screen.shows("It begins.", "stop 1 of 5")
        assert screen.session.thread_id == "t2"
        assert screen.session.view.progress.head == 0
        old = await screen.run.hub.open("t1")
        assert (await old.snapshot()).progress.head == 2


@pytest.mark.slow
async def test_a_held_presentation_stays_until_it_is_continued(tmp_path: Path) -> None:
    async with stage(tmp_path) as (screen, _, _):
        await screen.press("p")
        await screen.shows("p Continue")
        await screen.press("space")
        await screen.until(lambda: isinstance(screen.run, StageScreen) and screen.run.performance.going)
        assert screen.session.view.progress.head == 0
        await screen.press("p")
        await screen.shows("stop 2 of 5")


@pytest.mark.slow
async def test_plus_and_minus_change_the_pace_that_models_keep_to(tmp_path: Path) -> None:
    async with stage(tmp_path) as (screen, _, _):
        await screen.press("minus")
        await screen.shows("Pace 4×")
        assert TEMPO.pace == 4
        await screen.press("plus")
        await screen.shows("Pace 8×")


@pytest.mark.slow
async def test_the_last_key_is_shown_but_nothing_that_is_typed(tmp_path: Path) -> None:
    async with stage(tmp_path) as (screen, _, _):
        await screen.press("P", "D")
        await screen.shows("key pressed:  D")
        await screen.press("f")
        await screen.shows("name of the new thread")
        await screen.press(*"zzz", "escape", "escape")
        await screen.gone("name of the new thread")
        await screen.shows("key pressed:  esc")


@pytest.mark.slow
async def test_other_terminals_see_each_stop(tmp_path: Path) -> None:
    async with stage(tmp_path) as (screen, _, others):
        state = others.read()
        assert state is not None
        assert (state.thread, state.stop, state.pace) == ("t1", 0, 8)
        await screen.press("space")
        await screen.shows("stop 2 of 5")

        def is_at_stop_2() -> bool:
            now = others.read()
            return now is not None and (now.stop, now.going) == (1, False)

        await screen.until(is_at_stop_2, "the other terminal is at stop 2")


@pytest.mark.slow
async def test_an_audience_sees_no_cursor_on_the_graph_in_the_spotlight(tmp_path: Path) -> None:
    async with stage(tmp_path) as (screen, _, _):
        graph = screen.run.query_one(GraphPane)
        graph.focus()
        await screen.until(lambda: graph.cursor_row is not None, "a node being chosen")
        screen.run.spotlight("graph")
        await screen.until(lambda: graph.cursor_row is None and graph.region.width == 120, "no cursor")


@pytest.mark.slow
async def test_any_pane_has_the_spotlight_alone_in_any_size(tmp_path: Path) -> None:
    async with stage(tmp_path) as (screen, _, _):
        for size in ((120, 40), (80, 24), (200, 60)):
            await screen.pilot.resize_terminal(*size)
            for pane in PANES:
                screen.run.spotlight(pane)

                def alone(pane: str = pane, size: tuple[int, int] = size) -> bool:
                    region = screen.run.query_one(f"#{pane}").region
                    others = {*PANES} - {pane, "timeline"}
                    hidden = all(not screen.run.query_one(f"#{name}").region for name in others)
                    return hidden and region.width == size[0] and region.height >= size[1] // 3

                await screen.until(alone, f"{pane} alone at {size}")
        await screen.press("S")
        await screen.until(lambda: screen.run.query_one("#channels").region.height > 0)


@pytest.mark.slow
async def test_the_keys_of_a_presentation_apply_only_during_one() -> None:
    graph = runner()
    assert graph.store is not None
    from tests.ui.harness import live

    async with live(graph, inputs={}, ready="write") as screen:
        await screen.press("space", "p")
        await screen.shows("nothing is running")
        assert "Next stop" not in screen.text()
