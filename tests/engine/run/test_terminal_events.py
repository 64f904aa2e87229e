"""Every run ends with exactly one terminal event, whatever ends it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, StateGraph, max_turns
from hitl_tui.engine.log.events import (
    AttemptDropped,
    AttemptFailed,
    NodeStarted,
    ProgressChanged,
    RunEnded,
    RunStarted,
)
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.run.loop import RunLoop
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.errors import HitlError, ThreadBusy
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain
from tests.engine.nodes.graphs import grouped
from tests.engine.nodes.subgraphs import gated, inner, outer
from tests.support.spec import spec

pytestmark = spec("5")

CHANNELS = {"n": Channel(0, reducer="sum")}
GATE = Gate("n1", "go on?", [GateChoice("yes", "yes")])


def good(state: Any, config: Any) -> dict[str, int]:
    return {"n": 1}


def bad(state: Any, config: Any) -> None:
    raise ValueError("no")


def asking(state: Any, config: Any) -> None:
    config.interrupt("may I?")


def fatal(state: Any, config: Any) -> None:
    raise SystemExit(3)


def broken_route(state: Any) -> str:
    return "zap"


def routed(**options: Any) -> GraphRunner:
    graph = StateGraph(CHANNELS).add_node("n1", good).add_edge(START, "n1")
    return graph.add_conditional_edge("n1", broken_route, {"x": END}).compile(**options)


def dead_end(**options: Any) -> GraphRunner:
    return (
        StateGraph(CHANNELS)
        .add_node("n1", good)
        .add_edge(START, "n1")
        .compile(termination=max_turns(9), **options)
    )


Build = Callable[..., GraphRunner]
ENDINGS: dict[str, tuple[Build, str, str]] = {
    "the end": (lambda **o: chain(CHANNELS, good, good).compile(**o), "completed", "end"),
    "a termination": (
        lambda **o: chain(CHANNELS, good, good).compile(termination=max_turns(1), **o),
        "completed",
        "termination",
    ),
    "a limit": (
        lambda **o: chain(CHANNELS, good, good).compile(limits=Limits(max_iterations=1), **o),
        "failed",
        "limit",
    ),
    "a dead end": (dead_end, "failed", "dead_end"),
    "a node that raises": (lambda **o: chain(CHANNELS, good, bad).compile(**o), "failed", "node_error"),
    "a route that fails": (routed, "failed", "node_error"),
    "a breakpoint before": (
        lambda **o: chain(CHANNELS, good).compile(interrupt_before="*", **o),
        "waiting",
        "interrupt",
    ),
    "a breakpoint after": (
        lambda **o: chain(CHANNELS, good).compile(interrupt_after="*", **o),
        "waiting",
        "interrupt",
    ),
    "a gate": (lambda **o: chain(CHANNELS, good).compile(interrupt_after=[GATE], **o), "waiting", "approval"),
    "a question inside a node": (lambda **o: chain(CHANNELS, asking).compile(**o), "waiting", "interrupt"),
    "the end of a graph with one inside": (
        lambda checkpointer: outer(inner(), checkpointer),
        "completed",
        "end",
    ),
    "a question of a graph inside": (lambda checkpointer: gated(store=checkpointer), "waiting", "approval"),
    "a graph inside that fails": (
        lambda checkpointer: outer(inner(bad), checkpointer),
        "failed",
        "node_error",
    ),
    "branches one of which fails": (
        lambda checkpointer: grouped(checkpointer, a=lambda _s: {"total": 1}, b=bad),
        "completed",
        "end",
    ),
    "branches that fail their node": (
        lambda checkpointer: grouped(checkpointer, group={"on_error": "fail"}, a=bad),
        "failed",
        "node_error",
    ),
    "a node that ends the process": (lambda **o: chain(CHANNELS, fatal).compile(**o), "waiting", "paused"),
}


def run_catching(way: Callable[[], Any]) -> None:
    with contextlib.suppress(HitlError, SystemExit):
        way()


def ends(events: list[Any]) -> list[tuple[str, str]]:
    return [(e.progress.status, e.progress.reason) for e in events if isinstance(e, RunEnded)]


@pytest.mark.parametrize(("build", "status", "reason"), ENDINGS.values(), ids=ENDINGS)
class TestExactlyOneEnd:
    def test_of_invoke(self, build: Build, status: str, reason: str, store: Checkpointer) -> None:
        events: list[Any] = []
        runner = build(checkpointer=store)
        run_catching(lambda: runner.invoke(thread_id="t", on_event=events.append))
        assert ends(events) == [(status, reason)]
        assert isinstance(events[-1], RunEnded)
        assert sum(isinstance(event, RunStarted) for event in events) == 1
        cursor = store.cursor("t")
        assert cursor is not None
        assert (cursor.status, cursor.reason) == (status, reason)
        assert store.lease("t") is None, "the thread is given back"

    def test_of_stream(self, build: Build, status: str, reason: str, store: Checkpointer) -> None:
        events: list[Any] = []
        runner = build(checkpointer=store)
        run_catching(lambda: list(runner.stream(thread_id="t", on_event=events.append)))
        assert ends(events) == [(status, reason)]

    def test_of_each_step(self, build: Build, status: str, reason: str, store: Checkpointer) -> None:
        runner = build(checkpointer=store)
        for _ in range(3):
            events: list[Any] = []
            run_catching(lambda events=events: runner.step(thread_id="t", on_event=events.append))  # type: ignore[misc]
            assert len(ends(events)) == 1


def test_of_a_thread_that_is_done_already(store: Checkpointer) -> None:
    runner = chain(CHANNELS, good).compile(checkpointer=store)
    runner.invoke(thread_id="t")
    events: list[Any] = []
    runner.invoke(thread_id="t", on_event=events.append)
    assert ends(events) == [("completed", "end")]
    assert not any(isinstance(event, NodeStarted) for event in events)


def test_of_a_stream_that_is_left_early(store: Checkpointer) -> None:
    events: list[Any] = []
    stream = (
        chain(CHANNELS, good, good).compile(checkpointer=store).stream(thread_id="t", on_event=events.append)
    )
    next(iter(stream))
    stream.close()  # type: ignore[attr-defined]
    assert ends(events) == [("waiting", "paused")]


def test_of_a_listener_that_raises(store: Checkpointer) -> None:
    events: list[Any] = []

    def listen(event: Any) -> None:
        events.append(event)
        if isinstance(event, NodeStarted):
            raise RuntimeError("listener")

    with pytest.raises(RuntimeError, match="listener"):
        chain(CHANNELS, good).compile(checkpointer=store).invoke(thread_id="t", on_event=listen)
    assert len(ends(events)) == 1


class Endless:
    """An async node that says when it has started, and never ends."""

    def __init__(self) -> None:
        self.started = asyncio.Event()

    async def __call__(self, state: Any, config: Any) -> dict[str, int]:
        self.started.set()
        await asyncio.Event().wait()
        return {"n": 100}


async def test_of_a_cancelled_task(store: Checkpointer) -> None:
    events: list[Any] = []
    node = Endless()
    runner = chain(CHANNELS, good, node).compile(checkpointer=store)
    task = asyncio.create_task(runner.ainvoke(thread_id="t", on_event=events.append))
    await node.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ends(events) == [("waiting", "paused")]
    assert runner.get_state("t") == {"n": 1}
    assert store.lease("t") is None


async def test_of_a_cancelled_attempt(store: Checkpointer) -> None:
    events: list[Any] = []
    node = Endless()
    runner = chain(CHANNELS, good, node).compile(checkpointer=store)
    runner.step(thread_id="t")
    run = RunLoop(runner.open("t", events.append))

    async def drain() -> list[str]:
        return [name async for name in run.steps()]

    task = asyncio.create_task(drain())
    await node.started.wait()
    assert run.node_in_flight == "n2"
    assert run.stop_attempt("cancelled by ann")
    assert await task == []
    assert ends(events) == [("waiting", "paused")]
    assert [event for event in events if isinstance(event, AttemptDropped)] == [
        AttemptDropped("n2", 1, "cancelled by ann")
    ]
    cursor = store.cursor("t")
    assert cursor is not None
    assert (cursor.head, cursor.next_node, cursor.attempt) == (1, "n2", 2)


async def test_of_a_run_that_is_paused_stops_at_the_next_node_boundary(store: Checkpointer) -> None:
    events: list[Any] = []
    runner = chain(CHANNELS, good, good, good).compile(checkpointer=store)
    runner.step(thread_id="t")
    run = RunLoop(runner.open("t", events.append))
    nodes: list[str] = []
    async for name in run.steps():
        nodes.append(name)
        run.pause()
    assert nodes == ["n2"]
    assert ends(events) == [("waiting", "paused")]


def test_a_failed_node_is_emitted_before_the_end() -> None:
    events: list[Any] = []
    run_catching(lambda: chain(CHANNELS, bad).compile().invoke(on_event=events.append))
    kinds = [type(event) for event in events if not isinstance(event, ProgressChanged)]
    assert kinds[-2:] == [AttemptFailed, RunEnded]
    failed = next(event for event in events if isinstance(event, AttemptFailed))
    assert (failed.error.node, failed.error.attempt) == ("n1", 1)
    assert "ValueError: no" in failed.error.message
    assert "Traceback" in failed.error.details


async def test_a_second_run_of_a_thread_that_runs_is_refused_without_an_end(store: Checkpointer) -> None:
    node = Endless()
    runner = chain(CHANNELS, node).compile(checkpointer=store)
    task = asyncio.create_task(runner.ainvoke(thread_id="t"))
    await node.started.wait()
    events: list[Any] = []
    with pytest.raises(ThreadBusy):
        await runner.ainvoke(thread_id="t", on_event=events.append)
    assert ends(events) == []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
