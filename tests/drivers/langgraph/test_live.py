"""What goes on inside a subgraph is shown while it does: in the thread around it, and in its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="the extra `langgraph` is not installed")

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from hitl_tui.engine.commands import Answer, Run, Start
from hitl_tui.engine.log.events import ChildMoved, Event, NodeStarted, RunEnded, TextStreamed
from hitl_tui.errors import ThreadBusy
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.graphs import State
from tests.support.watching import Watcher


class Gate:
    """Holds a node up; gives up after a while, so that no test hangs."""

    def __init__(self) -> None:
        self._open = threading.Event()

    def wait(self) -> None:
        assert self._open.wait(60)

    def let_go(self) -> None:
        self._open.set()


@pytest.fixture
def gates() -> Iterator[Callable[[], Gate]]:
    made: list[Gate] = []

    def make() -> Gate:
        made.append(Gate())
        return made[-1]

    yield make
    for gate in made:
        gate.let_go()


def team(held: Gate, later: Gate) -> StateGraph[Any]:
    """A subgraph whose first node writes, calls a model and is held up, as is its second."""

    def gather(_state: State) -> State:
        get_stream_writer()("looking. ")
        GenericFakeChatModel(messages=iter([AIMessage("two words")])).invoke("?")
        held.wait()
        return {"log": ["gather"]}

    def sum_up(_state: State) -> State:
        later.wait()
        return {"log": ["sum up"]}

    inner = StateGraph(State)
    inner.add_node("gather", gather)
    inner.add_node("sum_up", sum_up)
    inner.add_edge(START, "gather")
    inner.add_edge("gather", "sum_up")
    return inner


def around(inner: Any, name: str = "team") -> StateGraph[Any]:
    graph = StateGraph(State)
    graph.add_node(name, inner)
    graph.add_edge(START, name)
    return graph


async def events_until(driver: Any, fits: Callable[[list[Event]], bool]) -> list[Event]:
    """The events of a thread, once they fit."""
    async with asyncio.timeout(60):
        while True:
            events = [stamped.event for stamped in driver.events(0)]
            if fits(events):
                return events
            seen = driver.events(0)[-1].number if events else 0
            await driver.changed(seen)


def text(events: list[Event], path: str) -> str:
    return "".join(event.text for event in events if isinstance(event, TextStreamed) and event.path == path)


def moves(events: list[Event]) -> list[tuple[str, str]]:
    running = [
        (event.path, event.running) for event in events if isinstance(event, ChildMoved) and event.running
    ]
    return list(dict.fromkeys(running))


async def test_a_node_inside_is_shown_while_it_runs_in_both_threads(
    saver: Any, hubs: Hubs, gates: Callable[[], Gate]
) -> None:
    held, later = gates(), gates()
    hub = hubs.over(around(team(held, later).compile()).compile(checkpointer=saver))
    outer = await Watcher.open(await hub.begin("t", "ann"))
    await outer.driver.execute(Start({"log": ["in"]}))
    await outer.driver.execute(Run())
    events = await events_until(outer.driver, lambda events: "two words" in text(events, "team/gather"))
    assert text(events, "team/gather") == "looking. two words"
    assert moves(events) == [("team", "gather")]
    (child,) = {event.thread_id for event in events if isinstance(event, ChildMoved)}
    await events_until(outer.driver, lambda _events: hub.mirror.store.info(child) is not None)
    inner = await Watcher.open(await hub.open(child))
    inner_events = await events_until(inner.driver, lambda events: "two words" in text(events, ""))
    assert [(event.node, event.step) for event in inner_events if isinstance(event, NodeStarted)] == [
        ("gather", 1)
    ]
    with pytest.raises(ThreadBusy):
        await inner.driver.execute(Run())
    held.let_go()
    events = await events_until(outer.driver, lambda events: ("team", "sum_up") in moves(events))
    await events_until(
        inner.driver,
        lambda events: any(isinstance(event, NodeStarted) and event.node == "sum_up" for event in events),
    )
    await inner.until(lambda view: view.progress.head == 1)
    assert inner.view.values["log"] == ["in", "gather"]
    later.let_go()
    await outer.driver.ended(0)
    view = await inner.until(lambda view: view.progress.status == "completed")
    assert view.values["log"] == ["in", "gather", "sum up"]
    outer_view = await outer.check()
    assert (outer_view.progress.status, outer_view.values["log"]) == (
        "completed",
        ["in", "in", "gather", "sum up"],
    )
    for watcher in (outer, inner):
        assert (await watcher.driver.check("log", lambda _done, _all: None)).mismatches == ()
    assert any(isinstance(stamped.event, RunEnded) for stamped in inner.driver.events(0))


async def test_what_fails_inside_leaves_its_thread_where_it_failed(saver: Any, hubs: Hubs) -> None:
    def fail(_state: State) -> State:
        get_stream_writer()("about to fail")
        raise ValueError("no luck")

    inner = StateGraph(State)
    inner.add_node("first", lambda _state: {"log": ["first"]})
    inner.add_node("fail", fail)
    inner.add_edge(START, "first")
    inner.add_edge("first", "fail")
    hub = hubs.over(around(inner.compile()).compile(checkpointer=saver))
    outer = await Watcher.open(await hub.begin("t", "ann"))
    await outer.driver.execute(Start({"log": ["in"]}))
    await outer.run()
    assert (await outer.check()).progress.status == "failed"
    events = [stamped.event for stamped in outer.driver.events(0)]
    assert text(events, "team/fail") == "about to fail"
    (child,) = {event.thread_id for event in events if isinstance(event, ChildMoved)}
    view = await (await Watcher.open(await hub.open(child))).check()
    assert (view.progress.status, view.progress.head, view.values["log"]) == ("failed", 1, ["in", "first"])


async def test_parallel_subgraphs_are_distinguished(saver: Any, hubs: Hubs) -> None:
    graph = StateGraph(State)
    for name in ("left", "right"):
        inner = StateGraph(State)
        inner.add_node("write", lambda _state, name=name: (get_stream_writer()(name), {"log": [name]})[1])
        inner.add_edge(START, "write")
        graph.add_node(name, inner.compile())
        graph.add_edge(START, name)
    hub = hubs.over(graph.compile(checkpointer=saver))
    outer = await Watcher.open(await hub.begin("t", "ann"))
    await outer.driver.execute(Start({"log": []}))
    await outer.run()
    events = [stamped.event for stamped in outer.driver.events(0)]
    assert {path: text(events, f"{path}/write") for path, _ in moves(events)} == {
        "left+right/left": "left",
        "left+right/right": "right",
    }
    branches = (await outer.check()).checkpoints[-1].branches
    threads = {
        event.path: event.thread_id for event in events if isinstance(event, ChildMoved) if event.running
    }
    assert threads == {branch.path: branch.thread for branch in branches}


async def test_a_graph_that_a_tool_calls_is_part_of_its_node_and_says_where_its_words_come_from(
    saver: Any, hubs: Hubs
) -> None:
    def search(_state: State) -> State:
        get_stream_writer()("searching. ")
        return {"log": [interrupt("which hills?")]}

    called = StateGraph(State)
    called.add_node("search", search)
    called.add_edge(START, "search")
    helper = {"graph": called.compile()}

    @tool
    def look_up(what: str) -> str:
        """Look something up."""
        return str(helper["graph"].invoke({"log": [what]})["log"])

    def work(_state: State) -> State:
        return {"log": [look_up.invoke({"what": "hills"})]}

    hub = hubs.over(around(work, "work").compile(checkpointer=saver))
    outer = await Watcher.open(await hub.begin("t", "ann"))
    await outer.driver.execute(Start({"log": []}))
    await outer.run()
    (request,) = (await outer.check()).progress.pending
    assert (request.node, request.title) == ("work", "which hills?")
    await outer.driver.execute(Answer(request.id, "the near ones", request.step, "ann"))
    await outer.run()
    view = await outer.check()
    assert (view.progress.status, view.values["log"]) == ("completed", ["['hills', 'the near ones']"])
    assert text([stamped.event for stamped in outer.driver.events(0)], "work/search") == "searching. " * 2
    assert view.checkpoints[-1].branches == ()
    assert await hub.threads("", 50, None, "t") == ()
