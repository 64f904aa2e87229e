"""The thread of a subgraph on a driver of its own, while the run of its parent runs it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, StateGraph, ThreadBusy
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.nested import Follower
from hitl_tui.engine.commands import Cancel, CancelAttempt, Pause, Run, Start, Step, UpdateState
from hitl_tui.engine.log.events import BranchEnded, Event, NodeStarted, RunEnded, StepCommitted
from hitl_tui.stores import Checkpointer
from tests.support.spec import spec
from tests.support.watching import PATIENCE, Watcher

pytestmark = spec("7")

CHANNELS = {"items": Channel(["ants", "bees"], reducer="overwrite"), "log": Channel([], reducer="append")}


class Slow:
    """Nodes that write a word, wait until they are let go, and write another one."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    async def node(self, _state: Any, config: Any) -> dict[str, Any]:
        config.emit("before ")
        await asyncio.to_thread(self.go_on.wait, PATIENCE)
        config.emit("after")
        return {"log": config.item or "one"}


def around(inner: StateGraph, store: Checkpointer | None = None, name: str = "team") -> StateGraph:
    graph = StateGraph(CHANNELS).add_subgraph(name, inner, inputs={}, outputs={"log": "log"})
    return graph.add_edge(START, name).add_edge(name, END)


def of_two(slow: Slow) -> StateGraph:
    """one -> scan, a map over two items."""
    graph = StateGraph(CHANNELS).add_node("one", slow.node).add_map("scan", over="items", node=slow.node)
    return graph.add_edge(START, "one").add_edge("one", "scan").add_edge("scan", END)


class Desk:
    """A parent that runs, and those who look at it and at its child."""

    def __init__(self, store: Checkpointer, runner: GraphRunner) -> None:
        self.hub = LocalHub(store, lambda _info: runner)
        self.runner = runner

    async def begin(self) -> Watcher:
        parent = await Watcher.open(await self.hub.new("t", self.runner))
        await parent.driver.execute(Start({}))
        await parent.driver.execute(Run())
        return parent

    async def look_at(self, thread: str, parent: Watcher) -> Watcher:
        """A watcher of a thread below, once a node there has written."""
        await parent.until(lambda view: any(one.text for one in view.inside.branches.values()))
        return await Watcher.open(await self.hub.open(thread))


@dataclass
class Running:
    """A parent whose subgraph is in its first node, which waits for `slow`, and those who look at both."""

    slow: Slow
    parent: Watcher
    child: Watcher


@pytest.fixture
async def running(store: Checkpointer) -> AsyncIterator[Running]:
    slow = Slow()
    desk = Desk(store, around(of_two(slow)).compile(checkpointer=store))
    parent = await desk.begin()
    yield Running(slow, parent, await desk.look_at("t/team#1", parent))
    await desk.hub.close()


async def test_events_of_a_child_are_emitted_from_the_start_of_its_node(running: Running) -> None:
    slow, parent, child = running.slow, running.parent, running.child
    view = await child.until(lambda view: view.stream.text)
    assert (view.stream.text, view.running_node, view.held_by) == ("before ", "one", "")
    assert view.progress.status == "running"
    slow.go_on.set()
    view = await child.until(lambda _: child.events_of(RunEnded))
    assert (view.progress.status, view.values["log"]) == ("completed", ["one", "ants", "bees"])
    assert {path: one.text for path, one in view.inside.branches.items()} == {
        "scan[0]": "before after",
        "scan[1]": "before after",
    }
    assert len(child.events_of(BranchEnded)) == 2
    # Each step comes after what its node has said.
    order = [one.event for one in child.seen if isinstance(one.event, (NodeStarted, StepCommitted))]
    assert [type(event) for event in order] == [NodeStarted, StepCommitted] * 2
    await child.check()
    await parent.until(lambda view: view.progress.status == "completed")


async def test_events_of_a_nested_child_are_emitted_too(store: Checkpointer) -> None:
    slow = Slow()
    desk = Desk(store, around(around(of_two(slow), name="desk")).compile(checkpointer=store))
    parent = await desk.begin()
    middle = await desk.look_at("t/team#1", parent)
    deep = await desk.look_at("t/team#1/desk#1", parent)
    view = await middle.until(lambda view: view.inside.branches)
    assert [(one.path, one.text) for one in view.inside.branches.values()] == [("desk/one", "before ")]
    assert (await deep.until(lambda view: view.stream.text)).stream.text == "before "
    slow.go_on.set()
    await deep.until(lambda view: view.progress.status == "completed")
    await middle.until(lambda view: view.progress.status == "completed")
    await desk.hub.close()


async def test_a_child_is_paused_by_the_run_that_it_is_a_part_of(running: Running) -> None:
    slow, parent, child = running.slow, running.parent, running.child
    await child.driver.execute(Pause())
    slow.go_on.set()
    view = await child.until(lambda _: child.events_of(RunEnded))
    assert (view.progress.status, view.progress.reason, view.progress.head) == ("waiting", "paused", 1)
    await parent.until(lambda view: view.progress.reason == "paused")
    view = await child.run()  # on its own now
    assert view.progress.status == "completed"
    assert (await parent.run()).values["log"] == [["one", "ants", "bees"]]


async def test_cancelling_the_parents_node_cancels_the_childs(running: Running) -> None:
    slow, parent, child = running.slow, running.parent, running.child
    await child.driver.execute(CancelAttempt())
    view = await child.until(lambda view: view.progress.status == "waiting")
    assert (view.progress.reason, view.progress.head, view.running_node) == ("paused", 0, None)
    await parent.until(lambda view: view.progress.status == "waiting")
    slow.go_on.set()
    assert (await parent.run()).values["log"] == [["one", "ants", "bees"]]


async def test_a_child_that_its_parent_runs_is_not_written_to(running: Running) -> None:
    slow, parent, child = running.slow, running.parent, running.child
    for command in (Step(), UpdateState({"log": []}, expected_step=0)):
        with pytest.raises(ThreadBusy, match=r"thread 't/team#1' runs inside 't'"):
            await child.driver.execute(command)
    slow.go_on.set()
    await parent.until(lambda view: view.progress.status == "completed")


async def test_a_parent_waits_for_a_child_that_runs_on_its_own(running: Running) -> None:
    slow, parent, child = running.slow, running.parent, running.child
    await child.driver.execute(Pause())
    slow.go_on.set()
    await parent.until(lambda view: view.progress.reason == "paused")
    slow.go_on.clear()
    await child.driver.execute(Run())
    await child.until(lambda view: view.running_node == "scan")
    view = await parent.run()
    assert (view.progress.status, view.progress.reason) == ("waiting", "paused")
    assert "continue once that has ended" in view.dropped
    assert view.inside.child is not None  # so that one can look inside
    slow.go_on.set()
    await child.until(lambda view: view.progress.status == "completed")
    assert (await parent.run()).values["log"] == [["one", "ants", "bees"]]


async def test_a_waiting_child_that_is_cancelled_from_its_own_screen_fails_its_parents_node(
    store: Checkpointer,
) -> None:
    asks = StateGraph(CHANNELS).add_node("one", lambda _state, config: {"log": config.interrupt("sure?")})
    asks.add_edge(START, "one").add_edge("one", END)
    desk = Desk(store, around(asks).compile(checkpointer=store))
    parent = await desk.begin()
    await parent.until(lambda view: view.progress.pending)
    child = await Watcher.open(await desk.hub.open("t/team#1"))
    await child.driver.execute(Cancel(actor="ann", note="no longer needed"))
    view = await parent.until(lambda view: view.progress.status == "failed")
    assert (view.progress.reason, view.progress.pending) == ("node_error", ())
    assert view.progress.error is not None
    reason = "node 'team': its thread 't/team#1' was cancelled by ann: no longer needed"
    assert view.progress.error.message == reason
    assert (await parent.run()).progress.pending[0].thread == "t/team#2"
    await desk.hub.close()


async def test_the_end_of_a_subgraph_run_is_emitted_after_its_last_step(store: Checkpointer) -> None:
    run_events: list[Event] = []
    runner = StateGraph(CHANNELS).add_node("one", lambda _state: {"log": "done"}).add_edge(START, "one")
    runner.add_edge("one", END).compile(checkpointer=store).invoke(thread_id="t", on_event=run_events.append)
    run_events = run_events[
        next(at for at, event in enumerate(run_events) if isinstance(event, NodeStarted)) :
    ]
    events: list[Event] = []
    done = asyncio.Event()

    def record(event: Event) -> None:
        events.append(event)
        if isinstance(event, RunEnded):
            done.set()

    def catch_up() -> None:
        step = next(event for event in run_events if isinstance(event, StepCommitted))
        if step not in events:
            follower.step_is_next(step.checkpoint.step)
            record(step)

    loop = asyncio.get_running_loop()
    follower = Follower(loop, 0, catch_up=catch_up, emit=record)
    for event in run_events:  # all of it before the loop gets to any of it
        follower.hear(event)
    async with asyncio.timeout(PATIENCE):
        await done.wait()
    kinds = [type(event) for event in events if isinstance(event, (NodeStarted, StepCommitted, RunEnded))]
    assert kinds == [NodeStarted, StepCommitted, RunEnded]
