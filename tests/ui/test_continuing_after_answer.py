"""An answer lets a thread run to its next stop, however the thread was opened."""

from __future__ import annotations

import asyncio

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.engine.commands import Answer, Start
from hitl_tui.stores import Checkpointer
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.footer import FooterBar
from hitl_tui.view.review import GRACE
from hitl_tui.view.spans import plain_text
from tests.support.flows import Desk
from tests.ui.harness import Clock, Screen, live
from tests.ui.test_waiting_threads import reviewed


async def answered(it: Screen, key: str) -> None:
    """The card that is open is answered by this key, and the answer sent."""
    clock = it.run.clock
    assert isinstance(clock, Clock)
    await it.card_listens()
    await it.press(key, *(("enter", "enter") if key == "r" else ()))  # a refusal asks for words first
    await it.shows("send it now")
    clock.advance(GRACE + 0.01)
    await it.press("enter")


@pytest.mark.parametrize(("key", "thread"), [("d", "t"), ("n", "u")], ids=["resume", "n"])
@pytest.mark.slow
async def test_an_answer_lets_a_thread_run_to_its_next_question(key: str, thread: str) -> None:
    runner = reviewed(MemoryCheckpointer())
    for name in ("t", "u"):
        runner.invoke({}, thread_id=name)
    async with live(runner, ready=" t ") as it:
        it.run.clock = Clock()
        await it.press(key)
        await it.until(lambda: it.session.thread_id == thread)
        await answered(it, "r")
        await it.until(lambda: it.session.view.progress.head == 5, "the next question")
        await answered(it, "a")
        await it.shows("DONE")


@pytest.mark.slow
async def test_stepping_continues_as_stepping_after_an_answer() -> None:
    runner = reviewed(MemoryCheckpointer())
    async with live(runner, inputs={}, ready="READY") as it:
        it.run.clock = Clock()
        await it.press("s")
        await it.until(lambda: it.session.view.progress.head == 1)
        await it.press("s")
        await it.shows("WAITING")
        await it.press("d")
        await answered(it, "r")
        await it.shows("PAUSED", "write is next")


@pytest.mark.slow
async def test_where_only_the_end_is_left_the_thread_is_done_though_it_was_stepped_through() -> None:
    runner = reviewed(MemoryCheckpointer())
    async with live(runner, inputs={}, ready="READY") as it:
        it.run.clock = Clock()
        await it.press("s")
        await it.until(lambda: it.session.view.progress.head == 1)
        await it.press("s")
        await it.shows("WAITING")
        await it.press("d")
        await answered(it, "a")
        await it.shows("DONE", "reached the end")


def voted(store: Checkpointer) -> GraphRunner:
    graph = StateGraph({"n": Channel(0)}, name="voted")
    graph.add_node("write", lambda state: {"n": 1}).add_edge(START, "write").add_edge("write", END)
    choices = [GateChoice("approve", "approve", "a"), GateChoice("revise", "send back", "r", text="optional")]
    ship = Gate("write", title="Ship it?", choices=choices, reviewers=("anna", "bob"), quorum=2)
    return graph.compile(checkpointer=store, interrupt_after=[ship])


@pytest.mark.slow
async def test_after_one_of_two_votes_the_card_closes_and_says_whose_vote_it_waits_for() -> None:
    runner = voted(MemoryCheckpointer())
    runner.invoke({}, thread_id="t")
    async with live(runner, ready=" t ") as it:
        it.run.clock = Clock()
        await it.press("d")
        await answered(it, "a")
        await it.shows("your vote counts: 1 of 2; it waits for bob", "WAITING", "1 of 2 votes")
        await it.shows("bob decides", "‖ others")
        assert "you decide" not in it.text()
        await it.gone("Your answer")
        await it.press("?")
        await it.shows("Keys, words")
        await it.press("escape")
        await it.gone("Keys, words")
        it.run.query_one(FooterBar).say(())
        await it.press("d")
        await it.until(lambda: "your vote counts" in plain_text(it.run.query_one(FooterBar).message))
        assert "Your answer" not in it.text()
        (request,) = it.session.requests
        assert [(vote.actor, vote.answer) for vote in request.votes] == [("anna", "approve")]


async def test_a_thread_left_while_its_answer_was_sent_continues() -> None:
    runner = reviewed(MemoryCheckpointer())
    for name in ("t", "u"):
        runner.invoke({}, thread_id=name)
    async with live(runner, ready=" t ") as it:
        left = it.session
        it.run.session = None
        (request,) = left.requests
        await left.driver.execute(Answer(request.id, "revise", step=request.step, actor="anna"))
        await it.run.after_answer(left)
        await it.until(lambda: runner.get_state("t")["n"] == 2)


@pytest.mark.slow
async def test_the_answer_of_a_deadline_lets_a_thread_run_on_and_is_said_to_be_the_deadline_s() -> None:
    gate = Gate(
        "write",
        title="Send?",
        deadline=60,
        on_timeout="go",
        choices=[GateChoice("go", "go", values={"verdict": "good"})],
    )
    graph = StateGraph({"n": Channel(0), "verdict": Channel("")}, name="late")
    graph.add_node("write", lambda state: {"n": 1}).add_node("send", lambda state: {"n": 2})
    graph.add_edge(START, "write").add_edge("write", "send").add_edge("send", END)
    runner = graph.compile(checkpointer=MemoryCheckpointer(), interrupt_after=[gate])
    desk = Desk(runner, "t")  # its clock is years behind, so the deadline has passed
    desk.do(Start({}))
    await asyncio.to_thread(desk.run)
    async with live(runner, ready=" t ") as it:
        await it.shows("DONE", "go by the deadline")
        await it.press("c")
        it.run.query_one(ChannelsPane).select("verdict")
        await it.press("2")
        await it.shows("written by the deadline at step 2")
