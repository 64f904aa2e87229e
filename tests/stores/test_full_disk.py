"""A file system that is really full: nothing half-written, and it goes on once there is room."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hitl_tui import Channel, GraphRunner, StateGraph, append
from hitl_tui.engine.log.records import END, START
from hitl_tui.errors import StoreUnusable
from hitl_tui.stores import Checkpointer, FileCheckpointer, SQLiteCheckpointer, open_store
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.support.postgres import Postgres
from tests.support.spec import spec

pytestmark = spec("10")

STEPS = 30


@pytest.fixture(autouse=True)
def _nothing_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget at the end the leases that could not be given back here."""
    monkeypatch.setattr("hitl_tui.stores.lease._given_back", set())


@pytest.fixture
def disk() -> Iterator[Path]:
    """A file system of 8 MB, which root alone can mount.

    It is not below pytest's own directory, which another run of pytest closes to the server's user.
    """
    path = Path(tempfile.mkdtemp(prefix="hitl-tui-disk-", dir="/tmp"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(path)], check=False, capture_output=True
    )
    if mounted.returncode:
        path.rmdir()
        pytest.skip("a file system can't be mounted here")
    try:
        yield path
    finally:
        while _opened:
            _opened.pop().close()
        subprocess.run(["umount", "--lazy", str(path)], check=True)
        path.rmdir()


_opened: list[Checkpointer] = []
"""The stores of the running test."""


def files(disk: Path) -> Checkpointer:
    _opened.append(FileCheckpointer(disk / "runs"))
    return _opened[-1]


def sqlite(disk: Path) -> Checkpointer:
    _opened.append(SQLiteCheckpointer(disk / "runs.db"))
    return _opened[-1]


def runner_on(store: Checkpointer | None) -> GraphRunner:
    return (
        StateGraph({"notes": Channel([], reducer=append()), "n": Channel(0)})
        .add_node("write", lambda state, _config: {"notes": "x" * 3000, "n": state["n"] + 1})
        .add_edge(START, "write")
        .add_conditional_edge(
            "write", lambda state: "end" if state["n"] >= STEPS else "on", {"end": END, "on": "write"}
        )
        .compile(checkpointer=store)
    )


def fill(disk: Path, leave: int) -> Path:
    """Take all space but about `leave` bytes."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            file.truncate(max(0, file.tell() - leave))
    return ballast


@pytest.mark.parametrize("make", [files, sqlite], ids=["files", "sqlite"])
@pytest.mark.parametrize("leave", [0, 8_192, 20_000, 90_000])
def test_a_run_on_a_full_disk_continues_when_there_is_room(
    disk: Path, make: Callable[[Path], Checkpointer], leave: int
) -> None:
    runner = runner_on(make(disk))
    runner.step({"notes": "go"}, thread_id="t")
    ballast = fill(disk, leave)
    with pytest.raises(StoreUnusable, match="no space is left"):
        runner.invoke(thread_id="t", max_iterations=99)

    reading = runner_on(make(disk)) if leave > 8_192 else runner
    cursor = runner.store.cursor("t") if runner.store else None
    assert cursor is not None
    assert reading.verify("t", strict=True).mismatches == ()
    assert reading.get_state("t")["n"] == cursor.head
    assert len(reading.history("t", limit=99)) == cursor.head + 1

    ballast.unlink()
    again = runner_on(make(disk))
    result = again.invoke(thread_id="t", max_iterations=99)
    assert result.status == "completed"
    assert [record.update for record in again.store.records("t", 0, 99) if record.channel == "n"] == list(
        range(1, STEPS + 1)
    )
    assert again.verify("t", strict=True).mismatches == ()


@pytest.mark.parametrize("make", [files, sqlite], ids=["files", "sqlite"])
def test_a_full_disk_takes_no_new_thread_and_no_half_of_one(
    disk: Path, make: Callable[[Path], Checkpointer]
) -> None:
    store = make(disk)
    store.save("t", 0, {"a": 1})
    there = {"a" * 20 + str(step): "x" * 6000 for step in range(30)}
    store.save("big", 0, there)
    lines = list(export_thread(store, "big", private=True))
    ballast = fill(disk, 40_000)
    with pytest.raises(StoreUnusable, match="no space is left"):
        import_thread(store, lines, "again")
    assert store.list_threads() == ["big", "t"]
    assert store.load_latest("big") == (0, there)
    ballast.unlink()
    import_thread(store, lines, "again")
    assert store.load_latest("again") == (0, there)
    assert not [path for path in disk.rglob("*") if path.name.startswith(".new")]


@pytest.mark.parametrize("make", [files, sqlite], ids=["files", "sqlite"])
def test_a_store_can_not_be_created_on_a_full_disk(disk: Path, make: Callable[[Path], Checkpointer]) -> None:
    ballast = fill(disk, 0)
    with pytest.raises(StoreUnusable, match="no space is left"):
        make(disk)
    ballast.unlink()
    make(disk).save("t", 0, {"a": 1})


@pytest.mark.parametrize("make", [files, sqlite], ids=["files", "sqlite"])
def test_after_a_full_disk_the_writer_can_retry_though_its_release_was_not_stored(
    disk: Path, make: Callable[[Path], Checkpointer], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(disk)
    store.save("t", 0, {"a": 1})
    lease = store.new_lease(0)
    store.acquire("t", lease, 0)

    def full(*_: object) -> None:
        raise StoreUnusable("no space is left")

    with monkeypatch.context() as patch:
        if isinstance(store, SQLiteCheckpointer):
            patch.setattr("hitl_tui.stores.sqlite.file.Transaction.__enter__", full)
        else:
            patch.setattr("hitl_tui.stores.files.store.remove_file", full)
        with pytest.raises(StoreUnusable):
            store.release("t", lease.token)
    assert make(disk).acquire("t", store.new_lease(0), 0) is None


@pytest.fixture
def small_url(disk: Path, postgres: Postgres) -> Iterator[str]:
    """The URL of a store whose tables are on a file system of 8 MB."""
    url = postgres.new_url()
    postgres.tablespace("small", disk / "tables")
    yield f"{url}&options=-cdefault_tablespace%3Dsmall"
    postgres.drop(url)
    with postgres.admin() as db:
        db.execute("DROP TABLESPACE small")


@pytest.mark.parametrize("leave", [0, 40_000])
def test_a_run_on_a_server_with_a_full_disk_continues_when_there_is_room(
    disk: Path, small_url: str, leave: int
) -> None:
    runner = runner_on(open_store(small_url))
    runner.step({"notes": "go"}, thread_id="t")
    ballast = fill(disk, leave)
    with pytest.raises(StoreUnusable, match="no space is left on the server"):
        runner.invoke(thread_id="t", max_iterations=99)
    cursor = runner.store.cursor("t") if runner.store else None
    assert cursor is not None
    assert runner.verify("t", strict=True).mismatches == ()
    assert runner.get_state("t")["n"] == cursor.head < STEPS
    ballast.unlink()
    again = runner_on(open_store(small_url))
    assert again.invoke(thread_id="t", max_iterations=99).status == "completed"
    assert [record.update for record in again.store.records("t", 0, 99) if record.channel == "n"] == list(
        range(1, STEPS + 1)
    )
    assert again.verify("t", strict=True).mismatches == ()
    for made in (runner, again):
        assert made.store is not None
        made.store.close()


@pytest.fixture
def shared(disk: Path) -> Iterator[Path]:
    """A store that another process has open, so that its files beside it are there."""
    path = disk / "runs.db"
    program = (
        "import sys; from hitl_tui.stores import SQLiteCheckpointer as S; s = S(sys.argv[1]); "
        "s.save('theirs', 0, {'a': 1}); print(flush=True); input()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program, str(path)], **pipes) as other:  # type: ignore[call-overload]
        assert other.stdout.readline()
        yield path
        other.communicate(b"\n")


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 2], ids=["one store", "three stores"])
def test_a_file_that_could_be_opened_for_reading_alone_is_written_once_it_can_be(
    shared: Path, others: int
) -> None:
    beside = f"{shared}-shm"
    subprocess.run(["mount", "--bind", beside, beside], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", beside], check=True)
        store, *rest = (sqlite(shared.parent) for _ in range(others + 1))
        for _ in range(2):
            with pytest.raises(StoreUnusable, match="read-only"):
                store.save("t", 0, {"a": 1})
            assert store.load_latest("theirs") == (0, {"a": 1})
    finally:
        subprocess.run(["umount", "--lazy", beside], check=True)
    store.save("t", 0, {"a": 1})
    for place, other in enumerate(rest):
        assert other.load_latest("t") == (0, {"a": 1})
        other.save(f"t{place}", 0, {"a": 1})
    assert sorted(store.list_threads()) == sorted(["t", "theirs", *(f"t{place}" for place in range(others))])


@pytest.mark.slow
def test_a_closed_store_is_not_opened_again_by_another_one(shared: Path) -> None:
    store, closed = sqlite(shared.parent), sqlite(shared.parent)
    closed.close()
    assert isinstance(store, SQLiteCheckpointer)
    store._opened_again().close()
    with pytest.raises(StoreUnusable, match="closed"):
        closed.save("t", 0, {"a": 1})


@pytest.mark.parametrize("leave", [0, 16_384])
def test_a_disk_that_is_full_at_the_first_write_is_said_to_be_full(disk: Path, leave: int) -> None:
    store = sqlite(disk)
    ballast = fill(disk, leave)
    for _ in range(2):
        with pytest.raises(StoreUnusable, match="no space is left"):
            store.save("t", 0, {"a": 1})
    ballast.unlink()
    store.save("t", 0, {"a": 1})
