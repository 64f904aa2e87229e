"""Who holds a thread and who wants it paused: what a hand on the store can forge decides nothing.

They are in no hash.  At worst a thread looks busy, free or asked to pause; what can't be read of them is an
error in words that says what to delete.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui import GraphRunner, LogCorrupt, ThreadBusy
from hitl_tui.engine.audit.verify import verify_tree
from hitl_tui.engine.thread.session import now_us
from tests.engine.audit.rich import ASKED, HELD, PRESENT, opened
from tests.engine.audit.test_refused import everything, runner
from tests.support.flows import check_log, ledger_of, line
from tests.support.spec import spec

pytestmark = spec("10")

REMOVED = object()
SLOW = pytest.mark.slow


@pytest.fixture(params=["runs.db", pytest.param("runs", marks=SLOW)], ids=["sqlite", "files"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store with a thread `t` that waits for an answer, is held from afar and asked to pause."""
    path = tmp_path / request.param
    if request.param == "runs":
        path.mkdir()
    with closing(opened(path)) as store:
        runner(store).invoke({}, thread_id="t")
        store.acquire("t", HELD, 0)
        store.request_pause("t", ASKED)
    return path


def forge(path: Path, table: str, field: str, value: Any) -> None:
    """Put another value into the lease or the wish to pause; `REMOVED` takes all of it away."""
    if path.is_dir():
        for file in path.glob(f"threads/*/{table}.json"):
            if value is REMOVED:
                file.unlink()
                continue
            text = value.decode("latin-1") if isinstance(value, bytes) else value
            file.write_text(json.dumps({**json.loads(file.read_bytes()), field: text}), "latin-1")
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        if value is REMOVED:
            db.execute(f"DELETE FROM {table}")
        else:
            db.execute(f"UPDATE {table} SET {field} = ?", (value,))


def answer(path: Path) -> None:
    """Approve what the thread waits for, and run on."""
    with closing(opened(path)) as store:
        made = runner(store)
        made.answer("t", made.open("t").cursor.pending[0].id, "approve", step=2, actor="ann")
        made.invoke(thread_id="t")
        assert [entry.actor for entry in ledger_of(store, "t", "answer")] == ["ann"]
        check_log(made, "t")


UNREADABLE = [
    ("lease", "token", b"\xff\x00"),
    *(
        pytest.param("lease", field, b"\xff\x00", marks=SLOW)
        for field in ("user", "host", "boot", "namespace")
    ),
    ("lease", "pid", "soon"),
    *(pytest.param("lease", field, "soon", marks=SLOW) for field in ("process_started", "expires_at")),
    ("pause", "actor", b"\xff\x00"),
    pytest.param("pause", "note", b"\xff\x00", marks=SLOW),
    ("pause", "at", "soon"),
]


@pytest.mark.parametrize(("table", "field", "value"), UNREADABLE)
def test_an_unreadable_lease_is_an_error_that_says_what_to_delete(
    path: Path, table: str, field: str, value: Any
) -> None:
    if path.is_dir() and isinstance(value, bytes):
        value = 17  # JSON holds no bytes
    forge(path, "pause" if table == "lease" else "lease", "", REMOVED)
    forge(path, table, field, value)
    before = everything(path)
    with closing(opened(path)) as store:
        with pytest.raises(LogCorrupt) as refused:
            (store.lease if table == "lease" else store.pause_request)("t")
        assert "delete" in refused.value.hint
        assert [(found.kind, found.field) for found in verify_tree(store, "t").mismatches] == [("row", table)]
        if table == "lease":
            for act in (lambda: answer(path), store.threads, lambda: store.summary("t")):
                with pytest.raises(LogCorrupt):
                    act()
    assert everything(path) == before
    forge(path, table, field, REMOVED)
    answer(path)


@pytest.mark.parametrize("body", [b"[1]", b"\xff\x00", b'[{"request": 1}]'])
def test_an_unreadable_presence_is_an_error_that_says_what_to_delete(path: Path, body: bytes) -> None:
    for table in ("lease", "pause"):
        forge(path, table, "", REMOVED)
    with closing(opened(path)) as store:
        store.attend("t", PRESENT, 0)
    if path.is_dir():
        next(path.glob("threads/*/presence.json")).write_bytes(body)
    else:
        forge(path, "presence", "body", body)
    before = everything(path)
    with closing(opened(path)) as store:
        for look in (lambda: store.attending("t", 0), store.threads):
            with pytest.raises(LogCorrupt) as refused:
                look()
            assert "delete" in refused.value.hint
        assert [found.field for found in verify_tree(store, "t").mismatches] == ["presence"]
    assert everything(path) == before
    forge(path, "presence", "", REMOVED)
    answer(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [("user", "root"), ("pid", 1), ("pid", -1), ("pid", (1 << 63) - 1)],
)
def test_a_forged_lease_makes_a_thread_look_busy_and_no_more(path: Path, field: str, value: Any) -> None:
    forge(path, "lease", field, value)
    before = everything(path)
    with closing(opened(path)) as store:
        held = store.lease("t")
        assert held == msgspec.structs.replace(HELD, **{field: value})
        assert [row.held_by for row in store.threads()] == [f"{held.user} on host afar, process {held.pid}"]
        assert verify_tree(store, "t").ok
    with pytest.raises(ThreadBusy, match="is run by"):
        answer(path)
    assert everything(path) == before
    forge(path, "lease", "", REMOVED)
    answer(path)


def test_a_lease_that_looks_dead_is_taken_over_and_the_decision_is_stored_once(path: Path) -> None:
    forge(path, "lease", "expires_at", -(1 << 62))
    answer(path)


@pytest.mark.parametrize("later", [(1 << 63) - 1, None], ids=["the last moment", "two hours"])
def test_a_lease_with_an_impossible_end_is_ignored_and_reported(path: Path, later: int | None) -> None:
    two_hours = now_us() + 7_200_000_000
    forge(path, "lease", "expires_at", two_hours if later is None else later)
    with closing(opened(path)) as store:
        assert [row.held_by for row in store.threads()] == [None]
        (finding,) = verify_tree(store, "t").mismatches
        assert [name for name, _ in store.doubtful_leases()] == ["t"]
        assert (finding.kind, finding.field, finding.expected, finding.actual) == (
            "row",
            "lease",
            "one that ends within an hour",
            "hal on host afar, process 4711",
        )
    answer(path)
    with closing(opened(path)) as store:
        assert verify_tree(store, "t").ok
        assert not list(store.doubtful_leases())


@pytest.mark.parametrize("value", [REMOVED, "another"], ids=["gone", "another's"])
def test_a_holder_whose_lease_was_changed_can_not_write(path: Path, value: object) -> None:
    forge(path, "lease", "", REMOVED)
    with closing(opened(path)) as store:

        def node(state: Any, _config: Any) -> dict[str, Any]:
            if state["n"]:
                forge(path, "lease", "token", value)
            return {"n": state["n"] + 1}

        made: GraphRunner = line(store, node, node)
        with pytest.raises(ThreadBusy, match="nothing is stored"):
            made.invoke({}, thread_id="u")
        forge(path, "lease", "", REMOVED)
        assert made.get_state("u")["n"] == 1
        assert made.verify("u", strict=True).ok


@pytest.mark.parametrize(("field", "value"), [("actor", "eve"), ("note", None), ("at", 1 << 60)])
def test_a_forged_pause_request_loses_no_decision(path: Path, field: str, value: Any) -> None:
    forge(path, "lease", "", REMOVED)
    forge(path, "pause", field, value)
    with closing(opened(path)) as store:
        assert store.pause_request("t") == msgspec.structs.replace(ASKED, **{field: value})
        assert verify_tree(store, "t").ok
    answer(path)
