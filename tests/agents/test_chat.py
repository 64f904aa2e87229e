"""What a chat with a real model does when all goes well: through litellm, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from hitl_tui.agents.agent import Agent
from hitl_tui.engine.log.events import ModelCalled, TextStreamed
from hitl_tui.engine.nodes.activity import ModelUse
from hitl_tui.errors import UsageError
from tests.agents.conftest import KEY, Node
from tests.support.openai_server import OpenAIServer, PlainOnly, Say

MakeAgent = Callable[..., Agent]


def test_chat_gives_the_whole_reply(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(("Clo", "sures ", "remember.")))
    assert make_agent().chat("What?") == "Closures remember."


def test_text_arrives_in_pieces_here_and_at_the_node(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(("one ", "two ", "three")))
    node = Node()
    assert node.run(lambda: list(make_agent().stream("count"))) == ["one ", "two ", "three"]
    texts = [event for event in node.events if isinstance(event, TextStreamed)]
    assert texts == [TextStreamed("write", "writer", text) for text in ("one ", "two ", "three")]


def test_usage_is_what_the_provider_counted(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(usage=(11, 4)), Say(usage=(30, 6)))
    agent, node = make_agent(), Node()
    node.run(agent.chat, "a")
    node.run(agent.chat, "b")
    assert (agent.tokens.last.input, agent.tokens.last.output) == (30, 6)
    assert (agent.tokens.total.input, agent.tokens.total.output) == (41, 10)
    assert node.activity.uses == [
        ModelUse("writer", "openai", "test", 11, 4, None),
        ModelUse("writer", "openai", "test", 30, 6, None),
    ]
    called = [event for event in node.events if isinstance(event, ModelCalled)]
    assert [event.tokens_out for event in called] == [4, 6]
    assert all(event.duration > 0 for event in called)


def test_an_unknown_price_is_none_and_stays_none_in_the_total(make_agent: MakeAgent) -> None:
    agent = make_agent()
    assert agent.cost.total == 0
    agent.chat("a")
    assert agent.cost.last is None
    assert agent.cost.total is None


def test_a_known_price_adds_up(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(usage=(1000, 100)), Say(usage=(1000, 100)))
    agent = make_agent("openai/gpt-4o")
    agent.chat("a")
    first = agent.cost.last
    assert first is not None
    assert first > 0
    agent.chat("b")
    assert agent.cost.total == pytest.approx(2 * first)


def test_a_provider_that_counts_nothing_is_estimated(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(("a reply of some words",), usage=None))
    agent = make_agent()
    agent.chat("a prompt of some words")
    assert agent.tokens.last.input > 0
    assert agent.tokens.last.output > 0


def test_a_server_that_cannot_stream_is_asked_again_without(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.plan(PlainOnly(), PlainOnly("all at once"))
    agent = make_agent()
    assert list(agent.stream("hi")) == ["all at once"]
    assert [request.body.get("stream", False) for request in server.requests] == [True, False]
    assert agent.tokens.total.output == 4


def test_role_and_instructions_are_the_system_message(make_agent: MakeAgent, server: OpenAIServer) -> None:
    make_agent(instructions="Be brief.", role="worker").chat("hi")
    make_agent().chat("hi")
    first, second = (request.body["messages"] for request in server.requests)
    assert first == [
        {"role": "system", "content": "Your role: worker\n\nBe brief."},
        {"role": "user", "content": "hi"},
    ]
    assert second == [{"role": "user", "content": "hi"}]


def test_turns_are_kept_and_sent(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(("A",)), Say(("B",)))
    agent = make_agent()
    agent.chat("a")
    agent.chat("b")
    before = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "A"}]
    assert server.requests[1].body["messages"] == [*before, {"role": "user", "content": "b"}]
    assert agent.turns[2:] == [{"role": "user", "content": "b"}, {"role": "assistant", "content": "B"}]


def test_set_turns_replaces_what_is_sent(make_agent: MakeAgent, server: OpenAIServer) -> None:
    agent = make_agent()
    agent.chat("a")
    agent.set_turns([])
    assert agent.turns == []
    agent.chat("b")
    assert server.requests[1].body["messages"] == [{"role": "user", "content": "b"}]


def test_turns_that_were_set_go_before_the_next_prompt(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(("B",)))
    agent = make_agent()
    turns = [{"role": "user", "content": "I am Ada."}, {"role": "assistant", "content": "Hello, Ada."}]
    agent.set_turns(turns)
    assert agent.turns == turns
    agent.chat("Who am I?")
    assert server.requests[0].body["messages"] == [*turns, {"role": "user", "content": "Who am I?"}]
    assert agent.turns == [
        *turns, {"role": "user", "content": "Who am I?"}, {"role": "assistant", "content": "B"},
    ]  # fmt: skip


def test_fresh_is_the_same_agent_without_turns(make_agent: MakeAgent, server: OpenAIServer) -> None:
    agent = make_agent(instructions="Be brief.", temperature=0.5)
    agent.chat("a")
    fresh = agent.fresh()
    assert (fresh.name, fresh.turns, fresh.tokens.total.output) == ("writer", [], 0)
    fresh.chat("b")
    body = server.requests[1].body
    assert [message["content"] for message in body["messages"]] == ["Be brief.", "b"]
    assert body["temperature"] == 0.5
    assert len(agent.turns) == 2


def test_options_reach_the_provider(make_agent: MakeAgent, server: OpenAIServer) -> None:
    make_agent(temperature=0.25, max_tokens=50, num_retries=1).chat("hi")
    request = server.requests[0]
    assert request.body["temperature"] == 0.25
    assert request.body["max_tokens"] == 50
    assert "num_retries" not in request.body
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("option", ["stream", "messages", "tools"])
def test_options_that_the_agent_sets_itself_are_refused(make_agent: MakeAgent, option: str) -> None:
    with pytest.raises(UsageError, match=option):
        make_agent(**{option: True})


@pytest.mark.parametrize(
    ("option", "meant"), [("temprature", "temperature"), ("max_token", "max_tokens"), ("tool", "tools")]
)
def test_a_misspelt_option_is_refused_and_one_of_a_provider_is_not(
    make_agent: MakeAgent, option: str, meant: str
) -> None:
    with pytest.raises(UsageError, match=f"no option '{option}'.*'{meant}'"):
        make_agent(**{option: 1})
    make_agent(safety_mode="strict", num_ctx=4096)


async def test_achat_is_the_same_from_an_event_loop(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(("o", "k")))
    agent, node = make_agent(), Node()
    assert await asyncio.create_task(agent.achat("hi"), context=node.context()) == "ok"
    assert [event.text for event in node.events if isinstance(event, TextStreamed)] == ["o", "k"]
    assert agent.turns[-1]["content"] == "ok"
