"""An answer belongs to its request after a kill, after export and import, and on a database server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    AnswerRefused,
    Channel,
    GraphRunner,
    SQLiteCheckpointer,
    StateGraph,
    open_store,
)
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.engine.commands import answered_and_killed
from tests.support.flows import check_log, ledger_of
from tests.support.killed import kill_once_it_says


@pytest.mark.integration
@pytest.mark.parametrize("edited", [False, True])
def test_a_kill_between_answer_and_step_neither_loses_the_answer_nor_lends_it_to_another_amount(
    tmp_path: Path, edited: bool
) -> None:
    path, payments = tmp_path / "runs.db", tmp_path / "runs.paid"
    kill_once_it_says("answered", "tests.engine.commands.answered_and_killed", path)
    with closing(SQLiteCheckpointer(path)) as store:
        runner = answered_and_killed.runner(store, payments)
        if edited:
            runner.update_state("t", {"amount": 10000}, actor="eve")
        result = runner.invoke(thread_id="t")
        if edited:
            assert (result.status, payments.exists()) == ("waiting", False)
            (asked,) = result.pending
            assert asked.notes == ("ann approved 10; now it asks about 10000.",)
            runner.answer("t", asked.id, "reject", step=asked.step, actor="bob")
            result = runner.invoke(thread_id="t")
        assert (result.status, result["paid"]) == ("completed", "reject" if edited else "approve")
        assert payments.read_text() == ("reject 10000\n" if edited else "approve 10\n")
        assert len(ledger_of(store, "t", "answer")) == 1 + edited
        assert runner.verify("t", strict=True).mismatches == ()
        check_log(runner, "t")


def desk(store: Checkpointer) -> GraphRunner:
    """A graph of one node, which asks about two amounts one after the other."""

    def pay(state: Any, config: Any) -> dict[str, Any]:
        given = [
            config.interrupt({"kind": "approve", "title": "Pay?", "payload": amount})
            for amount in state["amounts"]
        ]
        return {"paid": given}

    graph = StateGraph({"amounts": Channel(None), "paid": Channel(None)}).add_node("pay", pay)
    return graph.add_edge(START, "pay").add_edge("pay", END).compile(checkpointer=store)


def give(runner: GraphRunner, thread: str, answer: str, actor: str = "ann") -> Any:
    """Answer what waits, and resume."""
    (asked,) = runner.open(thread).cursor.pending
    runner.answer(thread, asked.id, answer, step=asked.step, actor=actor)
    return runner.invoke(thread_id=thread)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[SQLiteCheckpointer]:
    with closing(SQLiteCheckpointer(tmp_path / "other.db")) as opened:
        yield opened


def carried(store: Checkpointer, thread: str, to: Checkpointer, name: str) -> GraphRunner:
    """Export a thread and import it by another name; a runner on the store that it is in now."""
    before = desk(store).open(thread).cursor
    assert import_thread(to, list(export_thread(store, thread)), name) == name
    runner = desk(to)
    after = runner.open(name).cursor
    assert (after.answers, after.pending) == (before.answers, before.pending)
    return runner


def test_kept_answers_reopened_requests_and_unused_answers_are_exported_and_imported(
    tmp_path: Path, other: SQLiteCheckpointer
) -> None:
    with closing(SQLiteCheckpointer(tmp_path / "one.db")) as store:
        runner = desk(store)
        runner.invoke({"amounts": [10, 20]}, thread_id="t")
        give(runner, "t", "approve")
        (asked,) = runner.open("t").cursor.pending
        runner.answer("t", asked.id, "approve", step=asked.step, actor="ann")
        runner.update_state("t", {"amounts": [10, 30]}, actor="eve")
        there = carried(store, "t", other, "kept")
    (again,) = there.invoke(thread_id="kept").pending
    assert (again.payload, again.notes) == (30, ("ann approved 20; now it asks about 30.",))
    there = carried(other, "kept", other, "reopened")
    with pytest.raises(AnswerRefused):
        there.answer("reopened", asked.id, "approve", step=again.step, actor="ann")
    assert list(give(there, "reopened", "reject", "bob")["paid"]) == ["approve", "reject"]
    carried(other, "reopened", other, "unused")
    for name in ("reopened", "unused"):
        (unused,) = ledger_of(other, name, "unused")
        assert unused.request_id == asked.id
        assert there.verify(name, strict=True).mismatches == ()
        check_log(there, name)


@pytest.mark.integration
def test_requests_are_asked_again_on_postgresql(postgres_url: str, tmp_path: Path) -> None:
    payments = tmp_path / "paid"
    with closing(open_store(postgres_url)) as store:
        runner = answered_and_killed.runner(store, payments)
        (first,) = runner.invoke({"amount": 10}, thread_id="t").pending
        runner.answer("t", first.id, "approve", step=first.step, actor="ann")
    with closing(open_store(postgres_url)) as store:  # another process would find the same
        runner = answered_and_killed.runner(store, payments)
        runner.update_state("t", {"amount": 10000}, actor="eve")
        (again,) = runner.invoke(thread_id="t").pending
        assert again.notes == ("ann approved 10; now it asks about 10000.",)
        with pytest.raises(AnswerRefused):
            runner.answer("t", first.id, "approve", step=first.step, actor="ann")
        assert not payments.exists()
        runner.answer("t", again.id, "approve", step=again.step, actor="bob")
        assert runner.invoke(thread_id="t").status == "completed"
        assert payments.read_text() == "approve 10000\n"
        assert runner.verify("t", strict=True).mismatches == ()
