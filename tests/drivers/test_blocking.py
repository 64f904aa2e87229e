"""A node that sleeps or burns CPU for long must not delay anything else (issue 2)."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, StateGraph, ThreadBusy
from hitl_tui.engine.commands import Cancel, CancelAttempt, Fork, Pause, Run, Start, UpdateState
from hitl_tui.engine.log.events import AttemptDropped, RunEnded, StepCommitted
from hitl_tui.engine.nodes.activity import Activity
from tests.drivers.conftest import Bench
from tests.support.flows import check_log, line, say
from tests.support.spec import spec
from tests.support.watching import PATIENCE, Blocker, Watcher

pytestmark = spec("5")

Work = Callable[[Blocker], Any]


def asleep(blocker: Blocker) -> Any:
    def node(state: Any) -> dict[str, Any]:
        blocker.sleep()
        return {"log": "slow"}

    return node


def burning(blocker: Blocker) -> Any:
    def node(state: Any) -> dict[str, Any]:
        blocker.burn()
        return {"log": "slow"}

    return node


def asleep_on_a_loop(blocker: Blocker) -> Any:
    async def node(state: Any) -> dict[str, Any]:
        blocker.sleep()
        return {"log": "slow"}

    return node


def burning_on_a_loop(blocker: Blocker) -> Any:
    async def node(state: Any) -> dict[str, Any]:
        blocker.burn()
        return {"log": "slow"}

    return node


def quick_at_first(way: Work) -> Work:
    """The first call is over at once, so that the next one is made on the engine's own thread."""

    def made(blocker: Blocker) -> Any:
        slow, calls = way(blocker), count()

        def node(state: Any) -> dict[str, Any]:
            return slow(state) if next(calls) else {"log": "one"}  # type: ignore[no-any-return]

        return node

    return made


BUSY_LATER = [quick_at_first(asleep), quick_at_first(burning)]
WAYS = [asleep, burning, asleep_on_a_loop, burning_on_a_loop, *BUSY_LATER]


async def in_the_node(bench: Bench, way: Work) -> tuple[Watcher, Blocker, GraphRunner]:
    """A thread whose second node is busy."""
    blocker = Blocker()
    node = way(blocker)
    first = node if way in BUSY_LATER else say("one")
    runner = line(bench.store, first, node, say("three"))
    watcher = await bench.watch(runner)
    await watcher.driver.execute(Start({"log": "go"}))
    await watcher.driver.execute(Run())
    await blocker.entered()
    return watcher, blocker, runner


@pytest.mark.parametrize("way", WAYS)
async def test_everything_is_served_while_a_node_is_busy(bench: Bench, way: Work) -> None:
    watcher, blocker, _ = await in_the_node(bench, way)
    driver = watcher.driver
    ticks = 0
    async with asyncio.timeout(PATIENCE):
        for _ in range(8):
            snapshot = await driver.snapshot()
            assert (snapshot.progress.status, snapshot.progress.head) == ("running", 1)
            assert (await driver.state_at(0))["log"] == ["go"]
            assert (await driver.state_at(1))["log"] == ["go", "one"]
            assert [update.channel for update in (await driver.updates(1, 1))[1]] == ["log"]
            assert len(await driver.history()) == 2
            assert len(await driver.family()) == 1
            assert (await driver.preview(UpdateState({"draft": "x"}))).problems == {}
            await watcher.look()
            await asyncio.sleep(0)
            ticks += 1
        with pytest.raises(ThreadBusy):
            await driver.execute(UpdateState({"draft": "x"}, expected_step=1))
        with pytest.raises(ThreadBusy):
            await driver.execute(Run())
        assert await driver.execute(Fork(1, "f")) == "f"
        await driver.execute(Pause())
    assert ticks == 8
    assert (await watcher.look()).running_node == "b"
    blocker.release()
    view = await watcher.until(lambda view: view.progress.status != "running")
    assert (view.progress.status, view.progress.reason, view.progress.head) == ("waiting", "paused", 2)
    await watcher.until(lambda view: view.last_event >= 0)


@pytest.mark.parametrize("way", WAYS)
async def test_cancelling_the_node_commits_nothing_and_frees_the_thread_at_once(
    bench: Bench, way: Work
) -> None:
    watcher, blocker, runner = await in_the_node(bench, way)
    async with asyncio.timeout(PATIENCE):
        await watcher.driver.execute(CancelAttempt())
    view = await watcher.until(lambda view: view.dropped and view.progress.status == "waiting")
    assert (view.progress.reason, view.progress.head, view.progress.next_node) == ("paused", 1, "b")
    assert [event.node for event in watcher.events_of(AttemptDropped)] == ["b"]
    assert await watcher.driver.execute(UpdateState({"draft": "meanwhile"}, expected_step=1)) == 2
    blocker.release()
    await watcher.run()
    assert (await watcher.check()).values["log"] == ["go", "one", "slow", "three"]
    assert [event.checkpoint.attempt for event in watcher.events_of(StepCommitted)] == [1, 1, 1, 2, 1]
    check_log(runner, "t")


@pytest.mark.parametrize("way", WAYS)
async def test_closing_says_what_was_not_committed(bench: Bench, way: Work) -> None:
    watcher, blocker, runner = await in_the_node(bench, way)
    async with asyncio.timeout(PATIENCE):
        lost = await watcher.driver.close()
    assert "'b' was running" in lost
    assert "nothing of it was saved" in lost
    cursor = bench.store.cursor("t")
    assert cursor is not None
    assert (cursor.status, cursor.reason, cursor.head) == ("waiting", "paused", 1)
    assert bench.store.lease("t") is None
    blocker.release()
    assert list(runner.invoke(thread_id="t")["log"]) == ["go", "one", "slow", "three"]
    check_log(runner, "t")


async def test_closing_between_nodes_loses_nothing(bench: Bench) -> None:
    watcher = await bench.watch(line(bench.store, say("one")))
    await watcher.driver.execute(Start({}))
    await watcher.run()
    assert await watcher.driver.close() == ""
    assert await watcher.driver.close() == ""


@pytest.mark.parametrize("way", WAYS[:4])
async def test_a_late_watcher_sees_the_running_node(bench: Bench, way: Work) -> None:
    blocker = Blocker()
    work = way(blocker)

    def talking(state: Any, config: Any) -> Any:
        config.emit("so far")
        return work(state)

    watcher = await bench.watch(line(bench.store, say("one"), talking))
    await watcher.driver.execute(Start({}))
    await watcher.driver.execute(Run())
    await blocker.entered()
    late = await Watcher.open(watcher.driver)
    view = await late.look()
    live = await watcher.look()
    assert (view.running_node, view.stream.text, view.stream.live) == ("b", "so far", True)
    assert (view.running_since, view.running_attempt) == (live.running_since, live.running_attempt)
    blocker.release()
    for one in (late, watcher):
        await one.until(lambda view: view.progress.status == "completed")
        await one.check()


async def test_the_thread_can_be_cancelled_while_a_node_is_busy(bench: Bench) -> None:
    watcher, blocker, _ = await in_the_node(bench, asleep)
    async with asyncio.timeout(PATIENCE):
        await watcher.driver.execute(Cancel(actor="ann", note="enough"))
    view = await watcher.check()
    assert (view.progress.status, view.progress.reason, view.progress.head) == ("cancelled", "user", 1)
    blocker.release()
    await watcher.check()
    assert len(watcher.events_of(RunEnded)) == 1


async def test_pausing_stops_at_the_next_boundary_and_only_once(bench: Bench) -> None:
    watcher, blocker, _ = await in_the_node(bench, asleep)
    for _ in range(3):
        await watcher.driver.execute(Pause())
    blocker.release()
    view = await watcher.until(lambda view: view.progress.status != "running")
    assert (view.progress.reason, view.progress.head) == ("paused", 2)
    assert (await watcher.run()).progress.status == "completed"


async def test_a_node_that_is_quick_again_and_again_may_block_each_time_after(bench: Bench) -> None:
    blockers = [Blocker(), Blocker()]
    threads: list[str] = []

    def node(state: Any) -> dict[str, Any]:
        calls = len(threads)
        threads.append(threading.current_thread().name)
        if calls in (5, 11):
            blockers[calls > 5].sleep()
        return {"log": str(calls)}

    watcher = await bench.watch(line(bench.store, *[node] * 14))
    await watcher.driver.execute(Start({}))
    await watcher.driver.execute(Run())
    for blocker, head in zip(blockers, (5, 11), strict=True):
        await blocker.entered()
        async with asyncio.timeout(PATIENCE):
            assert (await watcher.driver.snapshot()).progress.head == head
        blocker.release()
    await watcher.until(lambda view: view.progress.status == "completed")
    assert (await watcher.check()).values["log"] == [str(call) for call in range(14)]
    assert set(threads) == {f"hitl-tui engine {watcher.driver.thread_id}", "hitl-tui node"}


async def say_async(state: Any) -> dict[str, Any]:
    return {"log": "async"}


def mapping(store: Any, steps: int) -> GraphRunner:
    """A map after a map, each over one item."""
    graph = StateGraph({"items": Channel([1], reducer="overwrite"), "log": Channel([], reducer="append")})
    names = [f"n{place}" for place in range(steps)]
    for name in names:
        graph.add_map(name, over="items", node=say("mapped"))
    for source, target in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(source, target)
    return graph.compile(checkpointer=store)


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda store, steps: line(store, *[say("quick")] * steps), id="quick"),
        pytest.param(lambda store, steps: line(store, *[say_async] * steps), id="async"),
        pytest.param(mapping, id="map"),
    ],
)
async def test_attempts_that_have_returned_do_not_wait_for_the_garbage_collector(
    bench: Bench, build: Callable[[Any, int], GraphRunner]
) -> None:
    steps = 20
    watcher = await bench.watch(build(bench.store, steps))
    gc.collect()
    gc.disable()
    try:
        await watcher.driver.execute(Start({}))
        await watcher.run()
        alive = [each for each in gc.get_objects() if type(each) is Activity]
    finally:
        gc.enable()
    assert len(watcher.events_of(StepCommitted)) == steps + 1
    assert len(alive) < steps / 2
