"""Threads in one PostgreSQL, for many processes on many hosts: whole commits, one round trip each (SPEC 10).

Times are the server's, so that leases and deadlines mean the same on hosts whose clocks differ.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.log.records import Commit, Cursor, LedgerEntry
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
    ThreadSummary,
    Waiting,
)
from hitl_tui.errors import HitlError, LogCorrupt, ValueRejected
from hitl_tui.stores import faults, rows, snapshots
from hitl_tui.stores.base import (
    attended,
    check_durability,
    check_thread_id,
    name_taken,
    not_held,
    refuse_takeover,
    unknown,
    writer,
)
from hitl_tui.stores.lease import giving_back
from hitl_tui.stores.lineage import Carried, Past, Spent
from hitl_tui.stores.postgres import schema
from hitl_tui.stores.postgres.jobs import GRANTS, PostgresJobs
from hitl_tui.stores.postgres.listener import Listener
from hitl_tui.stores.postgres.server import NOW, Server, Statements
from hitl_tui.stores.tables import SPENDING_STEPS, Dialect, TableStore

_DIALECT = Dialect(
    owner="{}.owner_thread",
    members="SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST({} AS json))",
    json="convert_from({}, 'UTF8') COLLATE \"C\"",
    like="ILIKE",
    # A third of the time of ILIKE, which takes each letter for one of any alphabet.
    named="lower(t.id) LIKE lower(:like COLLATE \"C\") ESCAPE '!'",
    # One by one and in their order: sums of floats differ by it, and what is noted is checked to the bit.
    spending=(
        "SELECT source, node, CAST(1 AS bigint), tokens_in, tokens_out, coalesce(cost, 0.0), "
        "CAST(cost IS NULL AS int), duration FROM checkpoint WHERE id > ? AND id <= ? ORDER BY id"
    ),
    ledger=f"{rows.LEDGER}, login",
)
_TYPES = {
    "text": (
        "note text actor decision node path channel reducer parent_thread source position status reason "
        "kind request_id account signature text origin"
    ),
    "bytea": (
        "hashes change result lineage read uses branches tainted compensations calls streamed artifacts "
        "seen data hash request_hash"
    ),
    "double precision": "cost",
}
_TYPE_OF = {name: kind for kind, names in _TYPES.items() for name in names.split()}
_LEASE = rows.LEASE.split(", ")
_NO_LEASE = ", ".join(f"{name} = NULL" for name in _LEASE)
_TAKE = ", ".join(f"{name} = %s" for name in _LEASE)
_CURSOR = (
    "version = %s, head = %s, status = %s, reason = %s, position = %s, waiting_for = %s, "
    f"waiting_since = nullif(%s, {rows.NEVER}), last_writer = coalesce(%s, last_writer), updated_at = %s, "
    "body = %s, digest = %s, touched = %s"
)
_ADD_CURSOR = (
    f"INSERT INTO cursor ({rows.CURSOR}, touched, thread) "
    f"SELECT %s, %s, %s, %s, %s, %s, nullif(%s::bigint, {rows.NEVER}), %s, %s, %s, %s, %s, %s "
)
_ADD_THREAD = (
    "INSERT INTO thread (id, graph_name, graph_digest, source, parent, fork_step, fork_seq, shared_entries, "
    "created_at, created_by, past, owner, facts_hash, owner_thread, key) "
    f"VALUES ({', '.join('?' * 15)})"
)
_ADD_STORE_LEDGER = f"INSERT INTO store_ledger ({rows.LEDGER}, thread) VALUES ({', '.join('?' * 14)})"
_GRAPH_OF = "trim(both '\"' FROM (convert_from({}, 'UTF8')::json -> '{}')::text)"
# A graph that no thread was begun with or has gone on with.
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
_MAY_DELETE = "SELECT has_table_privilege(oid, 'thread'::regclass, 'DELETE') FROM pg_roles WHERE rolname = ?"
_TABLES = [name for name in schema.TABLES if name not in ("graph", "store", "store_ledger")]
"""Those of threads, in the order in which a thread is taken out of them."""


def _columns(names: str) -> list[str]:
    """Marks for a row, each with its column's type."""
    return [f"%s::{_TYPE_OF.get(name, 'bigint')}" for name in names.split(", ")]


def _insert_rows(table: str, names: str) -> str:
    """Inserts rows that are given by columns."""
    marks = ", ".join(f"{mark}[]" for mark in _columns(names))
    return f"INSERT INTO {table} ({names}) SELECT part.* FROM moved, unnest({marks}) AS part"


_ADD_ROWS = {
    "records": _insert_rows("record", rows.RECORD),
    "point": (
        f"INSERT INTO checkpoint ({rows.CHECKPOINT}) SELECT {', '.join(_columns(rows.CHECKPOINT))} FROM moved"
    ),
    "spent": "INSERT INTO spending (id, body) SELECT %s, %s FROM moved",
    "part": "INSERT INTO snapshot (id, body) SELECT %s, %s FROM moved",
    "entries": _insert_rows("ledger", rows.LEDGER),
    # A body that is there already is replaced: it may have been damaged since.
    "brought": (
        "INSERT INTO graph (digest, body) SELECT %s, %s FROM moved "
        "ON CONFLICT (digest) DO UPDATE SET body = excluded.body WHERE graph.body <> excluded.body"
    ),
}


@lru_cache(maxsize=128)
def _statement(moved: str, parts: tuple[str, ...], result: str = "1") -> str:
    """A statement that writes all of a commit where `moved` gives a row, and nothing where it gives none."""
    named = "".join(f", {name} AS ({_ADD_ROWS[name]})" for name in parts)
    return f"WITH moved AS ({moved}){named} SELECT {result} FROM moved"


def at(url: str) -> PostgresCheckpointer:
    """The store of a URL, for another process that checks it."""
    return PostgresCheckpointer(url, create=False)


class PostgresCheckpointer(TableStore):
    """A store in a schema of a PostgreSQL database, for processes on any hosts.

    Args:
        url: see `Server`.
        create: its tables are made where they are missing, and made newer where they are of an older version.
        durability: "none" waits for no disk; with the others each commit is on the server's disk when it
            returns.

    Raises:
        UsageError: the URL can't be read.
        StoreUnusable: the server can't be reached or lets nobody in, or the tables are of another version.
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
            key = self._add_thread(db, info, cursor)
            last_writer = info.created_by or ""
            if first is not None and first.checkpoint:
                last_writer = writer(first.checkpoint)
            self._add_cursor(db, key, info, first.cursor if first else cursor, last_writer)
            if first is not None:
                self._add_commit(db, key, first)
            self._tell(db, info.thread_id)

    def commit(self, thread_id: str, commit: Commit) -> Stamp | None:
        key = self._key(thread_id)
        cursor = commit.cursor
        row = self._cursor_row(cursor, self._facts(thread_id), commit)
        lease: tuple[Any, ...] = ()
        head = f"UPDATE cursor SET {_CURSOR}"
        if commit.takes:
            head, lease = f"{head}, {_TAKE}", msgspec.structs.astuple(commit.takes)
        elif commit.gives_back:
            head = f"{head}, {_NO_LEASE}"
        held = None if commit.takes else commit.lease_token
        guard = "WHERE thread = %s AND version = %s AND token IS NOT DISTINCT FROM %s::text RETURNING thread"
        parts, values = self._parts_of(key, commit)
        statement = _statement(f"{head} {guard}", parts, f"{NOW}, pg_notify(%s, %s)")
        given = (*row, *lease, key, commit.expected_version, held, *values, self._channel, thread_id)

        def write(db: Statements) -> bool:
            return db.committed(statement, given)

        try:
            written, attempts = self._server.attempt(write)
        except UnicodeEncodeError as error:
            raise ValueRejected(f"a text has a lone surrogate: {error}") from error
        # Where an answer was lost, its commit may stand: then another one of the same version is refused.
        if not written and not (attempts > 1 and self._stands(key, commit, row[-2])):
            raise self._refusal(thread_id, key, commit)
        self._heard(thread_id)
        return (key, cursor.version) if commit.gives_back else None

    def _stands(self, key: int, commit: Commit, digest: bytes) -> bool:
        """Whether a commit is what is stored, or part of it."""
        checks: list[tuple[str, int, bytes]] = [("digest FROM cursor WHERE thread", key, digest)]
        if (point := commit.checkpoint) is not None:
            hashes = point.state_hash + point.ledger_hash + point.checkpoint_hash
            checks.append(("hashes FROM checkpoint WHERE id", key << 32 | point.step, hashes))
        if commit.ledger:
            entry = commit.ledger[0]
            checks.append(("hash FROM ledger WHERE id", key << 32 | entry.n, entry.hash))
        return any(self._value(bytes, f"SELECT {where} = ?", (at,)) == is_ for where, at, is_ in checks)

    def write_threads(self, threads: Iterable[Carried]) -> None:
        with self._server.transaction() as db:
            for info, past, commits in threads:
                start, last_writer = Cursor(check_thread_id(info.thread_id)), info.created_by or ""
                cursor, key = start, self._add_thread(db, info, start, past)
                for commit in commits:
                    self._add_commit(db, key, commit)
                    cursor = commit.cursor
                    last_writer = writer(commit.checkpoint) if commit.checkpoint else last_writer
                self._add_cursor(db, key, info, cursor, last_writer)
                self._tell(db, info.thread_id)

    def _add_thread(self, db: Statements, info: ThreadInfo, cursor: Cursor, past: Sequence[Past] = ()) -> int:
        # Keys are given one after the other, so whoever waits here sees what was made meanwhile.
        key = int(db.rows("UPDATE store SET threads = threads + 1 RETURNING threads")[0][0])
        if db.rows("SELECT 1 FROM thread WHERE id = ?", (info.thread_id,)):
            raise name_taken(info.thread_id)
        parent = None
        if info.parent is not None:
            known = db.rows("SELECT key FROM thread WHERE id = ?", (info.parent,))
            if not known:
                self._forget(info.parent)
                raise unknown(info.parent)
            parent = known[0][0]
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
            info.owner.thread_id if info.owner else None,
            key,
        )
        db.run(_ADD_THREAD, row)
        return key

    def _add_cursor(
        self, db: Statements, key: int, info: ThreadInfo, cursor: Cursor, last_writer: str
    ) -> None:
        touched = cursor.updated_at >> rows.TOUCHED_SHIFT
        row = (*rows.cursor_row(cursor, info.facts_hash, last_writer), touched, key)
        db.write(_ADD_CURSOR, row)

    def _cursor_row(self, cursor: Cursor, facts: bytes, commit: Commit) -> tuple[Any, ...]:
        wrote = writer(commit.checkpoint) if commit.checkpoint else None
        return (*rows.cursor_row(cursor, facts, wrote), cursor.updated_at >> rows.TOUCHED_SHIFT)

    def _add_commit(self, db: Statements, key: int, commit: Commit) -> None:
        """Write the rows of a commit whatever its thread's version is."""
        parts, values = self._parts_of(key, commit)
        if parts:
            db.write(_statement("SELECT 1", parts), values)

    def _parts_of(self, key: int, commit: Commit) -> tuple[tuple[str, ...], list[Any]]:
        """What of a commit is added, and the values of it."""
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
                spent = rows.spending_body([*self._spending(key, point.step - 1), Spent.of(point)])
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
        from hitl_tui.stores.deletion import farewells

        with self._server.transaction() as db:
            # Neither a commit nor another deletion comes between what is looked at and what is done.
            db.run("SELECT 1 FROM store FOR UPDATE")
            names = list(deletion.versions)
            there = dict(
                db.rows(
                    "SELECT t.id, t.key FROM thread AS t JOIN cursor AS c ON c.thread = t.key "
                    "WHERE t.id = ANY(?) ORDER BY t.key FOR UPDATE OF c",
                    (names,),
                )
            )
            for name in names:
                if name not in there:
                    self._forget(name)
            entries = farewells(self, deletion)
            keys = [there[name] for name in names]
            for table in _TABLES:
                self._take_out(db, table, keys)
            for entry in entries:
                row = (*rows.ledger_row(0, entry), entry.thread_id)
                db.run(
                    f"INSERT INTO store_ledger ({rows.LEDGER}, thread) VALUES ({', '.join('?' * 14)})", row
                )
            for name in names:
                self._tell(db, name)
        for name in names:
            self._forget(name)
        return entries

    def _take_out(self, db: Statements, table: str, keys: Sequence[int]) -> None:
        if table in faults.NUMBERED:
            for key in keys:
                span = (key << 32, key << 32 | rows.NUMBER)
                db.run(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", span)
        else:
            column = "key" if table == "thread" else "thread"
            db.run(f"DELETE FROM {table} WHERE {column} = ANY(?)", (list(keys),))

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
            self._tell(db, thread_id)
        return dead

    def _locked(self, db: Statements, thread_id: str) -> int:
        """The key of a thread that nobody else writes until the end of the transaction."""
        there = db.rows(f"{_STANDS} FOR UPDATE OF c", (thread_id,))
        if not there:
            self._forget(thread_id)
            raise unknown(thread_id)
        self._keys[thread_id] = key = int(there[0][0])
        return key

    def renew(self, thread_id: str, token: str, expires_at: int) -> None:
        sql = "UPDATE cursor SET expires_at = ? WHERE thread = ? AND token = ? RETURNING 1"
        if not self._rows(sql, (expires_at, self._key(thread_id), token)):
            raise not_held(thread_id, self.lease(thread_id))

    def release(self, thread_id: str, token: str) -> None:
        with giving_back(token):
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
            self._tell(db, thread_id)

    def attend(self, thread_id: str, presence: Presence, now: int, over: str = "") -> None:
        with self._server.transaction() as db:
            key = self._locked(db, thread_id)
            others = attended(self._attending(key), presence, now, over)
            db.run("DELETE FROM presence WHERE thread = ?", (key,))
            for other in others:
                row = (key, other.lease.token, rows.presence_body(other))
                db.run("INSERT INTO presence (thread, token, body) VALUES (?, ?, ?)", row)
            self._tell(db, thread_id)

    def leave(self, thread_id: str, token: str) -> None:
        with giving_back(token):
            self._write(
                thread_id,
                "DELETE FROM presence WHERE thread = ? AND token = ? RETURNING 1",
                (self._find(thread_id), token),
            )

    def _write(self, thread_id: str, statement: str, values: tuple[Any, ...]) -> None:
        """Carry out a statement that may be carried out twice, and tell of it where it concerned a row."""
        told = f"WITH moved AS ({statement}) SELECT pg_notify(?, ?) FROM moved LIMIT 1"
        if self._rows(told, (*values, self._channel, thread_id)):
            self._heard(thread_id)

    # -- what is new ------------------------------------------------------------------------------

    def _tell(self, db: Statements, thread_id: str) -> None:
        """Have others told, once the transaction has been committed, that a thread was written."""
        db.rows("SELECT pg_notify(?, ?)", (self._channel, thread_id))

    def _heard(self, thread_id: str) -> None:
        if self._listener is not None:
            self._listener.hear(thread_id)

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

    def make_roles(self) -> None:
        """Make the roles of `roles.ROLES`, and give them what they may do; again changes nothing.

        Raises:
            StoreUnusable: this user may not.
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
            # A lone surrogate is in no database, so nothing has such a name.
            return []

    def _damaged(self, what: str, hint: str = "") -> HitlError:
        return LogCorrupt(
            f"the store {self._server.name} is damaged: {what}", hint or "go back to a copy of it"
        )

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self._server.close()


def _by_column(lines: Iterable[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*lines, strict=True)]
