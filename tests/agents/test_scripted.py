"""The scripted model: order, determinism, counts, and what becomes of its replies."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import pytest

from hitl_tui.agents.agent import Agent
from hitl_tui.agents.backend import CallFailed, Message
from hitl_tui.agents.exchange import LONGEST_WAIT, wait_before_retry
from hitl_tui.agents.scripted import ScriptedModel, waits
from hitl_tui.errors import ModelFailed, UsageError

TEXT = "A closure is a function\n\n    with   its surroundings, Donaudampfschifffahrtsgesellschaft.\n"


def test_replies_are_served_in_order_and_then_run_out() -> None:
    agent = Agent("writer", ScriptedModel(["one", "two"], pace=0))
    assert [agent.chat("a"), agent.chat("b")] == ["one", "two"]
    with pytest.raises(ModelFailed, match="no reply left \\(2 used\\)"):
        agent.chat("c")
    assert len(agent.turns) == 4


def test_a_function_answers_the_conversation() -> None:
    def reply(messages: Sequence[Message]) -> str:
        return " | ".join(f"{message['role']}: {message['content']}" for message in messages)

    agent = Agent("writer", ScriptedModel(reply, pace=0), "Be brief.")
    assert agent.chat("hi") == "system: Be brief. | user: hi"


def test_pieces_are_about_a_word_and_join_to_the_text() -> None:
    pieces = list(Agent("writer", ScriptedModel([TEXT], pace=0)).stream("hi"))
    assert "".join(pieces) == TEXT
    assert len(pieces) > 8
    assert max(len(piece.strip()) for piece in pieces) <= 12


def test_the_same_seed_gives_the_same_pieces_at_any_pace() -> None:
    runs = [list(Agent("w", ScriptedModel([TEXT], pace=pace, seed=7)).stream("hi")) for pace in (0, 1e6)]
    assert runs[0] == runs[1]


def test_the_seed_alone_decides_how_the_pace_varies() -> None:
    pieces = ["A", " closure", " is", " a", " function"]
    assert waits(pieces, 50, seed=7) == waits(pieces, 50, seed=7)
    assert waits(pieces, 50, seed=7) != waits(pieces, 50, seed=8)
    slow, fast = waits(pieces, 10, seed=7), waits(pieces, 20, seed=7)
    assert slow[0] == fast[0], "the time to the first token is not the pace"
    assert slow[1:] == pytest.approx([2 * wait for wait in fast[1:]])
    assert waits(pieces, 0, seed=7) == [0] * 6


def test_tokens_depend_on_the_texts_alone_and_a_script_costs_nothing() -> None:
    def use() -> object:
        agent = Agent("writer", ScriptedModel(["x" * 400], pace=0, seed=3))
        agent.chat("y" * 80)
        return agent.tokens.total.input, agent.tokens.total.output, agent.cost.total

    assert use() == use() == (20, 100, 0)


def test_a_cancelled_reply_is_served_again() -> None:
    agent = Agent("writer", ScriptedModel(["one two three", "next"], pace=0.01))
    pieces = agent.stream("hi")
    pieces.close()  # type: ignore[attr-defined]
    model = ScriptedModel(["first words", "second"], pace=0)
    broken = Agent("writer", model).stream("hi")
    next(broken)
    assert "".join(broken) == " words"
    assert Agent("writer", model).chat("hi") == "second"


def test_context_variables_reach_the_script() -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
    token = tenant.set("kitchen")
    try:
        assert Agent("writer", ScriptedModel(lambda _: tenant.get(), pace=0)).chat("hi") == "kitchen"
    finally:
        tenant.reset(token)


def test_an_error_in_the_script_reaches_the_caller() -> None:
    def broken(_: Sequence[Message]) -> str:
        raise KeyError("no line for this")

    agent = Agent("writer", ScriptedModel(broken, pace=0))
    with pytest.raises(KeyError, match="no line for this"):
        agent.chat("hi")
    assert agent.turns == []


def test_turns_handed_out_are_a_copy() -> None:
    agent = Agent("writer", ScriptedModel(["one"], pace=0))
    agent.chat("hi")
    agent.turns[0]["content"] = "changed"
    assert agent.turns[0]["content"] == "hi"


def test_a_prompt_that_is_not_text_is_refused() -> None:
    with pytest.raises(UsageError, match="the prompt is null"):
        Agent("writer", ScriptedModel(["one"], pace=0)).chat(None)  # type: ignore[arg-type]


def test_waits_double_and_keep_to_what_the_provider_asks() -> None:
    passing = CallFailed("busy", retryable=True)
    first, second = (wait_before_retry(passing, attempt, 3) for attempt in (1, 2))
    assert first is not None
    assert second is not None
    assert 0.3 < first < 0.7 < second < 1.4
    assert wait_before_retry(passing, 3, 3) is None
    assert wait_before_retry(CallFailed("no"), 1, 3) is None
    assert wait_before_retry(CallFailed("busy", retryable=True, retry_after=7), 1, 3) == 7
    too_long = CallFailed("busy", retryable=True, retry_after=LONGEST_WAIT + 1)
    assert wait_before_retry(too_long, 1, 3) is None


def test_an_exchange_of_a_conversation_that_was_replaced_meanwhile_is_not_kept() -> None:
    other = [{"role": "user", "content": "begin anew"}]

    def say(_messages: object) -> str:
        agent.set_turns(other)
        return "too late"

    agent = Agent("writer", ScriptedModel(say, pace=0))
    assert agent.chat("hi") == "too late"
    assert agent.turns == other


@pytest.mark.parametrize(
    "turn",
    [
        {"role": "user", "content": "hi", "name": "ann"},
        {"role": "user", "content": "hi", "tool_calls": []},
        {"role": "system", "content": "hi"},
        {"role": "user"},
        {"role": "user", "content": 3},
        "hi",
    ],
)
def test_an_invalid_turn_is_refused_and_changes_nothing(turn: Any) -> None:
    agent = Agent("writer", ScriptedModel(["one"], pace=0))
    agent.chat("hi")
    before = agent.turns
    with pytest.raises(UsageError, match="turn 1 is not a turn"):
        agent.set_turns([turn])
    assert agent.turns == before
