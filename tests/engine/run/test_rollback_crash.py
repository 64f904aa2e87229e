"""A process killed between two handlers: the next rollback goes on where it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer, UsageError
from tests.engine.run import rollback_crashing
from tests.engine.run.booking import states
from tests.support.flows import check_log
from tests.support.killed import kill_once_it_says
from tests.support.spec import spec

pytestmark = spec("13")


def kill_in_the_handler(path: Path, *options: str) -> None:
    kill_once_it_says("in the handler", "tests.engine.run.rollback_crashing", path, *options)


def test_committed_handlers_never_run_twice_and_the_rest_continues(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    kill_in_the_handler(path)
    store = SQLiteCheckpointer(path)
    runner = rollback_crashing.runner(store, path)
    assert states(runner.run_info("t").rollback) == {"car": "done", "hotel": "open", "flight": "open"}
    with pytest.raises(UsageError, match="is being rolled back"):
        runner.invoke(thread_id="t")
    report = runner.rollback("t")
    assert (report.status, report.reason, report.ok) == ("cancelled", "rolled_back", True)
    assert [point.node for point in runner.history("t")[:3]] == [
        "<rollback>/flight", "<rollback>/hotel", "<rollback>/car",
    ]  # fmt: skip
    first, second = (line.split() for line in rollback_crashing.calls(path).read_text().splitlines())
    assert (first[:2], second[:2]) == (["hotel-2", "1"], ["hotel-2", "2"])
    assert first[2] == second[2]
    check_log(runner, "t")
    assert runner.verify("t", strict=True).ok
    assert runner.replay("t").ok
    store.close()


def test_a_rollback_killed_inside_a_subgraph_thread_continues_there(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    kill_in_the_handler(path, "inside")
    store = SQLiteCheckpointer(path)
    runner = rollback_crashing.runner(store, path, inside=True)
    assert states(runner.run_info("t").rollback) == {
        "car": "done", "taxi": "done", "hotel": "open", "bus": "open", "flight": "open",
    }  # fmt: skip
    with pytest.raises(UsageError, match="is being rolled back"):
        runner.invoke(thread_id="t")
    assert runner.rollback("t").ok
    child = "t/team#1"
    assert [point.node for point in runner.history(child)[:3]] == [
        "<rollback>/bus", "<rollback>/hotel", "<rollback>/taxi",
    ]  # fmt: skip
    first, second = (line.split() for line in rollback_crashing.calls(path).read_text().splitlines())
    assert (first[:2], second[:2]) == (["hotel-2", "1"], ["hotel-2", "2"])
    assert first[2] == second[2]
    for thread in ("t", child):
        cursor = runner.open(thread).cursor
        assert (cursor.status, cursor.reason) == ("cancelled", "rolled_back")
        check_log(runner, thread)
        assert runner.verify(thread, strict=True).ok
        assert runner.replay(thread).ok
    store.close()
