"""A tape on screen: a recorded thread that is played before an audience, and left into a live fork."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.agents.tempo import Tempo
from hitl_tui.cli.play import Tape
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.theme import Look
from hitl_tui.view.tape import TapeShow
from hitl_tui.workflows.demo import TASK, build
from tests.ui.harness import Screen, booted, nothing_is_empty


class OnlySpace(Tempo):
    """A tempo at which every step lasts until somebody asks for the next one."""

    async def wait(self, seconds: float, enough: Callable[[], bool] = lambda: False) -> None:
        while not enough():  # noqa: ASYNC110  nobody tells when somebody has pressed a key
            await asyncio.sleep(0.001)


def recorded() -> GraphRunner:
    """The thread t of three steps, which a person has edited at its end."""

    def count(state: dict[str, Any]) -> dict[str, Any]:
        return {"n": state["n"] + 1, "said": f"this was counted as number {state['n'] + 1}"}

    graph = StateGraph({"n": Channel(0), "said": Channel("")}, name="counted").add_node("count", count)
    graph.add_edge(START, "count")
    graph.add_conditional_edge("count", lambda state: str(state["n"] < 2), {"True": "count", "False": END})
    runner = graph.compile(checkpointer=MemoryCheckpointer())
    runner.invoke({}, thread_id="t")
    runner.update_state("t", {"n": 7}, actor="ann", note="seven is nicer")
    return runner


@asynccontextmanager
async def played(
    runner: GraphRunner, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Screen, Tempo]]:
    """The screen on a tape of the thread t, at its first step."""
    assert runner.store is not None
    tape, tempo = Tape("t", None), OnlySpace()
    name = tape.choose(runner.store).thread_id
    hub = LocalHub(runner.store, lambda info: runner)
    tape.adopt(hub, tempo)

    async def open_driver() -> tuple[Hub, Driver]:
        return hub, await hub.open(name)

    show = TapeShow(tape.driver, tape.name)
    app = HitlApp(AppStart(open_driver, "anna", perform=lambda: show), Look(""))
    async with booted(app, size=size) as pilot:
        screen = Screen(app, pilot)
        await screen.shows("tape of t · step 0 of ")
        yield screen, tempo
    await hub.close()


@pytest.mark.slow
async def test_space_goes_to_the_next_step_and_the_caption_says_who_decided_what() -> None:
    async with played(recorded()) as (it, _):
        await it.press("space")
        await it.shows("step 1 of 3", "this was counted as number 1")
        await it.press("space")
        await it.shows("step 2 of 3", "this was counted as number 2")
        await it.press("space")
        await it.shows("step 3 of 3", "ann: update state", "seven is nicer")


@pytest.mark.slow
async def test_its_pace_is_changed_it_is_held_looked_back_in_and_played_from_its_start() -> None:
    async with played(recorded()) as (it, tempo):
        await it.press("plus")
        await it.shows("Pace 1.5×")
        await it.press("minus", "minus")
        await it.shows("Pace 0.75×")
        await it.press("p")
        await it.shows("p Continue")
        assert tempo.held
        await it.press("space")
        await it.shows("step 1 of 3", "p Hold")
        await it.press("space")
        await it.shows("step 2 of 3")
        await it.press("[")
        await it.shows("Step 1 of 2", "p Continue", "this was counted as number 1")
        assert tempo.held
        await it.press("home")
        await it.shows("step 0 of 3")
        assert not tempo.held


@pytest.mark.slow
async def test_it_is_left_in_its_middle_into_a_fork_that_runs() -> None:
    runner = recorded()
    async with played(runner) as (it, _):
        await it.press("space")
        await it.shows("step 1 of 3")
        await it.press("f")
        await it.shows("name of the new thread")
        await it.press("enter", "enter")
        await it.until(lambda: not it.session.thread_id.endswith("-tape"), "the fork")
        fork = it.session.thread_id
        await it.press("space")
        await it.shows("this was counted as number 2")
        assert runner.store is not None
        info = runner.store.info(fork)
        assert info is not None
        assert (info.parent, info.fork_step, runner.store.cursor(fork).head) == ("t", 1, 2)


@pytest.mark.slow
async def test_on_a_high_screen_no_pane_is_empty_while_it_plays() -> None:
    runner = build(pace=0, checkpointer=MemoryCheckpointer())
    runner.invoke({"messages": [TASK]}, thread_id="t")
    async with played(runner, (200, 60)) as (it, _):
        await nothing_is_empty(it)
        await it.press("space")
        await it.shows("step 1 of 2", "RUNNING")
        await nothing_is_empty(it)
