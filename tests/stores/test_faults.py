"""Rows that belong to no thread, wherever they lie, in a store of any number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hitl_tui.engine.log.threads import Deletion
from hitl_tui.stores import open_store
from hitl_tui.stores.faults import NUMBERED
from hitl_tui.stores.rows import NUMBER
from tests.stores.log_writer import NOW, Writer
from tests.support.spec import spec

pytestmark = spec("12")


@pytest.fixture(params=["sqlite", "postgres"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A store that is tables, with threads of the keys 1 and 3; 2 was deleted."""
    postgres = request.param == "postgres"
    store = open_store(request.getfixturevalue("postgres_url") if postgres else str(tmp_path / "runs.db"))
    for name in "abc":
        writer = Writer(store, name)
        writer.step()
        store.release(name, writer.lease.token)
    gone = store.cursor("b")
    assert gone is not None
    store.delete(Deletion({"b": gone.version}, None, None, NOW, force=True))
    yield store
    store.close()


@pytest.mark.parametrize("row", [-7, (1 << 32) - 1, (2 << 32) + 5, (4 << 32) + 5, (1 << 63) - 1])
def test_a_row_before_between_and_after_all_threads_is_found(tables: Any, row: int) -> None:
    assert list(tables.faults(None)) == []
    tables._rows("INSERT INTO spending (id, body) VALUES (?, ?) RETURNING id", (row, b""))
    assert [(fault.field, fault.number) for fault in tables.faults(None)] == [("spending", row & NUMBER)]


def test_many_threads_are_asked_about_by_as_many_statements_as_few(
    tables: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    run = tables._rows

    def counted(statement: str, *values: Any) -> Any:
        asked.append(statement)
        return run(statement, *values)

    monkeypatch.setattr(tables, "_rows", counted)

    def statements() -> int:
        asked.clear()
        assert list(tables.faults(None)) == []
        return len(asked)

    few = statements()
    assert few >= len(NUMBERED)
    for number in range(20):
        Writer(tables, f"more{number}")
    assert statements() == few
