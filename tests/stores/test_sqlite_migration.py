"""An older SQLite store is brought up to the newest tables, whole or not at all."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui.errors import StoreUnusable
from hitl_tui.stores import SQLiteCheckpointer, sqlite_schema
from tests.stores.log_writer import Writer


def run_sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


class TestMigration:
    def second_version(self, db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE thread ADD COLUMN colour TEXT")

    def failing(self, db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE thread ADD COLUMN half TEXT")
        db.execute("ALTER TABLE missing ADD COLUMN colour TEXT")

    def version(self, path: Path) -> int:
        with closing(sqlite3.connect(path)) as db:
            return int(db.execute("PRAGMA user_version").fetchone()[0])

    def columns(self, path: Path) -> set[str]:
        with closing(sqlite3.connect(path)) as db:
            return {row[1] for row in db.execute("PRAGMA table_info(thread)")}

    def make_first_version(self, path: Path) -> None:
        """Take away what later versions added to the tables."""
        with closing(sqlite3.connect(":memory:")) as first, closing(sqlite3.connect(path)) as db:
            sqlite_schema.MIGRATIONS[0](first)
            db.execute("DROP INDEX cursor_touched")
            db.execute("CREATE INDEX cursor_updated ON cursor (updated_at)")
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                now, then = (
                    [row[1] for row in one.execute(f"PRAGMA table_info({table})")] for one in (db, first)
                )
                if not then:
                    db.execute(f"DROP TABLE {table}")
                for column in now if then else ():
                    if column not in then:
                        db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
            db.execute("PRAGMA user_version = 1")
            db.commit()

    def test_an_older_store_is_brought_up_and_keeps_its_threads(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with closing(SQLiteCheckpointer(path)) as store:
            commit = Writer(store).step()
        known = sqlite_schema.MIGRATIONS
        monkeypatch.setattr(sqlite_schema, "MIGRATIONS", (*known, self.second_version))
        with closing(SQLiteCheckpointer(path)) as store:
            assert store.cursor("t") == commit.cursor
        assert self.version(path) == len(known) + 1
        assert "colour" in self.columns(path)

    def test_a_store_of_the_first_version_keeps_its_snapshots(self, path: Path) -> None:
        with closing(SQLiteCheckpointer(path)) as store:
            Writer(store).step({"messages": 1}, snapshot=b"s")
        state = b'{"messages":[1]}'
        self.make_first_version(path)
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("UPDATE snapshot SET body = ?", (zlib.compress(state),))
        with closing(SQLiteCheckpointer(path)) as store:
            assert store.snapshot("t", 0) == (0, state)
            assert store.load_step("t", 0) == {"messages": [1]}
            store.release("t", (store.lease("t") or store.new_lease(0)).token)
            Writer(store, create=False).step(snapshot=b'{"messages":[1,2]}')
            assert store.load_step("t", 1) == {"messages": [1, 2]}

    def test_a_migration_that_fails_changes_nothing(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        SQLiteCheckpointer(path).close()
        known = sqlite_schema.MIGRATIONS
        monkeypatch.setattr(sqlite_schema, "MIGRATIONS", (*known, self.second_version, self.failing))
        with pytest.raises(StoreUnusable, match="missing"):
            SQLiteCheckpointer(path)
        assert self.version(path) == len(known)
        assert not {"colour", "half"} & self.columns(path)

    def test_a_store_that_was_only_begun_is_finished(self, path: Path) -> None:
        run_sql(path, f"PRAGMA application_id = {sqlite_schema.APPLICATION_ID}")
        with closing(SQLiteCheckpointer(path)) as store:
            Writer(store).step()
        assert self.version(path) == len(sqlite_schema.MIGRATIONS)
