"""What came of one's decisions stays in the place of the card, and moves on with the thread."""

from __future__ import annotations

import threading

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.view.format import local_time
from hitl_tui.view.presence import Attention
from hitl_tui.view.review import UNDO
from tests.ui.harness import Clock, live
from tests.ui.test_waiting_threads import card_of, waiting


@pytest.mark.slow
async def test_what_followed_a_decision_shows_the_nodes_and_the_next_request() -> None:
    async with waiting() as it:
        await it.press("F")
        await it.shows("What followed your decisions", "has decided nothing in this thread")
        await it.press("F")
        await it.gone("What followed your decisions")
        await it.press("d")
        await card_of(it, "t")
        await it.press("a")
        await it.press("n")  # what is on its way is sent before the next one opens
        await it.until(lambda: any(entry.kind == "answer" for entry in it.session.view.ledger), "answered")
        await it.press("F")
        await it.shows("What followed your decisions", "you approved “Is it good?”", "undo: fork before it")
        (answer,) = (entry for entry in it.session.view.ledger if entry.kind == "answer")
        await it.shows(f"{local_time(answer.at)}  t, step")


@pytest.mark.slow
async def test_your_decisions_in_all_threads_are_listed_newest_first() -> None:
    async with waiting() as it:
        await it.press("d")
        await card_of(it, "t")
        await it.press("a")
        await it.press("n")  # what is on its way is sent before the next one opens
        await it.until(lambda: any(entry.kind == "answer" for entry in it.session.view.ledger), "answered")
        await it.press("ctrl+d")
        await it.shows("result", "approved “Is it good?”", "undo    fork before it")
        await it.press("ctrl+d")
        await it.gone("result")


def printing(store: MemoryCheckpointer, may_print: threading.Event) -> GraphRunner:
    """A memo that is written, approved, printed once that may be, and filed."""
    choices = [GateChoice("approve", "print it", "a"), GateChoice("revise", "send back", "r", "required")]
    graph = StateGraph({"text": Channel(""), "n": Channel(0)}, name="memo")
    graph.add_node("write", lambda state: {"text": "A memo."}).add_edge(START, "write")
    graph.add_node("press", lambda state: {"n": int(may_print.wait(30))}).add_edge("write", "press")
    graph.add_node("file", lambda state: {"n": 2}).add_edge("press", "file").add_edge("file", END)
    return graph.compile(checkpointer=store, interrupt_after=[Gate("write", "Print it?", choices)])


@pytest.mark.parametrize(
    ("way", "size"),
    [
        pytest.param("setting", (120, 40), id="setting, 120x40"),
        pytest.param("key", (80, 24), id="key, 80x24"),
        pytest.param("setting", (80, 24), marks=pytest.mark.slow, id="setting, 80x24"),
        pytest.param("key", (120, 40), marks=pytest.mark.slow, id="key, 120x40"),
    ],
)
@pytest.mark.slow
async def test_after_a_decision_the_card_shows_what_follows_live(way: str, size: tuple[int, int]) -> None:
    may_print = threading.Event()
    runner = printing(MemoryCheckpointer(), may_print)
    runner.invoke({}, thread_id="t")
    async with live(runner, ready="WAITING", size=size) as it:
        it.run.clock = clock = Clock()
        it.run.attention = Attention(stays=way == "setting")
        await it.press("d")
        await it.card_listens("Your answer")
        await it.press("a")
        await it.shows("send it now")
        if way == "key":
            await it.press("F")
        clock.advance(UNDO + 0.01)
        await it.shows("What followed your", "you approved “Print", "nothing ran yet; running")
        await it.gone("Your answer")
        may_print.set()
        await it.shows("press, file; completed", "undo: fork before it", "run again")
        await it.press("escape")
        await it.gone("What followed your")
        await it.press("F")
        await it.shows("press, file; completed")
        await it.press("F")
        await it.gone("What followed your")


@pytest.mark.slow
async def test_without_the_setting_the_card_closes_alone() -> None:
    may_print = threading.Event()
    may_print.set()
    runner = printing(MemoryCheckpointer(), may_print)
    runner.invoke({}, thread_id="t")
    async with live(runner, ready="WAITING") as it:
        it.run.clock = clock = Clock()
        await it.press("d")
        await it.card_listens("Your answer")
        await it.press("a")
        await it.shows("send it now")
        clock.advance(UNDO + 0.01)
        await it.shows("DONE")
        await it.gone("Your answer")
        assert not it.run.followed_open
