"""A store that is deleted while it is open: this is reported, and nothing stored is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.errors import StoreUnusable
from hitl_tui.stores import FileCheckpointer
from tests.stores.log_writer import NOW, Writer
from tests.support.flows import line, say
from tests.support.spec import spec

pytestmark = spec("10")


@pytest.fixture(autouse=True)
def _nothing_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget at the end the leases that could not be given back here."""
    monkeypatch.setattr("hitl_tui.stores.lease._given_back", set())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "runs.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteCheckpointer]:
    store = SQLiteCheckpointer(path)
    line(store, say("one"), say("two")).invoke({}, thread_id="a")
    store.pause_request("a")
    yield store
    store.close()


def run(store: SQLiteCheckpointer, thread: str) -> None:
    line(store, say("one"), say("two")).invoke({}, thread_id=thread)


def check(path: Path, *threads: str) -> None:
    """All of these threads are in the file, whole."""
    found = SQLiteCheckpointer(path)
    assert found.list_threads() == list(threads)
    runner = line(found, say("one"), say("two"))
    for thread in threads:
        assert list(runner.get_state(thread)["log"]) == ["one", "two"]
        assert runner.verify(thread, strict=True).ok
    found.close()


@pytest.mark.parametrize("gone", ["runs.db", "runs.db*", "."], ids=["file", "file and log", "directory"])
def test_a_deleted_store_file_is_reported_and_the_next_run_creates_it_again(
    gone: str, path: Path, store: SQLiteCheckpointer
) -> None:
    for part in path.parent.glob("*" if gone == "." else gone):
        part.unlink()
    if gone == ".":
        path.parent.rmdir()
    with pytest.raises(StoreUnusable, match="no longer exists") as error:
        store.pause_request("a")
    assert "written again" in error.value.hint
    run(store, "b")
    check(path, "a", "b")
    assert path.stat().st_mode & 0o777 == 0o600
    run(store, "c")
    store.close()
    check(path, "a", "b", "c")


def test_a_store_file_that_was_moved_and_restored_is_used_again(
    path: Path, store: SQLiteCheckpointer
) -> None:
    away = path.rename(path.with_name("away.db"))
    with pytest.raises(StoreUnusable):
        store.pause_request("a")
    away.rename(path)
    assert store.pause_request("a") is None
    run(store, "b")
    store.close()
    check(path, "a", "b")


def test_another_file_in_its_place_is_never_written(path: Path, store: SQLiteCheckpointer) -> None:
    away = path.rename(path.with_name("away.db"))
    other = SQLiteCheckpointer(path)
    for attempt in (lambda: store.pause_request("a"), lambda: run(store, "b"), lambda: run(store, "a")):
        with pytest.raises(StoreUnusable, match="another file was put in the place of the store"):
            attempt()
    assert other.list_threads() == []
    other.close()
    away.rename(path)
    run(store, "b")


def test_changes_that_nobody_could_know_to_be_lost_are_written_when_it_is_closed(
    path: Path, store: SQLiteCheckpointer
) -> None:
    run(store, "b")
    path.unlink()
    store.close()
    check(path, "a", "b")


def test_a_file_that_was_deleted_on_purpose_stays_away(path: Path, store: SQLiteCheckpointer) -> None:
    path.unlink()
    store.close()
    store.close()
    assert not path.exists()


@pytest.mark.parametrize("part", ["runs", "runs/threads"])
def test_in_a_directory_that_is_away_no_thread_is_called_unknown(part: str, tmp_path: Path) -> None:
    store = FileCheckpointer(tmp_path / "runs")
    writer = Writer(store)
    writer.step()
    lease = writer.lease
    away = (tmp_path / part).rename(tmp_path / "away")
    for attempt in (
        lambda: store.cursor("t"),
        lambda: store.cursor("never seen"),
        lambda: store.pause_request("t"),
        lambda: store.summary("t"),
        store.threads,
        writer.step,
        lambda: store.renew("t", lease.token, NOW),
        lambda: store.release("t", lease.token),
    ):
        with pytest.raises(StoreUnusable, match="no longer exists"):
            attempt()
    away.rename(tmp_path / part)
    # What could not be given back while the store was away is free all the same.
    store.acquire("t", store.new_lease(NOW), NOW)
    assert store.cursor("never seen") is None
    store.close()
