"""Lists of threads as they are nested: what ran inside what, in any store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hitl_tui.engine.log.records import Commit, Cursor
from hitl_tui.engine.log.threads import Owner, ThreadInfo
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.lineage import ImportedThread
from tests.support.spec import spec

pytestmark = spec("7")


def carried(name: str, at: int, owner: str = "") -> ImportedThread:
    info = ThreadInfo(name, "g", "", {}, None, -1, 0, at, None, Owner(owner, "team") if owner else None)
    return ImportedThread(info, (), [Commit(Cursor(name, updated_at=at), 0, "")])


def some() -> Iterator[ImportedThread]:
    yield carried("old", 1)
    yield carried("old/own", 2)
    yield carried("trip", 3)
    yield carried("trip/team#2", 9, "trip")
    yield carried("trip/team#1", 8, "trip")
    yield carried("trip/team#1/desk#1", 10, "trip/team#1")
    yield carried("lost/team#1", 5, "lost")
    yield carried("trip2", 6)


@pytest.fixture
def nested(store: Checkpointer) -> Checkpointer:
    store.write_threads(some())
    return store


def listed(store: Checkpointer, within: str | None, **page: Any) -> list[tuple[str, int | None]]:
    return [(one.info.thread_id, one.inside) for one in store.threads(within=within, **page)]


def test_at_the_top_are_those_that_ran_inside_none_of_this_store_newest_first(nested: Checkpointer) -> None:
    top = [("trip2", 0), ("lost/team#1", 0), ("trip", 2), ("old/own", 0), ("old", 0)]
    assert listed(nested, "") == top
    first = nested.threads(within="")[0]
    assert listed(nested, "", limit=2, after=first) == top[1:3]
    assert [one.info.thread_id for one in nested.threads("RIP", within="")] == ["trip2", "trip"]


def test_inside_a_thread_are_those_it_began_oldest_first(nested: Checkpointer) -> None:
    assert listed(nested, "trip") == [("trip/team#1", 1), ("trip/team#2", 0)]
    first = nested.threads(within="trip")[0]
    assert listed(nested, "trip", limit=1, after=first) == [("trip/team#2", 0)]
    assert listed(nested, "trip/team#1") == [("trip/team#1/desk#1", 0)]
    assert [one.info.thread_id for one in nested.threads("#2", within="trip")] == ["trip/team#2"]
    assert listed(nested, "lost") == [("lost/team#1", 0)]
    for none in ("old", "trip2", "no such"):
        assert listed(nested, none) == []


def test_a_list_of_all_is_flat_and_counts_nothing(nested: Checkpointer) -> None:
    assert len(listed(nested, None)) == 8
    assert {count for _, count in listed(nested, None)} == {None}
