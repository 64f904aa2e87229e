"""Threads in one SQLite file: whole commits only, several threads and processes at once (SPEC 10)."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, groupby
from operator import lt
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hitl_tui.engine.log.records import (
    Checkpoint,
    Commit,
    Cursor,
    Effect,
    LedgerEntry,
    StoredGraph,
    UpdateRecord,
)
from hitl_tui.engine.log.store import Durability, Reader
from hitl_tui.engine.log.threads import (
    Deletion,
    Fault,
    Lease,
    Part,
    PauseRequest,
    Presence,
    Space,
    Stamp,
    ThreadInfo,
    ThreadSize,
    ThreadSummary,
    Waiting,
)
from hitl_tui.engine.thread.hashes import chained
from hitl_tui.errors import HitlError
from hitl_tui.stores import snapshots
from hitl_tui.stores.base import (
    Checkpointer,
    attended,
    check_durability,
    check_thread_id,
    name_taken,
    not_held,
    refuse_takeover,
    refused,
    there,
    unknown,
    writer,
)
from hitl_tui.stores.lease import giving_back, holder
from hitl_tui.stores.lineage import Carried, Origin, Past, Spent
from hitl_tui.stores.sqlite import faults, rows
from hitl_tui.stores.sqlite.file import StoreFile, damaged, translate
from hitl_tui.stores.sqlite.schema import TOUCHED_SHIFT

_OWNER = "json_extract(CAST({}.owner AS TEXT), '$.thread_id')"
# A thread inside another is named after it: "/" is followed by "0" in the order of names.
_INSIDE = "{0}.id > {1} || '/' AND {0}.id < {1} || '0' AND " + _OWNER.format("{0}") + " = {1}"
_COUNT = f"(SELECT count(*) FROM thread AS i WHERE {_INSIDE.format('i', 't.id')})"
_OF_THREAD = " FROM cursor AS c JOIN thread AS t ON t.key = c.thread "
_SUMMARIES = (
    f"SELECT {rows.THREAD}, {rows.SUMMARY}, {{inside}}{{standing}}{_OF_THREAD}"
    "LEFT JOIN thread AS p ON p.key = t.parent LEFT JOIN lease AS l ON l.thread = c.thread "
    "LEFT JOIN checkpoint AS k ON k.id = (c.thread << 32 | c.head) WHERE {where}"
)
_STANDING = ", c.body, c.digest, k.hashes"
# The page is chosen first: whatever a line says and counts is looked up for the lines of the page alone.
_CHOSEN = f"SELECT c.thread, {{since}} AS since, t.id AS name{_OF_THREAD}WHERE {{where}}"
_ORDER = " ORDER BY c.touched DESC, c.updated_at DESC, c.thread DESC"
_BEHIND = (
    "c.touched <= :touched AND (c.touched, c.updated_at, c.thread) < "
    "(:touched, :moved, ifnull((SELECT key FROM thread WHERE id = :name), 0))"
)
_BY_AGE = " ORDER BY t.created_at, t.id"
_YOUNGER = "(t.created_at, t.id) > (:created, :name)"
_BY_WAIT = " ORDER BY since, name"
_LATER = "{0} >= :since AND ({0}, t.id) > (:since, :name)"
# Either where a name stands in this order, or among few keys.
_NAMED = "t.id LIKE :like ESCAPE '!'"
_AMONG = "c.thread IN (SELECT value FROM json_each(:{0}))"
_MATCHES = f"SELECT t.key FROM thread AS t WHERE {_NAMED} LIMIT :most"
_FEW = 1000
_RUNNING = (
    f"SELECT cursor.thread, {', '.join(f'lease.{name}' for name in rows.LEASE.split(', '))} "
    "FROM cursor LEFT JOIN lease ON lease.thread = cursor.thread WHERE status = 'running'"
)
_TOP = f"(t.owner IS NULL OR NOT EXISTS (SELECT 1 FROM thread AS o WHERE o.id = {_OWNER.format('t')}))"

ONE_SUMMARY = _SUMMARIES.format(inside="NULL", standing="", where="c.thread = ?")
"""The line of one thread, given its key."""


def _like(part: str) -> str:
    """The pattern of names that hold a part, in any (ASCII) case."""
    return "%" + re.sub("([%_!])", r"!\1", part) + "%"


def listing(
    last: ThreadSummary | None,
    within: str | None,
    *,
    waiting: bool,
    abandoned: bool = False,
    named: str = "",
    standing: bool = False,
) -> str:
    """The statement for a page of `Store.threads`; its values have the names of its marks.

    Args:
        last: the last line of the page before.
        abandoned: where those that wait are listed, the threads in `:abandoned`, too.
        named: a condition on their names.
        standing: the columns of `rows.waiting_of`, too.
    """
    conditions = [named] if named else []
    if within is not None:
        conditions.append(_INSIDE.format("t", ":within") if within else _TOP)
    if waiting:
        kinds = [("c.waiting_since", "c.waiting_since IS NOT NULL")]
        if abandoned:
            # That a runner has died only its lease says; its thread waits since the last commit.
            kinds.append(("c.updated_at", f"c.waiting_since IS NULL AND {_AMONG.format('abandoned')}"))
        later = [_LATER] if last else []
        chosen = " UNION ALL ".join(
            _CHOSEN.format(
                since=since, where=" AND ".join([kind, *conditions, *(one.format(since) for one in later)])
            )
            for since, kind in kinds
        )
        page, order = f"{chosen}{_BY_WAIT}", " ORDER BY ifnull(c.waiting_since, c.updated_at), t.id"
    else:
        order, behind = (_BY_AGE, _YOUNGER) if within else (_ORDER, _BEHIND)
        where = " AND ".join([*conditions, *([behind] if last else [])]) or "1"
        page = _CHOSEN.format(since="NULL", where=where) + order
    inside = "NULL" if within is None else _COUNT
    where = f"c.thread IN (SELECT thread FROM ({page} LIMIT :limit)){order}"
    return _SUMMARIES.format(inside=inside, standing=_STANDING if standing else "", where=where)


T = TypeVar("T")

# Records read at a time: long logs are read in pieces, so that a writer never waits for a reader.
_CHUNK = 512
# Every so many steps what they took so far is noted, so that totals cost no walk over all steps.
_SPENDING_STEPS = 128


def _insert(table: str, columns: str) -> str:
    return f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * (columns.count(',') + 1))})"


def _inserts(table: str, columns: str) -> tuple[str, ...]:
    """What inserts a `short` row, by how many columns it has."""
    names = columns.split(", ")
    return tuple(_insert(table, ", ".join(names[:count])) for count in range(len(names) + 1))


_ADD_RECORD = _inserts("record", rows.RECORD)
_ADD_CHECKPOINT = _inserts("checkpoint", rows.CHECKPOINT)
_ADD_LEDGER = _insert("ledger", rows.LEDGER)
# A body that is there already is replaced: it may have been damaged since.
_ADD_STORE_LEDGER = _insert("store_ledger", f"{rows.LEDGER}, thread")
_STORE_LEDGER = f"SELECT thread, {rows.LEDGER} FROM store_ledger ORDER BY id"
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
# What lists are ordered by has indexes, which an update would write even where nothing changes.
_UPDATE_CURSOR = (
    "UPDATE cursor SET {}version = ?, head = ?, reason = ?, position = ?, waiting_for = ?, "
    "last_writer = coalesce(?, last_writer), updated_at = ?, body = ?, digest = ? "
    "WHERE thread = ? AND version = ? AND (SELECT token FROM lease WHERE thread = cursor.thread) IS ?"
)
_MOVE_CURSOR = _UPDATE_CURSOR.format("")
_MOVE_LISTED = _UPDATE_CURSOR.format(f"touched = ?, status = ?, waiting_since = nullif(?, {rows.NEVER}), ")
_VERSION = "SELECT version FROM cursor WHERE thread = ?"
_FROM_THREAD = "FROM thread AS t LEFT JOIN thread AS p ON p.key = t.parent"
_THREAD = f"SELECT {rows.THREAD}, t.shared_entries, t.past {_FROM_THREAD} WHERE t.id = ?"
_CHILDREN = f"SELECT {rows.THREAD} {_FROM_THREAD} WHERE t.parent = ? ORDER BY t.created_at, t.key"
_CHECKPOINTS = f"SELECT {rows.CHECKPOINT} FROM checkpoint WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"
_RECORDS = f"SELECT {rows.RECORD} FROM record WHERE id > ? AND id <= ? ORDER BY id LIMIT {_CHUNK}"
_EFFECTS = f"SELECT {rows.EFFECT} FROM record WHERE id > ? AND id <= ? ORDER BY id LIMIT {_CHUNK}"
# What was only edited may hold a text that no row has as a whole.
_STEPS_OF_RECORDS = "SELECT step FROM record WHERE id > ? AND id <= ? AND (flags & {} OR {})".format(
    rows.PATCHED_FLAGS, " OR ".join(map(rows.LIKE.format, ("change", "result", "note", "actor")))
)
_STEPS_OF_POINTS = "SELECT id & {} FROM checkpoint WHERE id BETWEEN ? AND ? AND ({})".format(
    rows.NUMBER,
    " OR ".join(
        map(rows.LIKE.format, ("text", "note", "decision", "actor", "streamed", "calls", "branches"))
    ),
)
_SNAPSHOT = "SELECT id, body FROM snapshot WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1"
_PARTS = "SELECT id, body FROM snapshot WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"
_SNAPSHOTS = "SELECT id, body FROM snapshot WHERE id BETWEEN ? AND ? ORDER BY id"
_LEDGER = f"SELECT {rows.LEDGER} FROM ledger WHERE id BETWEEN ? AND ? ORDER BY id"
_LAST_SPENDING = "SELECT id, body FROM spending WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1"
_ADD_SPENDING = _insert("spending", "id, body")
_SIZE_OF_CHANNELS = (
    "SELECT channel, sum(length(change) + coalesce(length(result), 0)) "
    "FROM record WHERE id BETWEEN ? AND ? GROUP BY channel"
)
_SIZE_OF = "SELECT count(*), coalesce(sum({}), 0) FROM {} WHERE id BETWEEN ? AND ?"
_CHECKPOINT_BYTES = " + ".join(
    f"coalesce(length({name}), 0)"
    for name in (
        "hashes",
        "note",
        "text",
        "uses",
        "branches",
        "tainted",
        "read",
        "compensations",
        "calls",
        "streamed",
        "artifacts",
    )
)
# A graph that no thread was begun with or has gone on with.
_DROP_GRAPHS = (
    "DELETE FROM graph WHERE digest NOT IN (SELECT graph_digest FROM thread "
    "UNION SELECT coalesce(json_extract(CAST(body AS TEXT), '$.graph'), '') FROM cursor "
    "UNION SELECT coalesce(json_extract(CAST(data AS TEXT), '$.was'), '') FROM ledger WHERE kind = 'graph' "
    "UNION SELECT coalesce(json_extract(CAST(data AS TEXT), '$.is'), '') FROM ledger WHERE kind = 'graph')"
)
_LET_GO = (
    "it tells who is at the thread alone: where nobody is, delete the rows of the tables lease, pause and "
    "presence"
)
_ATTENDING = "SELECT t.id, p.body FROM presence AS p JOIN thread AS t ON t.key = p.thread"
_LEASE = f"SELECT {rows.LEASE} FROM lease WHERE thread = ?"
_GIVE_BACK = "DELETE FROM lease WHERE thread = ? AND token = ?"
_TAKE = f"INSERT OR REPLACE INTO lease (thread, {rows.LEASE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


def read_only(path: str) -> SQLiteCheckpointer:
    """The store of a file that another process has open, for reading alone."""
    return SQLiteCheckpointer(path, reading=True)


class SQLiteCheckpointer(StoreFile, Checkpointer):
    """A store in one SQLite file, usable from several threads and processes.

    Args:
        path: the file; it and its directories are created where they are missing, for their owner
            alone.
        durability: which commits no power cut takes back: "decisions" those with entries of the ledger,
            "steps" all, "none" none.
        reading: a file that is a store is opened to be read alone.

    Raises:
        StoreUnusable: not ours, made by a newer hitl-tui, read-only, locked or full.
        LogCorrupt: ours, but damaged.
    """

    def __init__(
        self, path: str | os.PathLike[str], durability: Durability = "decisions", *, reading: bool = False
    ) -> None:
        super().__init__()
        self.path = Path(os.path.abspath(os.path.expanduser(path)))
        self.durability = check_durability(durability)
        self._open(reading=reading)
        self._keys: dict[str, int] = {}
        # What lists are ordered by, of threads, and the version that they were at when it was written here.
        self._listed: dict[int, tuple[int, tuple[Any, ...]]] = {}

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
        with self._deciding if commit.ledger else self._writing as db:
            row = rows.cursor_row(cursor, facts, writer(point) if point else None)
            version, head, status, reason, position, waiting_for, since, *rest = row
            listed = (cursor.updated_at >> TOUCHED_SHIFT, status, since)
            moved = (version, head, reason, position, waiting_for, *rest, *guard)
            if (commit.expected_version, listed) == self._listed.get(key):
                done = db.execute(_MOVE_CURSOR, moved)
            else:
                done = db.execute(_MOVE_LISTED, (*listed, *moved))
            if done.rowcount != 1:
                raise self._refusal(thread_id, key, commit)
            self._add_rows(db, key, commit)
            if commit.gives_back:
                db.execute(_GIVE_BACK, (key, commit.lease_token))
            self._listed[key] = cursor.version, listed
            if commit.takes:
                db.execute(_TAKE, (key, *msgspec.structs.astuple(commit.takes)))
            return self.stamp(thread_id) if commit.gives_back else None

    def write_threads(self, threads: Iterable[Carried]) -> None:
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
        touched = cursor.updated_at >> TOUCHED_SHIFT
        db.execute(_ADD_CURSOR, (*rows.cursor_row(cursor, info.facts_hash, last_writer), key, touched))

    def _add_rows(self, db: sqlite3.Cursor, key: int, commit: Commit) -> None:
        base, point = key << 32, commit.checkpoint
        records = [rows.short(rows.record_row(base, record)) for record in commit.records]
        if len(records) == 1:
            db.execute(_ADD_RECORD[len(records[0])], records[0])
        else:
            for columns, alike in groupby(records, len):
                db.executemany(_ADD_RECORD[columns], alike)
        if point is not None:
            row = rows.short(rows.checkpoint_row(base, point))
            db.execute(_ADD_CHECKPOINT[len(row)], row)
            if point.step % _SPENDING_STEPS == 0:
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
        from hitl_tui.stores.deletion import farewells

        self._be_there()
        with self._lock:
            # What is deleted is overwritten: its values are nowhere in the file afterwards.
            self._set("secure_delete = ON")
            try:
                with self._deciding as db:
                    entries = farewells(self, deletion)
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
            # Nor in the log beside the file, unless somebody is reading there now.
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
            raise unknown(thread_id)

    def _forget(self, thread_id: str) -> None:
        """What is known of a thread that has gone."""
        self._keys.pop(thread_id, None)
        self._lineages.pop(thread_id, None)

    def _set(self, pragma: str) -> None:
        """A pragma that may be left out where it can't be."""
        with suppress(sqlite3.Error):
            self._db.execute(f"PRAGMA {pragma}").fetchall()

    def store_ledger(self) -> list[LedgerEntry]:
        entries: list[LedgerEntry] = []
        previous = b""
        with self._decoding():
            for thread, *row in self._rows(_STORE_LEDGER):
                entries += rows.ledger_of(rows.value_of(str, (thread,)), (row,), previous)
                previous = entries[-1].hash
        return entries

    def size(self, thread_id: str) -> ThreadSize:
        base = self._key(thread_id) << 32
        span = (base, base | rows.NUMBER)

        def filled(column: str, table: str) -> tuple[int, int]:
            number, size = self._rows(_SIZE_OF.format(column, table), span)[0]
            return number, size

        with self._decoding():
            channels = {
                rows.value_of(str, row[:1]): rows.value_of(int, row[1:])
                for row in self._rows(_SIZE_OF_CHANNELS, span)
            }
        steps, checkpoints = filled(_CHECKPOINT_BYTES, "checkpoint")
        return ThreadSize(
            thread_id,
            steps,
            channels,
            checkpoints,
            filled("length(body)", "snapshot")[1],
            filled("length(data) + coalesce(length(note), 0)", "ledger")[1],
        )

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

    def cursor(self, thread_id: str, *, unchecked: bool = False) -> Cursor | None:
        fetched: list[Any] = []
        # A key that is known may be that of a thread which another process has deleted.
        while not fetched:
            known, key = thread_id in self._keys, self._find(thread_id)
            if key is None:
                return None
            fetched = self._rows("SELECT body, digest FROM cursor WHERE thread = ?", (key,))
            if not known:
                break
            if not fetched:
                self._forget(thread_id)
        with self._decoding():
            body, digest = fetched[0]
            cursor = rows.cursor_of(body, None if unchecked else digest, self._facts(thread_id))
            if cursor.thread_id != thread_id:
                raise ValueError(f"the cursor of {thread_id!r} is that of {cursor.thread_id!r}")
            return cursor

    def stamp(self, thread_id: str) -> Stamp | None:
        return None if self._find(thread_id) is None else self.changes()

    def graph(self, digest: str) -> StoredGraph | None:
        body = self._value(bytes, "SELECT body FROM graph WHERE digest = ?", (digest,))
        return None if body is None else StoredGraph(digest, body)

    def faults(self, thread_id: str | None, since: int = 0) -> Iterator[Fault]:
        if thread_id is None:
            yield from faults.of_file(self._rows)
        elif (origin := self._origin(thread_id)) is not None:
            key, cursor = self._key(thread_id), self.cursor(thread_id, unchecked=True)
            with self._decoding():
                yield from faults.of_thread(self._rows, key, origin, cursor, since)
            yield from self._unreadable(thread_id)

    def reader(self) -> Reader | None:
        # A file that was moved is still open here, and found by nobody else.
        return (f"{__name__}:{read_only.__name__}", str(self.path)) if self._presence.is_there() else None

    def children(self, thread_id: str) -> list[ThreadInfo]:
        fetched = self._rows(_CHILDREN, (self._find(thread_id),))
        with self._decoding():
            return [rows.thread_of(row) for row in fetched]

    def threads(
        self, query: str = "", limit: int = 50, after: ThreadSummary | None = None, within: str | None = None,
        *, waiting: bool = False,
    ) -> list[ThreadSummary]:  # fmt: skip
        values: dict[str, Any] = {"limit": limit, "within": within}
        if after is not None:
            values |= {
                "name": after.info.thread_id,
                "created": after.info.created_at,
                "moved": after.updated_at,
                "touched": after.updated_at >> TOUCHED_SHIFT,
                "since": after.updated_at if after.waiting_since is None else after.waiting_since,
            }
        named = ""
        if query:
            values |= {"like": _like(query), "most": _FEW}
            matches = [key for (key,) in self._rows(_MATCHES, values)]
            named = _NAMED if len(matches) == _FEW else _AMONG.format("matches")
            values["matches"] = msgspec.json.encode(matches).decode()
        abandoned = self._abandoned() if waiting else []
        values["abandoned"] = msgspec.json.encode(abandoned).decode()
        sql = listing(after, within, waiting=waiting, abandoned=bool(abandoned), named=named)
        return self._summaries(self._rows(sql, values))

    def waiting(self, limit: int) -> list[Waiting]:
        abandoned = self._abandoned()
        sql = listing(None, "", waiting=True, abandoned=bool(abandoned), standing=True)
        values = {"limit": limit, "within": "", "abandoned": msgspec.json.encode(abandoned).decode()}
        fetched = self._rows(sql, values)
        threads = self._summaries([row[: -rows.STANDING] for row in fetched])
        waiting: list[Waiting] = []
        for thread, row in zip(threads, fetched, strict=True):
            body, digest, hashes = row[-rows.STANDING :]
            if not hashes:  # the step is that of a fork's parent
                waiting.append(self._waiting(thread))
                continue
            try:
                waiting.append(rows.waiting_of(thread, body, digest, hashes))
            except (ValueError, TypeError):
                waiting.append(Waiting(thread))
        return waiting

    def changes(self) -> Stamp:
        with self._lock:
            # The first tells of other connections, in whatever process, what follows of this one.
            return self._rows("PRAGMA data_version")[0][0], self._db.total_changes, self._db

    def _abandoned(self) -> list[int]:
        """Keys of the threads that nobody alive runs, though they were left running."""
        now = time.time_ns() // 1000
        with self._decoding(_LET_GO):
            return [
                key
                for key, *held in self._rows(_RUNNING)
                if holder(rows.lease_of(tuple(held)) if held[0] is not None else None, now) is None
            ]

    def summary(self, thread_id: str) -> ThreadSummary | None:
        fetched = self._summaries(self._rows(ONE_SUMMARY, (self._find(thread_id),)))
        return fetched[0] if fetched else None

    def list_threads(self) -> list[str]:
        sql = "SELECT id FROM thread JOIN cursor ON thread = key WHERE head >= 0 ORDER BY id"
        with self._decoding():
            return [rows.value_of(str, row) for row in self._rows(sql)]

    def lease(self, thread_id: str) -> Lease | None:
        fetched = self._rows(_LEASE, (self._find(thread_id),))
        with self._decoding(_LET_GO):
            return rows.lease_of(fetched[0]) if fetched else None

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
                raise not_held(thread_id, self.lease(thread_id))

    def release(self, thread_id: str, token: str) -> None:
        with giving_back(token), self._writing as db:
            db.execute(_GIVE_BACK, (self._find(thread_id), token))

    def request_pause(self, thread_id: str, request: PauseRequest | None) -> None:
        key = self._key(thread_id)
        with self._writing as db:
            self._check_there(db, thread_id, key)
            if request is None:
                db.execute("DELETE FROM pause WHERE thread = ?", (key,))
            else:
                values = (key, request.actor, request.note, request.at)
                db.execute(
                    "INSERT OR REPLACE INTO pause (thread, actor, note, at) VALUES (?, ?, ?, ?)", values
                )

    def pause_request(self, thread_id: str) -> PauseRequest | None:
        self._presence.check()  # here, as this is asked again and again during a run
        sql = "SELECT actor, note, at FROM pause WHERE thread = ?"
        fetched = self._rows(sql, (self._find(thread_id),))
        with self._decoding(_LET_GO):
            return rows.pause_of(fetched[0]) if fetched else None

    def attend(self, thread_id: str, presence: Presence, now: int, over: str = "") -> None:
        key = self._key(thread_id)
        with self._writing as db:
            others = attended(self._attending(key), presence, now, over)
            db.execute("DELETE FROM presence WHERE thread = ?", (key,))
            bodies = [(key, at.lease.token, rows.presence_body(at)) for at in others]
            db.executemany("INSERT INTO presence (thread, token, body) VALUES (?, ?, ?)", bodies)

    def leave(self, thread_id: str, token: str) -> None:
        with giving_back(token), self._writing as db:
            db.execute("DELETE FROM presence WHERE thread = ? AND token = ?", (self._find(thread_id), token))

    def attending(self, thread_id: str, now: int) -> tuple[Presence, ...]:
        return there(self._attending(self._find(thread_id)), now)

    def _attending(self, key: int | None) -> list[Presence]:
        fetched = self._rows("SELECT body FROM presence WHERE thread = ?", (key,))
        with self._decoding(_LET_GO):
            return [rows.presence_of(row[0]) for row in fetched]

    def _refusal(self, thread_id: str, key: int, commit: Commit) -> HitlError:
        version = self._value(int, _VERSION, (key,))
        if version is None:
            self._forget(thread_id)
            return unknown(thread_id)
        return refused(thread_id, commit, version, self.lease(thread_id)) or unknown(thread_id)

    def _summaries(self, fetched: Sequence[Any]) -> list[ThreadSummary]:
        """Lines of a list from their rows."""
        now = time.time_ns() // 1000
        attending: dict[str, list[Presence]] = {}
        # All there are: as many as there are people at the store, beside a page of many threads.
        present = self._rows(_ATTENDING) if fetched else ()
        with self._decoding(_LET_GO):
            for name, body in present:
                attending.setdefault(name, []).append(rows.presence_of(body))
        with self._decoding():
            return [rows.summary_of(row, now, attending) for row in fetched]

    # -- over one thread's own rows ---------------------------------------------------------------

    def _origin(self, thread_id: str) -> Origin | None:
        fetched = self._rows(_THREAD, (thread_id,))
        if not fetched:
            return None
        row = fetched[0]
        with self._decoding():
            return Origin(rows.thread_of(row[:-2]), row[-2], rows.past_of(row[-1]))

    def _own_checkpoints(self, thread_id: str, first: int, last: int, limit: int) -> list[Checkpoint]:
        base = self._key(thread_id) << 32
        fetched = self._ordered(
            self._rows(_CHECKPOINTS, (base + first, base + last, limit)), base + first, base + last, down=True
        )
        with self._decoding():
            return [rows.checkpoint_of(thread_id, row) for row in fetched]

    def _own_records(self, thread_id: str, first: int, last: int) -> Iterator[UpdateRecord]:
        for fetched in self._record_rows(_RECORDS, thread_id, first, last):
            previous = self._record_link(thread_id, (fetched[0][0] & rows.NUMBER) - 1)
            with self._decoding():
                records = list(rows.records_of(thread_id, fetched, previous))
            yield from [record for record in records if first <= record.step <= last]

    def _own_effects(
        self, thread_id: str, first: int, last: int, channels: Container[str] | None
    ) -> Iterator[Effect]:
        for fetched in self._record_rows(_EFFECTS, thread_id, first, last):
            with self._decoding():
                effects = [
                    rows.effect_of(row)
                    for row in fetched
                    if first <= row[1] <= last and (channels is None or row[2] in channels)
                ]
            yield from effects

    def _own_steps_with(self, thread_id: str, first: int, last: int, text: str) -> Iterable[int]:
        pattern = rows.like(text)
        if not pattern:
            return range(first, last + 1)
        base = self._key(thread_id) << 32
        steps: set[int] = set()
        for sql, places in (
            (_STEPS_OF_RECORDS, self._seqs(thread_id, first, last)),
            (_STEPS_OF_POINTS, (base + first, base + last)),
        ):
            matching = self._rows(sql, (*places, *[pattern] * sql.count("LIKE")))
            steps.update(step for (step,) in matching if isinstance(step, int) and first <= step <= last)
        return sorted(steps)

    def _record_rows(self, sql: str, thread_id: str, first: int, last: int) -> Iterator[list[Any]]:
        """Rows of records, in pieces: those of steps `first` to `last` and maybe some beside them."""
        place, end = self._seqs(thread_id, first, last)
        while fetched := self._ordered(self._rows(sql, (place, end)), place + 1, end):
            place = fetched[-1][0]
            yield fetched

    def _seqs(self, thread_id: str, first: int, last: int) -> tuple[int, int]:
        """The ids of records behind which those of some steps begin, and with which they end."""
        base = self._key(thread_id) << 32
        # A step's records are those after the last one of the step before.
        seqs = "SELECT last_seq FROM checkpoint WHERE id BETWEEN ? AND ? ORDER BY id {} LIMIT 1"
        below = self._value(int, seqs.format("DESC"), (base, base + first - 1))
        above = self._value(int, seqs.format("ASC"), (base + last, base + rows.NUMBER))
        return base + (0 if below is None else below), base + (rows.NUMBER if above is None else above)

    def _record_link(self, thread_id: str, seq: int) -> bytes:
        """What the record after `seq` is chained to."""
        link = b""
        for segment in self._lineage(thread_id):
            if segment.after_seq < seq <= segment.last_seq:
                row_id = self._key(segment.thread_id) << 32 | seq
                hashes = self._value(bytes, "SELECT hashes FROM record WHERE id = ?", (row_id,))
                link = rows.record_hash_of(hashes or b"")
                break
        return self._begun(thread_id, link, lambda part: part.after_seq == seq)

    def _entry_link(self, thread_id: str, n: int) -> bytes:
        """What the decision after `n` is chained to."""
        link = b""
        for segment in self._lineage(thread_id):
            if segment.after_entry < n <= segment.last_entry:
                row_id = self._key(segment.thread_id) << 32 | n
                link = self._value(bytes, "SELECT hash FROM ledger WHERE id = ?", (row_id,)) or b""
                break
        return self._begun(thread_id, link, lambda part: part.after_entry == n)

    def _begun(self, thread_id: str, link: bytes, begins: Callable[[Part], bool]) -> bytes:
        """A link with the facts of the parts that begin behind it."""
        for part in self.parts(thread_id):
            if begins(part):
                link = chained(link, part.facts)
        return link

    def _facts(self, thread_id: str) -> bytes:
        lineage = self._lineage(thread_id)
        return lineage[0].facts if lineage else b""

    def _own_snapshot(self, thread_id: str, first: int, last: int) -> tuple[int, bytes] | None:
        base = self._key(thread_id) << 32
        fetched = self._ordered(
            self._rows(_SNAPSHOT, (base + first, base + last)), base + first, base + last, down=True
        )
        if not fetched:
            return None
        with self._decoding():
            return fetched[0][0] & rows.NUMBER, snapshots.whole(
                chain((fetched[0][1],), self._parts(base, fetched[0][0] - 1))
            )

    def _own_snapshots(self, thread_id: str, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        base = self._key(thread_id) << 32
        fetched = self._ordered(
            self._rows(_SNAPSHOTS, (base + first, base + last)), base + first, base + last
        )
        parts = (part for _, part in fetched)
        with self._decoding():
            wholes = list(snapshots.each_whole(parts, self._parts(base, base + first - 1)))
        return zip((row_id & rows.NUMBER for row_id, _ in fetched), wholes, strict=True)

    def _parts(self, base: int, last: int) -> Iterator[bytes]:
        """The parts of the snapshots up to the row `last`, newest first."""
        # How many a reader needs is known to it alone: the further it reads, the more come at once.
        count = 1
        while fetched := self._ordered(self._rows(_PARTS, (base, last, count)), base, last, down=True):
            yield from (body for _, body in fetched)
            last, count = fetched[-1][0] - 1, 2 * count

    def _own_ledger(self, thread_id: str, first: int, last: int) -> list[LedgerEntry]:
        base = self._key(thread_id) << 32
        fetched = self._ordered(self._rows(_LEDGER, (base + first, base + last)), base + first, base + last)
        previous = self._entry_link(thread_id, (fetched[0][0] & rows.NUMBER) - 1) if fetched else b""
        with self._decoding():
            return list(rows.ledger_of(thread_id, fetched, previous))

    def _own_spending(self, thread_id: str, last: int) -> list[Spent]:
        return self._spending(self._key(thread_id), last)

    def _spending(self, key: int, last: int) -> list[Spent]:
        base = key << 32
        noted = self._rows(_LAST_SPENDING, (base, base + last))
        # A thread's ids begin at `base`, the id of step 0.
        place, body = noted[0] if noted else (base - 1, b"[]")
        with self._decoding():
            earlier = rows.spending_of(body)
            return earlier + list(map(rows.spent_of, self._rows(faults.SPENDING, (place, base + last))))

    # -- one statement ----------------------------------------------------------------------------

    def _key(self, thread_id: str) -> int:
        key = self._find(thread_id)
        if key is None:
            raise unknown(thread_id)
        return key

    def _find(self, thread_id: str) -> int | None:
        key = self._keys.get(thread_id)
        if key is None:
            fetched = self._rows("SELECT key FROM thread WHERE id = ?", (thread_id,))
            if fetched:
                key = self._keys[thread_id] = fetched[0][0]
        return key

    def _ordered(self, fetched: list[Any], first: int, last: int, *, down: bool = False) -> list[Any]:
        """Rows whose ids go from `first` to `last`, strictly up or down, so that reading on comes to an end.

        Raises:
            LogCorrupt: they do not, as in a damaged file.
        """
        ids = [row[0] for row in (reversed(fetched) if down else fetched)]
        if ids and not (first <= ids[0] and ids[-1] <= last and all(map(lt, ids, ids[1:]))):
            raise damaged(self.path, "the numbers of its rows do not grow")
        return fetched

    def _value(self, kind: type[T], sql: str, values: tuple[Any, ...]) -> T | None:
        """The only column of the first row, None where there is no row; `LogCorrupt` for another type."""
        fetched = self._rows(sql, values)
        with self._decoding():
            return rows.value_of(kind, fetched[0]) if fetched else None

    def _rows(self, sql: str, values: tuple[Any, ...] | dict[str, Any] = ()) -> list[Any]:
        try:
            with self._lock:
                return self._db.execute(sql, values).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise translate(error, self.path) from error
        except UnicodeEncodeError:
            # A lone surrogate is in no file, so nothing has such a name.
            return []

    @contextmanager
    def _decoding(self, hint: str = "") -> Iterator[None]:
        try:
            yield
        except (msgspec.MsgspecError, ValueError, TypeError, IndexError, RecursionError) as error:
            raise damaged(self.path, f"a row can't be read ({error})", hint) from error
