"""Agents with a chat of their own, ours or not: their calls are counted, limited and recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    GraphRunner,
    Limits,
    MemoryCheckpointer,
    ModelUse,
    NodeResult,
    RetryPolicy,
    ScriptedModel,
    StateGraph,
    UsageError,
    advisor_workflow,
    debate_workflow,
    parallel_chat,
    planner_workflow,
    sequential_workflow,
    supervisor_workflow,
)

PROMPT, REPLY = "x" * 200, "y" * 400
CALL = 150  # tokens of both


class Foreign:
    """An agent that only has what an agent must have."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def chat(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return REPLY

    def __len__(self) -> int:
        return len(self.prompts)


class ForeignAsync(Foreign):
    async def achat(self, prompt: str) -> str:
        return Foreign.chat(self, prompt)

    chat = None  # type: ignore[assignment]


class ForeignStream(Foreign):
    def stream(self, prompt: str) -> Iterator[str]:
        yield Foreign.chat(self, prompt)


class ForeignAsyncStream(Foreign):
    async def stream(self, prompt: str) -> AsyncIterator[str]:
        yield Foreign.chat(self, prompt)
        yield "end"


class Subclass(Agent):
    """An agent of ours with a chat of its own."""

    def __init__(self) -> None:
        super().__init__("w", ScriptedModel([], pace=0))
        self.prompts: list[str] = []

    def chat(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return REPLY


class SubclassAsync(Agent):
    """An agent of ours whose chat is awaited."""

    def __init__(self) -> None:
        super().__init__("w", ScriptedModel([], pace=0))
        self.prompts: list[str] = []

    async def achat(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return REPLY


class Wrapper(Subclass):
    """An agent of ours that does something besides."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Agent("w", ScriptedModel(lambda _: REPLY, pace=0))

    def chat(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self.inner.fresh().chat(prompt)


def build(agent: Any, node: Callable[..., Any], **limits: Any) -> GraphRunner:
    graph = StateGraph(
        {"items": Channel([1] * 10, reducer="overwrite"), "out": Channel([], reducer="append")}
    )
    graph.add_node("n", node, retry=RetryPolicy(max_attempts=2, wait=0))
    return (
        graph.add_edge(START, "n")
        .add_edge("n", END)
        .compile(checkpointer=MemoryCheckpointer(), agents={"w": agent}, limits=Limits(**limits))
    )


def ten(_: Mapping[str, Any], config: Any) -> None:
    for _ in range(10):
        config.agents["w"].chat(PROMPT)


def ten_of_copies(_: Mapping[str, Any], config: Any) -> None:
    for _ in range(10):
        config.agents["w"].fresh().chat(PROMPT)


async def ten_awaited(_: Mapping[str, Any], config: Any) -> None:
    for _ in range(10):
        await config.agents["w"].achat(PROMPT)


def ten_streamed(_: Mapping[str, Any], config: Any) -> None:
    for _ in range(10):
        assert list(config.agents["w"].stream(PROMPT)) == [REPLY]


@pytest.mark.parametrize(
    ("kind", "node"),
    [
        (Foreign, ten),
        (Subclass, ten),
        (Subclass, ten_of_copies),
        (Subclass, ten_awaited),
        (SubclassAsync, ten),
        (Wrapper, ten),
        (ForeignAsync, ten_awaited),
        (ForeignStream, ten_streamed),
    ],
)
def test_no_call_of_an_agent_begins_once_a_limit_is_reached(kind: Any, node: Any) -> None:
    agent = kind()
    runner = build(agent, node, max_tokens=2 * CALL)
    result = runner.invoke(thread_id="t")
    assert (result.status, result.reason) == ("failed", "limit")
    info = runner.run_info("t")
    assert (len(agent.prompts), info.tokens_in + info.tokens_out) == (2, 2 * CALL)


def test_the_branches_of_a_map_share_what_is_left() -> None:
    agent = Foreign()
    graph = StateGraph(
        {"items": Channel([1] * 50, reducer="overwrite"), "out": Channel([], reducer="append")}
    )
    graph.add_map("n", over="items", node=lambda _, c: {"out": c.agents["w"].chat(PROMPT)}, max_concurrent=2)
    runner = (
        graph.add_edge(START, "n")
        .add_edge("n", END)
        .compile(agents={"w": agent}, limits=Limits(max_tokens=300))
    )
    assert runner.invoke().reason == "limit"
    assert len(agent) in (2, 3)


def test_a_reply_that_was_given_is_not_asked_for_again() -> None:
    agent = Foreign()
    attempts: list[str] = []

    def node(_: Any, config: Any) -> dict[str, Any]:
        attempts.append(config.agents["w"].chat(PROMPT))
        if len(attempts) == 1:
            raise RuntimeError("once")
        return {"out": attempts[-1]}

    runner = build(agent, node)
    assert runner.invoke(thread_id="t")["out"] == [REPLY]
    assert (len(agent), attempts) == (1, [REPLY, REPLY])
    assert runner.run_info("t").tokens_out == 100


def test_a_stream_that_ended_is_not_asked_for_again() -> None:
    agent = ForeignStream()
    attempts: list[list[str]] = []

    def node(_: Any, config: Any) -> None:
        attempts.append(list(config.agents["w"].stream(PROMPT)))
        if len(attempts) == 1:
            raise RuntimeError("once")

    runner = build(agent, node)
    assert runner.invoke(thread_id="t").status == "completed"
    assert (len(agent), attempts) == (1, [[REPLY], [REPLY]])
    assert runner.run_info("t").tokens_out == 100


def test_an_awaited_stream_that_ended_is_not_asked_for_again() -> None:
    agent = ForeignAsyncStream()
    attempts: list[list[str]] = []

    async def node(_: Any, config: Any) -> None:
        attempts.append([piece async for piece in config.agents["w"].stream(PROMPT)])
        if len(attempts) == 1:
            raise RuntimeError("once")

    runner = build(agent, node)
    assert runner.invoke(thread_id="t").status == "completed"
    assert (len(agent), attempts) == (1, [[REPLY, "end"]] * 2)


def test_a_stream_that_was_left_in_the_middle_is_asked_for_again() -> None:
    agent = ForeignAsyncStream()
    attempts: list[str] = []

    async def node(_: Any, config: Any) -> None:
        pieces = config.agents["w"].stream(PROMPT)
        attempts.append(await anext(pieces))
        await pieces.aclose()
        if len(attempts) == 1:
            raise RuntimeError("once")

    runner = build(agent, node)
    assert runner.invoke(thread_id="t").status == "completed"
    assert (len(agent), attempts) == (2, [REPLY, REPLY])
    assert runner.run_info("t").tokens_out == 200


def test_usage_given_by_the_node_replaces_the_estimate() -> None:
    exact = ModelUse("w", "own", "model", 7, 5, 0.25)

    def node(_: Any, config: Any) -> NodeResult:
        config.agents["w"].chat(PROMPT)
        return NodeResult({}, usage=[exact])

    runner = build(Foreign(), node)
    runner.invoke(thread_id="t")
    info = runner.run_info("t")
    assert (info.tokens_in, info.tokens_out, info.cost) == (7, 5, 0.25)


def test_a_node_finds_its_own_agent() -> None:
    agent = Foreign()
    seen: list[Any] = []

    def node(_: Any, config: Any) -> None:
        found = config.agents["w"]
        found.chat(PROMPT)
        found.mood = "good"
        seen.extend((isinstance(found, Foreign), len(found), found.prompts is agent.prompts, found.mood))

    build(agent, node).invoke()
    assert seen == [True, 1, True, "good"]
    assert agent.mood == "good"  # type: ignore[attr-defined]


def test_a_copy_of_a_subclass_keeps_its_own_chat() -> None:
    agent = Subclass()
    assert [copy.chat("a") for copy in (agent.fresh(), agent.aside())] == [REPLY, REPLY]
    assert agent.prompts == ["a", "a"]


@pytest.mark.parametrize(
    "workflow",
    [
        lambda a, limits: sequential_workflow(dict.fromkeys("abcd", a), limits=limits),
        lambda a, limits: supervisor_workflow(Foreign(), {REPLY: a}, limits=limits),
        lambda a, limits: debate_workflow({"a": a, "b": a}, limits=limits),
        lambda a, limits: advisor_workflow(a, Foreign(), limits=limits),
        lambda a, limits: planner_workflow(
            Agent("p", ScriptedModel(["\n".join(["w: go"] * 5)], pace=0)), {"w": a}, limits=limits
        ),
    ],
)
def test_the_five_workflows_stop_at_a_limit_with_any_agent(workflow: Any) -> None:
    agent = Foreign()
    result = workflow(agent, Limits(max_tokens=240)).invoke({"messages": ["go"]})
    assert (result.status, result.reason) == ("failed", "limit")
    assert 1 <= len(agent) <= 3


def test_parallel_chat_says_which_agents_it_takes() -> None:
    with pytest.raises(UsageError, match="give an Agent"):
        parallel_chat(Foreign(), ["a"])  # type: ignore[arg-type]
