"""From one thread that waits for a human to the next: the list of them, and a key that opens them in turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.drivers.watching import Watcher
from hitl_tui.engine.log.records import Commit, Cursor
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.lineage import ImportedThread
from tests.ui.harness import Clock, Screen, live

GATE = Gate(
    "check",
    title="Is it good?",
    subject="draft",
    choices=[
        GateChoice("approve", "approve", "a", values={"approved": True}),
        GateChoice("revise", "send back", "r", values={"approved": False}),
    ],
)


def reviewed(store: Checkpointer) -> GraphRunner:
    channels = {"draft": Channel(""), "approved": Channel(False), "n": Channel(0, reducer="sum")}
    graph = StateGraph(channels, name="reviewed")
    graph.add_node("write", lambda state: {"draft": f"draft {state['n']}", "n": 1})
    graph.add_node("check", lambda state: {})
    graph.add_edge(START, "write").add_edge("write", "check")
    graph.add_conditional_edge(
        "check", lambda state: "done" if state["approved"] else "again", {"done": END, "again": "write"}
    )
    return graph.compile(checkpointer=store, interrupt_after=[GATE])


@asynccontextmanager
async def waiting(*names: str, first: str = "t") -> AsyncIterator[Screen]:
    """The app on a thread `t`, of those that wait in this order; `first` waits longest."""
    runner = reviewed(MemoryCheckpointer())
    for name in (first, *names):
        runner.invoke({}, thread_id=name)
    async with live(runner, ready=" t ") as it:
        it.run.clock = Clock()
        yield it


async def card_of(it: Screen, thread: str) -> None:
    """The card of that thread is open and listens."""
    await it.until(lambda: it.session.thread_id == thread, thread)
    await it.card_listens("Your answer")


def statuses(it: Screen) -> dict[str, str]:
    assert it.app.hub is not None
    store: Checkpointer = it.app.hub._store  # type: ignore[attr-defined]
    return {row.info.thread_id: row.status for row in store.threads()}


@pytest.mark.slow
async def test_one_key_opens_the_next_with_its_card_the_longest_waiting_first_and_then_from_the_start():
    async with waiting("b", "a", "c") as it:
        for thread in ("b", "a", "c", "t", "b"):
            await it.press("n")
            await card_of(it, thread)
        assert set(statuses(it).values()) == {"waiting"}


@pytest.mark.slow
async def test_a_pending_decision_is_sent_when_the_next_thread_opens():
    async with waiting("b", "c") as it:
        await it.press("n")
        await card_of(it, "b")
        await it.press("a")
        await it.shows("n    send it, on to the next thread")
        await it.press("n")
        await card_of(it, "c")
        await it.until(lambda: statuses(it)["b"] == "completed")
        assert statuses(it) == {"t": "waiting", "b": "completed", "c": "waiting"}


@pytest.mark.slow
async def test_a_thread_that_asks_again_comes_last():
    async with waiting("b") as it:
        await it.press("n")
        await card_of(it, "b")
        await it.press("r", "enter", "enter", "n")
        await card_of(it, "t")
        await it.until(lambda: statuses(it)["b"] == "waiting")
        await it.press("n")
        await card_of(it, "b")
        await it.shows("draft 1")


@pytest.mark.slow
async def test_without_another_one_it_says_so_and_stays():
    async with waiting() as it:
        await it.press("n")
        await it.shows("no other thread waits for a person")
        await it.press("d")
        await card_of(it, "t")


@pytest.mark.slow
async def test_leaving_for_a_thread_of_the_list_sends_what_is_decided():
    async with waiting("b") as it:
        await it.press("d")
        await card_of(it, "t")
        await it.press("a")
        await it.shows("send it now")
        it.run.action_do("app.threads")
        await it.shows("‖ waiting")
        rows = [row.name for row in it.app.screen.query_one("#threads").found.rows]  # type: ignore[attr-defined]
        await it.press(*["down"] * rows.index("b"), "enter")
        await it.until(lambda: it.session.thread_id == "b")
        assert it.app.hub is not None
        assert it.app.hub._store.ledger("t")[-1].actor == "anna"  # type: ignore[attr-defined]


@pytest.mark.slow
async def test_where_a_decision_is_refused_its_card_stays(monkeypatch: pytest.MonkeyPatch):
    # The screen learns of what Ben does only as the decision is sent.
    monkeypatch.setattr(Watcher, "look", lambda _self: None)
    async with waiting("b") as it:
        await it.press("d")
        await card_of(it, "t")
        await it.press("a")
        await it.shows("send it now")
        assert it.app.hub is not None
        elsewhere = reviewed(it.app.hub._store)  # type: ignore[attr-defined]
        session = it.session
        (request,) = session.requests
        elsewhere.answer("t", request.id, "revise", step=request.step, actor="ben")
        await it.press("n")
        await it.shows("not accepted", "ben")
        assert it.session is session


@pytest.fixture
def crowd() -> GraphRunner:
    """Ten thousand threads, of which each hundredth waits; and `t`, which waits and is the newest."""
    store = MemoryCheckpointer()

    def many() -> Any:
        for n in range(10_000):
            info = ThreadInfo(f"n{n:04}", "g", "", {}, None, -1, 0, n, None)
            status: Any = ("waiting", "paused") if n % 100 == 0 else ("completed", "")
            cursor = Cursor(info.thread_id, status=status[0], reason=status[1], updated_at=n)
            yield ImportedThread(info, (), [Commit(cursor, 0, "")])

    store.write_threads(many())
    runner = reviewed(store)
    runner.invoke({}, thread_id="t")
    return runner


@pytest.mark.slow
async def test_of_ten_thousand_threads_those_that_wait_are_listed_and_found_by_name(crowd: GraphRunner):
    async with live(crowd, ready=" t ") as it:
        await it.press("t")
        await it.shows("n9999", "the newest 100", "w Waiting")
        await it.press("w")
        await it.shows("1 WAITS FOR YOU", "Is it good?", "n0000", "101, live", "w All threads")
        await it.gone("n9999")
        await it.press("end")
        await it.shows("n9900")
        await it.press("slash", *"n99")
        await it.shows("1 of 101", "n9900")
        await it.write("n9901")
        await it.shows("no request matches the filter")
        await it.press("escape", "w")
        await it.shows("the newest 100")


@pytest.mark.slow
async def test_words_that_were_typed_are_there_again_when_their_thread_comes_up_again():
    async with waiting("b") as it:
        await it.press("d")
        await card_of(it, "t")
        await it.press("tab", *"too long", "escape", "n")
        await card_of(it, "b")
        assert "too long" not in it.text()
        await it.press("n")
        await card_of(it, "t")
        await it.shows("too long")
