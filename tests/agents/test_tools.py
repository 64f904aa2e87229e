"""Tools: what a model gets to know about them, how its calls are read and run, and what stops it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pydantic
import pytest

from hitl_tui.agents import Agent, ScriptedModel, Tool, ToolCall
from hitl_tui.engine.log.events import ToolCalled
from hitl_tui.errors import ModelFailed, UsageError
from tests.agents.conftest import Node
from tests.support.openai_server import Call, OpenAIServer, PlainOnly, Say

MakeAgent = Callable[..., Agent]


def weather(city: str, days: int = 1) -> str:
    """Tell the weather of a city.

    Args:
        city: its name, as in
            "Graz".
        days: how far ahead.

    Returns:
        a sentence.
    """
    return f"{city}: sun for {days} days"


async def lookup(word: Annotated[str, "the word to look up"]) -> dict[str, int]:
    """Count a word."""
    await asyncio.sleep(0)
    return {word: len(word)}


def boom(why: str) -> str:
    """Fail."""
    raise RuntimeError(why)


def tool_results(server: OpenAIServer, request: int = -1) -> list[str]:
    """What the tool messages of a request say."""
    return [m["content"] for m in server.requests[request].body["messages"] if m["role"] == "tool"]


class TestSchema:
    """What a signature becomes."""

    def test_types_defaults_and_docstring_become_a_schema(self) -> None:
        schema = Tool(weather).schema["function"]
        assert schema["name"] == "weather"
        assert schema["description"] == "Tell the weather of a city."
        assert schema["parameters"] == {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": 'its name, as in "Graz".'},
                "days": {"type": "integer", "description": "how far ahead.", "default": 1},
            },
            "required": ["city"],
            "additionalProperties": False,
        }

    def test_an_annotated_text_describes_the_parameter(self) -> None:
        assert Tool(lookup).parameters["properties"]["word"]["description"] == "the word to look up"

    @pytest.mark.parametrize(
        ("kind", "good", "bad"),
        [
            (Literal["a", "b"], "a", "c"),
            (int | None, None, "1"),
            (list[int], [1, 2], ["x"]),
            (dict[str, float], {"a": 1.5}, {"a": "x"}),
            (bool, True, 1),
        ],
        ids=["Literal", "Optional", "list", "dict", "bool"],
    )
    def test_a_type_accepts_only_its_values(self, kind: Any, good: Any, bad: Any) -> None:
        def take(value: Any) -> str:
            return repr(value)

        take.__annotations__["value"] = kind
        tool = Tool(take)
        assert tool.read(json.dumps({"value": good})) == {"value": good}
        with pytest.raises(ValueError, match="value"):
            tool.read(json.dumps({"value": bad}))

    async def test_dataclasses_and_models_are_passed_as_instances(self) -> None:
        @dataclass
        class Place:
            city: str

        class Trip(pydantic.BaseModel):
            days: int

        def plan(place, trip, trips):  # type: ignore[no-untyped-def]  # typed below, out of locals
            return f"{type(place).__name__} {place.city} {type(trip).__name__} {trips[0].days}"

        plan.__annotations__ = {"place": Place, "trip": Trip, "trips": list[Trip]}
        tool = Tool(plan)
        given = tool.read('{"place": {"city": "Graz"}, "trip": {"days": 2}, "trips": [{"days": 3}]}')
        assert await tool.run(given) == "Place Graz Trip 3"

    def test_an_untyped_parameter_is_refused_by_name(self) -> None:
        def search(query):  # type: ignore[no-untyped-def]
            return query

        with pytest.raises(UsageError, match=r"'search': parameter 'query' has no type"):
            Agent("a", ScriptedModel([]), tools=[search])

    def test_arguments_without_names_are_refused(self) -> None:
        def search(*words: str) -> str:
            return words[0]

        with pytest.raises(UsageError, match="can't be given by name"):
            Tool(search)

    def test_two_tools_of_one_name_are_refused(self) -> None:
        with pytest.raises(UsageError, match="two tools named 'weather'"):
            Agent("a", ScriptedModel([]), tools=[weather, Tool(lookup, name="weather")])

    def test_a_wrong_approval_rule_is_refused(self) -> None:
        with pytest.raises(UsageError, match="approve='sometimes'"):
            Tool(weather, approve="sometimes")  # type: ignore[arg-type]


class TestOverHttp:
    """Through litellm."""

    def test_a_streamed_call_is_run_and_its_result_sent_back(
        self, make_agent: MakeAgent, server: OpenAIServer
    ) -> None:
        server.plan(
            Say(("Let me look. ",), calls=(Call("weather", '{"city": "Graz", "days": 3}'),)), Say(("Sunny.",))
        )
        agent, node = make_agent(tools=[weather]), Node()
        assert node.run(agent.chat, "Weather?") == "Sunny."
        first, second = (request.body for request in server.requests)
        assert [tool["function"]["name"] for tool in first["tools"]] == ["weather"]
        assert (
            second["messages"][-2]["tool_calls"][0]["function"]["arguments"] == '{"city": "Graz", "days": 3}'
        )
        assert second["messages"][-1] == {
            "role": "tool", "tool_call_id": "call_1", "content": "Graz: sun for 3 days",
        }  # fmt: skip
        (events,) = [event for event in node.events if isinstance(event, ToolCalled)]
        assert (events.tool, events.arguments, events.result) == (
            "weather", {"city": "Graz", "days": 3}, "Graz: sun for 3 days",
        )  # fmt: skip
        assert len(node.activity.uses) == 2
        assert agent.tokens.total.input == 14

    def test_several_calls_of_one_reply_are_made_in_order(
        self, make_agent: MakeAgent, server: OpenAIServer
    ) -> None:
        calls = (Call("weather", '{"city": "A"}', "one"), Call("lookup", '{"word": "tea"}', "two"))
        server.plan(Say((), calls=calls), Say(("ok",)))
        assert make_agent(tools=[weather, lookup]).chat("go") == "ok"
        assert tool_results(server) == ["A: sun for 1 days", '{"tea":3}']

    def test_a_server_without_streaming_can_call_tools(
        self, make_agent: MakeAgent, server: OpenAIServer
    ) -> None:
        plain = PlainOnly("", (Call("weather", '{"city": "A"}'),))
        server.plan(plain, plain, Say(("ok",)))
        assert make_agent(tools=[weather]).chat("go") == "ok"
        assert tool_results(server) == ["A: sun for 1 days"]

    def test_turns_keep_the_calls_and_are_sent_again(
        self, make_agent: MakeAgent, server: OpenAIServer
    ) -> None:
        server.plan(Say((), calls=(Call("weather", '{"city": "A"}'),)), Say(("Sunny.",)), Say(("Yes.",)))
        agent = make_agent(tools=[weather])
        agent.chat("Weather?")
        assert [turn["role"] for turn in agent.turns] == ["user", "assistant", "tool", "assistant"]
        agent.set_turns(agent.turns)
        agent.chat("Sure?")
        assert [m["role"] for m in server.requests[-1].body["messages"]] == [
            "user", "assistant", "tool", "assistant", "user",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("call", "error"),
        [
            (Call("nope"), "there is no tool 'nope'; tools: weather, boom"),
            (Call("weather", "{city"), "the arguments are not JSON"),
            (Call("weather", '{"city": 3}'), "city: 3 is not of type"),
            (Call("weather", '{"town": "A"}'), "'town' was unexpected"),
            (Call("weather", "[]"), "the arguments are a list"),
            (Call("boom", '{"why": "no luck"}'), "RuntimeError: no luck"),
        ],
        ids=["unknown tool", "no JSON", "wrong type", "unknown name", "no object", "the tool raises"],
    )
    def test_errors_are_reported_to_the_model(
        self, make_agent: MakeAgent, server: OpenAIServer, call: Call, error: str
    ) -> None:
        server.plan(Say((), calls=(call,)), Say(("Sorry.",)))
        agent, node = make_agent(tools=[weather, boom]), Node()
        assert node.run(agent.chat, "go") == "Sorry."
        (message,) = tool_results(server)
        assert message.startswith("Error: ")
        assert error in message
        (event,) = [event for event in node.events if isinstance(event, ToolCalled)]
        assert event.result is None
        assert error in (event.error or "")


def test_a_model_that_never_stops_calling_is_stopped() -> None:
    ran = []

    def tick() -> str:
        """Tick."""
        ran.append(1)
        return "tock"

    agent = Agent("a", ScriptedModel(lambda _: ToolCall("tick", {}), pace=0), tools=[tick], max_tool_rounds=3)
    with pytest.raises(ModelFailed, match="still calls tools after 3 rounds"):
        agent.chat("go")
    assert len(ran) == 3
    assert agent.turns == []


def test_bad_calls_count_as_rounds() -> None:
    agent = Agent("a", ScriptedModel(lambda _: ToolCall("x"), pace=0), tools=[weather], max_tool_rounds=2)
    with pytest.raises(ModelFailed, match="after 2 rounds"):
        agent.chat("go")


def test_a_huge_result_is_cut_with_a_note() -> None:
    def flood() -> str:
        """Say much."""
        return "x" * 5_000_000

    prompts: list[str] = []

    def reply(messages: Any) -> Any:
        prompts.append(messages[-1]["content"])
        return "enough" if messages[-1]["role"] == "tool" else ToolCall("flood")

    agent = Agent("a", ScriptedModel(reply, pace=0), tools=[flood], max_tool_result=100)
    node = Node()
    assert node.run(agent.chat, "go") == "enough"
    assert prompts[-1] == "x" * 100 + "\n[cut here: the first 100 of 5000000 characters]"
    (event,) = [event for event in node.events if isinstance(event, ToolCalled)]
    assert len(event.result or "") < 200


def test_a_result_that_is_not_json_is_an_error_of_the_tool() -> None:
    def thing() -> object:
        """Give something strange."""
        return object()

    prompts: list[str] = []

    def reply(messages: Any) -> Any:
        prompts.append(messages[-1]["content"])
        return "ok" if messages[-1]["role"] == "tool" else ToolCall("thing")

    assert Agent("a", ScriptedModel(reply, pace=0), tools=[thing]).chat("go") == "ok"
    assert prompts[-1].startswith("Error: ")


@pytest.mark.parametrize(("external", "tainted"), [(True, ["tool weather"]), (False, [])])
def test_a_tool_taints_the_node_unless_it_is_trusted(external: bool, tainted: list[str]) -> None:
    script = ScriptedModel([ToolCall("weather", {"city": "A"}), "ok"], pace=0)
    agent, node = Agent("a", script, tools=[Tool(weather, external=external)]), Node()
    node.run(agent.chat, "go")
    assert node.activity.tainted_by == tainted


def test_a_call_that_never_ran_taints_nothing() -> None:
    script = ScriptedModel([ToolCall("weather", {"town": "A"}), "ok"], pace=0)
    agent, node = Agent("a", script, tools=[weather]), Node()
    node.run(agent.chat, "go")
    assert node.activity.tainted_by == []


def test_a_timeout_of_a_tool_is_reported_to_the_model() -> None:
    async def forever() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return ""

    prompts: list[str] = []

    def reply(messages: Any) -> Any:
        prompts.append(messages[-1]["content"])
        return "ok" if messages[-1]["role"] == "tool" else ToolCall("forever")

    Agent("a", ScriptedModel(reply, pace=0), tools=[Tool(forever, timeout=0.01)]).chat("go")
    assert "longer than 0.01 s" in prompts[-1]


def test_a_stream_has_all_text_and_chat_returns_the_answer() -> None:
    script = [["Looking. ", ToolCall("weather", {"city": "A"})], "Sunny."]
    assert (
        "".join(Agent("a", ScriptedModel(script, pace=0), tools=[weather]).stream("?")) == "Looking. Sunny."
    )
    assert Agent("a", ScriptedModel(script, pace=0), tools=[weather]).chat("?") == "Sunny."


def changed(city: str) -> str:
    """What the model reads first where a person chose the city."""
    ran = f'{{"city": "{city}", "days": 1}}'
    return f"[A person changed this call before it was made. It ran with these arguments: {ran}]\n"


class TestApprovalOutsideAGraph:
    """Where no run can wait for a person, a function decides."""

    @staticmethod
    def agent(**given: Any) -> Agent:
        script = ScriptedModel([ToolCall("weather", {"city": "A"}), "done"], pace=0)
        return Agent("a", script, tools=[weather], approve="always", **given)

    def result_of_call(self, answer: Any) -> str:
        agent = self.agent(approver=lambda request: answer)
        assert agent.chat("go") == "done"
        return str(agent.turns[-2]["content"])

    def test_without_one_the_call_is_refused(self) -> None:
        with pytest.raises(UsageError, match="no one to ask outside a graph"):
            self.agent().chat("go")

    def test_the_approver_sees_the_exact_call(self) -> None:
        seen = []
        self.agent(approver=lambda request: seen.append(request) or True).chat("go")
        assert [(one.tool.name, one.arguments) for one in seen] == [("weather", {"city": "A", "days": 1})]

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (True, "A: sun for 1 days"),
            ("approve", "A: sun for 1 days"),
            ({"type": "approve"}, "A: sun for 1 days"),
            ({"choice": "edit", "args": {"city": "B"}}, changed("B") + "B: sun for 1 days"),
            ({"choice": "edit", "text": '{"city": "B"}'}, changed("B") + "B: sun for 1 days"),
            (
                {"type": "edit", "edited_action": {"name": "weather", "args": {"city": "C"}}},
                changed("C") + "C: sun for 1 days",
            ),
            ({"decisions": [{"type": "approve"}]}, "A: sun for 1 days"),
            (False, "Error: A person refused this call"),
            ({"choice": "reject", "text": "too far"}, "Error: A person refused this call: too far"),
            ({"type": "reject", "message": "no"}, "Error: A person refused this call: no"),
            ({"type": "respond", "message": "It rains."}, "It rains."),
        ],
    )
    def test_answers(self, answer: Any, message: str) -> None:
        assert self.result_of_call(answer) == message

    def test_edited_arguments_that_do_not_fit_are_refused(self) -> None:
        with pytest.raises(UsageError, match="can't be taken"):
            self.agent(approver=lambda _: {"choice": "edit", "args": {"town": "B"}}).chat("go")

    def test_a_function_of_the_arguments_decides_whether_to_ask(self) -> None:
        asked = []

        def reply(messages: Any) -> Any:
            done = sum(message["role"] == "tool" for message in messages)
            return ToolCall("weather", {"city": "AB"[done]}) if done < 2 else "done"

        tool = Tool(weather, approve=lambda arguments: arguments["city"] == "B")
        agent = Agent(
            "a", ScriptedModel(reply, pace=0), tools=[tool],
            approver=lambda request: asked.append(request.arguments) or True,
        )  # fmt: skip
        agent.chat("go")
        assert asked == [{"city": "B", "days": 1}]


def test_calls_without_an_id_get_different_ids() -> None:
    prompts: list[Any] = []
    calls = [[ToolCall("weather", {"city": city}) for city in ("Graz", "Linz")], "Sunny."]

    def say(messages: Any) -> Any:
        prompts[:] = messages
        return calls.pop(0)

    assert Agent("a", ScriptedModel(say, pace=0), tools=[weather], approve="never").chat("?") == "Sunny."
    asked = [call["id"] for turn in prompts for call in turn.get("tool_calls", ())]
    result_by_call = {turn["tool_call_id"]: turn["content"] for turn in prompts if turn["role"] == "tool"}
    assert len(set(asked)) == 2
    assert [result_by_call[one][:4] for one in asked] == ["Graz", "Linz"]
