"""Claiming what waits, passing it on, escalating it, under a clock that is set by hand."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from hitl_tui import AnswerRefused, Gate, GateChoice, GraphInvalid, GraphRunner
from hitl_tui.engine.commands import Answer, Claim, HandOver, Start, Unclaim, UpdateState
from hitl_tui.engine.commands.answering import expire
from hitl_tui.stores import Checkpointer
from hitl_tui.view.presence import claim_of
from tests.engine.audit.test_gates_answered import forge
from tests.stores.asking_desk import asking
from tests.stores.test_contract_threads import GONE
from tests.support.flows import SECOND, Desk, check_log, ledger_of, line, review_loop
from tests.support.spec import spec

pytestmark = spec("11")

MINUTE = 60 * SECOND
CHOICES = [GateChoice("accept", "accept"), GateChoice("approve", "ok", values={"verdict": "approved"})]


class Asked:
    """A thread that waits at a gate."""

    def __init__(self, store: Checkpointer, **gate: Any) -> None:
        self.store = store
        self.terms = {"title": "verdict", "choices": CHOICES, **gate}
        self.runner: GraphRunner = review_loop(store, interrupt_after=[Gate("check", **self.terms)])
        self.desk = Desk(self.runner, "t")
        self.desk.do(Start({}))
        self.desk.run()

    @property
    def request(self) -> Any:
        return self.desk.session.cursor.pending[0]

    def claim(self, actor: str, **more: Any) -> None:
        self.desk.do(Claim(self.request.id, actor, **more))

    def answer(self, actor: str, choice: str = "approve", step: int = 2) -> None:
        self.desk.do(Answer(self.request.id, choice, step=step, actor=actor))

    def hand(self, actor: str, to: str, **more: Any) -> None:
        self.desk.do(HandOver(self.request.id, self.request.step, to, actor, **more))

    def claimed(self) -> list[str]:
        return [at.actor for at in self.store.attending("t", self.desk.clock()) if at.claims]

    def check(self) -> None:
        check_log(self.runner, "t")
        assert self.runner.verify("t", strict=True).ok


class TestClaim:
    def test_another_persons_answer_is_refused_with_the_owner_and_the_remaining_time(
        self, store: Checkpointer
    ) -> None:
        asked = Asked(store)
        asked.claim("ann")
        asked.desk.clock.advance(3 * 60)
        with pytest.raises(AnswerRefused, match=r"ann \(.+@.+\) has claimed it, for 12 min still") as refused:
            asked.answer("bob")
        assert "--take-over ann" in refused.value.hint
        assert [entry.actor for entry in ledger_of(store, "t", "refused")] == ["bob"]
        asked.answer("ann")
        assert [entry.actor for entry in ledger_of(store, "t", "answer")] == ["ann"]
        assert asked.claimed() == []
        asked.check()

    def test_a_claim_is_not_in_the_log(self, store: Checkpointer) -> None:
        asked = Asked(store)
        before = store.ledger("t")
        asked.claim("ann")
        asked.desk.do(Unclaim(asked.request.id, "ann"))
        assert store.ledger("t") == before

    def test_a_claim_ends_at_its_time(self, store: Checkpointer) -> None:
        asked = Asked(store)
        asked.claim("ann", minutes=2)
        asked.desk.clock.advance(2 * 60 + 1)
        asked.answer("bob")
        assert [entry.actor for entry in ledger_of(store, "t", "answer")] == ["bob"]

    def test_a_claim_ends_with_its_process_unless_it_is_lasting(self, store: Checkpointer) -> None:
        asked = Asked(store)
        for lasts in (False, True):
            asked.claim("ann", lasts=lasts)
            (claim,) = store.attending("t", asked.desk.clock())
            dead = replace(claim.lease, token=f"dead {lasts}", pid=GONE)
            store.attend("t", replace(claim, lease=dead), asked.desk.clock())
            assert asked.claimed() == (["ann"] if lasts else [])

    def test_ends_with_the_vote_also_where_the_process_dies_right_after_it(self, store: Checkpointer) -> None:
        asked = Asked(store, quorum=2, one_account=True)
        asked.claim("ann", lasts=True)
        (claim,) = store.attending("t", asked.desk.clock())
        asked.answer("ann")
        store.attend("t", claim, asked.desk.clock())  # as if the process had not come to giving it back
        assert claim_of(store.attending("t", asked.desk.clock()), asked.request, asked.desk.clock()) is None
        asked.claim("bob")
        asked.answer("bob")
        assert [entry.actor for entry in ledger_of(store, "t", "answer")] == ["bob"]
        asked.check()

    def test_only_its_owner_releases_a_claim(self, store: Checkpointer) -> None:
        asked = Asked(store)
        asked.claim("ann")
        with pytest.raises(AnswerRefused, match="ann"):
            asked.desk.do(Unclaim(asked.request.id, "bob"))
        assert asked.desk.do(Unclaim(asked.request.id, "bob", left=True)) is False
        assert asked.desk.do(Unclaim(asked.request.id, "ann", left=True)) is True
        assert asked.desk.do(Unclaim(asked.request.id, "ann")) is False
        asked.answer("bob")

    def test_a_lasting_claim_stays_when_the_card_is_closed(self, store: Checkpointer) -> None:
        asked = Asked(store)
        asked.claim("ann", lasts=True)
        assert asked.desk.do(Unclaim(asked.request.id, "ann", left=True)) is False
        assert asked.claimed() == ["ann"]
        assert asked.desk.do(Unclaim(asked.request.id, "ann")) is True
        assert asked.claimed() == []

    def test_taking_over_a_claim_needs_the_name_and_is_in_the_ledger(self, store: Checkpointer) -> None:
        asked = Asked(store)
        asked.claim("ann")
        for wrong in ("", "cleo"):
            with pytest.raises(AnswerRefused, match="ann"):
                asked.claim("bob", take_over=wrong)
        asked.claim("bob", take_over="ann", note="ann is ill")
        (entry,) = ledger_of(store, "t", "claim_taken")
        assert (entry.actor, entry.note, entry.data) == ("bob", "ann is ill", {"from": "ann"})
        assert (entry.request_id, "@" in entry.account) == (asked.request.id, True)
        with pytest.raises(AnswerRefused, match="bob"):
            asked.answer("ann")
        asked.answer("bob")
        asked.check()

    def test_a_new_question_is_free(self, store: Checkpointer) -> None:
        asked = Asked(store, subject="draft")
        asked.claim("ann")
        asked.desk.do(UpdateState({"draft": "x"}))
        asked.answer("bob", step=3)
        assert [entry.actor for entry in ledger_of(store, "t", "answer")] == ["bob"]

    def test_who_may_not_answer_may_not_claim(self, store: Checkpointer) -> None:
        asked = Asked(store, reviewers=["ann", "bob"], quorum=2, one_account=True)
        with pytest.raises(AnswerRefused, match="cleo may not answer"):
            asked.claim("cleo")
        asked.answer("ann")
        with pytest.raises(AnswerRefused, match="ann has answered"):
            asked.claim("ann")

    def test_an_answered_request_can_not_be_claimed(self, store: Checkpointer) -> None:
        asked = Asked(store)
        wanted = asked.request.id
        asked.answer("ann")
        with pytest.raises(AnswerRefused, match="answered already"):
            asked.desk.do(Claim(wanted, "bob"))

    def test_a_deadline_does_not_wait_for_a_claim(self, store: Checkpointer) -> None:
        asked = Asked(store, deadline=60, on_timeout="approve")
        asked.claim("ann")
        asked.desk.clock.advance(61)
        asked.desk.run()
        assert asked.desk.session.cursor.status == "completed"

    def test_counts_above_and_below_where_a_subgraph_asks(self, store: Checkpointer) -> None:
        runner = asking(store)
        runner.invoke({}, thread_id="t")
        request = runner.open("t").cursor.pending[0]
        (child,) = [row.info.thread_id for row in store.threads(within="t")]
        for here, there in (("t", child), (child, "t")):
            waits = runner.open(here).cursor.pending[0]
            runner._execute(here, Claim(request.id, "ann"))
            with pytest.raises(AnswerRefused, match="ann"):
                runner.answer(
                    there, request.id, "print", step=runner.open(there).cursor.pending[0].step, actor="bob"
                )
            with pytest.raises(AnswerRefused, match="ann"):
                runner._execute(there, Claim(waits.id, "bob"))
            runner._execute(there, Unclaim(request.id, "ann"))
        runner.answer("t", request.id, "print", step=request.step, actor="bob")
        assert [entry.actor for entry in ledger_of(store, child, "answer")] == ["bob"]


class TestHandOver:
    def test_a_handed_over_request_has_a_note_and_others_can_still_answer(self, store: Checkpointer) -> None:
        asked = Asked(store)
        asked.claim("ann")
        asked.hand("ann", "bob", note="you know the customer")
        handed = asked.request.handed
        assert (handed.to, handed.by, handed.note) == ("bob", "ann", "you know the customer")
        assert asked.claimed() == []
        (entry,) = ledger_of(store, "t", "handed_over")
        assert (entry.actor, entry.note, entry.data) == ("ann", "you know the customer", {"to": "bob"})
        asked.hand("bob", "cleo")
        assert [entry.data for entry in ledger_of(store, "t", "handed_over")][1:] == [
            {"to": "cleo", "from": "bob"}
        ]
        asked.answer("dee")
        asked.check()

    def test_it_outlives_an_edit_and_keeps_votes(self, store: Checkpointer) -> None:
        asked = Asked(store, reviewers=["ann", "bob", "cleo"], quorum=2, one_account=True)
        asked.answer("ann")
        asked.hand("ann", "bob")
        assert [vote.actor for vote in asked.request.votes] == ["ann"]
        asked.answer("bob")
        asked.desk.run()
        assert asked.desk.session.cursor.status == "completed"
        asked.check()

    @pytest.mark.parametrize("to", ["cleo", "ann"])
    def test_a_request_is_not_handed_to_someone_who_may_not_answer_or_has_voted(
        self, store: Checkpointer, to: str
    ) -> None:
        asked = Asked(store, reviewers=["ann", "bob"], quorum=2, one_account=True)
        asked.answer("ann")
        with pytest.raises(AnswerRefused, match=to):
            asked.hand("ann", to)
        assert asked.request.handed is None

    def test_a_request_claimed_by_someone_else_is_not_handed_over(self, store: Checkpointer) -> None:
        asked = Asked(store)
        asked.claim("ann")
        with pytest.raises(AnswerRefused, match="ann"):
            asked.hand("bob", "cleo")

    def test_another_step_refuses(self, store: Checkpointer) -> None:
        asked = Asked(store)
        with pytest.raises(AnswerRefused, match="step 2, not 1"):
            asked.desk.do(HandOver(asked.request.id, 1, "bob", "ann"))

    def test_what_a_subgraph_asks_is_handed_over_there(self, store: Checkpointer) -> None:
        runner = asking(store)
        runner.invoke({}, thread_id="t")
        request = runner.open("t").cursor.pending[0]
        runner._execute("t", HandOver(request.id, request.step, "bob", "ann", "yours"))
        (child,) = [row.info.thread_id for row in store.threads(within="t")]
        for thread in ("t", child):
            handed = runner.open(thread).cursor.pending[0].handed
            assert handed is not None
            assert handed.to == "bob"
        assert runner.verify("t", strict=True).ok


class TestEscalation:
    TERMS: ClassVar[dict[str, Any]] = {
        "reviewers": ["ann"],
        "escalate_to": ["bob", "cleo"],
        "escalate_after": 60,
    }

    def test_after_the_escalation_others_can_answer(self, store: Checkpointer) -> None:
        asked = Asked(store, **self.TERMS)
        with pytest.raises(AnswerRefused, match="bob may not answer"):
            asked.answer("bob")
        asked.desk.clock.advance(60)
        asked.answer("bob")
        (entry,) = ledger_of(store, "t", "escalated")
        assert (entry.actor, entry.data) == (None, {"to": ["bob", "cleo"]})
        assert [entry.actor for entry in ledger_of(store, "t", "answer")] == ["bob"]
        asked.check()

    def test_it_happens_once_and_keeps_claim_votes_and_deadline(self, store: Checkpointer) -> None:
        asked = Asked(store, **self.TERMS, deadline=100, on_timeout="approve")
        asked.claim("ann")
        deadline = asked.request.deadline
        asked.desk.clock.advance(60)
        for _ in range(3):
            with asked.desk.session.writing():
                expire(asked.desk.session)
        assert asked.request.reviewers == ("ann", "bob", "cleo")
        assert (asked.request.escalate_at, asked.request.deadline) == (None, deadline)
        assert len(ledger_of(store, "t", "escalated")) == 1
        with pytest.raises(AnswerRefused, match="ann"):
            asked.answer("bob")
        asked.desk.clock.advance(41)
        asked.desk.run()
        assert asked.desk.session.cursor.status == "completed"
        assert len(ledger_of(store, "t", "timeout")) == 1
        asked.check()

    def test_below_zero_counts_back_from_the_deadline(self, store: Checkpointer) -> None:
        asked = Asked(store, reviewers=["ann"], escalate_to=["bob"], escalate_after=-10, deadline=60)
        assert asked.request.deadline - asked.request.escalate_at == 10 * SECOND

    @pytest.mark.parametrize(
        ("terms", "message"),
        [
            ({"escalate_to": ["bob"], "escalate_after": 5}, "reviewers"),
            ({"reviewers": ["ann"], "escalate_to": ["bob"]}, "escalate_after is missing"),
            ({"reviewers": ["ann"], "escalate_after": 5}, "escalate_to is missing"),
            ({"reviewers": ["ann"], "escalate_to": "bob", "escalate_after": 5}, "is a text"),
            ({"reviewers": ["ann"], "escalate_to": ["bob"], "escalate_after": -5}, "there is none"),
            ({"reviewers": ["ann"], "escalate_to": ["bob"], "escalate_after": 9, "deadline": 9}, "between"),
            ({"reviewers": ["ann"], "escalate_to": ["bob"], "escalate_after": -9, "deadline": 9}, "between"),
        ],
    )
    def test_terms_that_can_not_be_met_are_refused_when_built(
        self, terms: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(GraphInvalid, match=message):
            Gate("check", title="verdict", choices=CHOICES, **terms)

    def test_a_node_s_own_question_escalates_too(self, store: Checkpointer) -> None:
        def send(_state: Any, config: Any) -> dict[str, Any]:
            answer = config.interrupt({"kind": "approve", "title": "send?", **self.TERMS})
            return {"verdict": str(answer)}

        runner = line(store, send)
        desk = Desk(runner, "t")
        desk.do(Start({}))
        desk.run()
        request = desk.session.cursor.pending[0]
        desk.clock.advance(61)
        desk.do(Answer(request.id, "approve", step=request.step, actor="cleo"))
        assert runner.verify("t", strict=True).ok

    def test_a_request_in_a_subgraph_escalates_there_and_once(self, store: Checkpointer) -> None:
        runner = asking(store, reviewers=["ann"], escalate_to=["bob"], escalate_after=0.000_001)
        runner.invoke({}, thread_id="t")
        request = runner.open("t").cursor.pending[0]
        runner.answer("t", request.id, "print", step=request.step, actor="bob")
        (child,) = [row.info.thread_id for row in store.threads(within="t")]
        for thread in ("t", child):
            assert len(ledger_of(store, thread, "escalated")) == 1
        assert runner.verify("t", strict=True).ok

    @pytest.mark.parametrize("early", [False, True], ids=["other names", "too early"])
    def test_a_forged_escalation_is_found(
        self, store: Checkpointer, monkeypatch: pytest.MonkeyPatch, early: bool
    ) -> None:
        asked = Asked(store, **self.TERMS)
        asked.desk.clock.advance(61)
        change = {"at": asked.request.asked_at} if early else {"data": {"to": ["eve"]}}
        with monkeypatch.context() as forging:
            forge(forging, lambda entry: replace(entry, **change) if entry.kind == "escalated" else entry)
            asked.answer("bob")
        asked.desk.run()
        report = asked.runner.verify("t", strict=True)
        assert {found.field for found in report.mismatches} == {"escalate_at" if early else "escalate_to"}
