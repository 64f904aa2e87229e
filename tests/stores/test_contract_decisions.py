"""What every store must do with the decisions of all its threads."""

from __future__ import annotations

import pytest

from hitl_tui.stores import Checkpointer, tables
from tests.stores.log_writer import NOW, Writer, entry
from tests.support.spec import spec

pytestmark = spec("10")


def decide(writer: Writer, at: int, kind: str = "answer", actor: str | None = "ann") -> None:
    """Write one entry of the ledger, with a step."""
    writer.step(ledger=(entry(writer.cursor, kind, at=NOW + at, actor=actor),), updated_at=NOW + at)


def places(store: Checkpointer) -> list[tuple[str, int, int, str | None]]:
    return [(place.thread_id, place.n, place.at - NOW, place.actor) for place in store.decisions()]


def test_decisions_of_all_threads_come_newest_first(store: Checkpointer) -> None:
    assert places(store) == []
    first, second = Writer(store, "a"), Writer(store, "b")
    decide(first, 10)
    decide(second, 20, actor="bob")
    decide(second, 25, "request", None)
    decide(first, 30, "update_state", None)
    decide(first, 40, "note")
    assert places(store) == [("a", 2, 30, None), ("b", 1, 20, "bob"), ("a", 1, 10, "ann")]


def test_a_fork_adds_only_its_own_decisions(writer: Writer) -> None:
    decide(writer, 10)
    writer.step()
    decide(writer.fork(1, "f"), 20)
    assert places(writer.store) == [("f", 2, 20, "ann"), ("t", 1, 10, "ann")]


def test_they_are_read_a_page_at_a_time(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    for at in (10, 10, 20, 20, 20):
        decide(writer, at)
    whole = places(writer.store)
    monkeypatch.setattr(tables, "_DECISIONS", tables._DECISIONS.replace("LIMIT 512", "LIMIT 2"))
    assert places(writer.store) == whole == [("t", n, 10 if n < 3 else 20, "ann") for n in (5, 4, 3, 2, 1)]


def test_the_first_page_needs_no_look_at_other_entries(writer: Writer) -> None:
    """It is read through an index that only decisions are in."""
    store = writer.store
    if not isinstance(store, tables.TableStore) or store.login:
        pytest.skip("the store has no plan of a statement to show")
    plan = store._rows(f"EXPLAIN QUERY PLAN {tables._DECISIONS}", (NOW, NOW, NOW))
    assert any("ledger_decided" in str(row[-1]) for row in plan)
    assert not any("SCAN" in str(row[-1]) or "TEMP B-TREE" in str(row[-1]) for row in plan)
