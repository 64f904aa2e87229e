"""Giving up what is in flight: model calls that stream, nodes that resist, and code that ends its thread."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from hitl_tui import Agent, RetryPolicy
from hitl_tui.agents.backend import Use
from hitl_tui.engine.commands import CancelAttempt, Pause, Run, Start
from hitl_tui.engine.log.events import AttemptDropped, NodeStarted, RunEnded, TextStreamed
from tests.drivers.conftest import Bench
from tests.support.flows import check_log, line, say
from tests.support.spec import spec
from tests.support.watching import Blocker, Watcher

pytestmark = spec("5")


class Endless:
    """A model that says a word and then thinks for ever, unless it was told to answer before the call."""

    def __init__(self) -> None:
        self.answers = False
        self.calls = 0

    async def stream(self, messages: Any, options: Any) -> AsyncGenerator[str | Use, None]:
        self.calls += 1
        answers = self.answers  # a call that is given up must not answer after all
        yield "well, "
        if not answers:
            await asyncio.Event().wait()
        yield "done"
        yield Use("p", "m", 1, 1, 0.5)

    def estimate(self, messages: Any, text: str) -> Use:
        return Use("p", "m", 1, 1, 0.25)


def chatting(style: str) -> Any:
    def sync(state: Any, config: Any) -> dict[str, Any]:
        return {"log": config.agents["a"].chat("hello")}

    async def on_a_loop(state: Any, config: Any) -> dict[str, Any]:
        return {"log": await config.agents["a"].achat("hello")}

    return sync if style == "sync" else on_a_loop


async def streaming(bench: Bench, style: str) -> tuple[Watcher, Endless]:
    model = Endless()
    runner = line(bench.store, chatting(style), say("after"), agents={"a": Agent("a", model)})
    watcher = await bench.watch(runner)
    await watcher.driver.execute(Start({}))
    await watcher.driver.execute(Run())
    await watcher.until(lambda view: view.stream.text == "well, ")
    return watcher, model


@pytest.mark.parametrize("style", ["sync", "async"])
async def test_a_streaming_model_call_is_cancelled(bench: Bench, style: str) -> None:
    watcher, model = await streaming(bench, style)
    await watcher.driver.execute(CancelAttempt())
    view = await watcher.until(lambda view: view.progress.status == "waiting")
    assert (view.progress.head, view.progress.reason, view.stream.live) == (0, "paused", False)
    await watcher.check()
    model.answers = True
    view = await watcher.run()
    assert view.values["log"] == ["well, done", "after"]
    assert [(event.attempt, event.step) for event in watcher.events_of(NodeStarted)] == [
        (1, 1),
        (2, 1),
        (1, 2),
    ]
    await watcher.check()


async def test_usage_of_a_cancelled_call_is_counted(bench: Bench) -> None:
    watcher, model = await streaming(bench, "sync")
    await watcher.driver.execute(CancelAttempt())
    view = await watcher.until(lambda view: view.progress.status == "waiting" and watcher.events_of(RunEnded))
    assert view.progress.cost in (0.0, 0.25)
    model.answers = True
    await watcher.run()
    assert model.calls == 2


async def test_closing_while_a_model_streams(bench: Bench) -> None:
    watcher, _ = await streaming(bench, "sync")
    assert "'a' was running" in await watcher.driver.close()


async def test_cancelling_a_sync_node_says_that_its_code_still_runs(bench: Bench) -> None:
    started, released, seen = threading.Event(), threading.Event(), list[bool]()

    def hangs(_state: Any, config: Any) -> None:
        started.set()
        released.wait()
        seen.append(config.cancelled)

    watcher = await bench.watch(line(bench.store, hangs, say("after")))
    await watcher.driver.execute(Start({}))
    await watcher.driver.execute(Run())
    await asyncio.to_thread(started.wait)
    await watcher.driver.execute(CancelAttempt())
    await watcher.until(lambda view: view.progress.status == "waiting" and watcher.events_of(RunEnded))
    released.set()
    assert [event.why for event in watcher.events_of(AttemptDropped)] == [
        "stopped by you; its code still runs in its thread"
    ]


async def test_cancelling_when_nothing_runs_does_nothing(bench: Bench) -> None:
    watcher = await bench.watch(line(bench.store, say("one")))
    await watcher.driver.execute(Start({}))
    await watcher.driver.execute(CancelAttempt())
    await watcher.driver.execute(Pause())
    assert (await watcher.run()).progress.status == "completed"


async def test_a_node_that_swallows_its_cancellation_commits_nothing(bench: Bench) -> None:
    entered, calls = asyncio.Event(), []
    loop = asyncio.get_running_loop()

    async def stubborn(state: Any) -> dict[str, Any]:
        calls.append(1)
        if len(calls) > 1:
            return {"log": "at last"}
        loop.call_soon_threadsafe(entered.set)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return {"log": "stubborn"}

    watcher = await bench.watch(line(bench.store, stubborn))
    await watcher.driver.execute(Start({}))
    await watcher.driver.execute(Run())
    await entered.wait()
    await watcher.driver.execute(CancelAttempt())
    view = await watcher.until(lambda view: view.progress.status != "running")
    assert (view.progress.status, view.values["log"]) == ("waiting", [])
    assert (await watcher.run()).values["log"] == ["at last"]


async def test_cancelling_ends_retries_as_well(bench: Bench) -> None:
    blocker, calls = Blocker(), []

    def flaky(state: Any) -> None:
        calls.append(1)
        blocker._enter()
        raise ValueError("flaky")

    policy = RetryPolicy(max_attempts=9, wait=1000)
    watcher = await bench.watch(line(bench.store, flaky, retry=policy))
    await watcher.driver.execute(Start({}))
    await watcher.driver.execute(Run())
    await watcher.until(lambda view: view.retry is not None)
    await watcher.driver.execute(CancelAttempt())
    view = await watcher.until(lambda view: view.progress.status != "running")
    assert (view.progress.status, view.progress.reason, len(calls)) == ("waiting", "paused", 1)


class Unusual(BaseException):
    """No Exception, and none of Python's own."""


@pytest.mark.parametrize("style", ["sync", "async"])
@pytest.mark.parametrize("ending", [SystemExit, StopIteration, KeyboardInterrupt, GeneratorExit, Unusual])
async def test_a_node_that_would_end_its_thread_fails_like_any_other(
    bench: Bench, style: str, ending: Any
) -> None:
    def sync(state: Any) -> None:
        if ending is SystemExit:
            sys.exit(3)
        if ending is StopIteration:
            next(iter(()))
        raise ending

    async def on_a_loop(state: Any) -> None:
        sync(state)

    watcher = await bench.watch(line(bench.store, sync if style == "sync" else on_a_loop))
    await watcher.driver.execute(Start({}))
    view = await watcher.run()
    assert (view.progress.status, view.progress.reason) == ("failed", "node_error")
    assert view.error is not None
    assert ending.__name__ in view.error.message or "StopIteration" in view.error.message
    assert len(watcher.events_of(RunEnded)) == 1
    await watcher.check()


async def test_output_of_an_abandoned_node_is_dropped(bench: Bench) -> None:
    blocker, late = Blocker(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def node(state: Any, config: Any) -> dict[str, Any]:
        if config.attempt == 1:
            blocker.sleep()
            config.emit("too late")
            loop.call_soon_threadsafe(late.set)
        return {"log": f"attempt {config.attempt}"}

    runner = line(bench.store, node)
    watcher = await bench.watch(runner)
    await watcher.driver.execute(Start({}))
    await watcher.driver.execute(Run())
    await blocker.entered()
    await watcher.driver.execute(CancelAttempt())
    await watcher.until(lambda view: view.progress.status == "waiting")
    blocker.release()
    await late.wait()
    view = await watcher.run()
    assert view.values["log"] == ["attempt 2"]
    assert watcher.events_of(TextStreamed) == []
    check_log(runner, "t")
