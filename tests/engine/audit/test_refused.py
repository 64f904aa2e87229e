"""What was changed in a store is refused in words before anybody acts on it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hitl_tui import Gate, GateChoice, GraphRunner, LogCorrupt
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.state.canonical import show_hash
from hitl_tui.engine.thread.hashes import pending_hash
from hitl_tui.stores import Checkpointer, rows
from hitl_tui.stores.files import json
from tests.engine.audit.rich import opened
from tests.support.flows import review_loop
from tests.support.spec import spec

pytestmark = spec("12")

GATE = Gate("check", "publish it?", [GateChoice("approve", "ok", values={"verdict": "approved"})])


def runner(store: Checkpointer) -> GraphRunner:
    return review_loop(store, interrupt_after=[GATE])


@pytest.fixture(params=["runs.db", pytest.param("runs", marks=pytest.mark.slow)], ids=["sqlite", "files"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store with a thread `t` that waits for an answer, after an edit by ann."""
    path = tmp_path / request.param
    if request.param == "runs":
        path.mkdir()
    with closing(opened(path)) as store:
        runner(store).invoke({}, thread_id="t")
        runner(store).update_state("t", {"draft": "better"}, actor="ann", note="clearer")
    return path


def everything(path: Path) -> dict[Any, Any]:
    """All rows or all files of a store."""
    if path.is_dir():
        return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    with closing(sqlite3.connect(path)) as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in names}


def forge(path: Path, table: str, file: str, old: str, new: str) -> None:
    """Put other words into a table, or into a file of the thread."""
    if path.is_dir():
        (place,) = path.glob(f"threads/*/{file}")
        whole = place.read_text()
        place.write_text(whole.replace(old, new))
        assert place.read_text() != whole
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.text_factory = bytes
        columns = [row[1].decode() for row in db.execute(f"PRAGMA table_info({table})")]
        before = everything(path)
        for column in columns:
            for kind in ("text", "blob"):
                put = f"CAST(replace(CAST({column} AS TEXT), ?, ?) AS {kind})"
                where = f"typeof({column}) = ? AND instr(CAST({column} AS TEXT), ?)"
                db.execute(f"UPDATE {table} SET {column} = {put} WHERE {where}", (old, new, kind, old))
    assert everything(path) != before


def swap_request(path: Path) -> None:
    """Another title on the request, with a cursor whose own digest fits again."""
    with closing(opened(path)) as store:
        info, cursor = store.info("t"), store.cursor("t")
    assert info is not None
    assert isinstance(cursor, Cursor)
    cursor = replace(cursor, pending=(replace(cursor.pending[0], title="have lunch?"),))
    if path.is_dir():
        (place,) = path.glob("threads/*/cursor.json")
        place.write_bytes(json.cursor_file(cursor, "ann", info.facts_hash))
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        body, digest = rows.cursor_row(cursor, info.facts_hash, "ann")[-2:]
        db.execute("UPDATE cursor SET body = ?, digest = ?", (body, digest))


def swap_what_was_decided_about(path: Path) -> None:
    """Another title on the request, and the newest decision about it names the hash of that."""
    with closing(opened(path)) as store:
        cursor, newest = store.cursor("t"), store.ledger("t")[-1]
    assert isinstance(cursor, Cursor)
    asked = pending_hash(replace(cursor.pending[0], title="have lunch?"))
    swap_request(path)
    if path.is_dir():
        forge(
            path, "ledger", f"decisions/{newest.n:08}.json", show_hash(newest.pending_hash), show_hash(asked)
        )
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE ledger SET pending_hash = ? WHERE pending_hash = ?", (asked, newest.pending_hash))


CHANGES: dict[str, Callable[[Path], None]] = {
    "the title of what is asked": lambda path: forge(path, "cursor", "cursor.json", "publish", "discard"),
    "the title, with a digest that fits": swap_request,
    "the title, with a decision that fits": swap_what_was_decided_about,
    "who made the newest step": lambda path: forge(path, "checkpoint", "steps/00000003.json", "ann", "eve"),
    "why": lambda path: forge(path, "checkpoint", "steps/00000003.json", "clearer", "shorter"),
    "the graph that it runs": lambda path: forge(path, "thread", "info.json", "review", "rebuke"),
}
ACTS: dict[str, Callable[[GraphRunner, str], object]] = {
    "opening the card": lambda made, _request: made.open("t"),
    "answering": lambda made, request: made.answer("t", request, "approve", step=3, actor="ann"),
    "resuming": lambda made, _request: made.invoke(thread_id="t"),
    "editing": lambda made, _request: made.update_state("t", {"draft": "mine"}, actor="ann"),
    "forking": lambda made, _request: made.fork("t", 1, "u", actor="ann"),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_thread_that_was_changed_in_its_store_is_refused_and_nothing_is_written(
    path: Path, change: str, act: str
) -> None:
    with closing(opened(path)) as store:
        request = runner(store).open("t").cursor.pending[0].id
    CHANGES[change](path)
    before = everything(path)
    with closing(opened(path)) as store, pytest.raises(LogCorrupt) as refused:
        ACTS[act](runner(store), request)
    assert "'t'" in refused.value.message or str(path) in refused.value.message
    assert "backup" in refused.value.hint
    assert everything(path) == before


@pytest.mark.parametrize("act", ACTS)
def test_a_thread_that_nobody_changed_is_not_refused(path: Path, act: str) -> None:
    with closing(opened(path)) as store:
        made = runner(store)
        ACTS[act](made, made.open("t").cursor.pending[0].id)
        assert made.verify("t", strict=True).ok
