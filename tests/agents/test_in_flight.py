"""Agents at work together, of which one asks a person: what the others have started is kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.agents import Agent, ScriptedModel, Tool, ToolCall
from hitl_tui.engine.nodes.activity import InFlight
from hitl_tui.engine.nodes.results import RunResult
from tests.support.spec import spec

pytestmark = spec("11")

SECONDS = 20


def runner_of(work: Callable[..., Any], **agents: Agent) -> GraphRunner:
    return (
        StateGraph({"out": Channel(None)})
        .add_node("work", work)
        .add_edge(START, "work")
        .add_edge("work", END)
        .compile(checkpointer=MemoryCheckpointer(), agents=agents)
    )


def approve_all(runner: GraphRunner) -> RunResult:
    """Run to the end, saying yes to whatever is asked."""
    result = runner.invoke({}, thread_id="t")
    while result.pending:
        (request,) = result.pending
        runner.answer("t", request.id, "approve", step=request.step)
        result = runner.invoke(thread_id="t")
    return result


def calling(name: str, ready: Callable[[], Any] = lambda: None) -> ScriptedModel:
    """A model that calls a tool once `ready` has returned, and then says what the tool gave."""

    async def reply(messages: Any) -> Any:
        if messages[-1]["role"] == "tool":
            return messages[-1]["content"]
        await asyncio.to_thread(ready)
        return ToolCall(name)

    return ScriptedModel(reply, pace=0)


async def together(_state: Any, config: Any) -> Any:
    agents = config.agents
    return {"out": list(await asyncio.gather(agents["x"].achat("go"), agents["y"].achat("go")))}


def test_a_tool_that_runs_when_another_agent_asks_runs_once() -> None:
    ran: list[str] = []
    started, asking = threading.Event(), threading.Event()

    def slow() -> str:
        """Run until the other one asks."""
        ran.append("slow")
        started.set()
        assert asking.wait(SECONDS)
        return "slow is done"

    def risky() -> str:
        """Needs a person."""
        ran.append("risky")
        return "risky is done"

    def ask(_arguments: Any) -> bool:
        asking.set()
        return True

    x = Agent("x", calling("slow"), tools=[slow])
    y = Agent("y", calling("risky", lambda: started.wait(SECONDS)), tools=[Tool(risky, approve=ask)])
    result = approve_all(runner_of(together, x=x, y=y))
    assert result["out"] == ["slow is done", "risky is done"]
    assert ran == ["slow", "risky"]


def test_a_reply_that_comes_when_another_agent_asks_is_paid_once() -> None:
    replies: list[str] = []
    started, asking = threading.Event(), threading.Event()

    async def slow(_messages: Any) -> str:
        replies.append("x")
        started.set()
        assert await asyncio.to_thread(asking.wait, SECONDS)
        return "at last"

    def ask(_arguments: Any) -> bool:
        asking.set()
        return True

    x = Agent("x", ScriptedModel(slow, pace=0))
    y = Agent(
        "y",
        calling("stamp", lambda: started.wait(SECONDS)),
        tools=[Tool(lambda: "ok", name="stamp", approve=ask)],
    )
    assert approve_all(runner_of(together, x=x, y=y))["out"] == ["at last", "ok"]
    assert replies == ["x"]


def test_a_tool_that_is_called_while_another_agent_asks_runs_once() -> None:
    ran: list[str] = []
    asked, started = threading.Event(), threading.Event()

    async def second_call_after_the_question(messages: Any) -> Any:
        if messages[-1]["role"] == "tool":
            return messages[-1]["content"]
        started.set()
        assert await asyncio.to_thread(asked.wait, SECONDS)
        return ToolCall("quick")

    def quick() -> str:
        """Needs nobody."""
        ran.append("quick")
        return "quick is done"

    def ask(_arguments: Any) -> bool:
        asked.set()
        return True

    x = Agent("x", ScriptedModel(second_call_after_the_question, pace=0), tools=[quick])
    y = Agent(
        "y",
        calling("stamp", lambda: started.wait(SECONDS)),
        tools=[Tool(lambda: "ok", name="stamp", approve=ask)],
    )
    assert approve_all(runner_of(together, x=x, y=y))["out"] == ["quick is done", "ok"]
    assert ran == ["quick"]


def test_a_tool_whose_own_agent_asks_is_not_waited_for() -> None:
    inner = Agent("y", calling("stamp"), tools=[Tool(lambda: "ok", name="stamp", approve="always")])

    def delegate() -> str:
        """Ask another agent."""
        return inner.fresh().chat("go")

    def work(_state: Any, config: Any) -> Any:
        return {"out": config.agents["x"].chat("go")}

    result = approve_all(runner_of(work, x=Agent("x", calling("delegate"), tools=[delegate])))
    assert result["out"] == "ok"


async def test_two_that_ask_from_within_their_calls_do_not_wait_for_each_other() -> None:
    flight, both = InFlight(), asyncio.Barrier(2)

    async def ask() -> None:
        async with flight.call():
            await both.wait()
            await flight.wait_until_idle()

    async with asyncio.timeout(SECONDS):
        await asyncio.gather(ask(), ask())


async def test_calls_queued_behind_a_question_are_cancelled_when_the_attempt_ends() -> None:
    flight, ran = InFlight(), []
    await flight.close()

    async def late() -> None:
        async with flight.call():
            ran.append("late")

    task = asyncio.ensure_future(late())
    flight.end()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ran == []
