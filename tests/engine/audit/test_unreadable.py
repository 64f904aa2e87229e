"""What cannot be read is reported, and hides nothing of what lies inside or beside it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import FileCheckpointer, SQLiteCheckpointer
from hitl_tui.engine.audit.anchor import anchor
from hitl_tui.engine.audit.findings import VerifyReport
from hitl_tui.engine.audit.verify import verify_tree
from hitl_tui.errors import LogCorrupt
from hitl_tui.stores.files.directory import directory_name
from tests.engine.run.booking import World
from tests.engine.run.nested_trip import DESK, TEAM, nested

FIRST = "t"
BELOW = {FIRST: (TEAM, DESK), TEAM: (DESK,), DESK: ()}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of each kind with a thread, one inside it, and one inside that."""
    root = tmp_path_factory.mktemp("stores")
    for store in (SQLiteCheckpointer(root / "runs.db"), FileCheckpointer(root / "runs")):
        nested(store, World()).invoke({"note": "x", "goal": "a trip"}, thread_id=FIRST)
        store.close()
    return root


def findings(report: VerifyReport) -> set[str]:
    """The threads that a check found something in."""
    return {found.thread or FIRST for found in report.mismatches}


SQL: dict[str, tuple[str, ...]] = {
    "a list column": ("UPDATE cursor SET waiting_since = 'eve' WHERE thread = :key",),
    "the cursor's digest": ("UPDATE cursor SET digest = x'00' WHERE thread = :key",),
    "the cursor": ("UPDATE cursor SET body = x'7b' WHERE thread = :key",),
    "no cursor": ("DELETE FROM cursor WHERE thread = :key",),
    "its owner": ("UPDATE thread SET owner = x'7b' WHERE key = :key",),
    "its facts": ("UPDATE thread SET fork_step = 'x' WHERE key = :key",),
    "its start": ("UPDATE thread SET created_at = 'x' WHERE key = :key",),
    "its graph": (
        "UPDATE graph SET body = 'x' WHERE digest = (SELECT graph_digest FROM thread WHERE key = :key)",
    ),
    "its parent": ("UPDATE thread SET parent = 4711 WHERE key = :key",),
    "its step": ("UPDATE checkpoint SET branches = x'7b' WHERE id >> 32 = :key",),
}


@pytest.mark.parametrize("damage", SQL.values(), ids=SQL)
@pytest.mark.parametrize("damaged", [FIRST, TEAM])
def test_a_row_that_cannot_be_read_hides_no_thread_inside(
    stores: Path, tmp_path: Path, damage: tuple[str, ...], damaged: str
) -> None:
    path = tmp_path / "runs.db"
    shutil.copy(stores / "runs.db", path)
    with closing(sqlite3.connect(path)) as db:
        key = dict(db.execute("SELECT id, key FROM thread").fetchall())
        for statement in damage:
            assert db.execute(statement, {"key": key[damaged]}).rowcount
        db.execute("UPDATE record SET note = 'forged' WHERE id >> 32 = ?", [key[DESK]])
        db.commit()
    with closing(SQLiteCheckpointer(path)) as store:
        report = verify_tree(store, FIRST)
    # A column that belongs to no thread is reported with the store.
    assert findings(report) >= {DESK, FIRST if "4711" in damage[0] else damaged}


def become_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = {"gone": Path.unlink, "torn": lambda path: path.write_bytes(b"{"), "directory": become_directory}


@pytest.mark.parametrize("file", ["cursor.json", "info.json"])
@pytest.mark.parametrize("act", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("damaged", [FIRST, TEAM])
def test_a_file_that_cannot_be_read_hides_no_thread_inside(
    stores: Path, tmp_path: Path, file: str, act: Callable[[Path], object], damaged: str
) -> None:
    path = tmp_path / "runs"
    shutil.copytree(stores / "runs", path)
    act(path / "threads" / directory_name(damaged) / file)
    steps = sorted((path / "threads" / directory_name(DESK) / "steps").iterdir())
    steps[1].write_text(steps[1].read_text().replace('"note": null', '"note": "forged"', 1))
    with closing(FileCheckpointer(path)) as store:
        report = verify_tree(store, FIRST)
    assert findings(report) >= {damaged, DESK}


def test_a_damaged_ledger_does_not_keep_the_steps_from_being_compared_with_an_anchor(
    stores: Path, tmp_path: Path
) -> None:
    path = tmp_path / "runs.db"
    shutil.copy(stores / "runs.db", path)
    with closing(SQLiteCheckpointer(path)) as store:
        now = anchor(store, FIRST, 0)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE ledger SET data = x'7b'")
        db.execute("UPDATE checkpoint SET hashes = CAST(substr(hashes, 1, 64) || zeroblob(32) AS BLOB)")
        db.commit()
    with closing(SQLiteCheckpointer(path)) as store:
        report = verify_tree(store, FIRST, anchors=[now])
    assert {("unreadable", "ledger"), ("anchor", "checkpoint_hash")} <= {
        (found.kind, found.field) for found in report.mismatches if not found.thread
    }


@pytest.mark.parametrize("column", ["waiting_since", "head", "updated_at"])
def test_a_list_names_the_thread_whose_row_cannot_be_read(stores: Path, tmp_path: Path, column: str) -> None:
    path = tmp_path / "runs.db"
    shutil.copy(stores / "runs.db", path)
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            f"UPDATE cursor SET {column} = 'eve' WHERE thread = (SELECT key FROM thread WHERE id = 't')"
        )
        db.commit()
    with (
        closing(SQLiteCheckpointer(path)) as store,
        pytest.raises(LogCorrupt, match="row of thread 't'") as bad,
    ):
        store.threads()
    assert "hitl-tui verify t" in bad.value.hint
