"""What becomes of the things that providers send besides a good reply: over HTTP, through litellm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hitl_tui import END, START, Agent, Channel, MemoryCheckpointer, ScriptedModel, StateGraph, ToolCall
from hitl_tui.agents.backend import Finish
from hitl_tui.agents.cassettes import Cassette
from hitl_tui.agents.thoughts import ThoughtSplitter, without_thoughts
from hitl_tui.engine.log.events import TextStreamed
from hitl_tui.errors import ModelFailed, ReplyIncomplete
from hitl_tui.workflows.advisor import advisor_workflow
from hitl_tui.workflows.supervisor import supervisor_workflow
from tests.agents.conftest import Node
from tests.support.openai_server import Deltas, OpenAIServer, Say

MakeAgent = Callable[..., Agent]
ROME, OSLO = '{"city":"Rome"}', '{"city":"Oslo"}'


def text(content: str) -> Mapping[str, Any]:
    return {"content": content}


def part(arguments: Any = None, name: str | None = None, call_id: str | None = None, **more: Any) -> Any:
    """A part of a tool call, without what is None."""
    function = {"name": name, "arguments": arguments}
    facts = {"id": call_id, "type": "function", "function": function, **more}
    function = {key: value for key, value in function.items() if value is not None}
    return {key: value for key, value in {**facts, "function": function}.items() if value is not None}


def parts(*of_calls: Any) -> Mapping[str, Any]:
    return {"tool_calls": list(of_calls)}


class Weather:
    """A tool that notes what it was called with."""

    def __init__(self) -> None:
        self.cities: list[str] = []

    def weather(self, city: str) -> str:
        """Weather."""
        self.cities.append(city)
        return f"rain in {city}"


def sent_back(server: OpenAIServer) -> list[tuple[str, str, str]]:
    """Id, name and arguments of each call in the newest request."""
    turns = server.requests[-1].body["messages"]
    calls = [call for turn in turns for call in turn.get("tool_calls", ())]
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]


# --- finish reasons -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("MAX_TOKENS", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_a_truncated_reply_has_its_own_error(
    make_agent: MakeAgent, server: OpenAIServer, given: str, reason: str
) -> None:
    server.plan(Deltas((text("approved, but only if"),), given))
    agent = make_agent()
    with pytest.raises(ReplyIncomplete) as failure:
        agent.chat("Your verdict?")
    assert (failure.value.reason, failure.value.text) == (reason, "approved, but only if")
    assert agent.turns == []
    assert agent.tokens.total.output > 0
    assert len(server.requests) == 1


def test_a_structured_answer_that_is_cut_is_not_asked_for_again(
    make_agent: MakeAgent, server: OpenAIServer
) -> None:
    server.plan(Deltas((text('{"rain": true}'),), "length"))
    with pytest.raises(ReplyIncomplete):
        make_agent().chat_structured("Rain?", dict[str, bool])
    assert len(server.requests) == 1


@pytest.mark.parametrize("reason", ["insufficient_system_resource", "network_error", "error"])
def test_a_provider_that_aborts_is_a_failed_call(
    make_agent: MakeAgent, server: OpenAIServer, reason: str
) -> None:
    server.plan(Deltas((text("half"),), reason))
    with pytest.raises(ModelFailed, match="provider"):
        make_agent().chat("hi")


def test_no_call_of_a_cut_reply_is_made(make_agent: MakeAgent, server: OpenAIServer) -> None:
    tool = Weather()
    server.plan(
        Deltas(
            (parts(part(ROME, "weather", "a", index=0), part('{"ci', "weather", "b", index=1)),), "length"
        ),
        Say(("done",)),
    )
    assert make_agent(tools=[tool.weather], approve="always").chat("go") == "done"
    assert tool.cities == []
    assert sent_back(server) == [("a", "weather", ROME), ("b", "weather", "{}")]
    results = [turn["content"] for turn in server.requests[-1].body["messages"] if turn["role"] == "tool"]
    assert len(results) == 2
    assert all("limit of tokens" in result for result in results)


def test_calls_of_a_withheld_reply_are_not_made(make_agent: MakeAgent, server: OpenAIServer) -> None:
    tool = Weather()
    server.plan(Deltas((parts(part(ROME, "weather", "a", index=0)),), "content_filter"))
    with pytest.raises(ReplyIncomplete):
        make_agent(tools=[tool.weather]).chat("go")
    assert tool.cities == []


@pytest.mark.parametrize("said", ["", " \n\t", "<think>Hm.</think>\n", "<think>Hm."])
def test_a_reply_without_text_is_an_error(make_agent: MakeAgent, server: OpenAIServer, said: str) -> None:
    server.plan(Deltas((text(said),)), Say((said,)))
    with pytest.raises(ModelFailed):
        make_agent().chat("hi")


def test_a_cassette_keeps_how_a_reply_ended(tmp_path: Any) -> None:
    file = tmp_path / "tape.jsonl"
    model = ScriptedModel([["half", Finish("length")]], pace=0)
    for recording in (True, False):
        tape = Cassette(file, record=recording)
        with pytest.raises(ReplyIncomplete):
            Agent("a", model, cassette=tape).chat("go")


# --- thinking -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("<think>a</think>\n\nb", "b"),
        ("<THINKING>a</THINKING>b", "b"),
        ("a <think>b</think> c", "a  c"),
        ("a\n<think>b", "a"),
        ("<think>a</think><think>b</think>c", "c"),
        ("<think></think>\nb", "b"),
        ("the opening tag was in the prompt</think>\nb", "b"),
        ("<think>a <think> b</think>c</think>d", "d"),
        ("<think>```\na</think>b", "b"),
        ("```\n<think>a</think>\n```\nb", "```\n<think>a</think>\n```\nb"),
        ("Write `<think>` and `</think>`.", "Write `<think>` and `</think>`."),
        ("a < b, <thin> and </p>", "a < b, <thin> and </p>"),
        ("  plain  ", "  plain  "),
    ],
)
def test_thinking_is_not_part_of_a_reply(said: str, reply: str) -> None:
    assert without_thoughts(said) == reply
    by_letter = ThoughtSplitter()
    for letter in said:
        list(by_letter.feed(letter))
    list(by_letter.close())
    assert by_letter.reply == reply


@pytest.mark.parametrize(
    "deltas",
    [
        (text("<th"), text("ink>The wri"), text("ter?</thi"), text("nk>\n"), text("facts")),
        ({"reasoning_content": "The wri"}, {"reasoning_content": "ter?"}, text("facts")),
        ({"reasoning": "The writer?"}, text("facts")),
    ],
    ids=["tags", "reasoning_content", "reasoning"],
)
def test_thinking_is_shown_and_not_kept(make_agent: MakeAgent, server: OpenAIServer, deltas: Any) -> None:
    server.plan(Deltas(deltas))
    agent, node = make_agent(), Node()
    assert "".join(node.run(lambda: list(agent.stream("Who?")))) == "facts"
    assert agent.turns[-1] == {"role": "assistant", "content": "facts"}
    shown: dict[str, str] = {}
    for event in node.events:
        if isinstance(event, TextStreamed):
            shown[event.agent] = shown.get(event.agent, "") + event.text
    assert shown == {"writer": "facts", "writer (thinking)": "The writer?"}


def test_a_structured_answer_is_not_read_from_thinking() -> None:
    model = ScriptedModel(['<think>{"rain": false}?</think>\n{"rain": true}'], pace=0)
    assert Agent("a", model).chat_structured("Rain?", dict[str, bool]) == {"rain": True}


def test_workflows_follow_the_reply_and_not_the_thinking() -> None:
    class Plain:
        """Somebody's own agent, which has `chat` alone."""

        def __init__(self, *replies: str) -> None:
            self._replies = iter(replies)

        def chat(self, prompt: str) -> str:
            return next(self._replies)

    for kind in (lambda *replies: Agent("boss", ScriptedModel(replies, pace=0)), Plain):
        boss = kind("<think>The writer? No.</think>\nresearcher", "DONE")
        team = {name: Agent(name, ScriptedModel(["text"], pace=0)) for name in ("writer", "researcher")}
        runner = supervisor_workflow(boss, team, checkpointer=MemoryCheckpointer())
        runner.invoke({"messages": ["Write."]}, thread_id="t")
        assert "writer" not in [point.node for point in runner.history("t")]
        judge = kind("<think>Fine.</think>approved")
        worker = Agent("w", ScriptedModel(["draft"], pace=0))
        result = advisor_workflow(worker, judge).invoke({"messages": ["Write."]})
        assert result["advisor_verdict"] == "approved"


def test_thinking_before_a_call_is_not_sent_back(make_agent: MakeAgent, server: OpenAIServer) -> None:
    server.plan(
        Deltas((text("<think>Rome?</think>\n"), parts(part(ROME, "weather", "a", index=0))), "tool_calls"),
        Say(("done",)),
    )
    assert make_agent(tools=[Weather().weather]).chat("go") == "done"
    assert "Rome?" not in str(server.requests[-1].body["messages"])


# --- tool calls in a stream -----------------------------------------------------------------------------

BOTH = {
    "one index": [parts(part(ROME, "weather", "a", index=0)), parts(part(OSLO, "weather", "b", index=0))],
    "one index, one chunk": [parts(part(ROME, "weather", "a", index=0), part(OSLO, "weather", "b", index=0))],
    "one index, in parts": [
        parts(part("", "weather", "a", index=0)),
        parts(part(ROME, index=0)),
        parts(part("", "weather", "b", index=0)),
        parts(part(OSLO, index=0)),
    ],
    "one index, no ids": [parts(part(ROME, "weather", index=0)), parts(part(OSLO, "weather", index=0))],
    "one index, one id": [
        parts(part(ROME, "weather", "a", index=0)),
        parts(part(OSLO, "weather", "a", index=0)),
    ],
    "one id": [parts(part(ROME, "weather", "a", index=0)), parts(part(OSLO, "weather", "a", index=1))],
    "no index": [parts(part(ROME, "weather", "a")), parts(part(OSLO, "weather", "b"))],
    "no index, no ids": [parts(part(ROME, "weather")), parts(part(OSLO, "weather"))],
    "ids take turns": [
        parts(part('{"city":', "weather", "a", index=0)),
        parts(part('{"city":', "weather", "b", index=0)),
        parts(part('"Rome"}', None, "a", index=0)),
        parts(part('"Oslo"}', None, "b", index=0)),
    ],
    "run together": [parts(part(ROME + OSLO, "weather", "a", index=0))],
    "as it should be": [
        parts(part("", "weather", "a", index=0)),
        parts(part(ROME, index=0)),
        parts(part("", "weather", "b", index=1)),
        parts(part(OSLO, index=1)),
    ],
}
ONE = {
    "the name again": [parts(part(piece, "weather", "a", index=0)) for piece in ('{"ci', 'ty":"R', 'ome"}')],
    "an empty name": [
        parts(part("", "weather", "a", index=0)),
        parts(part('{"city":', "", index=0)),
        parts(part('"Rome"}', "", "", index=0)),
    ],
    "another id with each part": [
        parts(part('{"ci', "weather", "x1", index=0)),
        parts(part('ty":"R', "weather", "x2", index=0)),
        parts(part('ome"}', None, "x3", index=0)),
    ],
    "the whole call again": [parts(part(ROME, "weather", "a", index=0))] * 2,
    "an empty end": [parts(part(ROME, "weather", "a", index=0)), parts(part("", "weather", "a", index=0))],
    "a placeholder": [
        parts(part("{}", "weather", "a", index=0)),
        parts(part('{"city":', index=0)),
        parts(part('"Rome"}', index=0)),
    ],
    "an object": [parts(part({"city": "Rome"}, "weather", "a", index=0))],
}


@pytest.mark.parametrize("deltas", BOTH.values(), ids=BOTH)
def test_parallel_calls_stay_apart(make_agent: MakeAgent, server: OpenAIServer, deltas: Any) -> None:
    tool = Weather()
    server.plan(Deltas(tuple(deltas), "tool_calls"), Say(("done",)))
    assert make_agent(tools=[tool.weather]).chat("go") == "done"
    assert tool.cities == ["Rome", "Oslo"]
    ids = [call_id for call_id, _, _ in sent_back(server)]
    assert len(set(ids)) == 2
    assert [name for _, name, _ in sent_back(server)] == ["weather", "weather"]
    turns = server.requests[-1].body["messages"]
    assert [turn["tool_call_id"] for turn in turns if turn["role"] == "tool"] == ids


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("deltas", ONE.values(), ids=ONE)
def test_one_call_stays_one(make_agent: MakeAgent, server: OpenAIServer, deltas: Any) -> None:
    tool = Weather()
    server.plan(Deltas(tuple(deltas), "tool_calls"), Say(("done",)))
    assert make_agent(tools=[tool.weather]).chat("go") == "done"
    assert tool.cities == ["Rome"]


@pytest.mark.parametrize("written", ['{"city":"Ro', "", "null", '["Rome"]', "Rome", '{"city": NaN}'])
def test_malformed_arguments_are_reported_and_never_sent_back(
    make_agent: MakeAgent, server: OpenAIServer, written: str
) -> None:
    tool = Weather()
    server.plan(Deltas((parts(part(written, "weather", "a", index=0)),), "tool_calls"), Say(("done",)))
    agent = make_agent(tools=[tool.weather])
    assert agent.chat("go") == "done"
    assert tool.cities == []
    assert sent_back(server) == [("a", "weather", "{}")]
    assert agent.turns[2]["content"].startswith("Error: the arguments")


def test_a_tool_name_that_providers_reject_is_replaced(make_agent: MakeAgent, server: OpenAIServer) -> None:
    calls = parts(part(ROME, "functions.weather!", "a", index=0), part(OSLO, None, "b", index=1))
    server.plan(Deltas((calls,), "tool_calls"), Say(("done",)))
    assert make_agent(tools=[Weather().weather]).chat("go") == "done"
    assert [name for _, name, _ in sent_back(server)] == ["functions_weather_", "unnamed"]


def test_ids_are_unique_in_the_whole_conversation(make_agent: MakeAgent, server: OpenAIServer) -> None:
    call = Deltas((parts(part(ROME, "weather", "call_0", index=0)),), "tool_calls")
    server.plan(call, call, Say(("one",)), call, Say(("two",)))
    agent = make_agent(tools=[Weather().weather])
    agent.chat("go")
    agent.chat("again")
    ids = [call_id for call_id, _, _ in sent_back(server)]
    assert len(set(ids)) == 3


# --- use ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),
        ({}, None),
        (None, None),
        ({"prompt_tokens": 11, "completion_tokens": None, "total_tokens": None}, 11),
        ({"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}, 11),
    ],
)
def test_unknown_usage_is_estimated(
    make_agent: MakeAgent, server: OpenAIServer, usage: Any, tokens: int | None
) -> None:
    server.plan(Deltas((text("hello there"),), "stop", usage))
    agent = make_agent()
    agent.chat("a prompt of some length")
    assert agent.tokens.total.output >= 2
    assert agent.tokens.total.input >= 5 if tokens is None else agent.tokens.total.input == tokens


# --- histories ------------------------------------------------------------------------------------------


def call_turn(*ids: str, arguments: Any = "{}") -> dict[str, Any]:
    calls = [
        {"id": id_, "type": "function", "function": {"name": "weather", "arguments": arguments}}
        for id_ in ids
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def result_turn(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": f"result of {call_id}"}


def check_pairs(turns: Any) -> None:
    """Every result follows its call, every call has one result, and no call begins."""
    rest = [turn for turn in turns if turn["role"] != "system"]
    assert not rest[0].get("tool_calls")
    while rest:
        turn = rest.pop(0)
        assert turn["role"] != "tool"
        wanted = [call["id"] for call in turn.get("tool_calls", ())]
        assert [rest.pop(0).get("tool_call_id") for _ in wanted] == wanted


@pytest.mark.parametrize("size", range(1, 12))
def test_a_window_never_cuts_between_a_call_and_its_result(size: int) -> None:
    seen: list[list[Any]] = []

    def reply(messages: Any) -> Any:
        seen.append(list(messages))
        rounds = next(n for n, turn in enumerate(reversed(messages)) if turn["role"] == "user") // 3
        return (
            [ToolCall("weather", {"city": "Rome"}), ToolCall("weather", {"city": "Oslo"})]
            if rounds < 2
            else "rain"
        )

    agent = Agent("a", ScriptedModel(reply, pace=0), tools=[Weather().weather], history="channel:talk")
    graph = StateGraph({"talk": Channel([], reducer=f"last_n({size})"), "out": Channel("")})
    graph.add_node("ask", lambda state, config: {"out": config.agents["a"].chat("go")})
    runner = (
        graph.add_edge(START, "ask")
        .add_edge("ask", END)
        .compile(checkpointer=MemoryCheckpointer(), agents={"a": agent})
    )
    for _ in range(5):
        assert runner.invoke({}, thread_id="t", resume="entry")["out"] == "rain"
    for messages in seen:
        check_pairs(messages)


def test_an_imported_history_is_made_valid_for_providers(make_agent: MakeAgent, server: OpenAIServer) -> None:
    agent = make_agent()
    agent.set_turns(
        [
            {"role": "user", "content": "one"},
            call_turn("a", "b", arguments='{"city":"Ro'),
            result_turn("b"),
            {"role": "user", "content": "two"},
            result_turn("x"),
            {**call_turn("c", "c", arguments={"city": "Rome"}), "content": None},
            result_turn("c"),
            result_turn("c"),
            {"role": "assistant", "content": " "},
        ]
    )
    agent.chat("three")
    turns = server.requests[-1].body["messages"]
    check_pairs(turns)
    assert [arguments for _, _, arguments in sent_back(server)] == ["{}", "{}", ROME, ROME]
    results = [turn["content"] for turn in turns if turn["role"] == "tool"]
    assert results == [
        "Error: the result of this call is not known",
        "result of b",
        "result of c",
        "result of c",
    ]
    assert [turn["content"] for turn in turns if turn["role"] == "user"] == ["one", "two", "three"]
