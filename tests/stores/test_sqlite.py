"""What only the SQLite store promises: its file, its errors, whole commits."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui.engine.log.records import Commit, Cursor, Status
from hitl_tui.engine.log.threads import ThreadSummary
from hitl_tui.errors import HitlError, LogCorrupt, StoreUnusable, ValueRejected
from hitl_tui.stores import SQLiteCheckpointer, rows
from hitl_tui.stores.lineage import ImportedThread
from hitl_tui.stores.sqlite import file, schema
from hitl_tui.stores.sqlite.file import translate
from tests.stores.log_writer import Writer, entry, info
from tests.stores.processes import process, read_line
from tests.support.spec import spec

pytestmark = spec("10")


def run_sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestFile:
    def test_is_for_its_owner_alone_with_all_that_belongs_to_it(self, tmp_path: Path) -> None:
        path = tmp_path / "new" / "deep" / "runs.db"
        umask = os.umask(0)
        try:
            with closing(SQLiteCheckpointer(path)) as store:
                Writer(store).step()
                files = sorted(path.parent.iterdir())
                assert [file.name for file in files] == ["runs.db", "runs.db-shm", "runs.db-wal"]
                assert {mode(file) for file in files} == {0o600}
                assert {mode(path.parent), mode(path.parent.parent)} == {0o700}
        finally:
            os.umask(umask)

    def test_takes_an_empty_file_and_closes_it_to_others(self, path: Path) -> None:
        path.touch(0o644)
        with closing(SQLiteCheckpointer(path)) as store:
            Writer(store).step()
        assert mode(path) == 0o600

    def test_what_was_given_to_a_group_stays_the_groups_with_all_that_belongs_to_it(self, path: Path) -> None:
        SQLiteCheckpointer(path).close()
        path.chmod(0o660)
        with closing(SQLiteCheckpointer(path)) as store:
            Writer(store).step()
            assert [(file.name, mode(file)) for file in sorted(path.parent.glob("runs.db*"))] == [
                ("runs.db", 0o660), ("runs.db-shm", 0o660), ("runs.db-wal", 0o660),
            ]  # fmt: skip

    @pytest.mark.parametrize("name", ["a b.db", "ünï%20?mode=ro#x", ":memory:", "file:x", "\udcff.db"])
    def test_has_the_name_it_was_given(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with closing(SQLiteCheckpointer(name)) as store:
            Writer(store).step()
        assert [file.name for file in tmp_path.iterdir()] == [name]

    def test_the_file_is_unchanged_after_reopening(self, path: Path) -> None:
        with closing(SQLiteCheckpointer(path)) as store:
            commit = Writer(store).step({"plan": {"go": True}}, ledger=(), snapshot=b"s")
        with closing(SQLiteCheckpointer(path)) as store:
            assert store.cursor("t") == commit.cursor
            assert tuple(store.records("t", 0, 0)) == commit.records
            assert store.snapshot("t", 0) == (0, b"s")

    @pytest.mark.slow
    def test_stays_small(self, path: Path) -> None:
        with closing(SQLiteCheckpointer(path)) as store:
            writer = Writer(store)
            for step in range(1000):
                writer.step({"entries": "x" * 200, "counter": step})
        assert path.stat().st_size <= 1000 * 980


def text_file(path: Path) -> None:
    path.write_text("title: not a store\n" * 50)


def database_of_another_program(path: Path) -> None:
    run_sql(path, "CREATE TABLE cookies (name)", "INSERT INTO cookies VALUES ('mine')")


def empty_database_of_another_program(path: Path) -> None:
    run_sql(path, "PRAGMA user_version = 1", "PRAGMA journal_mode = WAL")


def looks(path: Path) -> tuple[object, ...]:
    """All of a file that must stay as it is, and what lies beside it."""
    facts = path.stat()
    content = path.read_bytes() if path.is_file() else b""
    return facts.st_mtime_ns, facts.st_mode, content, sorted(path.parent.iterdir())


class TestNotOurs:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (text_file, "not an SQLite file"),
            (database_of_another_program, "another program"),
            (empty_database_of_another_program, "another program"),
            (Path.mkdir, "not a file"),
            (os.mkfifo, "not a file"),
        ],
        ids=["text", "database", "empty database", "directory", "pipe"],
    )
    def test_is_refused_and_not_touched(
        self, path: Path, make: Callable[[Path], object], message: str
    ) -> None:
        make(path)
        before = looks(path)
        with pytest.raises(StoreUnusable, match=message) as caught:
            SQLiteCheckpointer(path)
        assert str(path) in caught.value.message
        assert looks(path) == before

    def test_a_store_of_a_newer_version_is_refused(self, path: Path) -> None:
        SQLiteCheckpointer(path).close()
        run_sql(path, f"PRAGMA user_version = {schema.VERSION + 1}")
        with pytest.raises(StoreUnusable, match="newer hitl-tui") as caught:
            SQLiteCheckpointer(path)
        assert "upgrade" in caught.value.hint

    @pytest.mark.parametrize("name", ["file/below.db", "\x00", "x" * 300])
    def test_an_impossible_path_is_refused(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StoreUnusable, match="can't be opened"):
            SQLiteCheckpointer(tmp_path / name)


class TestDamage:
    def filled(self, path: Path) -> None:
        with closing(SQLiteCheckpointer(path)) as store:
            writer = Writer(store)
            for _ in range(50):
                writer.step({"messages": "x" * 500})

    def read_all(self, path: Path) -> None:
        with closing(SQLiteCheckpointer(path)) as store:
            store.threads()
            store.cursor("t")
            store.checkpoints("t", None, 99)
            list(store.records("t", 0, 99))

    @pytest.mark.parametrize("size", [50, 4096, 20_000])
    def test_a_truncated_store_is_called_damaged(self, path: Path, size: int) -> None:
        self.filled(path)
        os.truncate(path, size)
        with pytest.raises(LogCorrupt, match="damaged") as caught:
            self.read_all(path)
        assert str(path) in caught.value.message
        assert "backup" in caught.value.hint

    def test_overwritten_pages_are_called_damaged(self, path: Path) -> None:
        self.filled(path)
        content = bytearray(path.read_bytes())
        content[4096:] = b"\xa5" * (len(content) - 4096)
        path.write_bytes(content)
        with pytest.raises(LogCorrupt, match="damaged"):
            self.read_all(path)

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE record SET change = '{' WHERE step = 3",
            "UPDATE record SET flags = 7 WHERE step = 3",
            "UPDATE record SET node = CAST(x'ff' AS TEXT) WHERE step = 3",
            "UPDATE cursor SET body = '{\"version\": []}'",
            "UPDATE thread SET source = 'x'",
            "DROP TABLE record",
        ],
        ids=["json", "flags", "text", "cursor", "thread", "table"],
    )
    def test_rows_that_make_no_sense_are_errors_of_ours(self, path: Path, statement: str) -> None:
        self.filled(path)
        run_sql(path, statement)
        with pytest.raises(HitlError, match=r"runs\.db"):
            self.read_all(path)


class TestNoRoom:
    def test_a_full_store_keeps_its_data_and_continues_when_there_is_room(
        self, sqlite: SQLiteCheckpointer
    ) -> None:
        writer = Writer(sqlite)
        first = writer.step()
        with self.pragma(sqlite, "max_page_count", 1):
            with pytest.raises(StoreUnusable, match="no space"):
                writer.step({"messages": "x" * 100_000})
            assert sqlite.cursor("t") == first.cursor
            assert tuple(sqlite.records("t", 0, 9)) == first.records
        writer.step({"messages": "x" * 100_000})
        assert [point.step for point in sqlite.checkpoints("t", None, 9)] == [1, 0]

    def test_a_read_only_store_says_so(self, sqlite: SQLiteCheckpointer) -> None:
        writer = Writer(sqlite)
        with self.pragma(sqlite, "query_only", 1), pytest.raises(StoreUnusable, match="read-only"):
            writer.step()
        writer.step()

    def test_a_file_we_may_not_write_is_read(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with closing(SQLiteCheckpointer(path)) as store:
            Writer(store).step()
            assert not store.why_read_only
        # Root may write anything, so what the system would say to others is said here.
        monkeypatch.setattr(os, "access", lambda _path, wanted: wanted != os.W_OK)
        with closing(SQLiteCheckpointer(path)) as store:
            assert [row.info.thread_id for row in store.threads()] == ["t"]
            assert "read-only" in store.why_read_only
            with pytest.raises(StoreUnusable, match="read-only"):
                store.acquire("t", store.new_lease(0), 0)
        path.with_name(f"{path.name}-wal").write_bytes(b"what was written last")
        with pytest.raises(StoreUnusable, match="copy both files"):
            SQLiteCheckpointer(path)

    def test_a_file_system_without_locks_is_named(
        self, path: Path, sqlite: SQLiteCheckpointer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        busy = sqlite3.OperationalError("database is locked")
        busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
        assert "stayed locked by another program" in translate(busy, path).message

        def lock(*_: object) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(fcntl, "lockf", lock)
        assert "has no locks" in translate(busy, path).message

    @contextmanager
    def pragma(self, store: SQLiteCheckpointer, name: str, value: int) -> Iterator[None]:
        (was,) = store._db.execute(f"PRAGMA {name}").fetchone()
        store._db.execute(f"PRAGMA {name} = {value}").fetchall()
        yield
        store._db.execute(f"PRAGMA {name} = {was}").fetchall()


class TestWriting:
    def test_a_store_locked_for_too_long_says_so(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(file, "BUSY_SECONDS", 0.01)
        with closing(SQLiteCheckpointer(path)) as store, closing(sqlite3.connect(path)) as other:
            writer = Writer(store)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnusable, match="locked"):
                writer.step()
            other.rollback()
            writer.step()
            assert writer.cursor.head == 0

    def test_an_error_in_the_middle_of_a_commit_leaves_nothing_of_it(
        self, sqlite: SQLiteCheckpointer
    ) -> None:
        writer = Writer(sqlite)
        first = writer.step()
        broken = msgspec.structs.replace(entry(writer.cursor), data=object())
        with pytest.raises(TypeError):
            writer.step(ledger=(broken,))
        assert sqlite.cursor("t") == first.cursor
        assert list(sqlite.records("t", 1, 9)) == []
        writer.step()

    @pytest.mark.parametrize("change", [{"actor": "\ud800"}, {"text": "\udc80 draft"}, {"note": "\udfff"}])
    def test_text_that_no_file_can_hold_is_refused(
        self, sqlite: SQLiteCheckpointer, change: dict[str, Any]
    ) -> None:
        writer = Writer(sqlite)
        with pytest.raises(ValueRejected, match="surrogate"):
            writer.step(point=change)
        assert writer.step().cursor.version == 1

    def test_a_closed_store_says_so(self, path: Path) -> None:
        store = SQLiteCheckpointer(path)
        writer = Writer(store)
        commit = writer.commit_of({})
        store.close()
        store.close()
        with pytest.raises(StoreUnusable, match="closed"):
            store.commit("t", commit)
        with pytest.raises(StoreUnusable, match="closed"):
            store.threads()


def test_a_store_that_could_be_opened_for_reading_alone_at_first_is_written_when_it_can_be(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite opens a file for reading where it fails to open it for writing, whatever the trouble was."""
    SQLiteCheckpointer(path).close()
    connect = sqlite3.connect

    def in_trouble(place: str, **options: Any) -> sqlite3.Connection:
        return connect(place.replace("mode=rw", "mode=ro"), **options)

    with monkeypatch.context() as trouble:
        trouble.setattr(sqlite3, "connect", in_trouble)
        store = SQLiteCheckpointer(path)
        with pytest.raises(StoreUnusable, match="read-only"):
            Writer(store)
    Writer(store).step()
    assert [row.info.thread_id for row in store.threads()] == ["t"]
    store.close()


@pytest.mark.integration
def test_opening_a_store_twice_in_a_process_keeps_others_from_taking_its_log_away(path: Path) -> None:
    """A process that closes any handle of a file gives up all its locks on that file."""
    first = SQLiteCheckpointer(path)
    Writer(first, "before").step()
    SQLiteCheckpointer(path).close()
    with process("with_it = SQLiteCheckpointer(sys.argv[1]); with_it.close(); say('closed')", path) as other:
        assert read_line(other) == "closed"
        other.wait()
    Writer(first).step()
    with process("say(SQLiteCheckpointer(sys.argv[1]).list_threads())", path) as other:
        assert read_line(other) == "['before', 't']"
    first.close()


@pytest.mark.slow
def test_a_page_of_a_list_costs_the_same_among_many_threads_as_among_few(path: Path) -> None:
    def many(first: int, count: int) -> Iterator[ImportedThread]:
        for number in range(first, first + count):
            name, moment = f"thread-{number:05}", number << rows.TOUCHED_SHIFT
            status: Status = "running" if number < 5 else "waiting" if number % 5 == 0 else "completed"
            cursor = Cursor(name, status=status, updated_at=moment)
            yield ImportedThread(
                msgspec.structs.replace(info(name), created_at=moment), (), [Commit(cursor, 0, "")]
            )

    def instructions(look: Callable[[], list[ThreadSummary]]) -> int:
        ticks = [0]
        store._db.set_progress_handler(lambda: ticks.__setitem__(0, ticks[0] + 1), 1)
        try:
            assert len(look()) == 20
        finally:
            store._db.set_progress_handler(None, 0)
        return ticks[0]

    with closing(SQLiteCheckpointer(path)) as store:
        costs: list[list[int]] = []
        for first, count in ((0, 200), (200, 3000)):
            store.write_threads(many(first, count))
            looks = []
            for within, waits in product((None, ""), (False, True)):
                page = store.threads("", 20, None, within, waiting=waits)
                looks += [
                    partial(store.threads, "", 20, last, within, waiting=waits) for last in (None, page[-1])
                ]
            costs.append([instructions(look) for look in looks])
    few, lots = costs
    assert all(more < 1.2 * less for less, more in zip(few, lots, strict=True)), costs
