"""PostgreSQL store for many processes on many hosts; each commit takes one round trip.

Times are the server's, so that leases and deadlines also work between hosts whose clocks differ.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.log.records import Commit, Cursor, LedgerEntry
from hitl_tui.engine.log.store import Durability, Reader, Right
from hitl_tui.engine.log.threads import (
    Deletion,
    Fault,
    Lease,
    PauseRequest,
    Presence,
    Space,
    Stamp,
    ThreadInfo,
    ThreadSummary,
    Waiting,
    check_thread_id,
)
from hitl_tui.errors import HitlError, LogCorrupt, ValueRejected
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
from hitl_tui.stores.lineage import ImportedThread, Past, Spending
from hitl_tui.stores.postgres import schema
from hitl_tui.stores.postgres.jobs import GRANTS, PostgresJobs
from hitl_tui.stores.postgres.listener import Listener
from hitl_tui.stores.postgres.server import Server, Statements
from hitl_tui.stores.postgres.writing import DELETES
from hitl_tui.stores.tables import SPENDING_STEPS, Dialect, TableStore

_DIALECT = Dialect(
    owner="{}.owner_thread",
    members="SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST({} AS json))",
    json="convert_from({}, 'UTF8') COLLATE \"C\"",
    like="ILIKE",
    # Takes a third of the time of ILIKE, which folds the letters of every alphabet.
    named="lower(t.id) LIKE lower(:like COLLATE \"C\") ESCAPE '!'",
    # In order and one by one: the order changes sums of floats, and stored sums are compared exactly.
    spending=(
        "SELECT source, node, CAST(1 AS bigint), tokens_in, tokens_out, coalesce(cost, 0.0), "
        "CAST(cost IS NULL AS int), duration FROM checkpoint WHERE id > ? AND id <= ? ORDER BY id"
    ),
    ledger=f"{rows.LEDGER}, login",
)
_TYPES = {
    "text": (
        "note text actor decision node path channel reducer parent_thread source position status reason "
        "kind request_id account signature text origin made_by"
    ),
    "bytea": (
        "hashes change result lineage read uses branches tainted compensations calls streamed artifacts "
        "seen data hash pending_hash request_hash cursor_hash"
    ),
    "double precision": "cost",
}
_TYPE_OF = {name: kind for kind, names in _TYPES.items() for name in names.split()}
_LEASE = rows.LEASE.split(", ")
_NO_LEASE = ", ".join(f"{name} = NULL" for name in _LEASE)
_TAKE = ", ".join(f"{name} = %s" for name in _LEASE)
_NOBODY: Final = (None,) * len(_LEASE)
_CURSOR_ROW = (
    f"ROW(%s, %s, %s, %s, %s, %s, %s, nullif(%s::bigint, {rows.NEVER}), %s, %s, %s, %s, %s"
    f"{', %s' * len(_LEASE)})::cursor"
)
_BEGIN_CURSOR = f"SELECT begin_cursor({_CURSOR_ROW})"
_BEGIN_THREAD = f"SELECT begin_thread(ROW(NULL{', ?' * 3}, ?, NULL{', ?' * 9})::thread, ?)"
_GRAPH_OF = "trim(both '\"' FROM (convert_from({}, 'UTF8')::json -> '{}')::text)"
# A graph that no thread started or continued with.
_DROP_GRAPHS = (
    "DELETE FROM graph WHERE digest NOT IN (SELECT graph_digest FROM thread "
    f"UNION SELECT coalesce({_GRAPH_OF.format('body', 'graph')}, '') FROM cursor "
    f"UNION SELECT coalesce({_GRAPH_OF.format('data', 'was')}, '') FROM ledger WHERE kind = 'graph' "
    f"UNION SELECT coalesce({_GRAPH_OF.format('data', 'is')}, '') FROM ledger WHERE kind = 'graph')"
)
_DEAD = "pg_relation_size(relid) * n_dead_tup / greatest(n_live_tup + n_dead_tup, 1)"
_SPACE = (
    "SELECT CAST(coalesce(sum(pg_total_relation_size(relid)), 0) AS bigint), "
    f"CAST(coalesce(sum({_DEAD}), 0) AS bigint) "
    "FROM pg_stat_user_tables WHERE schemaname = current_schema()"
)
_STANDS = "SELECT c.thread, c.version FROM cursor AS c JOIN thread AS t ON t.key = c.thread WHERE t.id = ?"
_ROLES = (
    "SELECT r.rolname::text FROM pg_roles AS r JOIN pg_roles AS me ON pg_has_role(me.oid, r.oid, 'MEMBER') "
    "WHERE me.rolname = ? ORDER BY r.oid <> me.oid, r.rolname"
)
_MAY_DELETE = (
    f"SELECT has_function_privilege(oid, '{DELETES[-1]}'::regprocedure, 'EXECUTE') "
    "FROM pg_roles WHERE rolname = ?"
)
_RIGHTS = (
    "SELECT operates OR has_role('hitl_worker'), operates OR has_role('hitl_reviewer'), operates "
    "FROM (SELECT is_owner() OR has_role('hitl_operator') AS operates) AS held"
)
_TAKEN, _NO_PARENT = -1, -2
"""Result of `begin_thread` if there is no key."""


def _placeholders(names: str) -> list[str]:
    """Return the placeholders of a row, each with its column's type."""
    return [f"%s::{_TYPE_OF.get(name, 'bigint')}" for name in names.split(", ")]


def _rows_of(table: str, names: str, *more: str) -> str:
    """Return SQL for an array of rows given by columns; `more` is appended to each row."""
    marks = ", ".join(f"{mark}[]" for mark in _placeholders(names))
    row = ", ".join(("part.*", *more))
    return f"(SELECT array_agg(ROW({row})::{table}) FROM unnest({marks}) AS part)"


_ROWS = {
    "records": _rows_of("record_row", rows.RECORD),
    "point": f"ROW({', '.join(_placeholders(rows.CHECKPOINT))})::checkpoint",
    "spent": "ROW(%s, %s)::spending",
    "part": "ROW(%s, %s)::snapshot",
    "entries": _rows_of("ledger", rows.LEDGER, "NULL"),
    "brought": "ROW(%s, %s)::graph",
}
_ENTRY = [f"c{n}" for n, _ in enumerate(rows.LEDGER.split(", "))]
_DELETE = (
    f"SELECT delete_threads(%s, (SELECT array_agg(ROW({', '.join(_ENTRY)}, NULL, deleted)::store_ledger) "
    f"FROM unnest({', '.join(f'{mark}[]' for mark in (*_placeholders(rows.LEDGER), '%s::text'))}) "
    f"AS part ({', '.join(_ENTRY)}, deleted)))"
)
"""The column between is the login, which the store sets."""


@lru_cache(maxsize=128)
def _arguments(parts: tuple[str, ...]) -> str:
    """Return the parts of a commit as arguments of a SQL function."""
    return "".join(f", {name} => {_ROWS[name]}" for name in parts)


def at(url: str) -> PostgresCheckpointer:
    """Open the store of a URL, for another process that checks it."""
    return PostgresCheckpointer(url, create=False)


class PostgresCheckpointer(TableStore):
    """A store in a schema of a PostgreSQL database, for processes on any hosts.

    Args:
        url: see `Server`.
        create: make missing tables, and upgrade older ones.
        durability: "none" waits for no disk; otherwise each commit is on the server's disk when it returns.

    Raises:
        UsageError: the URL can't be read.
        StoreUnusable: the server can't be reached or refuses us, or the tables are of another version.
        NoSuchStore: there are no tables.
    """

    dialect = _DIALECT

    def __init__(self, url: str, durability: Durability = "decisions", *, create: bool = True) -> None:
        super().__init__()
        self._url = url
        self.durability = check_durability(durability)
        self._server = Server(url, durability)
        self._server.prepare(create=create)
        self.login = self._server.login
        self._jobs = PostgresJobs(self._server)
        self._channel = f"hitl_tui.{self._server.schema}"
        self._listener: Listener | None = None
        self._lock = threading.Lock()

    # -- what is written --------------------------------------------------------------------------

    def create_thread(self, info: ThreadInfo, cursor: Cursor, first: Commit | None = None) -> None:
        check_thread_id(info.thread_id)
        with self._server.transaction() as db:
            self._forget(info.thread_id)  # another process may have deleted the thread that had the name
            key = self._add_thread(db, info, cursor)
            last_writer = info.created_by or ""
            if first is not None and first.checkpoint:
                last_writer = writer(first.checkpoint)
            if first is not None:
                self._add_commit(db, key, first)
            self._add_cursor(db, key, info, first.cursor if first else cursor, last_writer)
            self._notify(db, info.thread_id)

    def commit(self, thread_id: str, commit: Commit) -> Stamp | None:
        key = self._key(thread_id)
        statement, given, digest = self.commit_statement(key, thread_id, commit)

        def write(db: Statements) -> bool:
            return db.committed(statement, given)

        try:
            written, attempts = self._server.attempt(write)
        except UnicodeEncodeError as error:
            raise ValueRejected(f"a text has a lone surrogate: {error}") from error
        # If the result was lost, the commit may be stored, and repeating it was refused as stale.
        if not written and not (attempts > 1 and self._is_stored(key, commit, digest)):
            raise self._refusal(thread_id, key, commit)
        self._note_own_commit(thread_id)
        return (key, commit.cursor.version) if commit.gives_back else None

    def commit_statement(
        self, key: int, thread_id: str, commit: Commit
    ) -> tuple[str, tuple[Any, ...], bytes]:
        """Return the statement that writes a commit, its values, and the digest of the cursor in it."""
        facts = self._facts(thread_id)
        check_same(thread_id, commit, facts)
        row = self._cursor_row(commit.cursor, facts, commit)
        lease = msgspec.structs.astuple(commit.takes) if commit.takes else _NOBODY
        change = "takes" if commit.takes else "gives back" if commit.gives_back else ""
        held = None if commit.takes else commit.lease_token
        parts, values = self._parts_of(key, commit)
        statement = (
            "SELECT at, pg_notify(%s, %s) "
            f"FROM commit_thread(%s, %s, %s, {_CURSOR_ROW}{_arguments(parts)}) AS at WHERE at IS NOT NULL"
        )
        writes = (self._channel, thread_id, commit.expected_version, held, change)
        return statement, (*writes, key, *row, *lease, *values), row[-2]

    def _is_stored(self, key: int, commit: Commit, digest: bytes) -> bool:
        """Whether a commit is in the store."""
        checks: list[tuple[str, int, bytes]] = [("digest FROM cursor WHERE thread", key, digest)]
        if (point := commit.checkpoint) is not None:
            hashes = rows.hashes_of(point)
            checks.append(("hashes FROM checkpoint WHERE id", key << 32 | point.step, hashes))
        if commit.ledger:
            entry = commit.ledger[0]
            checks.append(("hash FROM ledger WHERE id", key << 32 | entry.n, entry.hash))
        return any(self._value(bytes, f"SELECT {where} = ?", (at,)) == is_ for where, at, is_ in checks)

    def write_threads(self, threads: Iterable[ImportedThread]) -> None:
        with self._server.transaction() as db:
            for info, past, commits in threads:
                start, last_writer = Cursor(check_thread_id(info.thread_id)), info.created_by or ""
                cursor, key = start, self._add_thread(db, info, start, past)
                for commit in commits:
                    self._add_commit(db, key, commit)
                    cursor = commit.cursor
                    last_writer = writer(commit.checkpoint) if commit.checkpoint else last_writer
                self._add_cursor(db, key, info, cursor, last_writer)
                self._notify(db, info.thread_id)

    def _add_thread(self, db: Statements, info: ThreadInfo, cursor: Cursor, past: Sequence[Past] = ()) -> int:
        row = (
            info.thread_id,
            info.graph_name,
            info.graph_digest,
            rows.source_of(info),
            info.fork_step,
            info.fork_seq,
            0 if info.parent is None else cursor.ledger_n,
            info.created_at,
            info.created_by,
            rows.past_body(past),
            rows.owner_of(info),
            info.facts_hash,
            info.owner.thread_id if info.owner else None,
            info.parent,
        )
        key = int(db.rows(_BEGIN_THREAD, row)[0][0])
        if key == _TAKEN:
            raise name_taken(info.thread_id)
        if key == _NO_PARENT:
            self._forget(info.parent or "")
            raise unknown_thread(info.parent or "")
        return key

    def _add_cursor(
        self, db: Statements, key: int, info: ThreadInfo, cursor: Cursor, last_writer: str
    ) -> None:
        touched = cursor.updated_at >> rows.TOUCHED_SHIFT
        row = rows.cursor_row(cursor, info.facts_hash, last_writer)
        db.write(_BEGIN_CURSOR, (key, *row, touched, *_NOBODY))

    def _cursor_row(self, cursor: Cursor, facts: bytes, commit: Commit) -> tuple[Any, ...]:
        wrote = writer(commit.checkpoint) if commit.checkpoint else None
        return (*rows.cursor_row(cursor, facts, wrote), cursor.updated_at >> rows.TOUCHED_SHIFT)

    def _add_commit(self, db: Statements, key: int, commit: Commit) -> None:
        """Write the rows of a commit of a thread that has no cursor yet."""
        parts, values = self._parts_of(key, commit)
        if parts:
            db.write(f"SELECT add_history(%s{_arguments(parts)})", (key, *values))

    def _parts_of(self, key: int, commit: Commit) -> tuple[tuple[str, ...], list[Any]]:
        """Return the parts of a commit that add rows, and their values."""
        base, point = key << 32, commit.checkpoint
        parts: list[str] = []
        values: list[Any] = []

        def add(name: str, row: Iterable[Any]) -> None:
            parts.append(name)
            values.extend(row)

        if commit.records:
            add("records", _by_column(rows.record_row(base, record) for record in commit.records))
        if point is not None:
            add("point", rows.checkpoint_row(base, point))
            if point.step % SPENDING_STEPS == 0:
                spent = rows.spending_body([*self._spending(key, point.step - 1), Spending.of(point)])
                add("spent", (base | point.step, spent))
        if commit.snapshot is not None:
            head = base | commit.cursor.head
            add("part", (head, snapshots.part_of(commit.snapshot, self._parts(base, head - 1))))
        if commit.ledger:
            add("entries", _by_column(rows.ledger_row(base, entry) for entry in commit.ledger))
        if commit.graph is not None:
            add("brought", commit.graph)
        return tuple(parts), values

    def delete(self, deletion: Deletion) -> list[LedgerEntry]:
        from hitl_tui.stores.deletion import deletion_entries

        with self._server.transaction() as db:
            names = list(deletion.versions)
            there = dict(db.rows("SELECT id, key FROM hold_threads(?)", (names,)))
            for name in names:
                if name not in there:
                    self._forget(name)
            entries = deletion_entries(self, deletion)
            keys = [there[name] for name in names]
            lines = [(*rows.ledger_row(0, entry), entry.thread_id) for entry in entries]
            if lines:
                db.write(_DELETE, (keys, *_by_column(lines)))
            for name in names:
                self._notify(db, name)
        for name in names:
            self._forget(name)
        return entries

    def space(self) -> Space:
        return Space(*self._rows(_SPACE)[0])

    def vacuum(self) -> Space:
        with self._server.transaction() as db:
            db.run(_DROP_GRAPHS)
        for table in schema.TABLES:
            self._rows(f"VACUUM (FULL, ANALYZE) {table}")
        return self.space()

    # -- who is at a thread -----------------------------------------------------------------------

    def now(self) -> int:
        return self._server.clock.now()

    def acquire(self, thread_id: str, lease: Lease, now: int) -> Lease | None:
        with self._server.transaction() as db:
            key = self._locked(db, thread_id)
            dead = refuse_takeover(thread_id, self.lease(thread_id), lease, now)
            db.write(f"UPDATE cursor SET {_TAKE} WHERE thread = %s", (*msgspec.structs.astuple(lease), key))
            self._notify(db, thread_id)
        return dead

    def _locked(self, db: Statements, thread_id: str) -> int:
        """Lock a thread until the end of the transaction; returns its key."""
        there = db.rows(f"{_STANDS} FOR UPDATE OF c", (thread_id,))
        if not there:
            self._forget(thread_id)
            raise unknown_thread(thread_id)
        key = int(there[0][0])
        if self._keys.get(thread_id, key) != key:  # another process has deleted the thread of that name
            self._forget(thread_id)
        self._keys[thread_id] = key
        return key

    def renew(self, thread_id: str, token: str, expires_at: int) -> None:
        sql = "UPDATE cursor SET expires_at = ? WHERE thread = ? AND token = ? RETURNING 1"
        if not self._rows(sql, (expires_at, self._key(thread_id), token)):
            raise lease_lost(thread_id, self.lease(thread_id))

    def release(self, thread_id: str, token: str) -> None:
        with releasing(token):
            self._write(
                thread_id,
                f"UPDATE cursor SET {_NO_LEASE} WHERE thread = ? AND token = ? RETURNING 1",
                (self._find(thread_id), token),
            )

    def request_pause(self, thread_id: str, request: PauseRequest | None) -> None:
        with self._server.transaction() as db:
            key = self._locked(db, thread_id)
            db.run("DELETE FROM pause WHERE thread = ?", (key,))
            if request is not None:
                row = (key, request.actor, request.note, request.at, int(request.at_once))
                db.run("INSERT INTO pause (thread, actor, note, at, at_once) VALUES (?, ?, ?, ?, ?)", row)
            self._notify(db, thread_id)

    def attend(self, thread_id: str, presence: Presence, now: int, over: str = "") -> None:
        with self._server.transaction() as db:
            key = self._locked(db, thread_id)
            others = with_presence(self._attending(key), presence, now, over)
            db.run("DELETE FROM presence WHERE thread = ?", (key,))
            for other in others:
                row = (key, other.lease.token, rows.presence_body(other))
                db.run("INSERT INTO presence (thread, token, body) VALUES (?, ?, ?)", row)
            self._notify(db, thread_id)

    def leave(self, thread_id: str, token: str) -> None:
        with releasing(token):
            self._write(
                thread_id,
                "DELETE FROM presence WHERE thread = ? AND token = ? RETURNING 1",
                (self._find(thread_id), token),
            )

    def _write(self, thread_id: str, statement: str, values: tuple[Any, ...]) -> None:
        """Execute a repeatable statement, and notify others if it changed a row."""
        notifying = f"WITH moved AS ({statement}) SELECT pg_notify(?, ?) FROM moved LIMIT 1"
        if self._rows(notifying, (*values, self._channel, thread_id)):
            self._note_own_commit(thread_id)

    # -- what is new ------------------------------------------------------------------------------

    def _notify(self, db: Statements, thread_id: str) -> None:
        """Notify others, when the transaction is committed, that a thread was written."""
        db.rows("SELECT pg_notify(?, ?)", (self._channel, thread_id))

    def _note_own_commit(self, thread_id: str) -> None:
        if self._listener is not None:
            self._listener.count_notice(thread_id)

    def stamp(self, thread_id: str) -> Stamp | None:
        there = self._rows(_STANDS, (thread_id,))
        return tuple(there[0]) if there else None

    def changes(self, thread_id: str | None = None) -> object:
        return self._listening().count(thread_id)

    def subscribe(self, wake: Callable[[], object], thread_id: str | None = None) -> Callable[[], None]:
        return self._listening().subscribe(wake, thread_id)

    def _listening(self) -> Listener:
        with self._lock:
            if self._listener is None:
                self._listener = Listener(self._server, self._channel)
            return self._listener

    # -- who is who -------------------------------------------------------------------------------

    def roles(self, login: str = "") -> tuple[str, ...]:
        return tuple(name for (name,) in self._rows(_ROLES, (login or self.login,)))

    def may_delete(self, login: str | None = None) -> bool:
        return bool(self._rows(_MAY_DELETE, (self.login if login is None else login,)) == [(True,)])

    def rights(self) -> frozenset[Right]:
        ((runs, decides, operates),) = self._rows(_RIGHTS)
        held: dict[Right, bool] = {"run": runs, "decide": decides, "operate": operates}
        return frozenset(right for right, is_held in held.items() if is_held)

    def make_roles(self) -> None:
        """Make the roles of `roles.ROLES` and give them their rights; calling it again changes nothing.

        Raises:
            StoreUnusable: this user has no right to.
        """
        from hitl_tui.stores.postgres.roles import statements

        jobs = GRANTS if self._jobs.exist() else ()
        with self._server.transaction() as db:
            for statement in (*statements(self._server.schema), *jobs):
                db.write(statement, None)

    def threads(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        waiting: bool = False,
    ) -> list[ThreadSummary]:
        page = super().threads(query, limit, after, within, waiting=waiting)
        if not page or not self._jobs.exist():
            return page
        jobs = {job.thread: job for job in self._jobs.of_threads([line.info.thread_id for line in page])}
        return [replace(line, job=jobs.get(line.info.thread_id)) for line in page] if jobs else page

    def waiting(self, limit: int) -> list[Waiting]:
        waiting = super().waiting(limit)
        orphaned = self._jobs.orphaned([line.thread.info.thread_id for line in waiting])
        if not orphaned:
            return waiting
        return [replace(line, orphan=line.thread.info.thread_id in orphaned) for line in waiting]

    def _forget(self, thread_id: str) -> None:
        super()._forget(thread_id)
        self._jobs.forget(thread_id)

    def jobs(self) -> PostgresJobs:
        return self._jobs

    # -- the rest ---------------------------------------------------------------------------------

    def reader(self) -> Reader | None:
        return f"{__name__}:{at.__name__}", self._url

    def _faults_of_store(self) -> Iterator[Fault]:
        given = self._rows("SELECT threads FROM store")
        yield from faults.of_store(self._rows, given[0][0] if given else 0)

    def _rows(self, sql: str, values: tuple[Any, ...] | dict[str, Any] = ()) -> list[Any]:
        try:
            return self._server.rows(sql, values)
        except UnicodeEncodeError:
            # No database can store a lone surrogate, so no thread has such a name.
            return []

    def _damaged(self, what: str, hint: str = "") -> HitlError:
        return LogCorrupt(f"the store {self._server.name} is damaged: {what}", hint or "restore a backup")

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self._server.close()


def _by_column(lines: Iterable[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*lines, strict=True)]
