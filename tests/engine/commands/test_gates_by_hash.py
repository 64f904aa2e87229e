"""A gate is passed only by an answer to what it asks when the run goes on."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import END, START, AnswerRefused, Channel, Gate, GateChoice, GraphRunner, StateGraph
from hitl_tui.engine.log.requests import Request
from hitl_tui.stores import Checkpointer
from tests.support.flows import check_log, ledger_of

CHOICES = [
    GateChoice("approve", "approve"),
    GateChoice("reject", "reject"),
    GateChoice("double", "double it", values=lambda state: {"amount": state["amount"] * 2}),
]
PAYLOAD = {"payload": lambda state: {"amount": state["amount"]}}


class Shop:
    """START -> quote -> pay -> END, with a gate before `pay` or after `quote`."""

    def __init__(self, store: Checkpointer, when: str = "before", **terms: Any) -> None:
        self.store = store
        self.paid: list[int] = []
        self.runner = self.build(when, **terms)

    def build(self, when: str, *, reads: Any = None, more: bool = False, **terms: Any) -> GraphRunner:
        channels = {"amount": Channel(0), "other": Channel(""), **({"new": Channel(1)} if more else {})}
        given = {"title": "Pay?", "choices": CHOICES, **terms}
        gate = Gate("pay" if when == "before" else "quote", **given)
        graph = StateGraph(channels).add_node("quote", lambda state: {})
        graph.add_node("pay", lambda state: self.paid.append(state["amount"]), reads=reads)
        graph.add_edge(START, "quote").add_edge("quote", "pay").add_edge("pay", END)
        return graph.compile(checkpointer=self.store, **{f"interrupt_{when}": [gate]})  # type: ignore[arg-type]

    def ask(self, amount: int = 10) -> Request:
        self.runner.invoke({"amount": amount}, thread_id="t")
        return self.request

    @property
    def request(self) -> Request:
        cursor = self.store.cursor("t")
        assert cursor is not None
        (request,) = cursor.pending
        return request

    def answer(self, choice: str = "approve", actor: str = "ann") -> None:
        request = self.request
        self.runner.answer("t", request.id, choice, step=request.step, actor=actor)

    def resume(self, inputs: dict[str, Any] | None = None, thread: str = "t") -> str:
        return self.runner.invoke(inputs, thread_id=thread).status

    def check(self, thread: str = "t") -> None:
        report = self.runner.verify(thread, strict=True)
        assert report.mismatches == ()
        check_log(self.runner, thread)


WAYS = [
    ("before", {"subject": "amount"}), ("before", PAYLOAD), ("before", {"reads": ["amount"]}),
    ("after", {"subject": "amount"}), ("after", PAYLOAD),
]  # fmt: skip


@pytest.mark.parametrize(("when", "terms"), WAYS)
@pytest.mark.parametrize("change", ["edit", "input"])
def test_what_changes_after_the_answer_is_asked_again(
    store: Checkpointer, when: str, terms: dict[str, Any], change: str
) -> None:
    shop = Shop(store, when, **terms)
    first = shop.ask()
    shop.answer()
    if change == "edit":
        shop.runner.update_state("t", {"amount": 10000}, actor="eve")
    assert shop.resume({"amount": 10000} if change == "input" else None) == "waiting"
    assert (shop.paid, shop.request.id != first.id) == ([], True)
    assert shop.request.notes[0].startswith("ann approved ")
    shop.answer(actor="bob")
    assert (shop.resume(), shop.paid) == ("completed", [10000])
    shop.check()


@pytest.mark.parametrize(("when", "terms"), WAYS)
def test_what_changes_while_it_waits_is_asked_again_with_what_it_says_now(
    store: Checkpointer, when: str, terms: dict[str, Any]
) -> None:
    shop = Shop(store, when, **terms)
    first = shop.ask()
    shop.runner.update_state("t", {"amount": 9999}, actor="eve")
    again = shop.request
    assert again.id != first.id
    if "payload" in terms:
        assert again.payload == {"amount": 9999}
        assert again.notes == ("It asked about amount 10; now it asks about amount 9999.",)
    with pytest.raises(AnswerRefused, match="asked again"):
        shop.runner.answer("t", first.id, "approve", step=first.step, actor="ann")
    shop.answer()
    assert (shop.resume(), shop.paid) == ("completed", [9999])
    assert [entry.request_id for entry in ledger_of(store, "t", "reopened")] == [first.id]
    shop.check()


@pytest.mark.parametrize(("when", "terms"), WAYS)
def test_unrelated_changes_leave_the_request_and_its_answer_valid(
    store: Checkpointer, when: str, terms: dict[str, Any]
) -> None:
    shop = Shop(store, when, **terms)
    first = shop.ask()
    shop.runner.update_state("t", {"other": "x"}, actor="eve")
    assert shop.request == first
    shop.runner = shop.build(when, more=True, **terms)
    shop.answer()
    shop.runner.update_state("t", {"other": "y"}, actor="eve")
    assert (shop.resume(), shop.paid) == ("completed", [10])
    assert shop.runner.verify("t", strict=True).mismatches == ()


@pytest.mark.parametrize("when", ["before", "after"])
def test_values_set_by_the_answer_itself_are_no_change(store: Checkpointer, when: str) -> None:
    shop = Shop(store, when, subject="amount", **PAYLOAD)
    shop.ask()
    shop.answer("double")
    assert (shop.resume(), shop.paid) == ("completed", [20])
    shop.check()


def test_votes_for_another_request_do_not_count(store: Checkpointer) -> None:
    shop = Shop(store, subject="amount", quorum=2, one_account=True)
    shop.ask()
    shop.answer(actor="ann")
    shop.runner.update_state("t", {"other": "x"}, actor="eve")
    assert [vote.actor for vote in shop.request.votes] == ["ann"]
    shop.runner.update_state("t", {"amount": 10000}, actor="eve")
    shop.answer(actor="bob")
    assert (shop.resume(), shop.paid) == ("waiting", [])
    shop.answer(actor="ann")
    assert (shop.resume(), shop.paid) == ("completed", [10000])
    shop.check()


@pytest.mark.parametrize("terms", [{"title": "Really pay?"}, {"risk": "high"}, {"reviewers": ["bob"]}])
@pytest.mark.parametrize("answered", [False, True])
def test_a_gate_that_another_version_of_the_graph_asks_otherwise(
    store: Checkpointer, terms: dict[str, Any], answered: bool
) -> None:
    shop = Shop(store, subject="amount")
    first = shop.ask()
    if answered:
        shop.answer()
    shop.runner = shop.build("before", subject="amount", **terms)
    if not answered:
        with pytest.raises(AnswerRefused):
            shop.runner.answer("t", first.id, "approve", step=first.step, actor="bob")
    assert (shop.resume(), shop.paid) == ("waiting", [])
    shop.answer(actor="bob")
    assert (shop.resume(), shop.paid) == ("completed", [10])
    shop.check()


@pytest.mark.parametrize("answered", [False, True])
def test_another_version_that_binds_other_parts_of_the_payload_is_another_graph_and_asks_again(
    store: Checkpointer, answered: bool
) -> None:
    payload = {"payload": lambda state: {"amount": state["amount"], "other": state["other"]}}
    shop = Shop(store, binds=["amount"], **payload)
    first = shop.ask()
    if answered:
        shop.answer()
    (gate,) = shop.runner.graph.info.gates
    assert gate.binds == ("amount",)
    digest = shop.runner.graph.digest
    shop.runner = shop.build("before", **payload)
    assert shop.runner.graph.digest != digest
    if not answered:
        with pytest.raises(AnswerRefused):
            shop.runner.answer("t", first.id, "approve", step=first.step, actor="ann")
    assert (shop.resume(), shop.paid) == ("waiting", [])
    assert shop.request.id != first.id
    shop.answer()
    assert shop.resume() == "completed"
    shop.check()


def test_a_payload_from_outside_data_is_checked_before_the_node_runs(store: Checkpointer) -> None:
    price = [850]
    shop = Shop(store, payload=lambda state: price[0])
    assert shop.ask().payload == 850
    shop.answer()
    price[0] = 9999
    assert (shop.resume(), shop.paid) == ("waiting", [])
    assert shop.request.notes == ("ann approved 850; now it asks about 9999.",)


@pytest.mark.parametrize("binds", [(), ("amount",)])
def test_a_payload_that_is_never_the_same_twice(store: Checkpointer, binds: tuple[str, ...]) -> None:
    clock = iter(range(100))
    shop = Shop(store, payload=lambda state: {"at": next(clock), "amount": state["amount"]}, binds=binds)
    shop.ask()
    shop.answer()
    if binds:
        assert (shop.resume(), shop.paid) == ("completed", [10])
        return
    assert shop.resume() == "waiting"
    shop.answer()
    assert shop.resume() == "waiting"
    assert 'binds=["amount"]' in shop.request.notes[1]


def test_a_fork_with_changes_asks_again(store: Checkpointer) -> None:
    shop = Shop(store, subject="amount")
    shop.ask()
    shop.answer()
    head = store.cursor("t").head  # type: ignore[union-attr]
    shop.runner.fork("t", head, "same", actor="eve")
    shop.runner.fork("t", head, "other", changes={"amount": 10000}, actor="eve")
    assert (shop.resume(thread="other"), shop.paid) == ("waiting", [])
    assert (shop.resume(thread="same"), shop.paid) == ("completed", [10])
    shop.check("same")
    shop.check("other")


def test_an_edit_as_a_node_does_not_bypass_the_gate_after_it(store: Checkpointer) -> None:
    shop = Shop(store, "after", subject="amount")
    shop.ask()
    shop.runner.update_state("t", {"amount": 10000}, as_node="quote", actor="eve")
    assert (shop.resume(), shop.paid) == ("waiting", [])
    shop.answer()
    assert (shop.resume(), shop.paid) == ("completed", [10000])
    shop.check()
