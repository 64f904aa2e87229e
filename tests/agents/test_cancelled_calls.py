"""Giving a call up: from another thread, by leaving the stream, by cancelling a task."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from hitl_tui.agents.agent import Agent
from hitl_tui.agents.scripted import ScriptedModel
from hitl_tui.engine.log.events import Event, TextStreamed
from hitl_tui.engine.nodes.activity import AttemptCancelled
from tests.agents.conftest import Node
from tests.support.openai_server import Hang, OpenAIServer, Say

MakeAgent = Callable[..., Agent]
PATIENCE = 20  # seconds until a hanging test fails; nothing waits this long when all is well


def test_cancelling_in_mid_stream_releases_the_waiting_thread(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.plan(Say(("before",)), Say(("one ", "two ", "three"), hold_after=2))
    agent, speaking = make_agent(), threading.Event()
    agent.chat("first")
    turns = agent.turns

    def listen(event: Event) -> None:
        if isinstance(event, TextStreamed) and event.text == "two ":
            speaking.set()

    node = Node(listen)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(node.run, agent.chat, "second")
        assert speaking.wait(PATIENCE)
        node.activity.cancel()
        with pytest.raises(AttemptCancelled):
            call.result(PATIENCE)
    assert agent.turns == turns
    assert len(node.activity.uses) == 1, "the text that came was paid for"
    assert server.left.wait(PATIENCE), "the connection is closed, so the model stops writing"


def test_cancelling_before_the_first_byte(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Hang())
    agent, node = make_agent(), Node()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(node.run, agent.chat, "hi")
        assert server.holding.wait(PATIENCE)
        node.activity.cancel()
        with pytest.raises(AttemptCancelled):
            call.result(PATIENCE)
    assert server.left.wait(PATIENCE)
    assert agent.turns == []
    assert node.activity.uses == []


def test_a_cancelled_attempt_makes_no_call() -> None:
    asked = threading.Event()

    def reply(_: object) -> str:
        asked.set()
        return "no"

    node = Node()
    node.activity.cancel()
    with pytest.raises(AttemptCancelled):
        node.run(Agent("writer", ScriptedModel(reply, pace=0)).chat, "hi")
    assert not asked.is_set()


def test_a_model_that_never_yields_cannot_hold_the_caller() -> None:
    asked, release = threading.Event(), threading.Event()

    def stuck(_: object) -> str:
        asked.set()
        release.wait(PATIENCE)
        return "late"

    agent, node = Agent("writer", ScriptedModel(stuck, pace=0)), Node()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(node.run, agent.chat, "hi")
        assert asked.wait(PATIENCE)
        node.activity.cancel()
        with pytest.raises(AttemptCancelled):
            call.result(PATIENCE)
    release.set()
    assert agent.turns == []


async def test_cancelling_the_activity_below_achat(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Hang())
    agent, node = make_agent(), Node()
    task = asyncio.create_task(agent.achat("hi"), context=node.context())
    assert await asyncio.to_thread(server.holding.wait, PATIENCE)
    await asyncio.to_thread(node.activity.cancel)
    with pytest.raises(AttemptCancelled):
        await task
    assert agent.turns == []


async def test_cancelling_the_task_of_achat_hangs_up(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Hang())
    agent = make_agent()
    task = asyncio.create_task(agent.achat("hi"))
    assert await asyncio.to_thread(server.holding.wait, PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.left.wait, PATIENCE)
    assert agent.turns == []


def test_leaving_a_stream_early_keeps_no_turn(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(("one ", "two "), hold_after=1))
    agent = make_agent()
    pieces = agent.stream("hi")
    assert next(pieces) == "one "
    pieces.close()  # type: ignore[attr-defined]
    assert server.left.wait(PATIENCE)
    assert agent.turns == []


def test_an_unstarted_stream_sends_no_request(make_agent: MakeAgent, server: OpenAIServer) -> None:
    make_agent().stream("hi")
    make_agent().chat("this one comes")
    assert [request.body["messages"][-1]["content"] for request in server.requests] == ["this one comes"]


def test_a_stream_belongs_to_the_node_that_asked_for_it() -> None:
    agent, node = Agent("writer", ScriptedModel(["a b"], pace=0)), Node()
    pieces = node.run(agent.stream, "hi")
    assert "".join(pieces) == "a b"
    assert len(node.activity.uses) == 1


def test_a_reply_in_flight_is_not_added_to_a_replaced_conversation() -> None:
    agent = Agent("writer", ScriptedModel(["one two"], pace=0))
    pieces = agent.stream("hi")
    next(pieces)
    agent.set_turns([])
    list(pieces)
    assert agent.turns == []


def test_threads_may_share_an_agent() -> None:
    together = threading.Barrier(8)

    def reply(messages: object) -> str:
        return "re " + messages[-1]["content"]  # type: ignore[index]

    agent = Agent("writer", ScriptedModel(reply, pace=0))

    def ask(number: int) -> str:
        together.wait(PATIENCE)
        return agent.chat(f"prompt {number}")

    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(ask, range(8)))
    assert replies == [f"re prompt {number}" for number in range(8)]
    turns = [turn["content"] for turn in agent.turns]
    pairs = set(zip(turns[::2], turns[1::2], strict=True))
    assert pairs == {(f"prompt {number}", f"re prompt {number}") for number in range(8)}
    assert agent.tokens.total.output == 8 * 3


def test_agents_work_on_several_event_loops() -> None:
    agent = Agent("writer", ScriptedModel(["a", "b"], pace=0))
    assert [asyncio.run(agent.achat("x")), asyncio.run(agent.achat("y"))] == ["a", "b"]
