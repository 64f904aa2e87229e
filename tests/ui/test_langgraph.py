"""Threads of LangGraph on screen: subgraphs entered and left, items of a store, the node of an edit."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="the extra `langgraph` is not installed")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from textual.widgets import Input
from typing_extensions import TypedDict

from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Start
from hitl_tui.stores import open_store
from hitl_tui.ui.app import AppStart, HitlApp, Look
from hitl_tui.ui.screens.edit import EditScreen
from tests.drivers.langgraph.busy import Busy
from tests.drivers.langgraph.graphs import Ran, routed, team_of
from tests.drivers.langgraph.test_window import LONG, Held, long_thread
from tests.ui.harness import Screen, booted


@asynccontextmanager
async def shown(
    graph: Any,
    *,
    size: tuple[int, int] = (120, 40),
    inputs: Mapping[str, Any] = {"log": ["in"]},
    thread: str = "t",
) -> AsyncIterator[Screen]:
    """The app on a started thread of a graph of LangGraph."""
    hub = LangGraphHub(graph, open_store("memory:"), name="graph", source={"graph": "app.py"})
    driver = await hub.begin(thread, "ann")
    await driver.execute(Start(inputs))

    async def open_driver() -> tuple[LangGraphHub, Driver]:
        return hub, driver

    app = HitlApp(AppStart(open_driver, "ann", None, False), Look(""))
    async with booted(app, size=size) as pilot:
        screen = Screen(app, pilot)
        await screen.shows("Timeline", "step 0")
        yield screen
    await hub.close()


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=str)
@pytest.mark.slow
async def test_a_subgraph_is_entered_stepped_and_left_by_keys(size: tuple[int, int]) -> None:
    ran: Ran = []
    async with shown(team_of(ran).compile(checkpointer=InMemorySaver()), size=size) as it:
        await it.press("s")
        await it.shows("step 1")
        await it.press("f11")
        await it.until(lambda: it.session.thread_id.startswith("t/team#"))
        await it.shows("gather")
        assert ran == []
        await it.press("s")
        await it.until(lambda: it.session.view.progress.head == 1)
        assert ran == ["gather"]
        await it.press("escape")
        await it.until(lambda: it.session.thread_id == "t")
        await it.press("I")
        await it.until(lambda: it.session.thread_id.startswith("t/team#"))


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=str)
@pytest.mark.slow
async def test_items_of_the_store_are_read_and_narrowed(size: tuple[int, int]) -> None:
    store = InMemoryStore()
    store.put(("users", "ann"), "drink", {"likes": "coffee\x1b[2J"})
    store.put(("users", "bob"), "drink", {"likes": "tea"})
    async with shown(routed([]).compile(checkpointer=InMemorySaver(), store=store), size=size) as it:
        await it.press("ctrl+k")
        await it.shows("users.ann", "users.bob", "2 items", "read only")
        assert "\x1b" not in it.text()
        await it.write("tea")
        await it.gone("users.ann")
        await it.shows("1 item", "users.bob")
        await it.press("escape")
        await it.until(lambda: it.app.screen is it.run)


@pytest.mark.slow
async def test_the_node_of_an_edit_is_chosen_by_where_it_leads() -> None:
    async with shown(routed([]).compile(checkpointer=InMemorySaver())) as it:
        await it.press("s")
        await it.shows("step 1", "revise is next")
        await it.press("e")
        await it.until(lambda: isinstance(it.app.screen, EditScreen))
        screen = it.app.screen
        await it.press("ctrl+end", "x")
        await it.shows("as node (optional)", "as write", "as publish")
        screen.query_one("#as-node", Input).focus()
        await it.write("publish")
        await it.shows("next  END")
        await it.press("ctrl+s")
        await it.until(lambda: it.session.view.progress.head == 2)
        (edit,) = [entry for entry in it.session.view.ledger if entry.kind == "update_state"]
        assert edit.data["as_node"] == "publish"
        await it.until(lambda: it.session.view.progress.status == "completed")


@pytest.mark.slow
async def test_no_pane_of_a_large_screen_is_emptier_than_seven_rows_of_ten() -> None:
    graph = importlib.import_module("sample_graphs.langgraph.jokes").builder.compile(InMemorySaver())
    async with shown(graph, size=(200, 60), inputs={"topic": "animals"}) as it:
        await it.shows("in choose_subjects(state)", "in continue_to_jokes(state)", "in tell_joke(state)")
        for key, words in (("", "step 0"), ("s", "step 1"), ("c", "DONE")):
            await it.press(*key)
            await it.shows(words)
            for name in ("graph", "channels", "value", "lens", "stream", "timeline"):
                await it.until(lambda name=name: it.said(name) > 0.3, f"{name} being filled")


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=str)
@pytest.mark.slow
async def test_a_busy_thread_asks_what_to_do_with_the_other_run(size: tuple[int, int]) -> None:
    busy = Busy(routed([]).compile(checkpointer=InMemorySaver()))
    async with shown(busy.graph, size=size) as it:
        busy.runs = ["theirs"]
        await it.press("s")
        await it.shows("The thread is busy", "leave it", "wait for it", "interrupt it", "roll it back")
        await it.press("escape")
        await it.gone("The thread is busy")
        assert busy.made_room == []
        assert it.session.view.progress.head == 0
        await it.press("s")
        await it.shows("The thread is busy")
        await it.press("i")
        await it.until(lambda: it.session.view.progress.head == 1)
        assert busy.made_room == ["interrupt"]
        assert "failed" not in [entry.kind for entry in it.session.view.ledger]


@pytest.mark.slow
async def test_the_list_begins_a_thread() -> None:
    async with shown(team_of([]).compile(checkpointer=InMemorySaver())) as it:
        await it.press("t")
        await it.shows("open now")
        await it.press("n")
        await it.shows("1 graph")
        await it.press("enter")
        await it.until(lambda: it.session.thread_id.startswith("graph-"))
        await it.until(lambda: it.session.view.progress.head == 0)
        assert it.session.view.progress.next_node == "before"


@pytest.mark.slow
async def test_the_list_opens_a_thread_of_others() -> None:
    graph = team_of([]).compile(checkpointer=InMemorySaver())
    graph.invoke({"log": ["theirs"]}, {"configurable": {"thread_id": "others"}})
    async with shown(graph) as it:
        await it.press("t")
        await it.shows("others", "open now")
        await it.pilot.press("slash", *"others", "enter", "enter")
        await it.until(lambda: it.session.thread_id == "others")
        assert it.session.view.values["draft"] == "given"


@pytest.mark.slow
async def test_the_list_opens_a_long_thread_by_its_newest_page(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = long_thread(InMemorySaver())
    async with shown(graph, inputs={"log": [], "n": 0}, thread="mine") as it:
        held = Held(monkeypatch)
        try:
            await it.press("t")
            await it.shows("open now")
            await it.pilot.press("slash", "t", "enter", "enter")
            await it.until(lambda: it.session.thread_id == "t")
            assert "its history is being read" in it.session.driver.refusal(Start)
            assert it.session.view.values["n"] == LONG
        finally:
            held.let_go.set()
        await it.until(lambda: not it.session.driver.refusal(Start))
        await it.shows("Timeline", f"step {LONG}")


@pytest.mark.slow
async def test_a_long_thread_is_shown_while_the_rest_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    hub = LangGraphHub(
        long_thread(InMemorySaver()), open_store("memory:"), name="graph", source={"graph": "app.py"}
    )

    async def open_driver() -> tuple[LangGraphHub, Driver]:
        return hub, await hub.begin("t", "ann", at_once=True)

    app = HitlApp(AppStart(open_driver, "ann", None, False), Look(""))
    async with booted(app) as pilot:
        it = Screen(app, pilot)
        await it.shows("Timeline", f"step {LONG}")
        assert "its history is being read" in it.session.driver.refusal(Start)
        held.let_go.set()
        await it.until(lambda: not it.session.driver.refusal(Start))
        await it.shows("Timeline", f"step {LONG}")
    await hub.close()


class Greeting(TypedDict):
    text: str


@dataclass
class Needed:
    user: str
    model: str = "small"


def greet(state: Greeting, runtime: Runtime[Needed]) -> Greeting:
    return {"text": f"{state['text']} {runtime.context.user} {runtime.context.model}"}


@pytest.mark.slow
async def test_a_new_thread_asks_for_the_context_that_its_graph_needs() -> None:
    graph = StateGraph(Greeting, context_schema=Needed).add_node(greet).add_edge(START, "greet")
    compiled = graph.compile(checkpointer=InMemorySaver())
    hub = LangGraphHub(compiled, open_store("memory:"), name="graph", source={"graph": "app.py"})

    async def open_driver() -> tuple[LangGraphHub, Driver]:
        return hub, await hub.begin("t", "ann")

    async with booted(HitlApp(AppStart(open_driver, "ann", None), Look(""))) as pilot:
        it = Screen(pilot.app, pilot)
        await it.shows("text", "user (context)", "model (context)", "small")
        await it.write("hi")
        await it.press("enter", "enter", "enter")
        await it.shows("user is required")
        await it.write("ann")
        await it.press("enter", "enter")
        await it.shows("Timeline", "step 0")
        await it.press("s")
        await it.shows("hi ann small")
    await hub.close()
