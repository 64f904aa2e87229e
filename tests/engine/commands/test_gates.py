"""Gates: a human's decision at a node, with what each answer writes."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import AnswerRefused, Gate, GateChoice, GraphInvalid, GraphRunner, HitlError, UsageError
from hitl_tui.stores import Checkpointer
from tests.support.flows import check_log, ledger_of, line, pending_id, review_loop, say
from tests.support.spec import spec

pytestmark = [spec("11"), spec("15")]


def own_words(state: Any, text: str) -> dict[str, Any]:
    return {"draft": f"{state['draft']}: {text}", "verdict": "revise"}


GATE = Gate(
    "check",
    title="verdict",
    subject="draft",
    recommended="accept",
    payload=lambda state: {"draft": state["draft"], "round": state["n"]},
    choices=[
        GateChoice("accept", "accept", "enter"),
        GateChoice("approve", "approve", "a", values={"verdict": "approved"}),
        GateChoice("revise", "revise", "r", "required", own_words),
        GateChoice("plain", "plain", text="none"),
    ],
)


def at_the_gate(store: Checkpointer, **options: Any) -> GraphRunner:
    runner = review_loop(store, interrupt_after=[GATE], **options)
    runner.invoke({}, thread_id="t")
    return runner


def test_the_request_says_what_is_decided(store: Checkpointer) -> None:
    runner = at_the_gate(store)
    request = runner.open("t").cursor.pending[0]
    assert (request.kind, request.node, request.when, request.step) == ("choose", "check", "after", 2)
    assert (request.title, request.subject, request.recommended) == ("verdict", "draft", "accept")
    assert request.payload == {"draft": "draft 1", "round": 1}
    assert [(choice.id, choice.text) for choice in request.choices] == [
        ("accept", "optional"), ("approve", "optional"), ("revise", "required"), ("plain", "none"),
    ]  # fmt: skip


@pytest.mark.parametrize("answer", ["approve", {"choice": "approve"}, {"choice": "approve", "text": "good"}])
def test_an_answer_is_a_checkpoint_and_the_route_follows(store: Checkpointer, answer: Any) -> None:
    runner = at_the_gate(store)
    assert runner.answer("t", pending_id(runner, "t"), answer, step=2, actor="ann", note="noted") == 3
    point = runner.history("t")[0]
    words = "good" if isinstance(answer, dict) and "text" in answer else "noted"
    assert (point.step, point.source, point.decision, point.actor, point.note) == (
        3, "human", "approve", "ann", words,
    )  # fmt: skip
    assert [(update.op, update.channel, update.after) for update in runner.updates("t", 3)] == [
        ("set", "verdict", "approved")
    ]
    result = runner.invoke(thread_id="t")
    assert (result.status, result["n"]) == ("completed", 1)
    check_log(runner, "t")


def test_each_answer_is_a_checkpoint_even_where_it_sets_nothing(store: Checkpointer) -> None:
    runner = at_the_gate(store)
    assert runner.answer("t", pending_id(runner, "t"), "accept", step=2) == 3
    assert runner.updates("t", 3) == ()
    assert runner.history("t")[0].decision == "accept"
    assert runner.invoke(thread_id="t")["n"] == 2
    assert runner.open("t").cursor.pending[0].step == 5
    check_log(runner, "t")


def test_a_label_can_depend_on_the_state_and_is_part_of_what_is_answered(store: Checkpointer) -> None:
    labelled = GateChoice("accept", "accept", label_for=lambda state: f"accept {state['draft']}")
    ask = Gate("check", title="Go?", choices=[labelled, GateChoice("stop", "stop")])
    runner = review_loop(store, interrupt_after=[ask])
    first = runner.invoke({}, thread_id="t").pending[0]
    assert [choice.label for choice in first.choices] == ["accept draft 1", "stop"]
    runner.update_state("t", {"draft": "edited"}, as_node="check")
    edited = runner.invoke(thread_id="t").pending[0]
    assert [choice.label for choice in edited.choices] == ["accept edited", "stop"]
    assert edited.request_hash != first.request_hash
    check_log(runner, "t")


def test_a_label_for_a_state_must_be_text(store: Checkpointer) -> None:
    ask = Gate("check", title="Go?", choices=[GateChoice("go", "go", label_for=lambda state: " ")])
    with pytest.raises(UsageError, match=r"label_for of .*'go'.* returned ' '"):
        review_loop(store, interrupt_after=[ask]).invoke({}, thread_id="t")
    with pytest.raises(GraphInvalid, match="label_for"):
        Gate("check", title="Go?", choices=[GateChoice("go", "go", label_for=lambda: "go")])  # type: ignore[arg-type, misc]


def test_values_may_be_made_from_state_and_words(store: Checkpointer) -> None:
    runner = at_the_gate(store)
    runner.answer("t", pending_id(runner, "t"), {"choice": "revise", "text": "longer"}, step=2)
    assert runner.get_state("t")["draft"] == "draft 1: longer"


def test_the_gate_asks_again_in_each_round_under_another_id(store: Checkpointer) -> None:
    runner = at_the_gate(store)
    ids = [pending_id(runner, "t")]
    for _ in range(2):
        runner.answer("t", ids[-1], "accept", step=runner.open("t").cursor.head)
        runner.invoke(thread_id="t")
        ids.append(pending_id(runner, "t"))
    assert len(set(ids)) == 3
    check_log(runner, "t")


def test_resuming_without_an_answer_neither_reruns_nor_asks_again(store: Checkpointer) -> None:
    runner = at_the_gate(store)
    before = store.cursor("t")
    for _ in range(2):
        result = runner.invoke(thread_id="t")
        assert (result.status, result.reason, len(result.pending)) == ("waiting", "approval", 1)
    assert store.cursor("t") == before
    assert len(ledger_of(store, "t", "request")) == 1


@pytest.mark.parametrize(
    "answer",
    ["maybe", {"choice": "maybe"}, {"text": "x"}, 1, None, [], "revise", {"choice": "revise", "text": "  "}],
)
def test_only_allowed_answers_with_the_words_they_need(store: Checkpointer, answer: Any) -> None:
    runner = at_the_gate(store)
    state, head = runner.get_state("t"), runner.open("t").cursor.head
    with pytest.raises(AnswerRefused):
        runner.answer("t", pending_id(runner, "t"), answer, step=2, actor="ann")
    assert (runner.get_state("t"), runner.open("t").cursor.head) == (state, head)
    assert [entry.data["answer"] for entry in ledger_of(store, "t", "refused")] == [answer]
    assert len(runner.open("t").cursor.pending) == 1


def test_a_gate_before_a_node_is_passed_by_its_answer(store: Checkpointer) -> None:
    ask = Gate("b", title="go?", choices=[GateChoice("yes", "yes", values={"draft": "checked"})])
    seen: list[str] = []
    runner = line(store, say("one"), lambda state: seen.append(state["draft"]), interrupt_before=[ask])
    result = runner.invoke({}, thread_id="t")
    assert (result.status, result.reason, result.step, seen) == ("waiting", "approval", 1, [])
    assert runner.invoke(thread_id="t").step == 1
    runner.answer("t", pending_id(runner, "t"), "yes", step=1)
    result = runner.invoke(thread_id="t")
    assert (result.status, result.step, seen) == ("completed", 3, ["checked"])
    check_log(runner, "t")


def test_values_that_do_not_fit_leave_the_request_as_it_was(store: Checkpointer) -> None:
    bad = Gate(
        "a", title="q", choices=[GateChoice("x", "x", values={"verdict": "maybe"}), GateChoice("y", "y")]
    )
    runner = line(store, say("one"), say("two"), interrupt_after=[bad])
    runner.invoke({}, thread_id="t")
    before = store.cursor("t")
    with pytest.raises(HitlError, match="verdict"):
        runner.answer("t", pending_id(runner, "t"), "x", step=1)
    assert store.cursor("t") == before
    assert runner.answer("t", pending_id(runner, "t"), "y", step=1) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"choices": []},
        {"choices": [GateChoice("a", "a"), GateChoice("a", "b")]},
        {"choices": [GateChoice("a", "a")], "recommended": "b"},
        {"choices": [GateChoice("a", "a")], "on_timeout": "b"},
        {"choices": [GateChoice("a", "a", text="required")], "on_timeout": "a"},
        {"choices": [GateChoice("a", "a")], "quorum": 0},
        {"choices": [GateChoice("a", "a")], "quorum": 2, "reviewers": ["ann"]},
        {"choices": [GateChoice("a", "a")], "deadline": 0},
    ],
)
def test_gates_that_could_never_work_are_refused_when_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(GraphInvalid):
        Gate("check", title="q", **wrong)
