"""Verifying a thread looks at the threads of its subgraphs, too, and names a wrong one (SPEC 12)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import GraphRunner, SQLiteCheckpointer
from tests.engine_rollback.booking import World
from tests.engine_rollback.nested_trip import DESK, TEAM, nested


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
def test_a_clean_tree_is_clean_and_says_which_threads_were_looked_at(
    path: Path, strict: bool, rolled_back: bool
) -> None:
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


def test_a_thread_that_is_no_longer_in_the_store_is_told_as_not_looked_at(path: Path) -> None:
    made(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE thread SET id = 'gone' WHERE id = ?", [DESK])
        db.commit()
    report = nested(SQLiteCheckpointer(path), World()).verify("t")
    assert (report.ok, report.threads, report.missing) == (True, (TEAM,), (DESK,))


def test_a_fork_is_checked_with_the_threads_of_the_steps_it_shares(path: Path) -> None:
    runner = made(path)
    runner.fork("t", 2, "f")
    assert runner.verify("f", strict=True).threads == (TEAM, DESK)
    damage(path, TEAM)
    assert {one.thread for one in runner.verify("f").mismatches} == {TEAM}
