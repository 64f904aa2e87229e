"""Taint follows from the records; `verify` tells where it does not."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hitl_tui import Channel, MemoryCheckpointer, SQLiteCheckpointer
from hitl_tui.engine.audit.tracing import TaintFinding, TaintTrace
from hitl_tui.engine.log.records import UpdateRecord
from hitl_tui.engine.log.taint import Lineage
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.engine.building import chain
from tests.support.spec import spec

pytestmark = [spec("8"), spec("12")]

CHANNELS = {"page": Channel(None), "other": Channel(None), "out": Channel(None)}


def run(store: Checkpointer) -> GraphRunner:
    """Step 1 taints page, 2 reads it and other, 3 edits it, 4 declassifies it, 5 writes it again."""
    nodes = [
        lambda state, config: config.taint("web") or {"page": 1, "other": 1},
        lambda state, config: {"out": [state["page"], state["other"]]},
        lambda state, config: {"page": 2},
    ]
    runner = chain(CHANNELS, *nodes).compile(checkpointer=store, interrupt_before=["n3"])
    runner.invoke(thread_id="t", on_event=lambda event: None)
    runner.update_state("t", {"page": "mine"}, actor="ann")
    runner.declassify("t", "page", actor="ann", reason="I wrote it")
    runner.invoke(thread_id="t")
    return runner


def test_a_tainted_thread_is_whole_also_when_carried(tmp_path: Path) -> None:
    store, other = MemoryCheckpointer(), SQLiteCheckpointer(tmp_path / "runs.db")
    runner = run(store)
    import_thread(other, export_thread(store, "t"))
    runner.fork("t", 2, "f")
    assert runner.verify("t", strict=True).mismatches == ()
    assert runner.verify("f", strict=True).mismatches == ()
    carried = runner.with_store(other)
    assert carried.verify("t", strict=True).mismatches == ()
    assert carried.open("t").state.taint == runner.open("t").state.taint
    assert [one.lineage for one in other.records("t", 0, 9)] == [
        one.lineage for one in store.records("t", 0, 9)
    ]


def followed(step: int, change: Callable[[UpdateRecord], UpdateRecord]) -> list[TaintFinding]:
    """What is found once each record of a step is changed, its hashes notwithstanding."""
    store = MemoryCheckpointer()
    run(store)
    trace, found = TaintTrace(), []
    for at in range(6):
        records: Sequence[UpdateRecord] = list(store.records("t", at, at))
        point = store.checkpoint("t", at)
        assert point
        found += trace.follow(point, [change(one) for one in records] if at == step else records, True)
    return found


LIES: dict[str, tuple[int, dict[str, Any], list[str]]] = {
    "a record of an external node that is not tainted": (1, {"tainted": False}, ["tainted"] * 2),
    "a record of a reader that is not tainted": (2, {"tainted": False}, ["tainted"]),
    "a reader without its lineage": (2, {"lineage": None}, ["tainted", "lineage", "tainted"]),
    "a reader that names not all it read": (2, {"lineage": Lineage(2, "n2", (), ("page",))}, ["lineage"]),
    "a lineage from a clean channel": (
        5,
        {"lineage": Lineage(5, "n3", (), ("page",))},
        ["tainted", "lineage"],
    ),
    "an edit that clears by itself": (3, {"tainted": False}, ["tainted"]),
    "a declassified channel that stays tainted": (4, {"tainted": True}, ["tainted"]),
    "a declassification that changes the value": (4, {"next_hash": b"x" * 32}, ["next_hash"]),
    "a clean record that says it is tainted": (5, {"tainted": True}, ["tainted"]),
}


@pytest.mark.parametrize(("step", "lie", "fields"), LIES.values(), ids=LIES)
def test_taint_that_does_not_follow_is_reported(step: int, lie: dict[str, Any], fields: list[str]) -> None:
    found = followed(step, lambda record: replace(record, **lie))
    assert [one.field for one in found][: len(fields)] == fields


def test_taint_that_follows_is_not_reported() -> None:
    assert followed(0, lambda record: record) == []


@pytest.mark.parametrize(
    ("change", "kind", "step"),
    [
        ("UPDATE checkpoint SET tainted = NULL WHERE id & 255 = 2", "taint", 2),
        (
            "UPDATE checkpoint SET tainted = CAST(replace(tainted, 'web', 'ann') AS BLOB) WHERE id & 255 = 1",
            "taint",
            1,
        ),
        ("UPDATE record SET lineage = NULL WHERE step = 2", "record", 2),
        ("UPDATE record SET flags = flags & ~32 WHERE step = 3", "record", 3),
    ],
    ids=["a checkpoint's taint gone", "another source", "a lineage gone", "a record's taint gone"],
)
def test_a_change_in_the_store_is_reported_once(tmp_path: Path, change: str, kind: str, step: int) -> None:
    with closing(SQLiteCheckpointer(tmp_path / "runs.db")) as store:
        run(store)
    with closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as db:
        assert db.execute(change).rowcount == 1
    with closing(SQLiteCheckpointer(tmp_path / "runs.db")) as store:
        report = chain(CHANNELS, lambda state: None).compile(checkpointer=store).verify("t")
        assert [(one.kind, one.step) for one in report.mismatches][:1] == [(kind, step)]
