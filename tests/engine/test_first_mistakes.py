"""What everybody gets wrong on the first day is told in words, with the line of their own code."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    Gate,
    GateChoice,
    GraphInvalid,
    HitlError,
    MemoryCheckpointer,
    NodeFailed,
    StateGraph,
    UsageError,
    WorkflowState,
)
from tests.engine.building import one_node

DRAFT = {"draft": Channel("")}


def by_attribute(state: Any) -> Any:
    return {"draft": state.draft}


def by_assignment(state: Any) -> None:
    state["draft"] = "new"


def by_deletion(state: Any) -> None:
    del state["draft"]


def by_number(state: Any) -> Any:
    return {"draft": state[0]}


def unknown_agent(state: Any, config: Any) -> Any:
    return {"draft": config.agents["writer"].chat("…")}


def bug(state: Any) -> Any:
    return {"draft": 1 / len(state["draft"])}


def misspelt(state: Any) -> Any:
    return {"draft": state["drft"]}


@pytest.mark.parametrize(
    ("node", "why", "mend"),
    [
        (by_attribute, "the state has no attribute 'draft'; write state['draft']", 'state.draft}'),
        (by_assignment, "read-only inside a node: return {'draft': …}", 'state["draft"] = "new"'),
        (by_deletion, "read-only inside a node: return {'draft': None} to set it to null", "del state"),
        (by_number, "a channel is named by a text, not by a whole number", "channels: draft"),
        (unknown_agent, "the graph has no agent 'writer'", "hand it over: compile(agents={'writer': …}); at"),
        (bug, "ZeroDivisionError: division by zero", 'at test_first_mistakes.py, line '),
        (bug, "ZeroDivisionError: division by zero", ': return {"draft": 1 / len(state["draft"])}'),
        (misspelt, "there is no channel 'drft'", "did you mean 'draft'?; at test_first_mistakes.py, line "),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_a_node_that_fails_says_where(node: Callable[..., Any], why: str, mend: str) -> None:
    with pytest.raises(NodeFailed) as caught:
        one_node(DRAFT, node).invoke()
    assert why in caught.value.message
    assert mend in caught.value.hint


@pytest.mark.parametrize("watched", [False, True], ids=["nobody watches", "watched"])
@pytest.mark.parametrize(
    "misuse", [lambda s: s + 1, lambda s: s(), hash, json.dumps, lambda s: setattr(s, "x", 1)]
)
def test_python_calls_the_state_by_its_public_name(misuse: Callable[..., Any], watched: bool) -> None:
    runner = one_node(DRAFT, misuse)
    with pytest.raises(NodeFailed, match=WorkflowState.__name__) as failed:
        runner.invoke(on_event=(lambda _event: None) if watched else None)
    assert "Noted" not in failed.value.message


def test_what_breaks_no_line_of_theirs_names_none() -> None:
    with pytest.raises(NodeFailed) as caught:
        one_node(DRAFT, lambda state: "text").invoke()
    assert ", line " not in caught.value.hint


def test_a_route_that_raises_says_where() -> None:
    graph = StateGraph(DRAFT).add_node("n", lambda state: None).add_edge(START, "n")
    graph.add_conditional_edge("n", lambda state: 1 / 0, {"again": "n", "end": END})
    with pytest.raises(HitlError) as caught:
        graph.compile().invoke()
    assert "at test_first_mistakes.py, line " in caught.value.hint


def gate(**values: Any) -> Gate:
    return Gate("n", "Good?", [GateChoice("yes", "yes", "y", values=values)], subject="draft")


@pytest.mark.parametrize(
    ("make", "why", "mend"),
    [
        (lambda: one_node(DRAFT, bug).invoke("hello"), "the input is a str", 'give a dict, as {"task"'),  # type: ignore[arg-type]
        (lambda: Gate("n", "Good?", ["yes"]), "the choice 'yes' is a str", "write GateChoice("),  # type: ignore[list-item]
        (lambda: one_node({"draft": str}, bug), "channel 'draft' is a type", "Channel(DEFAULT, schema=str)"),  # type: ignore[dict-item]
        (lambda: Agent("a", ["x"]), "a list is no model", 'ScriptedModel(["a reply"])'),  # type: ignore[arg-type]
        (lambda: compiled(gate(drft=1)), "gate at 'n': there is no channel 'drft'", "channels: draft"),
        (lambda: compiled(gate(draft="x"), None), "need a checkpointer", "`hitl-tui run` puts the app's own"),
    ],
    ids=["a text as input", "a text as choice", "a type as channel", "a list as model",
         "a gate that sets no channel", "a gate without a store"],
)  # fmt: skip
def test_a_mistake_in_building_is_told_with_what_to_write(
    make: Callable[[], Any], why: str, mend: str
) -> None:
    with pytest.raises((GraphInvalid, UsageError)) as caught:
        make()
    assert why in caught.value.message
    assert mend in caught.value.hint


def compiled(asks: Gate, store: Any = ...) -> Any:
    graph = StateGraph(DRAFT).add_node("n", bug).add_edge(START, "n").add_edge("n", END)
    return graph.compile(checkpointer=MemoryCheckpointer() if store is ... else store, interrupt_after=asks)


def test_one_gate_needs_no_list_around_it() -> None:
    compiled(gate(draft="x"))


def test_a_question_that_nobody_could_answer_is_told_when_it_is_asked() -> None:
    runner = one_node(DRAFT, lambda state, config: {"draft": config.interrupt("Which?")})
    with pytest.raises(UsageError, match=r"node .* asks a person, and this runner keeps nothing") as caught:
        runner.invoke()
    assert "MemoryCheckpointer()" in caught.value.hint
