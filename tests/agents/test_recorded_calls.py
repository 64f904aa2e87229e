"""Completed calls stay completed, and each decision applies to its own call, wherever agents are used."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    GraphRunner,
    Limits,
    MemoryCheckpointer,
    NodeFailed,
    RetryPolicy,
    SQLiteCheckpointer,
    StateGraph,
    ToolConfig,
)
from hitl_tui.agents import Agent, ScriptedModel, Tool, ToolCall, parallel_chat
from hitl_tui.engine.nodes.results import RunResult
from hitl_tui.errors import ModelFailed
from hitl_tui.stores import Checkpointer, FileCheckpointer
from hitl_tui.stores.deletion import delete_in_batches, plan_deletion
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.support.spec import spec

pytestmark = spec("11")

REFUSED = "Error: A person refused this call"
BOTH = pytest.mark.parametrize(
    "answers", [("approve", "approve"), ("reject", "approve"), ("approve", "reject")], ids="+".join
)


class Cashier:
    """A tool that keeps the keys of its calls, an agent that calls it, and what may go wrong afterwards."""

    def __init__(self, **options: Any) -> None:
        self.keys: list[str] = []
        self.failures = 0
        tool = Tool(self.pay, **{"approve": "always", **options})
        self.agent = Agent("cashier", ScriptedModel(self._reply, pace=0), tools=[tool])

    def pay(self, config: ToolConfig) -> str:
        """Pay."""
        self.keys.append(config.idempotency_key)
        return "paid"

    def _reply(self, messages: Sequence[Mapping[str, Any]]) -> Any:
        if messages[-1]["role"] == "user":
            return ToolCall("pay")
        if self.failures:
            self.failures -= 1
            raise ModelFailed("the provider is away")
        return messages[-1]["content"]


def node_runner(
    work: Callable[..., Any], *agents: Agent, store: Checkpointer | None = None, **options: Any
) -> GraphRunner:
    """A runner of one node that works with these agents."""
    graph = StateGraph({"out": Channel(None)}).add_node("work", work, **options)
    return (
        graph.add_edge(START, "work")
        .add_edge("work", END)
        .compile(checkpointer=store or MemoryCheckpointer(), agents={agent.name: agent for agent in agents})
    )


def chat(_state: Any, config: Any) -> dict[str, Any]:
    return {"out": config.agents["cashier"].chat("go")}


def decide(runner: GraphRunner, *answers: Any) -> RunResult:
    """Give these answers one after another, each to the first question then, and run to the end."""
    result = runner.invoke(thread_id="t")
    for answer in answers:
        request = result.pending[0]
        runner.answer("t", request.id, answer, step=request.step, actor="ann")
        result = runner.invoke(thread_id="t")
    assert not result.pending
    assert runner.verify("t", strict=True).ok
    return result


def results_for(answers: Sequence[str]) -> list[str]:
    """What models read of calls that were decided so."""
    return ["paid" if answer == "approve" else REFUSED for answer in answers]


@BOTH
@pytest.mark.parametrize("at_once", [True, False], ids=["one reply", "two replies"])
@pytest.mark.parametrize("is_reloaded", [False, True], ids=["same process", "reloaded"])
def test_each_decision_applies_to_its_own_call_of_an_agent_inside_a_tool(
    tmp_path: Path, answers: tuple[str, str], at_once: bool, is_reloaded: bool
) -> None:
    cashier = Cashier()

    def delegate() -> str:
        """Let the cashier do it."""
        return cashier.agent.fresh().chat("the same each time")

    def reply(messages: Sequence[Mapping[str, Any]]) -> Any:
        results = [turn["content"] for turn in messages if turn["role"] == "tool"]
        if len(results) == 2:
            return " / ".join(results)
        return [ToolCall("delegate"), ToolCall("delegate")] if at_once else ToolCall("delegate")

    boss = Agent("boss", ScriptedModel(reply, pace=0), tools=[delegate])

    def work(_state: Any, config: Any) -> dict[str, Any]:
        return {"out": config.agents["boss"].fresh().chat("go")}

    def runner() -> GraphRunner:
        return node_runner(work, boss, store=SQLiteCheckpointer(tmp_path / "t.db"))

    current = runner()
    result = current.invoke(thread_id="t")
    for answer in answers:
        (request,) = result.pending
        current.answer("t", request.id, answer, step=request.step, actor="ann")
        current = runner() if is_reloaded else current
        result = current.invoke(thread_id="t")
    assert result["out"] == " / ".join(results_for(answers))
    assert len(cashier.keys) == len(set(cashier.keys)) == answers.count("approve")
    assert current.verify("t", strict=True).ok


async def _gathered(agents: Sequence[Agent]) -> list[str]:
    return list(await asyncio.gather(*(agent.achat("go") for agent in agents)))


async def _grouped(agents: Sequence[Agent]) -> list[str]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(agent.achat("go")) for agent in agents]
    return [task.result() for task in tasks]


async def _in_parallel(agents: Sequence[Agent]) -> list[str]:
    replies = await asyncio.to_thread(parallel_chat, agents[0], ["go", "go"])
    return [reply.text for reply in replies]


@BOTH
@pytest.mark.parametrize("together", [_gathered, _grouped, _in_parallel])
def test_each_decision_applies_to_its_own_call_of_parallel_agents(
    together: Callable[[Sequence[Agent]], Any], answers: tuple[str, str]
) -> None:
    cashier = Cashier()

    async def work(_state: Any, config: Any) -> dict[str, Any]:
        agent = config.agents["cashier"]
        return {"out": await together([agent.fresh(), agent.fresh()])}

    result = decide(node_runner(work, cashier.agent), *answers)
    assert sorted(result["out"]) == sorted(results_for(answers))
    assert len(cashier.keys) == len(set(cashier.keys)) == answers.count("approve")


def placed(place: str, cashier: Cashier, store: Checkpointer, **options: Any) -> GraphRunner:
    """A runner of a graph in which the cashier's node stands at that place."""

    def work(_state: Any, config: Any) -> dict[str, Any]:
        return {"out": config.agents["cashier"].fresh().chat("go")}

    channels = {"items": Channel(["x", "y"], reducer="overwrite"), "out": Channel([], reducer="append")}
    graph = StateGraph(channels)
    if place == "node":
        graph.add_node("work", work, **options)
    elif place == "map":
        graph.add_map("work", over="items", node=work, **options)
    elif place == "parallel":
        graph.add_node("one", work, **options).add_node("two", work, **options)
        graph.add_parallel("work", ["one", "two"])
    else:
        inner = StateGraph({"out": Channel("")}).add_node("inner", work, **options)
        inner.add_edge(START, "inner").add_edge("inner", END)
        graph.add_subgraph("work", inner, inputs={}, outputs={"out": "out"})
    graph.add_edge(START, "work").add_edge("work", END)
    return graph.compile(checkpointer=store, agents={"cashier": cashier.agent})


def finish(runner: GraphRunner) -> RunResult:
    """Run to the end; a node that fails once is resumed."""
    try:
        return runner.invoke(thread_id="t")
    except NodeFailed:
        return runner.invoke(thread_id="t")


@pytest.mark.parametrize(
    ("place", "is_retried"),
    [
        ("node", True),
        ("node", False),
        ("subgraph", True),
        ("subgraph", False),
        ("map", True),
        ("parallel", True),
    ],
)
def test_a_call_is_made_once_though_a_model_fails_after_it(place: str, is_retried: bool) -> None:
    cashier, store = Cashier(approve="never"), MemoryCheckpointer()
    cashier.failures = 1
    runner = placed(place, cashier, store, **({"retry": RetryPolicy(2, wait=0)} if is_retried else {}))
    result = runner.invoke(thread_id="t") if is_retried else finish(runner)
    assert set(result["out"]) == {"paid"}
    assert len(cashier.keys) == len(set(cashier.keys)) == len(result["out"])
    assert runner.verify("t", strict=True).ok


@pytest.mark.parametrize("is_retried", [True, False], ids=["retried", "resumed"])
def test_an_approved_call_is_made_once_though_the_model_fails_after_it(is_retried: bool) -> None:
    cashier = Cashier()
    cashier.failures = 1
    runner = node_runner(chat, cashier.agent, **({"retry": RetryPolicy(2, wait=0)} if is_retried else {}))
    (request,) = runner.invoke(thread_id="t").pending
    runner.answer("t", request.id, "approve", step=request.step, actor="ann")
    assert finish(runner)["out"] == "paid"
    assert len(cashier.keys) == 1
    assert runner.verify("t", strict=True).ok


def test_a_moved_thread_keeps_its_completed_calls_and_idempotency_keys() -> None:
    here, there = MemoryCheckpointer(), MemoryCheckpointer()
    cashier, keys = Cashier(approve="never"), []
    cashier.failures = 1

    def work(state: Any, config: Any) -> dict[str, Any]:
        keys.append(config.idempotency_key)
        return chat(state, config)

    with pytest.raises(NodeFailed):
        node_runner(work, cashier.agent, store=here).invoke(thread_id="t")
    import_thread(there, export_thread(here, "t"))
    runner = node_runner(work, cashier.agent, store=there)
    assert runner.invoke(thread_id="t")["out"] == "paid"
    assert len(cashier.keys) == 1
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert runner.verify("t", strict=True).ok


class Unreadable(Exception):
    """An error whose text raises."""

    def __str__(self) -> str:
        raise ValueError("no text")


def _endless() -> list[Any]:
    inside: list[Any] = []
    inside.append(inside)
    return inside


UNREADABLE: Mapping[str, Callable[[ToolConfig], Any]] = {
    "returns NaN": lambda config: float("nan"),
    "returns bytes": lambda config: b"\xff",
    "returns a list that contains itself": lambda config: _endless(),
    "returns keys that are numbers": lambda config: {1: 2},
    "returns more digits than Python reads": lambda config: 10**5000,
    "returns half a character": lambda config: {"a": "\ud800"},
    "updates with NaN": lambda config: config.update({"out": float("nan")}),
    "updates with an object": lambda config: config.update({"out": object()}),
    "raises an error without a text": lambda config: (_ for _ in ()).throw(Unreadable()),
}


@pytest.mark.parametrize("act", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_unreadable_result_of_a_tool_is_an_error_for_the_model_and_is_stored_as_that(
    act: Callable[[ToolConfig], Any],
) -> None:
    calls: list[str] = []

    def odd(config: ToolConfig) -> Any:
        """Do something odd."""
        calls.append("odd")
        return act(config)

    def ok() -> str:
        """Do something that a person must approve."""
        return "ok"

    def reply(messages: Sequence[Mapping[str, Any]]) -> Any:
        results = [message["content"] for message in messages if message["role"] == "tool"]
        return [ToolCall("odd"), ToolCall("ok")][len(results)] if len(results) < 2 else results[0]

    def runner() -> GraphRunner:
        tools = [Tool(odd), Tool(ok, approve="always")]
        return node_runner(chat, Agent("cashier", ScriptedModel(reply, pace=0), tools=tools), store=store)

    store = MemoryCheckpointer()
    asked = runner().invoke({}, thread_id="t").pending[0]
    resumed = runner()  # reads the completed calls from the store
    resumed.answer("t", asked.id, "approve", step=asked.step, actor="ann")
    result = resumed.invoke(thread_id="t")
    assert (result.status, calls) == ("completed", ["odd"])
    assert result["out"].startswith("Error: ")
    assert resumed.verify("t", strict=True).ok


def test_a_fork_uses_its_own_idempotency_keys() -> None:
    cashier = Cashier()
    runner = node_runner(chat, cashier.agent)
    (request,) = runner.invoke({}, thread_id="t").pending
    runner.fork("t", request.step, "f")
    for name in ("t", "f"):
        (request,) = runner.invoke(thread_id=name).pending
        runner.answer(name, request.id, "approve", step=request.step, actor="ann")
        runner.invoke(thread_id=name)
    assert len(set(cashier.keys)) == len(cashier.keys) == 2


class SlowCashier(Cashier):
    """A cashier whose first calls take too long, so that nobody knows whether they were made."""

    def __init__(self, slow: int = 1, **options: Any) -> None:
        super().__init__(approve="never", timeout=0.05, **options)
        self.slow = slow
        self.is_over = threading.Event()

    def pay(self, config: ToolConfig) -> str:
        """Pay."""
        super().pay(config)
        if len(self.keys) == self.slow and self.agent.tools["pay"].effects == "once":
            self.agent.tools["pay"].timeout = 60  # the next calls are quick, and may wait for their turn
        if len(self.keys) <= self.slow:
            self.is_over.wait(20)
        return "paid"


@pytest.fixture
def slow() -> Iterator[SlowCashier]:
    cashier = SlowCashier(effects="once")
    yield cashier
    cashier.is_over.set()


@pytest.mark.parametrize(
    ("answer", "out", "calls"),
    [({"choice": "made", "text": "it arrived"}, "it arrived", 1), ("again", "paid", 2)],
)
def test_a_person_is_asked_about_a_call_that_must_not_run_twice_and_took_too_long(
    slow: SlowCashier, answer: Any, out: str, calls: int
) -> None:
    runner = node_runner(chat, slow.agent)
    (request,) = runner.invoke(thread_id="t").pending
    assert request.title == "Was pay called?"
    assert decide(runner, answer)["out"] == out
    assert len(slow.keys) == calls
    assert len(set(slow.keys)) == 1


def test_a_person_is_asked_about_a_call_that_must_not_run_twice_whose_node_took_too_long(
    slow: SlowCashier,
) -> None:
    slow.agent.tools["pay"].timeout = None
    runner = node_runner(chat, slow.agent, retry=RetryPolicy(2, wait=0), timeout=0.2)
    (request,) = runner.invoke(thread_id="t").pending
    assert request.title == "Was pay called?"
    assert decide(runner, {"choice": "made", "text": "it arrived"})["out"] == "it arrived"
    assert len(slow.keys) == 1


def test_a_call_that_took_too_long_again_is_asked_about_again(slow: SlowCashier) -> None:
    slow.slow = 2
    runner = node_runner(chat, slow.agent)
    assert decide(runner, "again", {"choice": "made", "text": "twice"})["out"] == "twice"
    assert len(slow.keys) == 2


def test_a_node_that_a_person_fails_asks_again_once_it_is_resumed(slow: SlowCashier) -> None:
    runner = node_runner(chat, slow.agent, retry=RetryPolicy(3, wait=0))
    (request,) = runner.invoke(thread_id="t").pending
    runner.answer("t", request.id, "fail", step=request.step, actor="ann")
    with pytest.raises(NodeFailed, match="not known whether 'pay' was called"):
        runner.invoke(thread_id="t")
    assert decide(runner, {"choice": "made", "text": "it was"})["out"] == "it was"
    assert len(slow.keys) == 1


def test_a_timeout_of_a_repeatable_call_is_reported_to_the_model() -> None:
    cashier = SlowCashier()
    try:
        assert decide(node_runner(chat, cashier.agent))["out"] == "Error: it took longer than 0.05 s"
    finally:
        cashier.is_over.set()


def test_a_tool_whose_agent_reached_a_limit_was_not_called() -> None:
    helper = Agent("helper", ScriptedModel(["advice"], pace=0))
    calls: list[str] = []

    def consult() -> str:
        """Ask the helper."""
        calls.append("started")
        return helper.fresh().chat("what now?")

    def reply(messages: Sequence[Mapping[str, Any]]) -> Any:
        return ToolCall("consult") if messages[-1]["role"] == "user" else messages[-1]["content"]

    boss = Agent("boss", ScriptedModel(reply, pace=0), tools=[Tool(consult, effects="once")])
    graph = StateGraph({"out": Channel("")})
    graph.add_node("work", lambda _state, config: {"out": config.agents["boss"].chat("go")})
    runner = (
        graph.add_edge(START, "work")
        .add_edge("work", END)
        .compile(checkpointer=MemoryCheckpointer(), agents={"boss": boss}, limits=Limits(max_tokens=1))
    )
    assert runner.invoke(thread_id="t").status != "completed"
    assert calls == ["started"]
    runner.extend_limits("t", max_tokens=10_000)
    result = runner.invoke(thread_id="t")
    assert (result.pending, result["out"]) == ((), "advice")


@pytest.mark.parametrize("kind", ["memory", "sqlite", "files"])
def test_showing_decisions_does_not_read_call_results(tmp_path: Path, kind: str) -> None:
    stores = {"memory": MemoryCheckpointer, "sqlite": SQLiteCheckpointer, "files": FileCheckpointer}
    store = stores[kind](*([] if kind == "memory" else [tmp_path / "t"]))
    runner = node_runner(chat, Cashier().agent, store=store)
    result = decide(runner, "approve")
    whole, short = store.ledger(result.thread_id), store.ledger(result.thread_id, call_data=False)
    calls = [entry.data for entry in whole if entry.kind == "call"]
    assert len(calls) == 3
    assert all(calls)
    if kind == "sqlite":
        assert [entry.data for entry in short if entry.kind == "call"] == [None] * 3
    assert [e for e in short if e.kind != "call"] == [e for e in whole if e.kind != "call"]
    for _ in delete_in_batches(store, plan_deletion(store, ["t"]).going, actor="ann", note=None, at=1):
        pass
    assert store.store_ledger()[-1].data["decisions"] == len(whole) - len(calls)
