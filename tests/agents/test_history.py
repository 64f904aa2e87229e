"""Two kinds of memory: turns of the agent's own, and turns that live in a channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph, append, last_n
from hitl_tui.agents import Agent, ScriptedModel
from hitl_tui.engine.state.reducers import extend, overwrite
from hitl_tui.errors import NodeFailed, UsageError
from tests.support.spec import spec

pytestmark = spec("11")


def recall(messages: Any) -> str:
    """Say what was said before."""
    return " ".join(message["content"] for message in messages if message["role"] == "user")


def runner_of(
    history: str | None, turns: Channel, *, writes: list[str] | None = None, **given: Any
) -> GraphRunner:
    """Two steps of one agent, which says what it has been told."""

    def ask(name: str) -> Callable[..., Any]:
        return lambda _state, config: {"out": config.agents["a"].chat(name)}

    agent = Agent("a", ScriptedModel(recall, pace=0), history=history)
    return (
        StateGraph({"out": Channel(""), "a": Channel([], reducer=extend()), "talk": turns})
        .add_node("one", ask("one"), writes=writes, **given)
        .add_node("two", ask("two"))
        .add_edge(START, "one")
        .add_edge("one", "two")
        .add_edge("two", END)
        .compile(checkpointer=MemoryCheckpointer(), agents={"a": agent}, interrupt_after=["one"])
    )


def users(turns: Any) -> list[str]:
    return [turn["content"] for turn in turns if turn["role"] == "user"]


@pytest.mark.parametrize("reducer", [extend(), append(), overwrite()], ids=["extend", "append", "overwrite"])
def test_turns_are_committed_with_the_nodes_updates(reducer: Any) -> None:
    runner = runner_of("channel:talk", Channel([], reducer=reducer))
    first = runner.invoke({}, thread_id="t")
    assert first["talk"] == [{"role": "user", "content": "one"}, {"role": "assistant", "content": "one"}]
    assert runner.invoke(thread_id="t")["out"] == "one two"
    assert runner.verify("t", strict=True).ok


def test_last_n_bounds_what_is_remembered() -> None:
    runner = runner_of("channel:talk", Channel([], reducer=last_n(2)))
    runner.invoke({}, thread_id="t")
    assert users(runner.invoke(thread_id="t")["talk"]) == ["two"]


def test_a_bare_channel_is_the_one_named_as_the_agent() -> None:
    runner = runner_of("channel", Channel([], reducer=extend()))
    assert users(runner.invoke({}, thread_id="t")["a"]) == ["one"]


def test_a_fork_carries_the_turns_of_its_step() -> None:
    runner = runner_of("channel:talk", Channel([], reducer=extend()))
    runner.invoke({}, thread_id="t")
    runner.invoke(thread_id="t")
    runner.fork("t", 1, "f")
    assert runner.invoke(thread_id="f")["out"] == "one two"


def test_an_edit_of_the_channel_is_what_the_agent_remembers() -> None:
    runner = runner_of("channel:talk", Channel([], reducer=extend()))
    runner.invoke({}, thread_id="t")
    runner.update_state(
        "t", {"talk": [{"role": "user", "content": "edited"}, {"role": "assistant", "content": "ok"}]}
    )
    assert runner.invoke(thread_id="t")["out"] == "edited two"


def test_without_a_channel_the_turns_are_the_agents_own_and_a_fork_starts_afresh() -> None:
    runner = runner_of(None, Channel([], reducer=extend()))
    runner.invoke({}, thread_id="t")
    runner.fork("t", 1, "f")
    assert runner.invoke(thread_id="f")["out"] == "two"
    result = runner.invoke(thread_id="t")
    assert (result["out"], result["talk"]) == ("one two", [])


@pytest.mark.parametrize("given", [{"writes": ["out"]}, {"reads": ["out"]}], ids=["writes", "reads"])
def test_the_nodes_contract_holds_for_the_channel_too(given: Any) -> None:
    runner = runner_of("channel:talk", Channel([], reducer=extend()), **given)
    with pytest.raises(NodeFailed, match="'talk'"):
        runner.invoke({}, thread_id="t")


def test_an_invalid_turn_is_reported_with_its_channel() -> None:
    runner = runner_of("channel:talk", Channel(["hello"], reducer=extend()))
    with pytest.raises(NodeFailed, match="channel 'talk': turn 1 is not a turn"):
        runner.invoke({}, thread_id="t")


def test_outside_a_graph_the_turns_are_its_own() -> None:
    agent = Agent("a", ScriptedModel(recall, pace=0), history="channel:talk")
    agent.chat("x")
    assert agent.chat("y") == "x y"
    assert agent.fresh().history == "channel:talk"


def test_an_invalid_place_for_turns_is_refused() -> None:
    with pytest.raises(UsageError, match="history='file:x'"):
        Agent("a", ScriptedModel([]), history="file:x")
