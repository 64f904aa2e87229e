"""Invoke, ainvoke, stream, astream and step, with sync and async nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    MemoryCheckpointer,
    ModelUse,
    NodeFailed,
    NodeResult,
    StateGraph,
    UsageError,
)
from hitl_tui.engine.nodes.results import RunResult
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain, one_node
from tests.support.spec import spec

pytestmark = spec("5")

CHANNELS = {"log": Channel([], reducer="append"), "n": Channel(0, reducer="sum")}


def sync_node(state: Any, config: Any) -> dict[str, Any]:
    return {"log": f"step {config.iteration}", "n": 1}


async def async_node(state: Any, config: Any) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"log": f"step {config.iteration}", "n": 1}


def failing(state: Any, config: Any) -> None:
    raise ValueError("no")


KINDS = {"sync": [sync_node] * 3, "async": [async_node] * 3, "mixed": [sync_node, async_node, sync_node]}


@pytest.fixture(params=list(KINDS))
def runner(request: pytest.FixtureRequest, store: Checkpointer) -> GraphRunner:
    return chain(CHANNELS, *KINDS[request.param]).compile(checkpointer=store)


def by_invoke(runner: GraphRunner) -> RunResult:
    return runner.invoke({"n": 10}, thread_id="t")


def by_ainvoke(runner: GraphRunner) -> RunResult:
    return asyncio.run(runner.ainvoke({"n": 10}, thread_id="t"))


def by_stream(runner: GraphRunner) -> RunResult:
    assert [step.node for step in runner.stream({"n": 10}, thread_id="t")] == ["n1", "n2", "n3"]
    return runner.invoke(thread_id="t")


def by_astream(runner: GraphRunner) -> RunResult:
    async def nodes() -> list[str]:
        return [step.node async for step in runner.astream({"n": 10}, thread_id="t")]

    assert asyncio.run(nodes()) == ["n1", "n2", "n3"]
    return runner.invoke(thread_id="t")


def by_step(runner: GraphRunner) -> RunResult:
    results = [runner.step({"n": 10}, thread_id="t"), runner.step(thread_id="t"), runner.step(thread_id="t")]
    assert [result["n"] for result in results] == [11, 12, 13]
    assert [result.status for result in results] == ["waiting", "waiting", "completed"]
    return results[-1]


def inside_a_loop(way: Callable[[GraphRunner], RunResult]) -> Callable[[GraphRunner], RunResult]:
    async def run(runner: GraphRunner) -> RunResult:
        return way(runner)

    return lambda runner: asyncio.run(run(runner))


WAYS = {
    "invoke": by_invoke,
    "ainvoke": by_ainvoke,
    "stream": by_stream,
    "astream": by_astream,
    "step": by_step,
    "invoke inside a running loop": inside_a_loop(by_invoke),
    "stream inside a running loop": inside_a_loop(by_stream),
    "step inside a running loop": inside_a_loop(by_step),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_every_entry_point_runs_the_same(
    way: Callable[[GraphRunner], RunResult], runner: GraphRunner
) -> None:
    result = way(runner)
    assert dict(result) == {"log": ["step 1", "step 2", "step 3"], "n": 13}
    assert (result.status, result.reason, result.step) == ("completed", "end", 3)
    assert runner.get_state("t") == dict(result)
    assert [checkpoint.node for checkpoint in runner.history("t")] == ["n3", "n2", "n1", ""]


def by_ainvoke_without_store(runner: GraphRunner) -> RunResult:
    return asyncio.run(runner.ainvoke({"n": 10}))


@pytest.mark.parametrize("way", [by_invoke, by_ainvoke_without_store], ids=["invoke", "ainvoke"])
def test_no_store_is_needed(way: Callable[[GraphRunner], RunResult]) -> None:
    assert way(chain(CHANNELS, sync_node, async_node).compile())["n"] == 12


class TestStream:
    def test_yields_node_step_iteration_updates_and_state_after_each_step(self, runner: GraphRunner) -> None:
        steps = list(runner.stream({"n": 10}, thread_id="t"))
        assert [(step.node, step.step, step.iteration) for step in steps] == [
            ("n1", 1, 1),
            ("n2", 2, 2),
            ("n3", 3, 3),
        ]
        assert [step.state["n"] for step in steps] == [11, 12, 13]
        lens = [[(u.channel, u.before, u.update, u.after) for u in step.updates] for step in steps]
        assert lens[1] == [("log", ["step 1"], "step 2", ["step 1", "step 2"]), ("n", 11, 1, 12)]

    def test_a_step_without_updates_yields_none(self) -> None:
        steps = list(chain(CHANNELS, sync_node, lambda s, c: None).compile().stream())
        assert [len(step.updates) for step in steps] == [2, 0]

    def test_leaving_early_pauses_the_thread_after_the_committed_step(self, runner: GraphRunner) -> None:
        for step in runner.stream(thread_id="t"):
            if step.node == "n2":
                break
        info = runner.run_info("t")
        assert (info.status, info.reason, info.iteration_count) == ("waiting", "paused", 2)
        assert runner.invoke(thread_id="t")["log"] == ["step 1", "step 2", "step 3"]

    async def test_leaving_astream_early_pauses_the_thread(self, runner: GraphRunner) -> None:
        steps = runner.astream(thread_id="t")
        assert (await anext(steps)).node == "n1"
        await steps.aclose()
        assert runner.run_info("t").reason == "paused"

    @pytest.mark.parametrize("way", ["stream", "astream"])
    def test_a_failed_node_raises_after_the_steps_before_it(self, way: str) -> None:
        runner = chain(CHANNELS, sync_node, failing).compile()
        nodes: list[str] = []

        async def collect() -> None:
            async for step in runner.astream():
                nodes.append(step.node)  # noqa: PERF401 - what came before the error counts

        def run() -> None:
            if way == "astream":
                return asyncio.run(collect())
            for step in runner.stream():
                nodes.append(step.node)  # noqa: PERF401 - what came before the error counts
            return None

        with pytest.raises(NodeFailed, match="ValueError: no"):
            run()
        assert nodes == ["n1"]

    def test_the_state_of_a_step_does_not_change_later(self, runner: GraphRunner) -> None:
        steps = list(runner.stream(thread_id="t"))
        assert [len(step.state["log"]) for step in steps] == [1, 2, 3]


class TestStep:
    def test_runs_one_node_and_waits(self, runner: GraphRunner) -> None:
        result = runner.step(thread_id="t")
        assert (result.status, result.reason, result.step) == ("waiting", "paused", 1)
        assert result.pending == ()

    def test_of_a_completed_thread_runs_nothing(self, runner: GraphRunner) -> None:
        runner.invoke(thread_id="t")
        assert runner.step(thread_id="t").step == 3

    def test_raises_as_invoke_does(self) -> None:
        with pytest.raises(NodeFailed, match="ValueError: no"):
            chain(CHANNELS, failing).compile().step()


class TestInvokeInsideALoop:
    async def test_raises_what_the_node_raised(self) -> None:
        with pytest.raises(NodeFailed, match="ValueError: no"):
            chain(CHANNELS, failing).compile().invoke()

    async def test_a_node_may_invoke_another_graph(self) -> None:
        inner = chain(CHANNELS, async_node).compile()

        async def node(state: Any, config: Any) -> dict[str, Any]:
            return {"n": inner.invoke({"n": 5})["n"]}

        assert (await chain(CHANNELS, node).compile().ainvoke())["n"] == 6

    async def test_many_threads_run_at_once(self, runner: GraphRunner) -> None:
        results = await asyncio.gather(*(runner.ainvoke({"n": n}, thread_id=f"t{n}") for n in range(5)))
        assert [result["n"] for result in results] == [3, 4, 5, 6, 7]


class TestOnStep:
    def test_is_called_with_node_and_state_after_each_step(self, runner: GraphRunner) -> None:
        seen: list[Any] = []
        runner.invoke(thread_id="t", on_step=lambda node, state: seen.append((node, state["n"], list(state))))
        assert seen == [("n1", 1, ["log", "n"]), ("n2", 2, ["log", "n"]), ("n3", 3, ["log", "n"])]

    def test_an_error_of_the_callback_is_raised_and_pauses_the_thread(self, runner: GraphRunner) -> None:
        def stop(node: str, state: Any) -> None:
            raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            runner.invoke(thread_id="t", on_step=stop)
        info = runner.run_info("t")
        assert (info.status, info.reason, info.iteration_count) == ("waiting", "paused", 1)


@pytest.mark.parametrize(
    ("option", "way"),
    [
        ("on_event", lambda runner, **given: runner.invoke(thread_id="t", **given)),
        ("on_step", lambda runner, **given: runner.invoke(thread_id="t", **given)),
        ("on_event", lambda runner, **given: list(runner.stream(thread_id="t", **given))),
        ("on_event", lambda runner, **given: runner.step(thread_id="t", **given)),
        ("on_event", lambda runner, **given: runner.rollback("t", **given)),
        ("on_event", lambda runner, **given: runner.open("t", **given)),
    ],
    ids=["invoke", "on_step", "stream", "step", "rollback", "open"],
)
def test_a_callback_that_is_not_callable_is_refused_when_given(option: str, way: Callable[..., Any]) -> None:
    store = MemoryCheckpointer()
    runner = chain(CHANNELS, sync_node).compile(checkpointer=store)
    for callback in ("x", 3, {}):
        with pytest.raises(UsageError, match=f"{option} is "):
            way(runner, **{option: callback})
    assert store.list_threads() == []


def test_verbose_prints_a_line_a_step(runner: GraphRunner, capsys: pytest.CaptureFixture[str]) -> None:
    runner.invoke(thread_id="t", verbose=True)
    assert capsys.readouterr().out.splitlines() == [
        "step 1: n1 -> n2; 0 tokens, $0.0000",
        "step 2: n2 -> n3; 0 tokens, $0.0000",
        "step 3: n3 -> completed (end); 0 tokens, $0.0000",
    ]


@pytest.mark.parametrize(
    ("known", "price"), [((), "price unknown"), ((0.25,), "at least $0.2500")], ids=["all", "some"]
)
def test_verbose_says_where_a_price_is_unknown(
    known: tuple[float, ...], price: str, capsys: pytest.CaptureFixture[str]
) -> None:
    uses = [ModelUse("a", "p", "m", 1, 2, cost) for cost in (*known, None)]
    one_node({"n": Channel(0)}, lambda state, config: NodeResult({"n": 1}, usage=uses)).invoke(verbose=True)
    assert capsys.readouterr().out.strip().endswith(f"tokens, {price}")


def test_printing_a_result_shows_its_channels() -> None:
    channels = {
        "draft": Channel(""),
        "notes": Channel([], reducer="append"),
        "key": Channel("", visibility="private"),
    }
    graph = StateGraph(channels).add_node("a", lambda s: {"draft": "one\ntwo", "notes": 3, "key": "k-1"})
    runner = (
        graph.add_edge(START, "a")
        .add_edge("a", END)
        .compile(checkpointer=MemoryCheckpointer(), interrupt_after="a")
    )
    result = runner.invoke(thread_id="t")
    assert str(result).splitlines() == [
        "thread t: waiting (interrupt) at step 1",
        f"  waits for an answer: {result.pending[0].title}",
        r'  draft  "one\ntwo"',
        "  notes  list of 1: [3]",
        "  key    [private]",
    ]
