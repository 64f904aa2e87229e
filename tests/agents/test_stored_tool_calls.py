"""The calls of tools that a committed step keeps: seen later, elsewhere, and without secrets."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, RetryPolicy, StateGraph, open_store
from hitl_tui.agents import Agent, ScriptedModel, Tool, ToolCall
from hitl_tui.agents.tool_calls import LONGEST
from hitl_tui.engine.log.events import ToolCalled
from hitl_tui.engine.log.outcomes import ToolUse
from hitl_tui.stores.base import Checkpointer
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.support.spec import spec

pytestmark = spec("10")


def weather(city: str) -> str:
    """Tell the weather."""
    if city == "Atlantis":
        raise ValueError("no such city")
    return f"{city}: sun"


def says(*replies: Any) -> Agent:
    return Agent("clerk", ScriptedModel(list(replies), pace=0), tools=[weather])


def clerk(agent: Agent, store: Checkpointer, node: Any = None, **options: Any) -> GraphRunner:
    ask = node or (lambda _state, config: {"out": config.agents["clerk"].chat("go")})
    return (
        StateGraph({"out": Channel(""), "pin": Channel("7291-horse", visibility="private")})
        .add_node("ask", ask, **options)
        .add_edge(START, "ask")
        .add_edge("ask", END)
        .compile(checkpointer=store, agents={"clerk": agent})
    )


def calls_of(store: Checkpointer, thread: str = "t", step: int = 1) -> tuple[ToolUse, ...]:
    point = store.checkpoint(thread, step)
    assert point is not None
    return point.calls


def brief(calls: tuple[ToolUse, ...]) -> list[tuple[Any, ...]]:
    return [(call.tool, call.arguments, call.result, call.error) for call in calls]


TWO = (ToolCall("weather", {"city": "Graz"}), ToolCall("weather", {"city": "Atlantis"}), "done")
KEPT = [
    ("weather", {"city": "Graz"}, "Graz: sun", None),
    ("weather", {"city": "Atlantis"}, None, "ValueError: no such city"),
]


def test_a_step_keeps_name_arguments_result_and_duration_in_every_store(store: Checkpointer) -> None:
    clerk(says(*TWO), store).invoke({}, thread_id="t")
    calls = calls_of(store)
    assert brief(calls) == KEPT
    assert all(call.agent == "clerk" and call.duration >= 0 for call in calls)
    assert calls[0].duration > 0
    assert calls_of(store, step=0) == ()


def test_tool_calls_survive_export_and_import(store: Checkpointer) -> None:
    clerk(says(*TWO), store).invoke({}, thread_id="t")
    elsewhere = open_store("memory:")
    import_thread(elsewhere, list(export_thread(store, "t")))
    assert calls_of(elsewhere) == calls_of(store)


def test_an_export_without_secrets_lists_tool_calls_without_their_arguments(store: Checkpointer) -> None:
    runner = clerk(says(*TWO), store)
    runner.invoke({}, thread_id="t")
    runner.update_state("t", {"pin": "0000-apple"})
    text = b"".join(export_thread(store, "t")).decode()
    assert '"tool":"weather"' in text
    assert "Graz" not in text
    assert "Atlantis" not in text


def test_the_calls_of_attempts_that_failed_are_kept_with_the_step(store: Checkpointer) -> None:
    tries: list[int] = []

    def ask(_state: Any, config: Any) -> Any:
        out = config.agents["clerk"].chat(f"try {len(tries)}")
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("lost")
        return {"out": out}

    call = ToolCall("weather", {"city": "Graz"})
    agent = says(*[call, "done"] * 3)
    runner = clerk(agent, store, ask, retry=RetryPolicy(max_attempts=2, wait=0))
    with pytest.raises(Exception, match="lost"):
        runner.invoke({}, thread_id="t")
    runner.invoke(thread_id="t")
    assert [made.attempt for made in calls_of(store)] == [1, 2, 3]
    cursor = store.cursor("t")
    assert cursor is not None
    assert cursor.calls == ()


def test_a_call_that_waited_for_a_person_is_stored_once(store: Checkpointer) -> None:
    agent = Agent("clerk", ScriptedModel(list(TWO), pace=0), tools=[weather], approve="always")
    runner = clerk(agent, store)
    for verdict in ("approve", {"choice": "reject", "text": "no"}):
        (request,) = runner.invoke(None if store.info("t") else {}, thread_id="t").pending
        runner.answer("t", request.id, verdict, step=request.step)
    runner.invoke(thread_id="t")
    refused = "A person refused this call: no"
    assert brief(calls_of(store)) == [KEPT[0], ("weather", {"city": "Atlantis"}, None, refused)]


def test_each_call_of_a_branch_names_it(store: Checkpointer) -> None:
    async def look(_state: Any, config: Any) -> Any:
        return {"out": await config.agents["clerk"].fresh().achat(config.item)}

    def reply(messages: Any) -> Any:
        last = messages[-1]
        return "done" if last["role"] == "tool" else ToolCall("weather", {"city": last["content"]})

    runner = (
        StateGraph(
            {
                "cities": Channel(["Graz", "Linz"], reducer="overwrite"),
                "out": Channel([], reducer="append"),
            }
        )
        .add_map("look", over="cities", node=look)
        .add_edge(START, "look")
        .add_edge("look", END)
        .compile(
            checkpointer=store,
            agents={"clerk": Agent("clerk", ScriptedModel(reply, pace=0), tools=[weather])},
        )
    )
    runner.invoke({}, thread_id="t")
    found = {call.path: call.arguments["city"] for call in calls_of(store)}
    assert found == {"look[0]": "Graz", "look[1]": "Linz"}


def test_private_values_and_keys_are_neither_emitted_nor_stored(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-key-0123456789")
    events: list[Any] = []

    def ask(state: Any, config: Any) -> Any:
        return {"out": config.agents["clerk"].chat(state["pin"])}

    agent = says(ToolCall("weather", {"city": "7291-horse sk-very-secret-key-0123456789"}), "done")
    runner = clerk(agent, store, ask, reads=["pin"])
    runner.invoke({}, thread_id="t", on_event=events.append)
    (call,) = calls_of(store)
    assert call.arguments == {"city": "[private: pin] [secret]"}
    assert call.result == "[private: pin] [secret]: sun"
    live = [(event.arguments, event.result) for event in events if isinstance(event, ToolCalled)]
    assert live == [(call.arguments, call.result)]


def test_long_results_are_cut_and_results_that_are_not_text_are_reported(
    store: Checkpointer,
) -> None:
    def echo(text: str) -> str:
        """Say it."""
        return text

    def undecodable() -> str:
        """Name a file."""
        return b"caf\xe9.txt".decode(errors="surrogateescape")

    long = "x" * (LONGEST + 1)
    half = ToolCall("echo", '{"text": "half \\ud83d"}')
    script = [ToolCall("echo", {"text": long}), half, ToolCall("bytes", {}), "done"]
    clerk(
        Agent("clerk", ScriptedModel(script, pace=0), tools=[echo, Tool(undecodable, name="bytes")]), store
    ).invoke({}, thread_id="t")
    first, second, third = calls_of(store)
    assert isinstance(first.arguments, str)
    assert f"the first {LONGEST} of" in first.arguments
    assert f"the first {LONGEST} of" in str(first.result)
    assert "not JSON" in str(second.error)
    assert third.result == "caf?.txt"


def test_a_step_without_tools_keeps_nothing(store: Checkpointer) -> None:
    clerk(says("done"), store).invoke({}, thread_id="t")
    assert calls_of(store) == ()
