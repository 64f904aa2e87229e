"""`update_state`: all or nothing, on the state one has seen, and never behind anyone's back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hitl_tui import (
    SchemaMismatch,
    StaleWriter,
    ThreadBusy,
    UndeclaredChannel,
    UsageError,
    ValueRejected,
)
from hitl_tui.engine.commands import Start, UpdateState
from hitl_tui.engine.log.events import StepCommitted
from hitl_tui.engine.run.loop import RunLoop
from hitl_tui.errors import UnknownThread
from hitl_tui.stores import Checkpointer
from tests.support.flows import Desk, check_log, ledger_of, line, review_loop, say
from tests.support.spec import spec

pytestmark = spec("11")


@spec("14")
def test_values_are_set_without_reducers_as_one_step_by_a_human(store: Checkpointer) -> None:
    runner = review_loop(store, interrupt_after=["check"])
    runner.invoke({}, thread_id="t")
    step = runner.update_state("t", {"log": ["only"], "draft": "mine"}, actor="ann", note="shorter")
    assert step == 3
    state = runner.get_state("t")
    assert (state["log"], state["draft"]) == (["only"], "mine")
    point = runner.history("t")[0]
    assert (point.step, point.source, point.node, point.actor, point.note) == (
        3,
        "human",
        "",
        "ann",
        "shorter",
    )
    records = list(store.records("t", 3, 3))
    assert [(record.channel, record.op, record.source, record.actor) for record in records] == [
        ("draft", "set", "human", "ann"),
        ("log", "set", "human", "ann"),
    ]
    assert runner.updates("t", 3)[1].before == ["write 1", "check draft 1"]
    check_log(runner, "t")


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"draft": "ok", "typo": 1}, UndeclaredChannel),
        ({"draft": 123}, SchemaMismatch),
        ({"log": ["fine"], "verdict": "maybe"}, SchemaMismatch),
        ({"log": "a text where a list belongs", "n": True}, SchemaMismatch),
        ({"draft": "x", "log": [float("nan")]}, ValueRejected),
        ({"log": [object()]}, ValueRejected),
        ({"goal": "another"}, UndeclaredChannel),
    ],
)
def test_all_or_nothing(store: Checkpointer, values: dict[str, Any], error: type[Exception]) -> None:
    runner = review_loop(store, interrupt_after=["check"])
    runner.invoke({}, thread_id="t")
    before = (store.cursor("t"), list(store.ledger("t")), runner.get_state("t"))
    with pytest.raises(error):
        runner.update_state("t", values)
    assert (store.cursor("t"), list(store.ledger("t")), runner.get_state("t")) == before


def test_an_unknown_channel_is_named_with_the_one_that_was_meant(store: Checkpointer) -> None:
    runner = line(store, say("one"))
    runner.invoke({}, thread_id="t")
    with pytest.raises(UndeclaredChannel, match="draf") as caught:
        runner.update_state("t", {"draf": "x"})
    assert "draft" in str(caught.value)


def test_an_edit_of_an_older_step_is_refused_as_stale(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), interrupt_after=["a"])
    runner.invoke({}, thread_id="t")
    assert runner.update_state("t", {"draft": "first"}, expected_step=1, actor="ann") == 2
    with pytest.raises(StaleWriter, match=r"at step 2.*made on 1"):
        runner.update_state("t", {"draft": "second"}, expected_step=1, actor="bob")
    assert runner.get_state("t")["draft"] == "first"
    assert [entry.actor for entry in ledger_of(store, "t", "update_state")] == ["ann"]


def test_edits_in_a_row_chain_on_the_head(store: Checkpointer) -> None:
    runner = line(store, say("one"))
    runner.invoke({}, thread_id="t")
    assert [runner.update_state("t", {"n": n}) for n in (1, 2, 3)] == [2, 3, 4]
    check_log(runner, "t")


def test_refused_while_the_thread_is_running(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"))

    async def go() -> None:
        desk = Desk(runner, "t")
        desk.do(Start({}))
        steps = RunLoop(desk.session).steps()
        await anext(steps)
        with pytest.raises(ThreadBusy):
            runner.update_state("t", {"draft": "x"})
        with pytest.raises(ThreadBusy):
            desk.do(UpdateState({"draft": "x"}))
        async for _ in steps:
            pass

    asyncio.run(go())
    assert runner.get_state("t")["draft"] == ""


def test_a_completed_thread_stays_completed(store: Checkpointer) -> None:
    runner = line(store, say("one"))
    runner.invoke({}, thread_id="t")
    runner.update_state("t", {"draft": "late"})
    result = runner.invoke(thread_id="t")
    assert (result.status, result.reason, result.step, result["draft"]) == ("completed", "end", 2, "late")
    assert runner.history("t")[0].status == "completed"


def test_as_node_puts_the_cursor_after_that_node(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), say("three"))
    runner.invoke({}, thread_id="t")
    runner.update_state("t", {"draft": "again"}, as_node="a")
    cursor = runner.open("t").cursor
    assert (cursor.status, cursor.next_node) == ("waiting", "b")
    result = runner.invoke(thread_id="t")
    assert list(result["log"]) == ["one", "two", "three", "two", "three"]
    check_log(runner, "t")


def test_as_node_of_a_conditional_edge_lets_the_route_follow_the_edit(store: Checkpointer) -> None:
    runner = review_loop(store)
    runner.step({}, thread_id="t")
    runner.update_state("t", {"verdict": "approved"}, as_node="check")
    result = runner.invoke(thread_id="t")
    assert (result.status, result["n"]) == ("completed", 1)


def test_as_node_start_and_unknown(store: Checkpointer) -> None:
    runner = line(store, say("one"))
    runner.invoke({}, thread_id="t")
    before = store.cursor("t")
    with pytest.raises(UsageError, match="unknown node 'z'"):
        runner.update_state("t", {"draft": "x"}, as_node="z")
    assert store.cursor("t") == before
    runner.update_state("t", {}, as_node="START")
    assert list(runner.invoke(thread_id="t")["log"]) == ["one", "one"]


def test_as_node_of_the_last_node_completes_on_resume(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), interrupt_after=["a"])
    runner.invoke({}, thread_id="t")
    runner.update_state("t", {"draft": "done by hand"}, as_node="b")
    result = runner.invoke(thread_id="t")
    assert (result.status, list(result["log"])) == ("completed", ["one"])


def test_as_node_withdraws_what_was_asked_and_says_so(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), interrupt_after=["a"])
    runner.invoke({}, thread_id="t")
    wanted = runner.open("t").cursor.pending[0].id
    runner.update_state("t", {}, as_node="a", actor="ann")
    assert runner.open("t").cursor.pending == ()
    assert [entry.request_id for entry in ledger_of(store, "t", "withdrawn")] == [wanted]


def test_an_edit_of_nothing_and_one_that_changes_nothing_are_recorded(store: Checkpointer) -> None:
    runner = line(store, say("one"))
    runner.invoke({}, thread_id="t")
    assert runner.update_state("t", {}) == 2
    assert runner.update_state("t", {"draft": ""}) == 3
    assert [update.changed for update in runner.updates("t", 3)] == [False]
    check_log(runner, "t")


def test_an_unknown_or_empty_thread_can_not_be_edited(store: Checkpointer) -> None:
    runner = line(store, say("one"))
    with pytest.raises(UnknownThread):
        runner.update_state("none", {})
    desk = Desk(runner, "t")
    with pytest.raises(UsageError, match="no step to edit"):
        desk.do(UpdateState({"draft": "x"}))


def test_the_events_of_an_edit_equal_the_log(store: Checkpointer) -> None:
    desk = Desk(line(store, say("one")), "t")
    desk.do(Start({}))
    desk.run()
    desk.do(UpdateState({"draft": "x", "log": []}, actor="ann", note="why"))
    events = desk.events_of(StepCommitted)[-1]
    runner = line(store, say("one"))
    assert events.updates == runner.updates("t", 2)
    assert events.checkpoint == runner.history("t")[0]
