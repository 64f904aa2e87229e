"""`interrupt_before` and `interrupt_after`: plain stops that resuming passes."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import GraphInvalid, UsageError
from hitl_tui.stores import Checkpointer
from tests.support.flows import check_log, ledger_of, line, pending_id, review_loop, say
from tests.support.spec import spec

pytestmark = spec("11")


def stops(runner: Any, thread: str = "t") -> list[tuple[str, int]]:
    """Where a thread stops when it is resumed until it is done: (title, step) each time."""
    found = []
    result = runner.invoke({}, thread_id=thread)
    while result.status == "waiting":
        found += [(request.title, result.step) for request in result.pending]
        result = runner.invoke(thread_id=thread)
    assert result.status == "completed"
    return found


def test_interrupt_before_stops_before_the_node_and_after_stops_after_it(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), interrupt_before=["b"], interrupt_after=["b"])
    assert stops(runner) == [("stopped before b", 1), ("stopped after b", 2)]
    assert list(runner.get_state("t")["log"]) == ["one", "two"]
    check_log(runner, "t")


@pytest.mark.parametrize("given", ["*", ["*"]])
def test_star_is_every_node(store: Checkpointer, given: Any) -> None:
    runner = line(store, say("one"), say("two"), interrupt_after=given)
    assert stops(runner) == [("stopped after a", 1), ("stopped after b", 2)]


def test_star_before_and_after_stops_twice_a_node(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), interrupt_before="*", interrupt_after="*")
    assert [title for title, _ in stops(runner)] == [
        "stopped before a", "stopped after a", "stopped before b", "stopped after b",
    ]  # fmt: skip


def test_before_the_entry_node_nothing_has_run(store: Checkpointer) -> None:
    runner = line(store, say("one"), interrupt_before=["a"])
    result = runner.invoke({"log": "in"}, thread_id="t")
    assert (result.status, result.step, list(result["log"])) == ("waiting", 0, ["in"])


def test_in_a_loop_it_stops_each_time_and_once(store: Checkpointer) -> None:
    runner = review_loop(store, interrupt_before=["write"])
    runner.invoke({}, thread_id="t")
    assert runner.invoke(thread_id="t")["n"] == 1
    assert runner.invoke(thread_id="t")["n"] == 2
    runner.update_state("t", {"verdict": "approved"})
    # The route to `write` was settled when the stop before it was made; it runs once more.
    result = runner.invoke(thread_id="t")
    assert (result.status, result["n"]) == ("completed", 3)


def test_a_breakpoint_can_be_answered_by_hand_as_well(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), interrupt_before=["b"])
    runner.invoke({}, thread_id="t")
    assert runner.answer("t", pending_id(runner, "t"), "continue", step=1, actor="ann") == 1
    assert [request.title for request in runner.open("t").cursor.pending] == []
    assert runner.invoke(thread_id="t").status == "completed"
    assert [entry.actor for entry in ledger_of(store, "t", "answer")] == ["ann"]


def test_passing_a_breakpoint_is_in_the_ledger(store: Checkpointer) -> None:
    runner = line(store, say("one"), say("two"), interrupt_after=["a"])
    stops(runner)
    kinds = [(entry.kind, entry.note) for entry in store.ledger("t")]
    assert kinds == [("request", "stopped after a"), ("answer", "resumed")]


def test_an_edit_at_a_breakpoint_keeps_it_and_a_fresh_runner_sees_it(store: Checkpointer) -> None:
    make = lambda: line(store, say("one"), say("two"), interrupt_before=["b"])  # noqa: E731
    make().invoke({}, thread_id="t")
    make().update_state("t", {"draft": "x"})
    assert [request.step for request in make().open("t").cursor.pending] == [1]
    assert make().invoke(thread_id="t").status == "completed"


def test_interrupts_want_a_store_and_known_nodes(store: Checkpointer) -> None:
    with pytest.raises(UsageError, match="needs a store"):
        line(None, say("one"), interrupt_after=["a"]).invoke()
    with pytest.raises(GraphInvalid, match="unknown node 'z'"):
        line(store, say("one"), interrupt_before=["z"])
