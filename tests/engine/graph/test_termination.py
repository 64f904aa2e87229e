"""Termination conditions, alone and combined."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import (
    START,
    Channel,
    GraphInvalid,
    HitlError,
    NodeResult,
    StateGraph,
    cost_limit,
    custom_condition,
    max_turns,
    text_match,
)
from hitl_tui.engine.graph.termination import Termination
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.stores import Checkpointer
from tests.engine.building import chain, loop
from tests.support.spec import spec

pytestmark = spec("5")

CHANNELS = {"n": Channel(0, reducer="sum"), "log": Channel([], reducer="append"), "text": Channel("")}


def node(state: Any, config: Any) -> NodeResult:
    """Counts, writes, and spends half a dollar."""
    n = state["n"] + 1
    use = ModelUse("a", "p", "m", 10, 10, 0.5)
    return NodeResult({"n": 1, "log": f"turn {n}", "text": f"text {n}"}, usage=[use])


def endless(termination: Termination | None, **options: Any) -> GraphRunner:
    return loop(CHANNELS, node, lambda state: True, termination=termination, **options)


n_is = {n: custom_condition(lambda state, n=n: state["n"] >= n) for n in (2, 3, 4)}
never = custom_condition(lambda state: False)

CONDITIONS = {
    "max_turns(3)": (max_turns(3), 3),
    "max_turns(1)": (max_turns(1), 1),
    "cost_limit, reached exactly": (cost_limit(1.5), 3),
    "cost_limit, passed": (cost_limit(1.2), 3),
    "text_match in the newest entry of a list": (text_match(r"turn [45]", "log"), 4),
    "text_match in a text": (text_match("^text 2$", "text"), 2),
    "text_match anywhere in the text": (text_match("2", "text"), 2),
    "custom_condition": (n_is[3], 3),
    "a | b ends with the first": (n_is[4] | n_is[2], 2),
    "a & b ends with the last": (n_is[4] & n_is[2], 4),
    "a & b | c": (n_is[4] & never | n_is[3], 3),
    "a & (b | c)": (n_is[2] & (never | n_is[3]), 3),
    "(a | b) & c": ((n_is[2] | never) & max_turns(4), 4),
}


@pytest.mark.parametrize(("condition", "turns"), CONDITIONS.values(), ids=CONDITIONS)
def test_ends_the_run_as_completed_by_termination(condition: Termination, turns: int) -> None:
    result = endless(condition).invoke()
    assert (result["n"], result.status, result.reason) == (turns, "completed", "termination")


def test_text_match_of_an_empty_list_or_no_text_does_not_hold() -> None:
    channels = {"c": Channel([], reducer="append")}
    condition = text_match("", "c")
    result = chain(channels, lambda s, c: None, lambda s, c: {"c": 3}).compile(termination=condition).invoke()
    assert (result.reason, result.step) == ("end", 2)


def test_a_condition_holds_before_the_first_node_without_stopping_it() -> None:
    assert endless(custom_condition(lambda state: True)).invoke()["n"] == 1


def test_the_end_of_the_graph_comes_first() -> None:
    result = chain(CHANNELS, node).compile(termination=max_turns(1)).invoke()
    assert (result.status, result.reason) == ("completed", "end")


def test_a_finished_run_calls_no_route(store: Checkpointer) -> None:
    asked: list[int] = []

    def again(state: Any) -> bool:
        asked.append(state["n"])
        assert state["n"] < 2, "asked after the end"
        return True

    runner = loop(CHANNELS, node, again, termination=max_turns(2), checkpointer=store)
    result = runner.invoke(thread_id="t", on_event=lambda _event: None)
    assert (result["n"], result.status, result.reason) == (2, "completed", "termination")
    assert asked == [1]
    assert runner.replay("t").mismatches == ()
    assert runner.open("t").progress.next_node == "END"
    assert set(asked) == {1}


def test_a_condition_is_asked_once_for_each_state() -> None:
    asked: list[int] = []
    condition = custom_condition(lambda state: asked.append(state["n"]) or state["n"] >= 3)
    endless(condition).invoke()
    assert asked == [1, 2, 3]


def test_termination_comes_before_a_limit() -> None:
    result = endless(max_turns(3), limits=Limits(max_iterations=3)).invoke()
    assert (result.status, result.reason) == ("completed", "termination")


def test_why_it_ended_is_in_the_ledger(store: Checkpointer) -> None:
    runner = endless(max_turns(2) | cost_limit(9), checkpointer=store)
    runner.invoke(thread_id="t")
    assert store.ledger("t")[-1].note == "2 turns"


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (max_turns(2) | max_turns(1), "1 turn"),
        (max_turns(2) & text_match("turn", "log"), "2 turns and 'turn' found in log"),
        (max_turns(2) & (text_match("no", "log") | cost_limit(0.5)), "2 turns and $0.5 spent"),
    ],
    ids=["a | b: the one that holds", "a & b: both", "a & (b | c): what holds of each"],
)
def test_the_reason_names_only_the_conditions_that_held(
    store: Checkpointer, condition: Termination, message: str
) -> None:
    runner = endless(condition, checkpointer=store)
    runner.invoke(thread_id="t")
    assert store.ledger("t")[-1].note == message


def test_alternatives_beside_others_are_in_brackets() -> None:
    one, other = max_turns(2) | cost_limit(1), max_turns(3)
    assert (one & other).reason == "(2 turns or $1 spent) and 3 turns"
    assert (one | other).reason == "2 turns or $1 spent or 3 turns"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: custom_condition(True), "takes a function, not true or false"),  # type: ignore[arg-type]
        (lambda: cost_limit(float("nan")), "nan"),
        (lambda: cost_limit("1"), "'1'"),  # type: ignore[arg-type]
        (lambda: text_match(3, "log"), "3"),  # type: ignore[arg-type]
    ],
    ids=["custom_condition of no function", "cost_limit of nan", "cost_limit of text", "no pattern"],
)
def test_an_invalid_condition_is_refused_when_built(make: Any, message: str) -> None:
    with pytest.raises(GraphInvalid, match=message):
        make()


def test_a_thread_ended_by_termination_stays_so(store: Checkpointer) -> None:
    runner = endless(max_turns(2), checkpointer=store)
    runner.invoke(thread_id="t")
    again = runner.invoke(thread_id="t")
    assert (again["n"], again.status, again.reason) == (2, "completed", "termination")


def test_a_new_invocation_has_its_turns_afresh(store: Checkpointer) -> None:
    runner = endless(max_turns(2), checkpointer=store)
    runner.invoke(thread_id="t")
    assert runner.invoke({"text": "more"}, thread_id="t")["n"] == 4


def test_a_condition_that_raises_fails_the_run_by_name(store: Checkpointer) -> None:
    def broken(state: Any) -> bool:
        return bool(1 / 0)

    runner = endless(custom_condition(broken), checkpointer=store)
    with pytest.raises(HitlError, match="'broken is true' raised ZeroDivisionError"):
        runner.invoke(thread_id="t")
    assert runner.run_info("t").status == "failed"
    assert runner.get_state("t")["n"] == 1


# --- what an earlier invocation left -------------------------------------------------------------------


def think(state: Any, config: Any) -> dict[str, Any]:
    return {}


ASKED = {
    "q": Channel(""),
    "said": Channel(""),
    "log": Channel([], reducer="append"),
    "short": Channel([], reducer="last_n(2)"),
    "many": Channel([], reducer="extend"),
}


def say(state: Any, config: Any) -> dict[str, Any]:
    said = f"done: {state['q']}"
    return {"said": said, "log": said, "short": said, "many": [said, "more"]}


def answering(termination: Termination, store: Checkpointer | None) -> GraphRunner:
    """Thinks, then answers, until the condition ends it."""
    graph = StateGraph(ASKED).add_node("think", think).add_node("say", say).add_edge(START, "think")
    graph.add_edge("think", "say").add_conditional_edge("say", lambda state: True, {"true": "think"})
    return graph.compile(checkpointer=store, termination=termination)


ENDS = {
    "a text": text_match("^done", "said"),
    "a list": text_match("^done", "log"),
    "a bounded list": text_match("^done", "short"),
    "an extended list": text_match("^done", "many"),
    "an own condition": custom_condition(lambda state: state["said"].startswith("done")),
    "an own condition of a list": custom_condition(lambda state: "done: one" in state["log"]),
    "of several": text_match("^done", "said") & custom_condition(lambda state: len(state["log"]) > 0),
}


@pytest.mark.parametrize("condition", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("new_runner", [False, True], ids=["one runner", "a new runner each"])
def test_a_condition_judges_what_this_invocation_wrote(
    condition: Termination, new_runner: bool, store: Checkpointer
) -> None:
    runner = answering(condition, store)
    for question in ("one", "two", "two", "three"):
        runner = answering(condition, store) if new_runner else runner
        result = runner.invoke({"q": question}, thread_id="t")
        assert (result["said"], result.reason) == (f"done: {question}", "termination")
    nodes = [point.node for point in reversed(runner.history("t")) if point.node]
    assert nodes == ["think", "say"] * 4
    assert runner.replay("t").ok
    assert runner.verify("t", strict=True).ok


def test_a_run_that_is_stepped_by_several_processes_ends_where_it_would(store: Checkpointer) -> None:
    condition = ENDS["a bounded list"]
    answering(condition, store).invoke({"q": "one"}, thread_id="t")
    runner = answering(condition, store)
    runner.step({"q": "two"}, thread_id="t")
    result = answering(condition, store).invoke(thread_id="t")
    assert (result["said"], result.reason) == ("done: two", "termination")


def test_the_input_is_not_what_a_run_wrote(store: Checkpointer) -> None:
    runner = answering(text_match("done", "log"), store)
    result = runner.invoke({"q": "x", "log": ["is it done?"]}, thread_id="t")
    assert result["said"] == "done: x"


def test_every_entry_that_a_step_wrote_is_searched() -> None:
    channels = {"many": Channel([], reducer="extend")}
    condition = text_match("done", "many")
    runner = loop(channels, lambda s, c: {"many": ["done", "more"]}, lambda s: True, termination=condition)
    assert runner.invoke().step == 1


def test_a_condition_on_the_input_alone_holds_in_every_invocation(store: Checkpointer) -> None:
    runner = answering(custom_condition(lambda state: state["q"] == "stop"), store)
    for _ in range(2):
        assert runner.invoke({"q": "stop"}, thread_id="t").reason == "termination"
