"""A store in one SQLite file: commits are atomic, several threads and processes can use it at once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from hitl_tui.engine.log.records import (
    Commit,
    Cursor,
    LedgerEntry,
)
from hitl_tui.engine.log.store import Durability, Reader
from hitl_tui.engine.log.threads import (
    Deletion,
    Fault,
    Lease,
    PauseRequest,
    Presence,
    Space,
    Stamp,
    ThreadInfo,
    check_thread_id,
)
from hitl_tui.errors import HitlError
from hitl_tui.given_files import expanded
from hitl_tui.stores import faults, rows, snapshots
from hitl_tui.stores.base import (
    check_durability,
    check_same,
    lease_lost,
    name_taken,
    refuse_takeover,
    unknown_thread,
    with_presence,
    writer,
)
from hitl_tui.stores.lease import releasing
from hitl_tui.stores.lineage import ImportedThread, Past
from hitl_tui.stores.sqlite.file import StoreFile, damaged, translate
from hitl_tui.stores.tables import SPENDING_STEPS, Dialect, TableStore

_DIALECT = Dialect(
    owner="json_extract(CAST({}.owner AS TEXT), '$.thread_id')",
    members="SELECT value FROM json_each({})",
    json="CAST({} AS TEXT)",
    like="LIKE",
    named="t.id LIKE :like ESCAPE '!'",
    spending=(
        "SELECT source, node, count(*), sum(tokens_in), sum(tokens_out), coalesce(sum(cost), 0.0), "
        "count(*) - count(cost), sum(duration) FROM checkpoint WHERE id > ? AND id <= ? GROUP BY source, node"
    ),
)
# SQLite's own check of a file names at most this many findings.
_MOST_FINDINGS = 10


def _insert(table: str, columns: str) -> str:
    return f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * (columns.count(',') + 1))})"


def _inserts(table: str, columns: str) -> tuple[str, ...]:
    """Return statements that insert a row without trailing nulls, by its number of columns."""
    names = columns.split(", ")
    return tuple(_insert(table, ", ".join(names[:count])) for count in range(len(names) + 1))


_ADD_RECORD = _inserts("record", rows.RECORD)
_ADD_CHECKPOINT = _inserts("checkpoint", rows.CHECKPOINT)
_ADD_LEDGER = _insert("ledger", rows.LEDGER)
# An existing body is replaced: it may have been damaged since.
_ADD_STORE_LEDGER = _insert("store_ledger", f"{rows.LEDGER}, thread")
_ADD_GRAPH = "INSERT OR REPLACE INTO graph (digest, body) VALUES (?, ?)"
_ADD_SNAPSHOT = _insert("snapshot", "id, body")
_ADD_CURSOR = (
    f"INSERT INTO cursor ({rows.CURSOR}, thread, touched) "
    f"VALUES (?, ?, ?, ?, ?, ?, nullif(?, {rows.NEVER}), ?, ?, ?, ?, ?, ?)"
)
_ADD_THREAD = _insert(
    "thread",
    "id, graph_name, graph_digest, source, parent, fork_step, fork_seq, shared_entries, "
    "created_at, created_by, past, owner, facts_hash",
)
_UPDATE_CURSOR = (
    "UPDATE cursor SET {}version = ?, head = ?, reason = ?, position = ?, waiting_for = ?, "
    "last_writer = coalesce(?, last_writer), updated_at = ?, body = ?, digest = ? "
    "WHERE thread = ? AND version = ? AND (SELECT token FROM lease WHERE thread = cursor.thread) IS ?"
)
_LISTED = ("touched = ?, ", f"status = ?, waiting_since = nullif(?, {rows.NEVER}), ")
# The columns by which lists are ordered have indexes, which an update would write even without changes.
_MOVE_CURSOR = {
    (moment, standing): _UPDATE_CURSOR.format(_LISTED[0] * moment + _LISTED[1] * standing)
    for moment in (False, True)
    for standing in (False, True)
}
"""Statements by whether `touched` changes, and whether status and `waiting_since` do."""
_UNKNOWN: tuple[int, int, tuple[Any, ...]] = (-1, 0, ())
_ADD_SPENDING = _insert("spending", "id, body")
# A graph with which no thread was started or has continued.
_DROP_GRAPHS = (
    "DELETE FROM graph WHERE digest NOT IN (SELECT graph_digest FROM thread "
    "UNION SELECT coalesce(json_extract(CAST(body AS TEXT), '$.graph'), '') FROM cursor "
    "UNION SELECT coalesce(json_extract(CAST(data AS TEXT), '$.was'), '') FROM ledger WHERE kind = 'graph' "
    "UNION SELECT coalesce(json_extract(CAST(data AS TEXT), '$.is'), '') FROM ledger WHERE kind = 'graph')"
)
_GIVE_BACK = "DELETE FROM lease WHERE thread = ? AND token = ?"
_TAKE = f"INSERT OR REPLACE INTO lease (thread, {rows.LEASE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


def read_only(path: str) -> SQLiteCheckpointer:
    """Open the store in a file that another process has open, for reading only."""
    return SQLiteCheckpointer(path, reading=True)


class SQLiteCheckpointer(StoreFile, TableStore):
    """A store in one SQLite file, usable from several threads and processes.

    Args:
        path: the file; it and its directories are created if necessary, readable only by their owner.
        durability: which commits survive a power cut: "decisions" those with entries of the ledger, "steps"
            all, "none" none.
        reading: an existing store is opened only for reading.

    Raises:
        StoreUnusable: not ours, made by a newer hitl-tui, read-only, locked or full.
        LogCorrupt: ours, but damaged.
    """

    dialect = _DIALECT

    def __init__(
        self, path: str | os.PathLike[str], durability: Durability = "decisions", *, reading: bool = False
    ) -> None:
        super().__init__()
        self.path = Path(os.path.abspath(expanded(path)))
        self.durability = check_durability(durability)
        self._open(reading=reading)
        # By thread, the columns by which lists are ordered, and the version at which they were written here.
        self._listed: dict[int, tuple[int, int, tuple[Any, ...]]] = {}

    def create_thread(self, info: ThreadInfo, cursor: Cursor, first: Commit | None = None) -> None:
        check_thread_id(info.thread_id)
        self._be_there()
        last_writer = info.created_by or ""
        with self._deciding if first and first.ledger else self._writing as db:
            key = self._add_thread(db, info, cursor)
            if first is not None:
                self._add_rows(db, key, first)
                cursor = first.cursor
                last_writer = writer(first.checkpoint) if first.checkpoint else last_writer
            self._add_cursor(db, key, info, cursor, last_writer)

    def commit(self, thread_id: str, commit: Commit) -> Stamp | None:
        if commit.takes is not None:
            self._be_there()
        key = self._key(thread_id)
        point, cursor = commit.checkpoint, commit.cursor
        holder = None if commit.takes else commit.lease_token
        guard = (key, commit.expected_version, holder)
        facts = self._facts(thread_id)
        check_same(thread_id, commit, facts)
        with self._deciding if commit.ledger else self._writing as db:
            row = rows.cursor_row(cursor, facts, writer(point) if point else None)
            version, head, status, reason, position, waiting_for, since, *rest = row
            touched, standing = cursor.updated_at >> rows.TOUCHED_SHIFT, (status, since)
            moved = (version, head, reason, position, waiting_for, *rest, *guard)
            known, was_touched, stood = self._listed.get(key, _UNKNOWN)
            is_known = known == commit.expected_version
            moment, moves = not is_known or touched != was_touched, not is_known or standing != stood
            if moves:
                moved = (*standing, *moved)
            if moment:
                moved = (touched, *moved)
            done = db.execute(_MOVE_CURSOR[moment, moves], moved)
            if done.rowcount != 1:
                raise self._refusal(thread_id, key, commit)
            self._add_rows(db, key, commit)
            if commit.gives_back:
                db.execute(_GIVE_BACK, (key, commit.lease_token))
            self._listed[key] = cursor.version, touched, standing
            if commit.takes:
                db.execute(_TAKE, (key, *msgspec.structs.astuple(commit.takes)))
            return self.stamp(thread_id) if commit.gives_back else None

    def write_threads(self, threads: Iterable[ImportedThread]) -> None:
        self._be_there()
        with self._deciding as db:
            for info, past, commits in threads:
                cursor, last_writer = Cursor(check_thread_id(info.thread_id)), info.created_by or ""
                key = self._add_thread(db, info, cursor, past)
                for commit in commits:
                    self._add_rows(db, key, commit)
                    cursor = commit.cursor
                    last_writer = writer(commit.checkpoint) if commit.checkpoint else last_writer
                self._add_cursor(db, key, info, cursor, last_writer)

    def _add_thread(
        self, db: sqlite3.Cursor, info: ThreadInfo, cursor: Cursor, past: Sequence[Past] = ()
    ) -> int:
        if db.execute("SELECT 1 FROM thread WHERE id = ?", (info.thread_id,)).fetchone():
            raise name_taken(info.thread_id)
        self._forget(info.thread_id)  # another process may have deleted the thread that had the name
        parent = None if info.parent is None else self._key(info.parent)
        if info.parent is not None and parent is not None:
            self._check_there(db, info.parent, parent)
        row = (
            info.thread_id,
            info.graph_name,
            info.graph_digest,
            rows.source_of(info),
            parent,
            info.fork_step,
            info.fork_seq,
            0 if parent is None else cursor.ledger_n,
            info.created_at,
            info.created_by,
            rows.past_body(past),
            rows.owner_of(info),
            info.facts_hash,
        )
        return int(db.execute(_ADD_THREAD, row).lastrowid or 0)

    def _add_cursor(
        self, db: sqlite3.Cursor, key: int, info: ThreadInfo, cursor: Cursor, last_writer: str
    ) -> None:
        touched = cursor.updated_at >> rows.TOUCHED_SHIFT
        db.execute(_ADD_CURSOR, (*rows.cursor_row(cursor, info.facts_hash, last_writer), key, touched))

    def _add_rows(self, db: sqlite3.Cursor, key: int, commit: Commit) -> None:
        base, point = key << 32, commit.checkpoint
        records = [rows.trim_trailing_nulls(rows.record_row(base, record)) for record in commit.records]
        if len(records) == 1:
            db.execute(_ADD_RECORD[len(records[0])], records[0])
        else:
            for columns, alike in groupby(records, len):
                db.executemany(_ADD_RECORD[columns], alike)
        if point is not None:
            row = rows.trim_trailing_nulls(rows.checkpoint_row(base, point))
            db.execute(_ADD_CHECKPOINT[len(row)], row)
            if point.step % SPENDING_STEPS == 0:
                spent = rows.spending_body(self._spending(key, point.step))
                db.execute(_ADD_SPENDING, (base | point.step, spent))
        if commit.snapshot is not None:
            head = base | commit.cursor.head
            part = snapshots.part_of(commit.snapshot, self._parts(base, head - 1))
            db.execute(_ADD_SNAPSHOT, (head, part))
        for entry in commit.ledger:
            db.execute(_ADD_LEDGER, rows.ledger_row(base, entry))
        if commit.graph is not None:
            db.execute(_ADD_GRAPH, commit.graph)

    def delete(self, deletion: Deletion) -> list[LedgerEntry]:
        from hitl_tui.stores.deletion import deletion_entries

        self._be_there()
        with self._lock:
            # Deleted rows are overwritten, so that their values are not left in the file.
            self._set("secure_delete = ON")
            try:
                with self._deciding as db:
                    entries = deletion_entries(self, deletion)
                    db.execute("PRAGMA defer_foreign_keys = ON")
                    for name in deletion.versions:
                        self._take_out(db, self._key(name))
                    row_of = rows.ledger_row
                    db.executemany(
                        _ADD_STORE_LEDGER, [(*row_of(0, entry), entry.thread_id) for entry in entries]
                    )
            finally:
                self._set("secure_delete = OFF")
            for name in deletion.versions:
                self._forget(name)
            # Nor in the write-ahead log, unless somebody is reading it now.
            self._set("wal_checkpoint(TRUNCATE)")
        return entries

    def _take_out(self, db: sqlite3.Cursor, key: int) -> None:
        for table in faults.NUMBERED:
            db.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", (key << 32, key << 32 | rows.NUMBER))
        for table in faults.KEYED:
            db.execute(f"DELETE FROM {table} WHERE thread = ?", (key,))
        db.execute("DELETE FROM thread WHERE key = ?", (key,))

    def _check_there(self, db: sqlite3.Cursor, thread_id: str, key: int) -> None:
        """Refuse to write for a thread that another process has deleted."""
        if not db.execute("SELECT 1 FROM thread WHERE key = ?", (key,)).fetchone():
            self._forget(thread_id)
            raise unknown_thread(thread_id)

    def _set(self, pragma: str) -> None:
        """Set a pragma that is not needed; errors are ignored."""
        with suppress(sqlite3.Error):
            self._db.execute(f"PRAGMA {pragma}").fetchall()

    def space(self) -> Space:
        pages, free, page = (
            self._rows(f"PRAGMA {name}")[0][0] for name in ("page_count", "freelist_count", "page_size")
        )
        return Space(pages * page, free * page)

    def vacuum(self) -> Space:
        self._be_there()
        with self._deciding as db:
            db.execute(_DROP_GRAPHS)
        self._rows("VACUUM")
        self._set("wal_checkpoint(TRUNCATE)")
        return self.space()

    @property
    def why_read_only(self) -> str:
        return "the store is read-only: its file or its directory can't be written" if self.only_read else ""

    def stamp(self, thread_id: str) -> Stamp | None:
        return None if self._find(thread_id) is None else self.changes()

    def reader(self) -> Reader | None:
        # A moved file is still open here, but nobody else can find it.
        return (f"{__name__}:{read_only.__name__}", str(self.path)) if self._presence.is_there() else None

    def changes(self, thread_id: str | None = None) -> Stamp:
        with self._lock:
            # The first value counts changes by other connections in any process, the rest those by this one.
            return self._rows("PRAGMA data_version")[0][0], self._db.total_changes, self._db

    def acquire(self, thread_id: str, lease: Lease, now: int) -> Lease | None:
        self._be_there()
        key = self._key(thread_id)
        with self._writing as db:
            self._check_there(db, thread_id, key)
            dead = refuse_takeover(thread_id, self.lease(thread_id), lease, now)
            db.execute(_TAKE, (key, *msgspec.structs.astuple(lease)))
            return dead

    def renew(self, thread_id: str, token: str, expires_at: int) -> None:
        key = self._key(thread_id)
        with self._writing as db:
            sql = "UPDATE lease SET expires_at = ? WHERE thread = ? AND token = ?"
            if db.execute(sql, (expires_at, key, token)).rowcount != 1:
                raise lease_lost(thread_id, self.lease(thread_id))

    def release(self, thread_id: str, token: str) -> None:
        with releasing(token), self._writing as db:
            db.execute(_GIVE_BACK, (self._find(thread_id), token))

    def request_pause(self, thread_id: str, request: PauseRequest | None) -> None:
        key = self._key(thread_id)
        with self._writing as db:
            self._check_there(db, thread_id, key)
            if request is None:
                db.execute("DELETE FROM pause WHERE thread = ?", (key,))
            else:
                values = (key, request.actor, request.note, request.at, request.at_once)
                columns = "thread, actor, note, at, at_once"
                db.execute(f"INSERT OR REPLACE INTO pause ({columns}) VALUES (?, ?, ?, ?, ?)", values)

    def attend(self, thread_id: str, presence: Presence, now: int, over: str = "") -> None:
        key = self._key(thread_id)
        with self._writing as db:
            others = with_presence(self._attending(key), presence, now, over)
            db.execute("DELETE FROM presence WHERE thread = ?", (key,))
            bodies = [(key, at.lease.token, rows.presence_body(at)) for at in others]
            db.executemany("INSERT INTO presence (thread, token, body) VALUES (?, ?, ?)", bodies)

    def leave(self, thread_id: str, token: str) -> None:
        with releasing(token), self._writing as db:
            db.execute("DELETE FROM presence WHERE thread = ? AND token = ?", (self._find(thread_id), token))

    def _rows(self, sql: str, values: tuple[Any, ...] | dict[str, Any] = ()) -> list[Any]:
        try:
            with self._lock:
                return self._db.execute(sql, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise translate(error, self.path) from error
        except UnicodeEncodeError:
            # A lone surrogate can't be stored, so nothing has such a name.
            return []

    def pause_request(self, thread_id: str) -> PauseRequest | None:
        self._presence.check()  # a direct statement, because a run asks this often
        return super().pause_request(thread_id)

    def _faults_of_store(self) -> Iterator[Fault]:
        for (finding,) in self._rows(f"PRAGMA integrity_check({_MOST_FINDINGS})"):
            if finding != "ok":
                yield Fault("file", None, "ok", finding)
        given = self._rows("SELECT seq FROM sqlite_sequence WHERE name = 'thread'")
        yield from faults.of_store(self._rows, given[0][0] if given else 0)

    def _damaged(self, what: str, hint: str = "") -> HitlError:
        return damaged(self.path, what, hint)
