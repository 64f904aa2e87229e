"""Verifying a thread looks at the threads of its subgraphs, too, and names a wrong one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from hitl_tui import GraphRunner, SQLiteCheckpointer
from hitl_tui.engine.audit.findings import Mismatch
from hitl_tui.engine.log.outcomes import BranchState, ChildLink
from hitl_tui.view.findings import finding_line
from tests.engine.run.booking import World
from tests.engine.run.nested_trip import DESK, TEAM, nested
from tests.support.spec import spec

pytestmark = spec("12")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def made(path: Path, *, rolled_back: bool = False) -> GraphRunner:
    runner = nested(SQLiteCheckpointer(path), World())
    runner.invoke({"note": "x"}, thread_id="t")
    if rolled_back:
        runner.rollback("t")
    return runner


NODES = {TEAM: "hotel", DESK: "spa"}


def damage(path: Path, thread: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE record SET note = 'forged' WHERE node = ? AND channel = 'log'", [NODES[thread]])
        db.commit()


@pytest.mark.parametrize("strict", [False, True], ids=["by its hashes", "reduced again"])
@pytest.mark.parametrize("rolled_back", [False, True], ids=["as it ran", "rolled back"])
def test_a_clean_tree_lists_the_checked_threads(path: Path, strict: bool, rolled_back: bool) -> None:
    runner = made(path, rolled_back=rolled_back)
    report = runner.verify("t", strict=strict)
    assert report.mismatches == ()
    assert report.threads == (TEAM, DESK)
    alone = runner.verify(DESK, strict=strict)
    assert report.checkpoints > alone.checkpoints
    assert runner.replay("t").ok


@pytest.mark.parametrize("thread", [TEAM, DESK], ids=["the child", "the child's child"])
@pytest.mark.parametrize("strict", [False, True], ids=["by its hashes", "reduced again"])
def test_a_damaged_thread_below_is_found_and_named(path: Path, thread: str, strict: bool) -> None:
    runner = made(path, rolled_back=True)
    damage(path, thread)
    report = runner.verify("t", strict=strict)
    assert {one.thread for one in report.mismatches} == {thread}
    assert {one.field for one in report.mismatches} == {"record_hash"}


@pytest.mark.parametrize(
    ("gone", "of", "step"), [(TEAM, "", 2), (DESK, TEAM, 2)], ids=["the child", "the child's child"]
)
def test_a_thread_that_is_no_longer_in_the_store_is_a_gap_at_the_step_it_made(
    path: Path, gone: str, of: str, step: int
) -> None:
    made(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE thread SET id = 'gone' WHERE id = ?", [gone])
        db.commit()
    report = nested(SQLiteCheckpointer(path), World()).verify("t")
    assert report.missing == (gone,)
    assert report.mismatches == (Mismatch("gap", None, step, None, "thread", gone, None, of),)
    where = f"{of}, step {step}" if of else f"step {step}"
    assert (
        finding_line(report.mismatches[0]) == f"gap: {where}: {gone} ran inside it and is not in this store"
    )


def test_a_thread_that_has_not_started_is_no_gap(path: Path) -> None:
    store = SQLiteCheckpointer(path)
    nested(store, World()).invoke({"note": "x"}, thread_id="t")
    link = BranchState("team", child=ChildLink("t/team#9"))
    cursor = store.cursor("t")
    assert cursor is not None
    with closing(sqlite3.connect(path)) as db:
        body = msgspec.json.encode(replace(cursor, branches=(link,)))
        db.execute("UPDATE cursor SET body = ? WHERE thread = 1", [body])
        db.commit()
    assert nested(SQLiteCheckpointer(path), World()).verify("t").missing == ()


def test_an_unreadable_child_is_reported_and_does_not_hide_the_others(path: Path) -> None:
    made(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE checkpoint SET branches = x'7b' WHERE node = 'desk'")
        db.commit()
    report = nested(SQLiteCheckpointer(path), World()).verify("t")
    assert {(one.thread, one.kind) for one in report.mismatches} == {(TEAM, "unreadable")}


def test_a_fork_is_checked_with_the_threads_of_the_steps_it_shares(path: Path) -> None:
    runner = made(path)
    runner.fork("t", 2, "f")
    assert runner.verify("f", strict=True).threads == (TEAM, DESK)
    damage(path, TEAM)
    assert {one.thread for one in runner.verify("f").mismatches} == {TEAM}
