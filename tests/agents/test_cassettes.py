"""Cassettes: what is written, what is served from them, and what is refused."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, StateGraph
from hitl_tui.agents import Agent, Cassette, ScriptedModel, cassette
from hitl_tui.agents.backend import CallFailed, ToolCall
from hitl_tui.engine.log.events import NodeRetrying
from hitl_tui.errors import ModelFailed, UsageError
from tests.agents.conftest import KEY, Node
from tests.support.openai_server import Call, OpenAIServer, Refuse, Say

MakeAgent = Callable[..., Agent]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tape.jsonl"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_recorded_chat_is_served_again_without_a_server(
    make_agent: MakeAgent, server: OpenAIServer, file: Path
) -> None:
    server.plan(
        Say(("Three ", "is "), calls=(Call("add", '{"a": 1, "b": 2}'),)), Say(("it ", "is."), usage=(30, 4))
    )
    agent = make_agent("openai/gpt-4o", tools=[add], temperature=0.5)
    with cassette(file, record=True):
        said = list(agent.stream("1 + 2?"))
    again = make_agent("openai/gpt-4o", tools=[add], temperature=0.5)
    with cassette(file):
        assert list(again.stream("1 + 2?")) == said == ["Three ", "is ", "it ", "is."]
    assert len(server.requests) == 2
    assert again.turns == agent.turns
    assert (again.tokens, again.cost) == (agent.tokens, agent.cost)


def test_a_cassette_is_readable_versioned_and_private_to_its_owner(make_agent: MakeAgent, file: Path) -> None:
    with cassette(file, record=True):
        make_agent(instructions="Be brief.").chat("hi")
    header, call = lines(file)
    assert header == {"cassette": 1}
    assert (call["agent"], call["model"]) == ("writer", "openai/test")
    assert [message["role"] for message in call["messages"]] == ["system", "user"]
    assert "".join(text for _, text in call["pieces"]) == "hello"
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


def test_recording_again_adds_to_the_cassette(
    make_agent: MakeAgent, server: OpenAIServer, file: Path
) -> None:
    server.plan(Say(("one",)), Say(("two",)))
    for prompt in ("a", "b"):
        with cassette(file, record=True):
            make_agent().chat(prompt)
    with cassette(file):
        assert [make_agent().chat(prompt) for prompt in ("b", "a")] == ["two", "one"]


def test_equal_requests_are_answered_in_the_order_they_were_recorded_and_then_refused(
    make_agent: MakeAgent, server: OpenAIServer, file: Path
) -> None:
    server.plan(Say(("one",)), Say(("two",)))
    with cassette(file, record=True):
        for _ in range(2):
            make_agent().chat("a")
    with cassette(file):
        assert [make_agent().chat("a") for _ in range(2)] == ["one", "two"]
        with pytest.raises(ModelFailed, match="answers this request 2 times, and it is asked again"):
            make_agent().chat("a")


def test_a_failure_is_recorded_and_retried_again(
    make_agent: MakeAgent, server: OpenAIServer, file: Path
) -> None:
    server.plan(Refuse(429, "slow down", {"retry-after": "0"}), Say(("ok",)))
    with cassette(file, record=True):
        make_agent().chat("a")
    node = Node()
    with cassette(file):
        assert node.run(make_agent().chat, "a") == "ok"
    (retry,) = [event for event in node.events if isinstance(event, NodeRetrying)]
    assert (retry.attempt, retry.max_attempts, retry.wait) == (1, 3, 0)
    assert "too many requests" in retry.error


@pytest.mark.parametrize(
    ("given", "differs"),
    [
        (
            {"prompt": "Explain closures today."},
            r"message 2 \(user\) was '.*losures.' and is '.*losures today.'",
        ),
        ({"instructions": "Be long."}, r"message 1 \(system\) was 'Be brief.' and is 'Be long.'"),
        ({"model": "openai/other"}, "the model was openai/test and is openai/other"),
        ({"temperature": 1.0}, "temperature was 0.5 and is 1.0"),
        ({"tools": [add]}, "its tools have changed"),
    ],
    ids=["prompt", "instructions", "model", "temperature", "tools"],
)
def test_an_unrecorded_request_names_the_nearest_recorded_one_and_the_difference(
    make_agent: MakeAgent, server: OpenAIServer, file: Path, given: dict[str, Any], differs: str
) -> None:
    base: dict[str, Any] = {"instructions": "Be brief.", "temperature": 0.5}
    with cassette(file, record=True):
        make_agent(**base).chat("Write a poem.")
        make_agent(**base).chat("Explain closures.")
    prompt = given.pop("prompt", "Explain closures.")
    with cassette(file), pytest.raises(ModelFailed, match=f"nearest is call 2: {differs}"):
        make_agent(**{**base, **given}).chat(prompt)
    assert len(server.requests) == 2


def test_a_cassette_has_no_keys(
    make_agent: MakeAgent, server: OpenAIServer, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "other-secret-9876")
    server.plan(
        Say(
            (
                "You said other-sec",
                "ret-9876.",
            )
        )
    )
    with cassette(file, record=True):
        make_agent().chat(f"My key is {KEY}, theirs other-secret-9876.")
    text = file.read_text()
    assert KEY not in text
    assert "other-secret" not in text
    assert "ret-9876" not in text
    with cassette(file):
        assert make_agent().chat(f"My key is {KEY}, theirs other-secret-9876.") == "You said [secret]."


def test_a_cassette_has_no_keys_from_tool_calls_or_failures(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "other-secret-9876")

    def note(text: str) -> str:
        """Keep a note."""
        return "kept"

    calling = [ToolCall("note", '{"text": "other-secret-9876"}', "1"), "done"]
    with cassette(file, record=True):
        Agent("a", ScriptedModel(calling, pace=0), tools=[note], approve="never").chat("note it")
        failing = ScriptedModel([CallFailed("bad key other-secret-9876")], pace=0)
        with pytest.raises(ModelFailed):
            Agent("a", failing).chat("again")
    assert "other-secret" not in file.read_text()
    assert [call.get("error") for call in lines(file)[1:]] == [None, None, {"message": "bad key [secret]"}]
    assert lines(file)[1]["calls"][0]["arguments"] == '{"text": "[secret]"}'


def private_runner(agent: Agent) -> GraphRunner:
    def work(state: Any, config: Any) -> Any:
        return {
            "out": config.agents["writer"].chat(
                f"Mail {state['person']['name']}, PIN {state['pin']}, line 42."
            )
        }

    return (
        StateGraph(
            {
                "person": Channel({"name": "Ada Lovelace"}, visibility="private"),
                "pin": Channel(4242, visibility="private"),
                "out": Channel(""),
            }
        )
        .add_node("work", work)
        .add_edge(START, "work")
        .add_edge("work", END)
        .compile(agents={"writer": agent})
    )


def test_a_cassette_has_no_private_values(make_agent: MakeAgent, server: OpenAIServer, file: Path) -> None:
    server.plan(Say(("Dear Ada ", "Lovelace, 4242!")))
    with cassette(file, record=True):
        assert private_runner(make_agent()).invoke({})["out"] == "Dear Ada Lovelace, 4242!"
    text = file.read_text()
    assert "Lovelace" not in text
    assert "4242" not in text
    assert "line 42." in text
    with cassette(file):
        out = private_runner(make_agent()).invoke({})["out"]
    assert out == "Dear [private: person], [private: pin]!"


def test_a_cancelled_call_is_not_recorded(make_agent: MakeAgent, server: OpenAIServer, file: Path) -> None:
    server.plan(Say(("one ", "two "), hold_after=1))
    with cassette(file, record=True):
        pieces = make_agent().stream("hi")
        next(pieces)
        pieces.close()  # type: ignore[attr-defined]
        assert server.left.wait(20)
    assert lines(file) == [{"cassette": 1}]


def test_an_agent_can_have_its_own_cassette(make_agent: MakeAgent, server: OpenAIServer, file: Path) -> None:
    make_agent(cassette=Cassette(file, record=True)).chat("hi")
    replay = make_agent(cassette=Cassette(file))
    assert replay.fresh().chat("hi") == "hello"
    assert len(server.requests) == 1


def test_scripts_can_be_recorded_too(file: Path) -> None:
    with cassette(file, record=True):
        Agent("a", ScriptedModel([{"x": 1}], pace=0)).chat_structured("?", dict[str, int])
    with cassette(file):
        assert Agent("a", ScriptedModel([], pace=0)).chat_structured("?", dict[str, int]) == {"x": 1}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is not a cassette"),
        ("hello\n", "is not a cassette"),
        ('{"cassette": 2}\n', "version 2"),
        ('{"cassette": 1}\n{"agent": 3}\n', "line 2"),
        (None, "No such file"),
    ],
    ids=["empty", "no JSON", "newer", "a damaged line", "missing"],
)
def test_a_file_that_is_not_a_cassette_is_refused(file: Path, content: str | None, problem: str) -> None:
    if content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=problem):
        Cassette(file)


def test_recording_does_not_overwrite_another_file(file: Path) -> None:
    file.write_text("my notes\n")
    with pytest.raises(UsageError, match="is not a cassette"):
        Cassette(file, record=True)
    assert file.read_text() == "my notes\n"
