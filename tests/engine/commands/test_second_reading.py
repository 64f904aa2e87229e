"""A sample of answered requests is read again by another person; canaries measure what people catch."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import AnswerRefused, GraphInvalid, GraphRunner, UsageError
from hitl_tui.engine.commands import Fork, ReadAgain, Start, UpdateState, second_reading
from hitl_tui.engine.commands.decisions import decision_entry
from hitl_tui.engine.thread.second_readings import is_in_sample, second_readings
from hitl_tui.stores import Checkpointer, MemoryCheckpointer
from tests.engine.audit.test_gates_answered import answer, findings, gated
from tests.engine.commands.test_four_eyes import other_account
from tests.support.flows import Desk, check_log
from tests.support.spec import spec

pytestmark = spec("11")


def answered(store: Checkpointer, **terms: Any) -> tuple[GraphRunner, str]:
    made = gated(store, **{"second_reading": 1, **terms})
    made.invoke({"log": "go"}, thread_id="t")
    (waits,) = made.open("t").cursor.pending
    answer(made, "ann")
    return made, waits.id


def test_another_person_reads_it_again_and_nothing_changes(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, asked = answered(store, rubric=["tone"])
    before = made.open("t").cursor
    other_account(monkeypatch)
    read_elsewhere(monkeypatch)
    Desk(made, "t").do(ReadAgain(asked, "revise", "bob", "dull", reasons=("dull",), scores={"tone": 2}))
    now = made.open("t").cursor
    assert (now.head, now.status) == (before.head, "completed")
    (reading,) = second_readings(store.ledger("t"), "t")
    assert reading.second is not None
    assert (reading.second.actor, reading.second.note) == ("bob", "dull")
    assert reading.second.data == {"answer": "revise", "reasons": ["dull"], "scores": {"tone": 2}}
    assert (reading.people, reading.request.title) == ({"ann"}, "send it?")
    check_log(made, "t")
    assert findings(made) == []


def read_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_reading, "account", lambda: "other@box")


@pytest.mark.parametrize(
    ("who", "value", "says"),
    [
        ("ann", "approve", "ann has decided 'send it\\?' already"),
        ("bob", "burn it", "is not an allowed answer"),
        ("cy", "approve", "cy may not answer"),
    ],
)
def test_what_is_no_second_reading_is_refused(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch, who: str, value: str, says: str
) -> None:
    made, asked = answered(store, reviewers=["ann", "bob"])
    read_elsewhere(monkeypatch)
    with pytest.raises(AnswerRefused, match=says):
        Desk(made, "t").do(ReadAgain(asked, value, who))
    (reading,) = second_readings(store.ledger("t"), "t")
    assert reading.second is None


def test_another_name_of_the_same_account_is_refused(store: Checkpointer) -> None:
    made, asked = answered(store)
    with pytest.raises(AnswerRefused, match=r"the account .* has decided"):
        Desk(made, "t").do(ReadAgain(asked, "approve", "bob"))


def test_it_is_read_once_and_only_after_the_answer(
    store: Checkpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_elsewhere(monkeypatch)
    made = gated(store, second_reading=1, one_account=True)
    made.invoke({"log": "go"}, thread_id="t")
    (waits,) = made.open("t").cursor.pending
    with pytest.raises(AnswerRefused, match="needs no second reading"):
        Desk(made, "t").do(ReadAgain(waits.id, "approve", "bob"))
    answer(made, "ann")
    Desk(made, "t").do(ReadAgain(waits.id, "approve", "bob"))
    with pytest.raises(AnswerRefused, match="has been read again by bob"):
        Desk(made, "t").do(ReadAgain(waits.id, "approve", "cy"))


def test_the_sample_depends_on_the_request_alone() -> None:
    ids = [f"{n * 7919:012x}" for n in range(0, 35_000_000_000, 17_500_000)]
    assert not any(is_in_sample(each, 0) for each in ids)
    assert all(is_in_sample(each, 1) for each in ids)
    share = sum(is_in_sample(each, 0.1) for each in ids) / len(ids)
    assert 0.09 < share < 0.11
    made, asked = answered(MemoryCheckpointer(), second_reading=0.5)
    assert bool(second_readings(made.store.ledger("t"), "t")) is is_in_sample(asked, 0.5)  # type: ignore[union-attr]


@pytest.mark.parametrize("rate", [-0.1, 1.1, "0.1", None])
def test_a_share_is_from_0_to_1(rate: Any) -> None:
    with pytest.raises(GraphInvalid, match="second_reading"):
        gated(MemoryCheckpointer(), second_reading=rate)


def canary(store: Checkpointer, **terms: Any) -> GraphRunner:
    made = gated(store, subject="log", **terms)
    made.invoke({"log": "go"}, thread_id="t")
    Desk(made, "t").do(Fork(1, "c", {"log": ["bad"]}, actor="lead", canary="approve"))
    return made


@pytest.mark.parametrize("choice", ["approve", "revise"])
def test_a_canary_asks_and_runs_nothing(store: Checkpointer, choice: str) -> None:
    made = canary(store)
    (waits,) = made.open("c").cursor.pending
    assert waits.title == "send it?"
    assert made.invoke(thread_id="c").status == "waiting"
    answer(made, "ann", choice=choice, thread="c")
    cursor = made.open("c").cursor
    assert (cursor.status, cursor.reason) == ("cancelled", "canary")
    assert list(made.get_state("c")["log"]) == ["bad"]
    check_log(made, "c")
    assert findings(made, "c") == []
    assert made.open("t").cursor.status == "waiting"


@pytest.mark.parametrize(
    "command",
    [
        Start({"log": "on"}, from_entry=True, actor="ann"),
        UpdateState({}, actor="ann", as_node="draft"),
        Fork(1, "d", actor="ann"),
    ],
    ids=["start", "as_node", "fork"],
)
def test_a_canary_cannot_be_made_to_run(store: Checkpointer, command: Any) -> None:
    made = canary(store)
    for _ in range(2):
        with pytest.raises(UsageError, match="only asks"):
            Desk(made, "c").do(command)
        if made.open("c").cursor.pending:
            answer(made, "ann", thread="c")


@pytest.mark.parametrize(
    ("fork", "says"),
    [
        (Fork(1, "c", None, canary="approve"), "needs a value that is known to be bad"),
        (Fork(0, "c", {"log": ["bad"]}, canary="approve"), "no gate asks at step 0"),
        (Fork(1, "c", {"log": ["bad"]}, canary="yes"), "'yes' is not one of the answers"),
    ],
)
def test_what_is_no_canary_is_refused_and_makes_no_thread(store: Checkpointer, fork: Fork, says: str) -> None:
    made = gated(store)
    made.invoke({"log": "go"}, thread_id="t")
    with pytest.raises(UsageError, match=says):
        Desk(made, "t").do(fork)
    assert store.info("c") is None


@pytest.mark.parametrize(
    ("rate", "reader", "finding"),
    [
        (1, "ann", ("second_reading", "another person", "ann")),
        (0, "bob", ("second_reading", "a request of the sample", None)),
        (1, "bob", None),
    ],
    ids=["by the first", "outside the sample", "by another"],
)
def test_verify_finds_forged_second_readings(
    rate: float, reader: str, finding: tuple[str, str, str | None] | None
) -> None:
    made, asked = answered(MemoryCheckpointer(), second_reading=rate)
    desk = Desk(made, "t")
    entry = decision_entry(
        desk.session, [], "read_again", request_id=asked, actor=reader, data={"answer": "approve"}
    )
    with desk.session.writing():
        desk.session.commit_cursor(desk.session.cursor, [entry])
    expected = [] if finding is None else [(entry.n, finding[0], finding[1], finding[2] or asked)]
    assert [found[1:] for found in findings(made)] == [one[1:] for one in expected]
