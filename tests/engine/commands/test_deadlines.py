"""Deadlines of requests, under a clock that is set by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import AnswerRefused, Gate, GateChoice
from hitl_tui.engine.commands import Answer, Start, UpdateState
from hitl_tui.engine.thread.session import Session
from hitl_tui.stores import Checkpointer
from tests.support.flows import SECOND, Clock, Desk, check_log, ledger_of, line, review_loop, say
from tests.support.spec import spec

pytestmark = spec("11")

CHOICES = [GateChoice("accept", "accept"), GateChoice("approve", "ok", values={"verdict": "approved"})]


def waiting(store: Checkpointer, **more: Any) -> tuple[Desk, str]:
    gate = Gate("check", title="verdict", choices=CHOICES, deadline=60, **more)
    desk = Desk(review_loop(store, interrupt_after=[gate]), "t")
    desk.do(Start({}))
    desk.run()
    return desk, desk.session.cursor.pending[0].id


def reopened(desk: Desk) -> Desk:
    assert desk.session.store is not None
    other = Desk.__new__(Desk)
    other.clock, other.events = desk.clock, []
    other.session = Session.open(desk.session.graph, desk.session.store, "t", clock=desk.clock)
    return other


def test_the_deadline_counts_from_when_it_was_asked(store: Checkpointer) -> None:
    desk, _ = waiting(store)
    request = desk.session.cursor.pending[0]
    assert request.deadline is not None
    assert 60 * SECOND - 10 <= request.deadline - request.asked_at <= 60 * SECOND


def test_without_on_timeout_the_thread_fails_with_reason_deadline(store: Checkpointer) -> None:
    desk, wanted = waiting(store)
    desk.clock.advance(61)
    desk.run()
    cursor = desk.session.cursor
    assert (cursor.status, cursor.reason, cursor.pending) == ("failed", "deadline", ())
    assert [entry.request_id for entry in ledger_of(store, "t", "timeout")] == [wanted]
    with pytest.raises(AnswerRefused):
        desk.do(Answer(wanted, "approve", step=2))


def test_the_on_timeout_answer_is_applied_without_an_actor(store: Checkpointer) -> None:
    desk, wanted = waiting(store, on_timeout="approve")
    desk.clock.advance(61)
    desk.run()
    assert (desk.session.cursor.status, desk.session.state.values["verdict"]) == ("completed", "approved")
    entry = ledger_of(store, "t", "timeout")[0]
    assert (entry.request_id, entry.actor, entry.data) == (wanted, None, {"answer": "approve"})
    assert ledger_of(store, "t", "answer") == []
    check_log(review_loop(store), "t")


def test_before_the_deadline_nothing_happens_and_resuming_does_not_move_it(store: Checkpointer) -> None:
    desk, _ = waiting(store, on_timeout="approve")
    first = desk.session.cursor.pending[0]
    for _ in range(3):
        desk.clock.advance(19)
        desk.run()
    assert desk.session.cursor.pending == (first,)
    desk.clock.advance(5)
    desk.run()
    assert desk.session.cursor.status == "completed"


def test_an_edit_keeps_the_deadline(store: Checkpointer) -> None:
    desk, _ = waiting(store)
    before = desk.session.cursor.pending[0].deadline
    desk.clock.advance(30)
    desk.do(UpdateState({"draft": "x"}))
    assert desk.session.cursor.pending[0].deadline == before


def test_a_late_answer_is_refused_and_recorded(store: Checkpointer) -> None:
    desk, wanted = waiting(store)
    desk.clock.advance(61)
    with pytest.raises(AnswerRefused, match="expired"):
        desk.do(Answer(wanted, "approve", step=2, actor="ann"))
    assert desk.session.state.values["verdict"] == "revise"
    assert [entry.actor for entry in ledger_of(store, "t", "refused")] == ["ann"]


def test_an_answer_in_time_counts(store: Checkpointer) -> None:
    desk, wanted = waiting(store)
    desk.clock.advance(59)
    desk.do(Answer(wanted, "approve", step=2))
    desk.clock.advance(100)
    desk.run()
    assert desk.session.cursor.status == "completed"


def test_a_deadline_passes_while_the_thread_is_closed(store: Checkpointer) -> None:
    desk, _ = waiting(store)
    desk.clock.advance(3600)
    other = reopened(desk)
    other.run()
    assert (other.session.cursor.status, other.session.cursor.reason) == ("failed", "deadline")


def test_a_failed_deadline_can_be_asked_again(store: Checkpointer) -> None:
    desk, wanted = waiting(store)
    desk.clock.advance(61)
    desk.run()
    desk.do(UpdateState({}, as_node="write"))
    desk.run()
    request = desk.session.cursor.pending[0]
    assert request.id != wanted
    assert request.deadline is not None
    assert request.deadline > desk.clock.now


@pytest.mark.parametrize("on_timeout", ["no", None])
def test_a_question_inside_a_node_has_a_deadline_too(store: Checkpointer, on_timeout: Any) -> None:
    question = {"kind": "choose", "choices": ["yes", "no"], "deadline": 10, "on_timeout": on_timeout}

    def node(state: Any, config: Any) -> dict[str, Any]:
        return {"log": config.interrupt(question)}

    desk = Desk(line(store, node, say("after")), "t", Clock())
    desk.do(Start({}))
    desk.run()
    desk.clock.advance(11)
    desk.run()
    if on_timeout is None:
        assert (desk.session.cursor.status, desk.session.cursor.reason) == ("failed", "deadline")
    else:
        assert list(desk.session.state.values["log"]) == ["no", "after"]


def test_resuming_after_a_missed_deadline_asks_again_and_never_passes_the_gate(store: Checkpointer) -> None:
    desk, _ = waiting(store)
    desk.clock.advance(61)
    desk.run()
    desk.run()
    cursor = desk.session.cursor
    assert (cursor.status, cursor.reason, cursor.head) == ("waiting", "approval", 2)
    assert cursor.pending[0].deadline is not None
    assert cursor.pending[0].deadline > desk.clock.now
    desk.do(Answer(cursor.pending[0].id, "approve", step=2))
    desk.run()
    assert desk.session.cursor.status == "completed"
    check_log(review_loop(store), "t")
