"""The decision ledger: who decided what, when, why and seeing what, chained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from hitl_tui import AnswerRefused, Gate, GateChoice
from hitl_tui.engine.commands import Answer, Cancel, ExtendLimits, Start, UpdateState
from hitl_tui.engine.log.events import LedgerWritten, StepCommitted
from hitl_tui.engine.thread.hashes import ledger_hash
from hitl_tui.engine.thread.run_inputs import shown_ledger
from hitl_tui.stores import Checkpointer
from tests.support.flows import Clock, Desk, check_log, line, review_loop, say
from tests.support.spec import spec

pytestmark = spec("10")

GATE = Gate(
    "check",
    title="verdict",
    payload=lambda state: state["draft"],
    choices=[GateChoice("accept", "ok"), GateChoice("approve", "ok", values={"verdict": "approved"})],
)


def a_day_of_decisions(store: Checkpointer) -> Desk:
    desk = Desk(review_loop(store, interrupt_after=[GATE]), "t", Clock())
    desk.do(Start({}, actor="ann"))
    desk.run()
    wanted = desk.session.cursor.pending[0].id
    desk.do(UpdateState({"draft": "mine"}, actor="ann", note="clearer", seen=b"1" * 32))
    with pytest.raises(AnswerRefused):
        desk.do(Answer(wanted, "approve", step=2, actor="bob", note="quick"))
    wanted = desk.session.cursor.pending[0].id
    desk.do(Answer(wanted, "accept", step=3, actor="bob", note="go on"))
    desk.do(ExtendLimits({"max_iterations": 50}, actor="cy", note="longer", seen=b"2" * 32))
    desk.run()
    desk.do(Cancel(actor="ann", note="enough", seen=b"3" * 32))
    return desk


def test_who_decided_what_when_and_why(store: Checkpointer) -> None:
    desk = a_day_of_decisions(store)
    entries = store.ledger("t")
    assert [(one.kind, one.step, one.actor, one.note) for one in entries] == [
        ("request", 2, None, "verdict"),
        ("update_state", 3, "ann", "clearer"),
        ("reopened", 3, "ann", None),
        ("request", 3, None, "verdict"),
        ("refused", 3, "bob", "quick"),
        ("answer", 3, "bob", "go on"),
        ("extend", 4, "cy", "longer"),
        ("request", 6, None, "verdict"),
        ("cancel", 6, "ann", "enough"),
    ]
    seen = {entry.kind: entry.seen for entry in entries if entry.kind in ("update_state", "extend", "cancel")}
    assert seen == {"update_state": b"1" * 32, "extend": b"2" * 32, "cancel": b"3" * 32}
    assert entries[1].data["channels"] == ["draft"]
    assert entries[5].data == {"answer": "accept"}
    assert entries[0].data["payload"] == "draft 1"
    assert [one.at for one in entries] == sorted(one.at for one in entries)
    assert desk.session.cursor.ledger_n == len(entries)


def test_emitted_entries_equal_stored_entries(store: Checkpointer) -> None:
    desk = a_day_of_decisions(store)
    assert [event.entry for event in desk.events_of(LedgerWritten)] == list(shown_ledger(store.ledger("t")))


def test_entries_are_a_chain_that_shows_any_change(store: Checkpointer) -> None:
    desk = a_day_of_decisions(store)
    check_log(review_loop(store), "t")
    entry = store.ledger("t")[5]
    assert entry.hash == ledger_hash(entry)
    changes: list[dict[str, Any]] = [
        {"actor": "eve"}, {"note": None}, {"data": {"answer": "approve"}}, {"at": entry.at + 1},
        {"seen": b"x"}, {"step": 1}, {"kind": "vote"}, {"request_id": None}, {"n": 9}, {"prev_hash": b""},
    ]  # fmt: skip
    for change in changes:
        assert ledger_hash(msgspec.structs.replace(entry, **change)) != entry.hash
    assert desk.session.cursor.ledger_hash == store.ledger("t")[-1].hash


def test_a_forks_ledger_continues_its_parents_in_one_chain(store: Checkpointer) -> None:
    a_day_of_decisions(store)
    runner = review_loop(store, interrupt_after=[GATE])
    runner.fork("t", 4, "f", actor="dora")
    runner.invoke(thread_id="f")
    check_log(runner, "f")
    assert store.ledger("f")[0].kind in ("fork", "request")


def test_a_failed_node_is_in_the_ledger(store: Checkpointer) -> None:
    def broken(state: Any) -> None:
        raise ValueError("no luck")

    desk = Desk(review_loop(store, {"write": broken}), "t")
    desk.do(Start({}))
    desk.run()
    entry = store.ledger("t")[-1]
    assert (entry.kind, entry.data) == ("failed", {"node": "write"})
    assert entry.note is not None
    assert "no luck" in entry.note


def test_a_decision_that_was_made_without_a_screen_has_seen_nothing(store: Checkpointer) -> None:
    runner = review_loop(store, interrupt_after=["check"])
    runner.invoke({}, thread_id="t")
    head = runner.history("t")[0]
    runner.update_state("t", {"draft": "clearer"}, expected_step=head.step, actor="ann")
    runner.extend_limits("t", max_iterations=99)
    runner.fork("t", 2, "u", actor="ann")
    runner.rollback("u", actor="ann")
    forked = [entry.seen for entry in store.ledger("u") if entry.kind in ("fork", "rollback")]
    assert forked == [b"", b""]
    runner.cancel("t", actor="ann")
    assert [entry.kind for entry in store.ledger("t") if entry.seen] == []


@pytest.mark.parametrize("call", ["invoke", "stream", "step", "on_step"])
def test_an_error_in_a_callback_pauses_the_thread_before_the_next_node(
    store: Checkpointer, call: str
) -> None:
    runner = line(store, say("one"), say("two"))

    def fail(*_: Any) -> None:
        raise ValueError("not mine")

    def at_a_step(event: Any) -> None:
        if isinstance(event, StepCommitted) and event.checkpoint.node:
            fail()

    calls: dict[str, Callable[[], Any]] = {
        "invoke": lambda: runner.invoke({}, thread_id="t", on_event=at_a_step),
        "stream": lambda: list(runner.stream({}, thread_id="t", on_event=at_a_step)),
        "step": lambda: runner.step({}, thread_id="t", on_event=at_a_step),
        "on_step": lambda: runner.invoke({}, thread_id="t", on_step=fail),
    }
    with pytest.raises(ValueError, match="not mine"):
        calls[call]()
    cursor = store.cursor("t")
    assert cursor is not None
    assert (cursor.status, cursor.reason, cursor.head) == ("waiting", "paused", 1)
    assert list(runner.invoke(thread_id="t")["log"]) == ["one", "two"]
