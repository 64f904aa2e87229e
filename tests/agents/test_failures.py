"""What a chat does when the provider misbehaves: through litellm, over HTTP."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer, sequential_workflow
from hitl_tui.agents import exchange
from hitl_tui.agents.agent import Agent
from hitl_tui.agents.redaction import scrub
from hitl_tui.engine.log.events import NodeRetrying
from hitl_tui.errors import ModelFailed, NodeFailed
from tests.agents.conftest import KEY, Node
from tests.support.openai_server import Answer, Cut, Garbage, Hang, OpenAIServer, Refuse, Reset, Say

MakeAgent = Callable[..., Agent]
AT_ONCE = {"retry-after": "0"}


def test_a_rate_limit_is_waited_out_and_shown(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Refuse(429, "slow down", AT_ONCE), Say(("there",)))
    node = Node()
    assert node.run(make_agent().chat, "hi") == "there"
    retry = next(event for event in node.events if isinstance(event, NodeRetrying))
    assert (retry.attempt, retry.max_attempts, retry.wait) == (1, 3, 0)
    assert "slow down" in retry.error


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failure_is_reported_after_three_attempts(
    make_agent: MakeAgent, server: OpenAIServer, status: int
) -> None:
    server.plan(*[Refuse(status, "busy", AT_ONCE)] * 3)
    with pytest.raises(ModelFailed, match="busy"):
        make_agent().chat("hi")
    assert len(server.requests) == 3


def test_num_retries_0_means_one_attempt(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Refuse(500, "busy", AT_ONCE))
    with pytest.raises(ModelFailed):
        make_agent(num_retries=0).chat("hi")
    assert len(server.requests) == 1


def test_an_hour_of_retry_after_is_not_waited_for(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Refuse(429, "come back later", {"retry-after": "3600"}))
    with pytest.raises(ModelFailed, match="come back later"):
        make_agent().chat("hi")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_permanent_failure_is_not_retried(make_agent: MakeAgent, server: OpenAIServer, status: int) -> None:
    server.plan(Refuse(status, "no"))
    with pytest.raises(ModelFailed) as caught:
        make_agent().chat("hi")
    assert len(server.requests) == 1
    assert "openai/test" in caught.value.message
    assert caught.value.hint


def test_a_connection_that_fails_says_why(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Reset())
    with pytest.raises(ModelFailed, match=r"no connection: .*(reset|disconnected)"):
        make_agent(num_retries=0).chat("hi")
    with pytest.raises(ModelFailed, match=r"no connection: Cannot connect to host 127\.0\.0\.1:9"):
        make_agent(num_retries=0, api_base="http://127.0.0.1:9").chat("hi")


def test_a_refused_key_is_never_shown(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Refuse(401, f"Incorrect API key provided: {KEY}. And sk-other-0123456789."))
    agent = make_agent()
    with pytest.raises(ModelFailed) as caught:
        agent.chat("hi")
    shown = "".join(traceback.format_exception(caught.value)) + str(caught.value) + repr(agent)
    assert "the API key was refused" in shown
    assert KEY not in shown
    assert "sk-other" not in shown


@pytest.mark.parametrize(
    "trouble",
    [
        (Refuse(400, f"no {KEY}"), "the provider refused the request"),
        (Refuse(401, f"no {KEY}"), "the API key was refused"),
        (Refuse(403, f"no {KEY}"), "the key may not use this model"),
        (Refuse(404, f"no {KEY}"), "no such model or address"),
        (Refuse(429, f"no {KEY}"), "too many requests"),
        (Refuse(500, f"no {KEY}"), "the provider failed"),
        (Hang(), "no answer in time"),
        (Say(("one ", "two "), hold_after=1), "no answer in time"),
        (Cut(rude=True), "payload is not completed"),
        (Cut(rude=False), "broke off before its end"),
        (Garbage(("some text",)), "the provider failed: Expecting property name"),
        (Say(()), "without any text"),
    ],
    ids=["400", "401", "403", "404", "429", "500", "a hang", "a hang in mid-stream", "a cut stream",
         "a stream without an end", "malformed JSON", "nothing said"],
)  # fmt: skip
def test_each_failure_names_provider_model_reason_and_fix_and_never_the_key(
    make_agent: MakeAgent, server: OpenAIServer, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    trouble: tuple[Answer, str],
) -> None:  # fmt: skip
    answer, reason = trouble
    server.plan(answer)
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    runner = sequential_workflow([make_agent(timeout=0.3, num_retries=0)], checkpointer=store)
    caplog.set_level("DEBUG", "hitl_tui")
    events: list[object] = []
    with pytest.raises(NodeFailed) as caught:
        runner.invoke({"messages": "go"}, thread_id="t", on_event=events.append)
    assert "openai/test" in caught.value.message
    assert "litellm" not in caught.value.message
    assert reason in caught.value.message
    assert caught.value.hint
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"openai/test" in kept
    assert KEY.encode() not in kept
    assert KEY not in caplog.text + repr(events) + str(caught.value)
    store.close()


@pytest.mark.parametrize("said", ["no such token: qwertz-asdf-99", "refused: Bearer qwertz-asdf-99"])
@pytest.mark.parametrize("option", ["extra_headers", "headers"])
def test_what_is_sent_in_a_header_is_never_shown(option: str, said: str) -> None:
    shown = scrub(said, {option: {"X-Gate": "Token qwertz-asdf-99"}})
    assert "qwertz" not in shown
    assert "[secret]" in shown


def test_a_key_from_the_environment_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATE_TOKEN", "qwertz-asdf-99")
    monkeypatch.setenv("GATE_NAME", "the-front-gate")
    assert scrub("qwertz-asdf-99 at the-front-gate", {}) == "[secret] at the-front-gate"


@pytest.mark.parametrize("after", ["soon", "-1", "nan", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_an_invalid_retry_after_header_is_ignored(
    make_agent: MakeAgent, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    monkeypatch.setattr(exchange, "_FIRST_WAIT", 0.001)
    server.plan(Refuse(429, "slow down", {"retry-after": after}), Say(("there",)))
    node = Node()
    assert node.run(make_agent().chat, "hi") == "there"
    retry = next(event for event in node.events if isinstance(event, NodeRetrying))
    assert 0 < retry.wait < 0.1


@pytest.mark.parametrize(
    ("model", "variable"),
    [("openai/test", "OPENAI_API_KEY"), ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY")],
)
def test_a_missing_key_names_the_variable(model: str, variable: str) -> None:
    with pytest.raises(ModelFailed) as caught:
        Agent("writer", model).chat("hi")
    assert f"{model}: no API key" in caught.value.message
    assert variable in caught.value.hint


def test_an_empty_key_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with pytest.raises(ModelFailed) as caught:
        Agent("a", "openai/gpt-4o-mini").chat("hi")
    assert "openai/gpt-4o-mini: no API key" in caught.value.message
    assert "set OPENAI_API_KEY" in caught.value.hint


def test_an_error_about_the_servers_own_key_does_not_ask_for_ours(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.plan(Refuse(401, "upstream: missing credentials"))
    with pytest.raises(ModelFailed, match=r"the API key was refused: .*missing credentials"):
        make_agent().chat("hi")


def test_an_unknown_provider_is_reported() -> None:
    with pytest.raises(ModelFailed, match="unknown provider"):
        Agent("writer", "nowhere/test").chat("hi")


@pytest.mark.parametrize("rude", [True, False])
def test_a_cut_stream_is_a_failure_and_is_not_retried(
    make_agent: MakeAgent, server: OpenAIServer, rude: bool
) -> None:
    server.plan(Cut(("half a sentence, ", "and then"), rude=rude))
    agent, node = make_agent(), Node()
    with pytest.raises(ModelFailed):
        node.run(agent.chat, "hi")
    assert len(server.requests) == 1
    assert agent.turns == []
    assert agent.tokens.total.output > 0, "what was written was paid for"
    assert len(node.activity.uses) == 1


def test_malformed_json_is_a_failure(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Garbage(("some text",)))
    agent = make_agent()
    with pytest.raises(ModelFailed, match="openai/test"):
        agent.chat("hi")
    assert agent.turns == []


def test_no_answer_in_time(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Hang())
    with pytest.raises(ModelFailed, match="no answer in time"):
        make_agent(timeout=0.2, num_retries=0).chat("hi")


def test_an_empty_reply_is_a_failure(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(()))
    agent = make_agent()
    with pytest.raises(ModelFailed, match="without any text"):
        agent.chat("hi")
    assert agent.turns == []


def test_turns_survive_a_failure(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(("A",)), Refuse(400, "no"))
    agent = make_agent()
    agent.chat("a")
    with pytest.raises(ModelFailed):
        agent.chat("b")
    assert [turn["content"] for turn in agent.turns] == ["a", "A"]


@pytest.mark.slow
def test_a_huge_answer_arrives_whole(make_agent: MakeAgent, server: OpenAIServer) -> None:
    pieces = tuple(f"{number:05} {'many words ' * 90}" for number in range(2_000))
    server.plan(Say(pieces))
    assert Node().run(make_agent().chat, "hi") == "".join(pieces)


@pytest.mark.slow
def test_an_answer_in_one_huge_piece_arrives_whole(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(("x" * 3_000_000,)))
    assert len(make_agent().chat("hi")) == 3_000_000


@pytest.mark.slow
def test_an_answer_too_large_for_a_channel_fails_its_node_with_a_hint(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.plan(Say(("x" * 3_000_000,)))
    runner = sequential_workflow([make_agent()])
    with pytest.raises(NodeFailed, match=r"'(messages|output)'.*(MiB|bytes)") as caught:
        runner.invoke({"messages": "go"})
    assert "reference" in caught.value.hint
