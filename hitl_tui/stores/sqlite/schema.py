"""Tables of a SQLite store.

Rows of a thread have the id `thread << 32 | number` (seq, step or entry): one integer key, so that a
thread's rows are adjacent, in the order of writing, and need no other index.
Columns never repeat another row: the thread's name, `prev_record_hash` and `prev_hash` are not stored.
A snapshot holds what is new since the one before it (see snapshots).
"""

from __future__ import annotations

from hitl_tui.stores.tables import DECISION_INDEX

APPLICATION_ID = 0x4869546C
"""The application id of our SQLite files ("HiTl")."""

PAGE_BYTES = 1024
"""The page size of new files: a commit writes a page of each of a few tables, so small ones are faster."""

VERSION = 18
"""Version of the tables; files of other versions are not read."""

TABLES = (
    # `past` is JSON of a carried thread's `Past` parts, `owner` of whom a child thread runs for; NULL for
    # none.
    # The key of a deleted thread is never used again: another process may still have it.
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
    # `body` is the whole cursor as JSON; the columns before it are for lists and checks.
    # Lists are ordered by the time of a thread's last change.  An index on that time would be written with
    # each commit; the one on `touched`, about its second, is not, and the time orders the few rows within a
    # second.
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
    # Written only when a thread begins or ends to run, or waits for something else.
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
    # Pause requests to the process that holds a thread.
    """CREATE TABLE pause (
        thread INTEGER PRIMARY KEY REFERENCES thread (key),
        actor TEXT,
        note TEXT,
        at INTEGER NOT NULL,
        at_once INTEGER NOT NULL
    )""",
    # Who views or claims a thread's request; `body` is the `Presence` as JSON.
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
    # An empty `parent_thread` means the thread itself; `uses` and the columns after it are JSON, NULL for
    # none.
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
    # Spending of a thread's own steps up to one of them, as JSON, so that long threads need not be summed up.
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
    DECISION_INDEX,
    # The store's own ledger of deleted threads: one entry for each used key without a thread.
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
    # Graphs as JSON, by the hex SHA-256 of it.
    "CREATE TABLE graph (digest TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
)
