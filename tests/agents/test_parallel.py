"""Many prompts at once: order, limit, failures, counts, and questions on the way."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
from hitl_tui.agents import Agent, ScriptedModel, ToolCall, aparallel_chat, parallel_chat
from hitl_tui.agents.backend import CallFailed
from hitl_tui.engine.nodes.activity import AttemptCancelled
from hitl_tui.errors import UsageError
from tests.agents.conftest import Node

PATIENCE = 20


class Gauge:
    """A scripted model that notes how many calls were under way at once; no call ends before so many are."""

    def __init__(self, together: int = 1) -> None:
        self.now = self.most = 0
        self._all = asyncio.Barrier(together)

    async def reply(self, messages: Any) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.wait_for(self._all.wait(), PATIENCE)
        self.now -= 1
        prompt = messages[-1]["content"]
        if prompt == "bad":
            raise CallFailed("it went wrong")
        return f"re {prompt}"


def test_replies_come_in_the_order_of_the_prompts_and_few_at_once() -> None:
    gauge = Gauge(together=3)
    agent = Agent("a", ScriptedModel(gauge.reply, pace=0))
    prompts = [f"p{number}" for number in range(12)]
    replies = parallel_chat(agent, prompts, limit=3)
    assert [reply.text for reply in replies] == [f"re {prompt}" for prompt in prompts]
    assert [reply.prompt for reply in replies] == prompts
    assert gauge.most == 3


async def test_one_failure_does_not_lose_the_others() -> None:
    agent = Agent("a", ScriptedModel(Gauge().reply, pace=0))
    good, bad, last = await aparallel_chat(agent, ["x", "bad", "y"])
    assert (good.text, last.text) == ("re x", "re y")
    assert bad.text is None
    assert isinstance(bad.error, CallFailed)


def test_parallel_chat_counts_the_agents_usage_but_not_its_turns() -> None:
    agent = Agent("a", ScriptedModel(lambda messages: str(len(messages)), pace=0))
    agent.chat("before")
    spent = agent.tokens.total.input
    assert [reply.text for reply in parallel_chat(agent, ["x", "y"])] == ["1", "1"]
    assert agent.tokens.total.input > spent
    assert len(agent.turns) == 2


@pytest.mark.parametrize(("prompts", "limit"), [(["x"], 0), ("text", 1), ([3], 1)])
def test_invalid_prompts_are_refused(prompts: Any, limit: int) -> None:
    with pytest.raises(UsageError):
        parallel_chat(Agent("a", ScriptedModel([])), prompts, limit=limit)


def test_cancelling_the_attempt_cancels_all_calls() -> None:
    started = threading.Event()

    async def stuck(_: Any) -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    node, ended = Node(), threading.Event()

    def work() -> None:
        with pytest.raises(AttemptCancelled):
            node.run(parallel_chat, Agent("a", ScriptedModel(stuck, pace=0)), ["x", "y"])
        ended.set()

    threading.Thread(target=work, daemon=True).start()
    assert started.wait(PATIENCE)
    node.activity.cancel()
    assert ended.wait(PATIENCE)


def test_a_tool_that_waits_for_a_person_lets_the_others_finish_first() -> None:
    asked: list[str] = []
    waits = asyncio.Event()

    async def reply(messages: Any) -> Any:
        if messages[-1]["role"] == "tool":
            return messages[-1]["content"]
        asked.append(messages[-1]["content"])
        if messages[-1]["content"] == "stamp":
            return ToolCall("stamp")
        await asyncio.wait_for(waits.wait(), PATIENCE)
        return "plain"

    def approve(_arguments: Any) -> bool:
        waits.set()
        return True

    def stamp() -> str:
        """Stamp."""
        return "stamped"

    async def work(_state: Any, config: Any) -> Any:
        replies = await aparallel_chat(config.agents["a"], ["stamp", "talk"])
        return {"out": [reply.text for reply in replies]}

    agent = Agent("a", ScriptedModel(reply, pace=0), tools=[stamp], approve=approve)
    runner = (
        StateGraph({"out": Channel(None)})
        .add_node("work", work)
        .add_edge(START, "work")
        .add_edge("work", END)
        .compile(checkpointer=MemoryCheckpointer(), agents={"a": agent})
    )
    (request,) = runner.invoke({}, thread_id="t").pending
    runner.answer("t", request.id, "approve", step=request.step)
    assert runner.invoke(thread_id="t")["out"] == ["stamped", "plain"]
    assert sorted(asked) == ["stamp", "talk"], "each was asked once"
