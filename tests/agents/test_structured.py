"""Structured answers: JSON that fits a schema, one repair, then an error that says what was wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_overloads

import pydantic
import pytest

from hitl_tui.agents import Agent, ScriptedModel, ToolCall
from hitl_tui.errors import GraphInvalid, ModelFailed
from tests.support.openai_server import OpenAIServer, Say

MakeAgent = Callable[..., Agent]
SCHEMA = {
    "type": "object",
    "properties": {
        "verdict": {"enum": ["approved", "revise"]},
        "scores": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["verdict"],
}  # fmt: skip


class Verdict(pydantic.BaseModel):
    verdict: str
    score: int

    @pydantic.field_validator("score")
    @classmethod
    def small(cls, value: int) -> int:
        if value > 10:
            raise ValueError("at most 10")
        return value


@dataclass
class Point:
    x: int
    y: int


def agent(*replies: Any) -> Agent:
    return Agent("judge", ScriptedModel(list(replies), pace=0))


def test_the_schema_goes_with_the_prompt(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(Say(('{"verdict"', ': "revise"}')))
    assert make_agent().chat_structured("Judge this.", SCHEMA) == {"verdict": "revise"}
    asked = server.requests[0].body["messages"][-1]["content"]
    assert asked.startswith("Judge this.")
    assert json.loads(asked.splitlines()[-1]) == SCHEMA


@pytest.mark.parametrize(
    "reply",
    [
        '{"verdict": "approved"}',
        'Here you are:\n```json\n{"verdict": "approved"}\n```\nAnything else?',
        'My verdict: {"verdict": "approved"} as I said.',
        {"verdict": "approved"},
    ],
    ids=["alone", "in a fence", "among words", "a mapping of the script"],
)
def test_json_is_found(reply: Any) -> None:
    assert agent(reply).chat_structured("?", SCHEMA) == {"verdict": "approved"}


@pytest.mark.parametrize(
    ("schema", "reply", "value"),
    [
        (Verdict, {"verdict": "ok", "score": 3}, Verdict(verdict="ok", score=3)),
        (list[Verdict], '[{"verdict": "ok", "score": 3}]', [Verdict(verdict="ok", score=3)]),
        (Point, {"x": 1, "y": 2}, Point(1, 2)),
        (list[str], '["a", "b"]', ["a", "b"]),
        (int, "3", 3),
        ({"type": "array"}, "[1]", [1]),
    ],
    ids=["pydantic model", "list of models", "dataclass", "list[str]", "int", "schema"],
)
def test_a_type_gives_its_own_values(schema: Any, reply: Any, value: Any) -> None:
    assert agent(reply).chat_structured("?", schema) == value


async def test_async() -> None:
    assert await agent({"x": 1, "y": 2}).achat_structured("?", Point) == Point(1, 2)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("I think it is fine.", "The answer is not JSON"),
        ({"verdict": "maybe"}, 'at verdict: "maybe" is not one of'),
        ({"verdict": "revise", "scores": [1, "two"]}, 'at scores[1]: "two" is not of type "number"'),
        ({}, 'at the top: "verdict" is a required property'),
    ],
)
def test_an_invalid_structured_reply_is_sent_back_once_with_its_error(bad: Any, message: str) -> None:
    prompts: list[str] = []

    def reply(messages: Any) -> Any:
        prompts.append(messages[-1]["content"])
        return bad if len(prompts) == 1 else {"verdict": "approved"}

    judge = Agent("judge", ScriptedModel(reply, pace=0))
    assert judge.chat_structured("?", SCHEMA) == {"verdict": "approved"}
    assert message in prompts[1]
    assert len(prompts) == 2
    assert [turn["role"] for turn in judge.turns] == ["user", "assistant"]
    assert judge.turns[-1]["content"] == '{"verdict": "approved"}'


def test_errors_of_pydantic_validators_are_sent_back_too() -> None:
    judge = agent({"verdict": "ok", "score": 11}, {"verdict": "ok", "score": 9})
    assert judge.chat_structured("?", Verdict).score == 9


def test_a_second_invalid_reply_is_an_error_that_names_path_and_value() -> None:
    judge = agent({"verdict": "no"}, {"verdict": "never"})
    with pytest.raises(ModelFailed, match=r'two tries.*at verdict: "never" is not one of'):
        judge.chat_structured("?", SCHEMA)
    assert judge.turns == []


def test_tools_may_be_called_on_the_way() -> None:
    def count(word: str) -> int:
        """Count letters."""
        return len(word)

    script = ScriptedModel([ToolCall("count", {"word": "tea"}), {"x": 3, "y": 0}], pace=0)
    assert Agent("a", script, tools=[count]).chat_structured("?", Point) == Point(3, 0)


@pytest.mark.parametrize("schema", [{"type": "nothing"}, object()], ids=["no schema", "no type"])
def test_an_invalid_schema_is_reported_before_the_model_is_called(schema: Any) -> None:
    with pytest.raises(GraphInvalid, match="schema"):
        agent().chat_structured("?", schema)


@pytest.mark.parametrize("method", [Agent.chat_structured, Agent.achat_structured])
def test_a_type_checker_infers_the_structured_type(method: Callable[..., Any]) -> None:
    of_type, of_schema = (each.__annotations__ for each in get_overloads(method))
    assert (of_type["schema"], of_type["return"]) == ("type[T]", "T")
    assert (of_schema["schema"], of_schema["return"]) == ("Any", "Any")
