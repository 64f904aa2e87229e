"""Threads of one LangGraph graph run at once: what is done to one of them leaves the others alone."""

from __future__ import annotations

import asyncio
import operator
import threading
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from hitl_tui.engine.commands import CancelAttempt, Command, Pause, Run, Start
from tests.drivers.langgraph.conftest import Hubs
from tests.support.watching import Watcher


class Words(TypedDict):
    name: str
    log: Annotated[list[str], operator.add]


class Held:
    """A graph of two nodes, the first of which waits in each thread until it is let go."""

    def __init__(self) -> None:
        self.started = {name: threading.Event() for name in ("a", "b")}
        self.go = {name: threading.Event() for name in ("a", "b")}

    def first(self, state: Words) -> dict[str, Any]:
        self.started[state["name"]].set()
        self.go[state["name"]].wait(30)
        return {"log": ["first"]}

    def graph(self, saver: Any) -> Any:
        graph = StateGraph(Words)
        graph.add_node("first", self.first)
        graph.add_node("second", lambda _state: {"log": ["second"]})
        graph.add_edge(START, "first")
        graph.add_edge("first", "second")
        return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("command", [Pause(), CancelAttempt()], ids=["paused", "given up"])
@pytest.mark.parametrize("stopped", ["a", "b"])
async def test_what_stops_one_run_stops_no_other(
    saver: Any, hubs: Hubs, command: Command[Any], stopped: str
) -> None:
    held = Held()
    hub = hubs.over(held.graph(saver))
    threads = {name: await Watcher.open(await hub.begin(name)) for name in ("a", "b")}
    for name, watcher in threads.items():
        await watcher.driver.execute(Start({"name": name}))
        await watcher.driver.execute(Run())
        assert await asyncio.to_thread(held.started[name].wait, 30)
    await threads[stopped].driver.execute(command)
    for event in held.go.values():
        event.set()
    for watcher in threads.values():
        await watcher.driver.ended(watcher.view.last_event)
    went = {name: (await watcher.look()).progress for name, watcher in threads.items()}
    other = "b" if stopped == "a" else "a"
    assert (went[other].status, threads[other].view.values["log"]) == ("completed", ["first", "second"])
    assert (went[stopped].status, went[stopped].reason) == ("waiting", "paused")
    assert went[stopped].next_node == ("second" if isinstance(command, Pause) else "first")
