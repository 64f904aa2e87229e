"""The tables of a store file.

Rows of a thread have the id `thread << 32 | number` (seq, step or entry): one integer key, so a
thread's rows lie side by side in the order they were written and need no index beside the table.
Nothing is stored that follows from another row: the thread's name, `prev_record_hash`, `prev_hash`.
A snapshot holds what is new since the one before it (see snapshots).
"""

from __future__ import annotations

APPLICATION_ID = 0x4869546C
"""Marks a SQLite file as ours ("HiTl")."""

PAGE_BYTES = 1024
"""The page size of new files: a commit writes a page of each of a few tables, so small ones are faster."""

VERSION = 18
"""The version of the tables; a file with another one is not read."""

TABLES = (
    # `past` is JSON of a carried thread's `Past` parts, `owner` of whom a child thread runs for; NULL for
    # none.
    # The key of a thread that was deleted is never given again: another process may still hold it.
    """CREATE TABLE thread (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        graph_name TEXT NOT NULL,
        graph_digest TEXT NOT NULL,
        source BLOB NOT NULL,
        parent INTEGER REFERENCES thread (key),
        fork_step INTEGER NOT NULL,
        fork_seq INTEGER NOT NULL,
        shared_entries INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        created_by TEXT,
        past BLOB,
        owner BLOB,
        facts_hash BLOB NOT NULL
    )""",
    "CREATE INDEX thread_parent ON thread (parent) WHERE parent IS NOT NULL",
    # `body` is the whole cursor as JSON; the columns before it are what lists and guards need of it.
    # Lists are ordered by when a thread moved.  An index on the moment itself would be written with each
    # commit; one on about its second (`touched`) is not, and the moment orders the few within it.
    """CREATE TABLE cursor (
        thread INTEGER PRIMARY KEY REFERENCES thread (key),
        version INTEGER NOT NULL,
        head INTEGER NOT NULL,
        status TEXT NOT NULL,
        reason TEXT NOT NULL,
        position TEXT NOT NULL,
        waiting_for TEXT NOT NULL,
        waiting_since INTEGER,
        last_writer TEXT NOT NULL,
        updated_at INTEGER NOT NULL,
        body BLOB NOT NULL,
        digest BLOB NOT NULL,
        touched INTEGER NOT NULL
    )""",
    "CREATE INDEX cursor_touched ON cursor (touched)",
    # Nothing is written for commits of a thread that goes on running, or on waiting for the same.
    "CREATE INDEX cursor_waiting ON cursor (waiting_since) WHERE waiting_since IS NOT NULL",
    "CREATE INDEX cursor_running ON cursor (thread) WHERE status = 'running'",
    """CREATE TABLE lease (
        thread INTEGER PRIMARY KEY REFERENCES thread (key),
        token TEXT NOT NULL,
        user TEXT NOT NULL,
        host TEXT NOT NULL,
        pid INTEGER NOT NULL,
        process_started INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        boot TEXT NOT NULL,
        namespace TEXT NOT NULL
    )""",
    # What somebody asks of the process that holds a thread.
    """CREATE TABLE pause (
        thread INTEGER PRIMARY KEY REFERENCES thread (key),
        actor TEXT,
        note TEXT,
        at INTEGER NOT NULL,
        at_once INTEGER NOT NULL
    )""",
    # Who is at a question of a thread; `body` is the `Presence` as JSON.
    """CREATE TABLE presence (
        thread INTEGER NOT NULL REFERENCES thread (key),
        token TEXT NOT NULL,
        body BLOB NOT NULL
    )""",
    # `flags`, `hashes`: see rows.  `change` and `result` are JSON, of values or of patches, `lineage` is
    # JSON; NULL for none.
    """CREATE TABLE record (
        id INTEGER PRIMARY KEY,
        step INTEGER NOT NULL,
        invocation INTEGER NOT NULL,
        node TEXT NOT NULL,
        path TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        channel TEXT NOT NULL,
        reducer TEXT NOT NULL,
        flags INTEGER NOT NULL,
        actor TEXT,
        note TEXT,
        at INTEGER NOT NULL,
        hashes BLOB NOT NULL,
        change BLOB NOT NULL,
        result BLOB,
        lineage BLOB
    )""",
    # An empty `parent_thread` is the thread itself; `uses` and what follows is JSON, NULL for none.
    """CREATE TABLE checkpoint (
        id INTEGER PRIMARY KEY,
        parent_thread TEXT,
        parent_step INTEGER NOT NULL,
        source TEXT NOT NULL,
        node TEXT NOT NULL,
        position TEXT NOT NULL,
        status TEXT NOT NULL,
        reason TEXT NOT NULL,
        invocation INTEGER NOT NULL,
        iteration INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        duration INTEGER NOT NULL,
        tokens_in INTEGER NOT NULL,
        tokens_out INTEGER NOT NULL,
        cost REAL,
        hashes BLOB NOT NULL,
        first_seq INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        actor TEXT,
        note TEXT,
        decision TEXT,
        made_by TEXT,
        text TEXT,
        uses BLOB,
        branches BLOB,
        tainted BLOB,
        read BLOB,
        compensations BLOB,
        calls BLOB,
        streamed BLOB,
        artifacts BLOB,
        origin TEXT
    )""",
    "CREATE TABLE snapshot (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    # What a thread's own steps took up to one of them, as JSON: spares summing up a long thread.
    "CREATE TABLE spending (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    """CREATE TABLE ledger (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        step INTEGER NOT NULL,
        request_id TEXT,
        actor TEXT,
        note TEXT,
        seen BLOB NOT NULL,
        data BLOB NOT NULL,
        at INTEGER NOT NULL,
        hash BLOB NOT NULL,
        pending_hash BLOB NOT NULL,
        request_hash BLOB NOT NULL,
        account TEXT NOT NULL,
        signature TEXT NOT NULL,
        made_by TEXT NOT NULL,
        cursor_hash BLOB NOT NULL
    )""",
    # The store's own ledger, of the threads that were deleted; as many as keys were given and have gone.
    """CREATE TABLE store_ledger (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        step INTEGER NOT NULL,
        request_id TEXT,
        actor TEXT,
        note TEXT,
        seen BLOB NOT NULL,
        data BLOB NOT NULL,
        at INTEGER NOT NULL,
        hash BLOB NOT NULL,
        pending_hash BLOB NOT NULL,
        request_hash BLOB NOT NULL,
        account TEXT NOT NULL,
        signature TEXT NOT NULL,
        made_by TEXT NOT NULL,
        cursor_hash BLOB NOT NULL,
        thread TEXT NOT NULL
    )""",
    # Graphs as data, each as JSON by the SHA-256 of it, in hex.
    "CREATE TABLE graph (digest TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
)
