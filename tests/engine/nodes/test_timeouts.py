"""A node's timeout, for sync and async nodes."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from hitl_tui import END, START, Channel, NodeFailed, RetryPolicy, StateGraph
from hitl_tui.engine.log.events import NodeRetrying, NodeStarted
from hitl_tui.engine.nodes.calling import CallTimedOut, SyncCaller, call
from hitl_tui.engine.nodes.overlap import TimedOutAttempts
from tests.engine.building import chain, one_node
from tests.support.spec import spec

pytestmark = spec("5")

CHANNELS = {"n": Channel(0, reducer="sum")}
SOON = 0.02
# Enough for a node to have started on a busy machine.
STARTED = 0.3
# Under load an attempt that does nothing may take longer than that, too: then there is another one.
AS_OFTEN_AS_IT_TAKES = RetryPolicy(max_attempts=1000, wait=0, overlap=True)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Blocks a sync node for as long as the test runs."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def slow_sync(gate: threading.Event) -> Callable[..., Any]:
    def node(state: Any, config: Any) -> dict[str, Any]:
        gate.wait()
        return {"n": 100}

    return node


def line_of(error: NodeFailed) -> str:
    """The innermost line of ours that an error names."""
    frame = [frame for frame in error.frames if frame.file][-1]
    return frame.lines[frame.line - frame.first]


async def slow_async(state: Any, config: Any) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {"n": 100}


def test_a_sync_node_that_takes_longer_fails(slow_sync: Callable[..., Any]) -> None:
    with pytest.raises(NodeFailed, match=r"'n1', attempt 1: it took longer than 0\.3 s") as caught:
        one_node(CHANNELS, slow_sync, timeout=STARTED).invoke()
    assert "timeout" in caught.value.hint
    assert "its code still runs" in caught.value.hint
    assert "gate.wait()" in line_of(caught.value)


def test_an_async_node_that_takes_longer_fails_where_it_waits() -> None:
    with pytest.raises(NodeFailed, match=r"'n1', attempt 1: it took longer than 0\.3 s") as caught:
        one_node(CHANNELS, slow_async, timeout=STARTED).invoke()
    assert "still runs" not in caught.value.hint
    assert "await asyncio.Event().wait()" in line_of(caught.value)


def test_an_async_node_is_cancelled_then() -> None:
    ended: list[str] = []

    async def node(state: Any, config: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(NodeFailed, match="it took longer"):
        one_node(CHANNELS, node, timeout=STARTED).invoke()
    assert ended == ["cancelled"]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_timeout_is_of_each_attempt_and_is_retried(kind: str, slow_sync: Callable[..., Any]) -> None:
    def sync_node(state: Any, config: Any) -> Any:
        return slow_sync(state, config) if config.attempt < 3 else {"n": 1}

    async def async_node(state: Any, config: Any) -> Any:
        return await slow_async(state, config) if config.attempt < 3 else {"n": 1}

    node = sync_node if kind == "sync" else async_node
    events: list[object] = []
    runner = one_node(CHANNELS, node, timeout=SOON, retry=AS_OFTEN_AS_IT_TAKES)
    assert runner.invoke(on_event=events.append)["n"] == 1
    assert [event.attempt for event in events if isinstance(event, NodeStarted)][:3] == [1, 2, 3]


def test_a_late_result_of_a_timed_out_node_is_dropped() -> None:
    release, returned = threading.Event(), threading.Event()

    def first(state: Any, config: Any) -> dict[str, Any]:
        if config.attempt > 1:
            return {"n": 1}
        release.wait()
        returned.set()
        return {"n": 100}

    def second(state: Any, config: Any) -> dict[str, Any]:
        release.set()
        assert returned.wait(10)
        return {"n": 2}

    graph = StateGraph(CHANNELS).add_node("a", first, timeout=SOON, retry=AS_OFTEN_AS_IT_TAKES)
    graph.add_node("b", second)
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
    assert graph.compile().invoke()["n"] == 3


@pytest.mark.parametrize("place", ["node", "branch"])
def test_a_retry_waits_until_the_code_of_an_attempt_that_timed_out_has_ended(place: str) -> None:
    running, retrying = threading.Event(), threading.Event()
    errors: list[str] = []

    def node(state: Any, config: Any) -> dict[str, Any]:
        if config.attempt > 1:
            return {"n": 100 if running.is_set() else 1}
        running.set()
        retrying.wait()
        running.clear()
        return {"n": 100}

    def listen(event: object) -> None:
        if isinstance(event, NodeRetrying):
            errors.append(event.error)
            retrying.set()

    retry = RetryPolicy(max_attempts=1000, wait=0)
    if place == "node":
        runner = one_node(CHANNELS, node, timeout=STARTED, retry=retry)
    else:
        graph = StateGraph(CHANNELS).add_node("b", node, timeout=STARTED, retry=retry)
        runner = graph.add_parallel("p", ["b"]).add_edge(START, "p").add_edge("p", END).compile()
    assert runner.invoke(on_event=listen)["n"] == 1
    assert "the next attempt waits until the code of this one has ended" in errors[0]


async def test_a_retry_waits_for_an_async_node_that_blocks_its_loop(gate: threading.Event) -> None:
    async def blocking() -> None:
        gate.wait()

    caller = SyncCaller()
    with pytest.raises(CallTimedOut) as caught:
        await call(blocking, (), caller, STARTED)
    error = NodeFailed("it took longer", node="n1", attempt=1)
    error.__cause__ = caught.value
    timed_out = TimedOutAttempts(RetryPolicy())
    timed_out.add(error)
    waiting = asyncio.ensure_future(timed_out.ended())
    await asyncio.wait([waiting], timeout=SOON)
    assert not waiting.done()
    gate.set()
    await waiting
    caller.close()


def test_an_error_after_a_retry_names_the_attempt_whose_code_still_runs(gate: threading.Event) -> None:
    def node(state: Any, config: Any) -> None:
        if config.attempt == 1:
            gate.wait()
        raise ValueError("no luck")

    retry = RetryPolicy(max_attempts=2, wait=0, overlap=True)
    with pytest.raises(NodeFailed, match="no luck") as caught:
        one_node(CHANNELS, node, timeout=STARTED, retry=retry).invoke()
    assert "code of attempt 1 still runs in its thread" in caught.value.hint


def test_a_node_can_see_that_it_timed_out() -> None:
    seen: list[bool] = []
    looked = threading.Event()

    def node(state: Any, config: Any) -> None:
        while not config.cancelled:
            looked.wait(0.001)
        seen.append(config.cancelled)
        looked.set()

    with pytest.raises(NodeFailed, match="it took longer"):
        one_node(CHANNELS, node, timeout=SOON).invoke()
    assert looked.wait(10)
    assert seen == [True]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_timeout_error_raised_by_the_node_is_reported_as_its_own(kind: str) -> None:
    def sync_node(state: Any, config: Any) -> None:
        raise TimeoutError("the database did not answer")

    async def async_node(state: Any, config: Any) -> None:
        raise TimeoutError("the database did not answer")

    node = sync_node if kind == "sync" else async_node
    with pytest.raises(NodeFailed, match="TimeoutError: the database did not answer"):
        one_node(CHANNELS, node, timeout=60).invoke()


@pytest.mark.parametrize("timeout", [None, 60.0], ids=["inline", "in a thread"])
def test_a_node_that_raises_stop_iteration_fails_instead_of_hanging(timeout: float | None) -> None:
    with pytest.raises(NodeFailed, match="StopIteration"):
        one_node(CHANNELS, lambda state, config: next(iter(())), timeout=timeout).invoke()


def test_a_sync_node_under_a_timeout_leaves_no_thread_behind() -> None:
    threads: list[threading.Thread] = []

    def node(state: Any, config: Any) -> None:
        threads.append(threading.current_thread())

    chain(CHANNELS, node, node, timeout=60).compile().invoke()
    for thread in threads:
        assert thread is not threading.main_thread()
        thread.join(10)
        assert not thread.is_alive()


class TestSyncCaller:
    async def test_keeps_its_thread_for_the_next_call(self) -> None:
        caller = SyncCaller()
        first = await caller.call(threading.current_thread)
        second = await caller.call(threading.current_thread)
        assert first is second
        caller.close()
        first.join(10)
        assert not first.is_alive()

    async def test_passes_context_variables_of_the_caller(self) -> None:
        from contextvars import ContextVar

        variable: ContextVar[str] = ContextVar("variable", default="unset")
        variable.set("set")
        caller = SyncCaller()
        assert await caller.call(variable.get) == "set"
        caller.close()

    async def test_an_abandoned_thread_is_not_used_again(self, gate: threading.Event) -> None:
        caller = SyncCaller()
        with pytest.raises(TimeoutError):
            await call(gate.wait, (), caller, SOON)
        assert await call(lambda: "free", (), caller, 60) == "free"
        caller.close()


@pytest.mark.filterwarnings("error")
def test_a_coroutine_that_comes_after_its_call_was_given_up_is_closed() -> None:
    given_up, returned = threading.Event(), list[Coroutine[Any, Any, None]]()

    async def work() -> None:
        """Do nothing."""

    def start() -> Coroutine[Any, Any, None]:
        given_up.wait(20)
        returned.append(work())
        return returned[0]

    async def time_out() -> None:
        with pytest.raises(CallTimedOut):
            await call(start, (), None, 0.01)
        given_up.set()
        # A coroutine that is closed tells nobody.
        while not returned or inspect.getcoroutinestate(returned[0]) != inspect.CORO_CLOSED:  # noqa: ASYNC110
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(time_out(), 20))
