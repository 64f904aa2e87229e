"""A person's decision about a tool call: what it shows, what it does, and what the model gets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.agents import Agent, ScriptedModel, ToolCall
from hitl_tui.engine.thread.approval_formats import decided_word
from hitl_tui.errors import AnswerRefused


class Desk:
    """A node whose agent wants to pay; keeps what was paid and what its model read."""

    def __init__(self, approve: Any = "always") -> None:
        self.paid: list[tuple[int, str]] = []
        self.read: list[Sequence[Mapping[str, Any]]] = []
        agent = Agent("clerk", ScriptedModel(self._reply, pace=0), tools=[self.pay], approve=approve)
        graph = StateGraph({"out": Channel("")})
        graph.add_node("work", lambda _state, config: {"out": config.agents["clerk"].chat("go")})
        graph.add_edge(START, "work").add_edge("work", END)
        self.runner: GraphRunner = graph.compile(checkpointer=MemoryCheckpointer(), agents={"clerk": agent})

    def pay(self, amount: int, to: str = "ann") -> str:
        """Pay."""
        self.paid.append((amount, to))
        return "paid"

    def _reply(self, messages: Sequence[Mapping[str, Any]]) -> Any:
        self.read.append(messages)
        return ToolCall("pay", {"amount": 10}) if messages[-1]["role"] == "user" else "done"

    def decide(self, answer: Any) -> None:
        (request,) = self.runner.invoke(thread_id="t").pending
        self.runner.answer("t", request.id, answer, step=request.step, actor="ann")
        self.runner.invoke(thread_id="t")


def test_a_rejected_call_is_not_made_though_the_rule_would_allow_it_now() -> None:
    asked: list[Any] = []

    def first_only(arguments: Mapping[str, Any]) -> bool:
        asked.append(arguments)
        return len(asked) == 1

    desk = Desk(first_only)
    desk.decide("reject")
    assert desk.paid == []
    assert len(asked) == 1


def test_card_and_record_show_defaults() -> None:
    desk = Desk()
    (request,) = desk.runner.invoke(thread_id="t").pending
    assert request.payload["args"] == {"amount": 10, "to": "ann"}
    desk.decide("approve")
    assert desk.runner.history("t")[0].calls[0].arguments == {"amount": 10, "to": "ann"}
    assert desk.paid == [(10, "ann")]


def test_the_model_reads_what_a_person_changed() -> None:
    desk = Desk()
    desk.decide({"choice": "edit", "args": {"amount": 10, "to": "bob"}})
    assert desk.paid == [(10, "bob")]
    assert '"to": "bob"' in desk.read[-1][-1]["content"]


@pytest.mark.parametrize("answer", [
    {"choice": "edit", "name": "wipe", "args": {"amount": 1}},
    {"type": "edit", "edited_action": {"name": "wipe", "args": {"amount": 1}}},
    {"decisions": [{"type": "edit", "edited_action": {"name": "wipe", "args": {"amount": 1}}}]},
    {"type": "edit", "args": {"action": "wipe", "args": {"amount": 1}}},
])  # fmt: skip
def test_an_edit_that_names_another_tool_is_refused(answer: Any) -> None:
    desk = Desk()
    with pytest.raises(AnswerRefused):
        desk.decide(answer)
    assert desk.paid == []


def test_each_decision_is_described_in_one_word() -> None:
    words = [decided_word(answer) for answer in (
        "approve", {"type": "reject"}, [{"type": "accept"}],
        {"decisions": [{"type": "approve"}, {"type": "reject"}, {"type": "approve"}]},
    )]  # fmt: skip
    assert words == ["approve", "reject", "approve", "2 approve, 1 reject"]
    assert json.dumps(decided_word({"amount": 3})) == '""'
