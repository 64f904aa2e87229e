"""Traps that other frameworks fall into, found by running them; none is here."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from hitl_tui import (
    AnswerRefused,
    Gate,
    GateChoice,
    GraphRunner,
    HitlError,
    SchemaMismatch,
    StaleWriter,
    ThreadBusy,
    UndeclaredChannel,
)
from hitl_tui.stores import Checkpointer
from tests.support.flows import check_log, ledger_of, line, pending_id, say

GATE = Gate(
    "a",
    title="send it?",
    subject="draft",
    choices=[
        GateChoice("approve", "approve", values={"verdict": "approved"}),
        GateChoice("reject", "reject", values={"verdict": "revise"}),
    ],
)


def sender(store: Checkpointer, sent: list[str]) -> GraphRunner:
    def send(state: Any) -> dict[str, Any]:
        sent.append(f"{state['verdict']} {state['draft']}")
        return {"log": "sent"}

    return line(store, lambda state: {"draft": "first"}, send, interrupt_after=[GATE])


def test_a_later_reject_is_not_swallowed(store: Checkpointer) -> None:
    sent: list[str] = []
    runner = sender(store, sent)
    request = runner.invoke({}, thread_id="t").pending[0]
    runner.answer("t", request.id, "approve", step=1, actor="ann")
    with pytest.raises(AnswerRefused, match="answered already"):
        runner.answer("t", request.id, "reject", step=1, actor="bob")
    runner.invoke(thread_id="t")
    with pytest.raises(AnswerRefused, match="answered already"):
        runner.answer("t", request.id, "reject", step=1, actor="bob")
    assert sent == ["approved first"]
    assert [point.step for point in runner.history("t")] == [3, 2, 1, 0]
    assert [entry.actor for entry in ledger_of(store, "t", "refused")] == ["bob", "bob"]
    check_log(runner, "t")


def test_one_of_two_simultaneous_answers_wins_and_the_other_is_refused(store: Checkpointer) -> None:
    sent: list[str] = []
    runner = sender(store, sent)
    request = runner.invoke({}, thread_id="t").pending[0]
    gate, outcomes = threading.Barrier(2), {}

    def decide(choice: str) -> None:
        gate.wait()
        try:
            runner.answer("t", request.id, choice, step=1, actor=choice)
            outcomes[choice] = "applied"
        except (AnswerRefused, ThreadBusy):
            outcomes[choice] = "refused"

    people = [threading.Thread(target=decide, args=(choice,)) for choice in ("approve", "reject")]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert sorted(outcomes.values()) == ["applied", "refused"]
    winner = next(choice for choice, outcome in outcomes.items() if outcome == "applied")
    runner.invoke(thread_id="t")
    assert sent == ["approved first" if winner == "approve" else "revise first"]
    check_log(runner, "t")


def test_an_edit_while_an_approval_waits_asks_again_and_nobody_approves_unseen(store: Checkpointer) -> None:
    sent: list[str] = []
    runner = sender(store, sent)
    request = runner.invoke({}, thread_id="t").pending[0]
    runner.update_state("t", {"draft": "edited"}, actor="bob")
    result = runner.invoke(thread_id="t")
    assert (result.status, [one.id != request.id for one in result.pending], sent) == ("waiting", [True], [])
    with pytest.raises(AnswerRefused, match="asked again"):
        runner.answer("t", request.id, "approve", step=1, actor="ann")
    runner.answer("t", result.pending[0].id, "approve", step=2, actor="ann")
    runner.invoke(thread_id="t")
    assert sent == ["approved edited"]


def test_an_answer_needs_a_request_and_its_step(store: Checkpointer) -> None:
    runner = sender(store, [])
    runner.invoke({}, thread_id="t")
    with pytest.raises(AnswerRefused):
        runner.answer("t", "", "approve", step=1)
    with pytest.raises(TypeError):
        runner.answer("t", pending_id(runner, "t"), "approve")  # type: ignore[call-arg]


def test_the_second_of_two_edits_of_one_step_is_refused_not_lost(store: Checkpointer) -> None:
    runner = sender(store, [])
    runner.invoke({}, thread_id="t")
    runner.update_state("t", {"draft": "alice's"}, expected_step=1, actor="alice")
    with pytest.raises(StaleWriter):
        runner.update_state("t", {"log": ["bob's"]}, expected_step=1, actor="bob")
    assert runner.get_state("t")["draft"] == "alice's"
    assert list(runner.get_state("t")["log"]) == []
    assert [point.parent_step for point in runner.history("t")] == [1, 0, -1]


def test_edits_from_many_threads_are_all_in_the_log_or_refused(store: Checkpointer) -> None:
    runner = sender(store, [])
    runner.invoke({}, thread_id="t")
    refused: list[HitlError] = []
    gate = threading.Barrier(6)

    def edit(n: int) -> None:
        gate.wait()
        try:
            runner.update_state("t", {"n": n}, expected_step=1, actor=f"p{n}")
        except (StaleWriter, ThreadBusy) as error:
            refused.append(error)

    people = [threading.Thread(target=edit, args=(n,)) for n in range(6)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert len(refused) == 5
    assert runner.open("t").cursor.head == 2
    check_log(runner, "t")


@pytest.mark.parametrize(
    ("values", "error"),
    [({"typo_key": 1}, UndeclaredChannel), ({"draft": 123}, SchemaMismatch)],
)
def test_an_edit_is_checked(store: Checkpointer, values: dict[str, Any], error: type[Exception]) -> None:
    runner = line(store, say("one"))
    runner.invoke({}, thread_id="t")
    with pytest.raises(error):
        runner.update_state("t", values)


def test_an_edit_of_a_list_replaces_it(store: Checkpointer) -> None:
    runner = line(store, say("one"))
    runner.invoke({}, thread_id="t")
    runner.update_state("t", {"log": ["only", "these"]})
    assert list(runner.get_state("t")["log"]) == ["only", "these"]
