"""Data nested deeper than any value may be is reported as damage, wherever it is stored."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import LogCorrupt
from hitl_tui.engine.audit.verify import verify_tree
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.engine.audit.rich import fill, opened, runner
from tests.support.spec import spec

pytestmark = spec("12")

LEVELS = 900
LISTS_OR_OBJECTS = pytest.mark.parametrize(
    "deep",
    [
        pytest.param("[" * LEVELS + "]" * LEVELS, id="lists"),
        pytest.param('{"a":' * LEVELS + "1" + "}" * LEVELS, id="objects", marks=pytest.mark.slow),
    ],
)
ROWS = {
    "an update": ("record", "change", "%s"),
    "what a reducer of a user made": ("record", "result", "%s"),
    "a decision": ("ledger", "data", "%s"),
    "what undoes a step": ("checkpoint", "compensations", '[{"handler":"h","args":%s}]'),
    "a call of a tool": ("checkpoint", "calls", '[{"agent":"a","tool":"t","arguments":%s}]'),
    "where a thread stands": ("cursor", "body", '{"thread_id":"waits","goal":%s}'),
    "what its graph is built from": ("thread", "source", '{"options":%s}'),
}
# By file: what is nested in it, behind a name.
FILES = {
    "an update": ("steps/*1.json", '"update": "a page"'),
    "what undoes a step": ("steps/*1.json", '"rate": 0.5'),
    "a decision": ("decisions/*.json", '"answer": "approve"'),
    "where a thread stands": ("cursor.json", '"goal": "a report"'),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite store and a files store, each with threads of every kind."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "runs").mkdir()
    for name in ("runs.db", "runs"):
        with closing(opened(folder / name)) as store:
            fill(store)
    return folder


def nested(text: str, named: str, deep: str) -> str:
    """A text with a deep value behind a name instead of the one that is there."""
    return text.replace(named, f"{named.partition(':')[0]}: {deep}")


def assert_reported(path: Path) -> None:
    """A check finds it or says that nothing can be read; whoever acts on the thread is refused."""
    with closing(opened(path)) as store:
        messages: list[str] = []
        try:
            messages = [str(mismatch.actual) for mismatch in verify_tree(store, "waits").mismatches]
        except LogCorrupt as error:
            messages = [error.message]
        assert any("nested deeper" in words for words in messages)
        with pytest.raises(LogCorrupt, match=r"nested deeper|not what was written"):
            store.ledger("waits"), store.records("waits", 0, 9), runner(store).open("waits")


@LISTS_OR_OBJECTS
@pytest.mark.parametrize("place", ROWS)
def test_in_a_row(tmp_path: Path, whole: Path, place: str, deep: str) -> None:
    table, column, form = ROWS[place]
    path = Path(shutil.copy(whole / "runs.db", tmp_path))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        assert db.execute(f"UPDATE {table} SET {column} = ?", ((form % deep).encode(),)).rowcount > 0
    assert_reported(path)


@LISTS_OR_OBJECTS
@pytest.mark.parametrize("place", FILES)
def test_in_a_file(tmp_path: Path, whole: Path, place: str, deep: str) -> None:
    pattern, named = FILES[place]
    path = Path(shutil.copytree(whole / "runs", tmp_path / "runs"))
    files = [file for file in path.glob(f"threads/waits-*/{pattern}") if named in file.read_text()]
    for file in files:
        file.write_text(nested(file.read_text(), named, deep))
    assert files
    assert_reported(path)


@LISTS_OR_OBJECTS
@pytest.mark.parametrize("place", FILES)
def test_in_a_file_that_is_imported(tmp_path: Path, whole: Path, place: str, deep: str) -> None:
    named = FILES[place][1].replace(" ", "", 1)
    with closing(opened(whole / "runs.db")) as store:
        lines = [line.decode() for line in export_thread(store, "waits", private=True)]
    assert any(named in line for line in lines)
    with closing(opened(tmp_path / "new.db")) as store:
        with pytest.raises(LogCorrupt, match="nested deeper"):
            import_thread(store, [nested(line, named, deep).encode() for line in lines])
        assert store.threads() == []
