"""If somebody else decides while the review card is open, it says who and gives the typed text back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, SQLiteCheckpointer, StateGraph
from hitl_tui.view.review import GRACE
from tests.support.spec import spec
from tests.ui.harness import Clock, Screen, live

pytestmark = spec("11")


def gated(path: Path) -> GraphRunner:
    """A thread `t` that waits at its second check; bob sent the first one back."""
    send = GateChoice("approve", "send it", "a", values={"ok": True})
    again = GateChoice("revise", "write again", "r", "required", lambda state, words: {"wish": words})
    graph = (
        StateGraph({"draft": Channel("one"), "wish": Channel(""), "ok": Channel(False)})
        .add_node("check", lambda state: {"draft": f"{state['draft']} more"})
        .add_edge(START, "check")
        .add_conditional_edge("check", lambda state: state["ok"], {"true": END, "false": "check"})
    )
    gate = Gate("check", "Good enough?", [send, again], subject="draft", recommended="approve")
    return graph.compile(checkpointer=SQLiteCheckpointer(path), interrupt_after=[gate])


@pytest.fixture
def runner(tmp_path: Path) -> GraphRunner:
    made = gated(tmp_path / "threads.db")
    first = made.invoke(thread_id="t").pending[0]
    made.answer("t", first.id, {"choice": "revise", "text": "say why"}, step=first.step, actor="bob")
    return made


async def opened(it: Screen) -> Clock:
    clock = Clock()
    it.run.clock = clock
    await it.press("d")
    await it.shows("Good enough?", "keys work in half a second")
    clock.advance(GRACE + 0.01)
    await it.shows("undoes it")
    return clock


@pytest.fixture
def zoe(runner: GraphRunner, tmp_path: Path) -> Callable[[], Any]:
    request = runner.invoke(thread_id="t").pending[0]

    def decide() -> None:
        other = gated(tmp_path / "threads.db")
        other.answer("t", request.id, "approve", step=request.step, actor="zoe", note="I was first")

    return lambda: asyncio.to_thread(decide)


@pytest.mark.slow
async def test_the_card_says_what_was_decided_here_last_time_by_whom_and_why(runner: GraphRunner) -> None:
    runner.invoke(thread_id="t")
    async with live(runner, ready="Good enough?") as it:
        await opened(it)
        await it.shows("Last time", "bob chose “write again” at step 1: “say why”")


@pytest.mark.parametrize(
    "keys", [("r", *"mywords"), ("tab", *"mywords", "enter", "a")], ids=["typing", "sending"]
)
@pytest.mark.slow
async def test_typed_text_stays_until_the_card_is_closed(
    runner: GraphRunner, zoe: Callable[[], Any], keys: tuple[str, ...]
) -> None:
    async with live(runner, ready="Good enough?") as it:
        await opened(it)
        await it.press(*keys)
        await it.shows("mywords")
        await zoe()
        await it.shows("zoe decided first (“I was first”)", "mywords", "close this")
        await it.press("enter")
        await it.gone("Your answer")
        await it.shows("reached the end")


@pytest.mark.slow
async def test_an_empty_card_closes_and_says_who_decided(runner: GraphRunner, zoe: Callable[[], Any]) -> None:
    async with live(runner, ready="Good enough?") as it:
        await opened(it)
        await zoe()
        await it.gone("Your answer")
        await it.shows("zoe decided first (“I was first”)")
