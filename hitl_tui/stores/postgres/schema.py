"""Tables of a PostgreSQL store, by version.

They are those of a SQLite store, with the same ids (`thread << 32 | number`) and columns, with two
differences. A lease is stored in its thread's cursor, so that one update checks the token and writes the
cursor.  Keys of threads are counted in the row of the store, so that a thread that disappeared without an
entry is noticed.
"""

from __future__ import annotations

from hitl_tui.stores.postgres.writing import FUNCTIONS
from hitl_tui.stores.tables import DECISION_INDEX

NAME = "hitl_tui"
"""The schema of the tables, unless the URL names another."""

VERSION = 2
"""Version of the tables that this program reads and writes."""

_LEDGER = """
    id bigint PRIMARY KEY,
    kind text NOT NULL,
    step bigint NOT NULL,
    request_id text,
    actor text,
    note text,
    seen bytea NOT NULL,
    data bytea NOT NULL,
    at bigint NOT NULL,
    hash bytea NOT NULL,
    pending_hash bytea NOT NULL,
    request_hash bytea NOT NULL,
    account text NOT NULL,
    signature text NOT NULL,
    made_by text NOT NULL,
    cursor_hash bytea NOT NULL,
    login text NOT NULL DEFAULT session_user
"""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # One row: the version of the tables, and how many keys were given to threads.
        "CREATE TABLE store (version bigint NOT NULL, threads bigint NOT NULL)",
        "INSERT INTO store VALUES (0, 0)",
        # Names are ordered by their bytes, as everywhere else.  `owner_thread` is of the JSON in `owner`.
        """CREATE TABLE thread (
            key bigint PRIMARY KEY,
            id text COLLATE "C" NOT NULL UNIQUE,
            graph_name text NOT NULL,
            graph_digest text NOT NULL,
            source bytea NOT NULL,
            parent bigint REFERENCES thread (key),
            fork_step bigint NOT NULL,
            fork_seq bigint NOT NULL,
            shared_entries bigint NOT NULL,
            created_at bigint NOT NULL,
            created_by text,
            past bytea,
            owner bytea,
            facts_hash bytea NOT NULL,
            owner_thread text COLLATE "C"
        )""",
        "CREATE INDEX thread_parent ON thread (parent) WHERE parent IS NOT NULL",
        # Room on each page, so that a commit writes no index: nothing that lists are ordered by changes.
        """CREATE TABLE cursor (
            thread bigint PRIMARY KEY REFERENCES thread (key),
            version bigint NOT NULL,
            head bigint NOT NULL,
            status text NOT NULL,
            reason text NOT NULL,
            position text NOT NULL,
            waiting_for text NOT NULL,
            waiting_since bigint,
            last_writer text NOT NULL,
            updated_at bigint NOT NULL,
            body bytea NOT NULL,
            digest bytea NOT NULL,
            touched bigint NOT NULL,
            token text,
            "user" text,
            host text,
            pid bigint,
            process_started bigint,
            expires_at bigint,
            boot text,
            namespace text,
            CONSTRAINT whole_lease CHECK (num_nulls(
                token, "user", host, pid, process_started, expires_at, boot, namespace) IN (0, 8)
                OR token IS NULL)
        ) WITH (fillfactor = 50)""",
        "CREATE INDEX cursor_touched ON cursor (touched)",
        "CREATE INDEX cursor_waiting ON cursor (waiting_since) WHERE waiting_since IS NOT NULL",
        "CREATE INDEX cursor_running ON cursor (thread) WHERE status = 'running'",
        """CREATE VIEW lease AS
            SELECT thread, token, "user", host, pid, process_started, expires_at, boot, namespace
            FROM cursor WHERE token IS NOT NULL""",
        # An update that only removes a lease does not change the thread.
        """CREATE RULE give_back AS ON DELETE TO lease DO INSTEAD
            UPDATE cursor SET token = NULL WHERE thread = OLD.thread AND token = OLD.token""",
        """CREATE TABLE pause (
            thread bigint PRIMARY KEY REFERENCES thread (key), actor text, note text, at bigint NOT NULL,
            at_once bigint NOT NULL
        )""",
        """CREATE TABLE presence (
            thread bigint NOT NULL REFERENCES thread (key), token text NOT NULL, body bytea NOT NULL
        )""",
        "CREATE INDEX presence_thread ON presence (thread)",
        """CREATE TABLE record (
            id bigint PRIMARY KEY,
            step bigint NOT NULL,
            invocation bigint NOT NULL,
            node text NOT NULL,
            path text NOT NULL,
            attempt bigint NOT NULL,
            channel text NOT NULL,
            reducer text NOT NULL,
            flags bigint NOT NULL,
            at bigint NOT NULL,
            hashes bytea NOT NULL,
            change bytea NOT NULL,
            actor text,
            note text,
            result bytea,
            lineage bytea
        )""",
        """CREATE TABLE checkpoint (
            id bigint PRIMARY KEY,
            parent_thread text,
            parent_step bigint NOT NULL,
            source text NOT NULL,
            node text NOT NULL,
            position text NOT NULL,
            status text NOT NULL,
            reason text NOT NULL,
            invocation bigint NOT NULL,
            iteration bigint NOT NULL,
            attempt bigint NOT NULL,
            duration bigint NOT NULL,
            tokens_in bigint NOT NULL,
            tokens_out bigint NOT NULL,
            cost double precision,
            hashes bytea NOT NULL,
            first_seq bigint NOT NULL,
            last_seq bigint NOT NULL,
            at bigint NOT NULL,
            read bytea,
            actor text,
            note text,
            decision text,
            made_by text,
            text text,
            uses bytea,
            branches bytea,
            tainted bytea,
            compensations bytea,
            calls bytea,
            streamed bytea,
            artifacts bytea,
            origin text
        )""",
        "CREATE TABLE snapshot (id bigint PRIMARY KEY, body bytea NOT NULL)",
        "CREATE TABLE spending (id bigint PRIMARY KEY, body bytea NOT NULL)",
        f"CREATE TABLE ledger ({_LEDGER})",
        DECISION_INDEX,
        f"CREATE TABLE store_ledger ({_LEDGER}, thread text NOT NULL)",
        """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE insufficient_privilege USING MESSAGE = TG_ARGV[0]; END $$""",
        # Whatever name a user gives, an entry's login is the one that wrote it.
        *(
            f"""CREATE TRIGGER login BEFORE INSERT ON {table} FOR EACH ROW
                WHEN (NEW.login <> session_user::text)
                EXECUTE FUNCTION refuse('an entry of the ledger has the login that writes it')"""
            for table in ("ledger", "store_ledger")
        ),
        # Whatever program answers: if a request names logins, the answerer is one of them, and a deadline is
        # applied only when it has passed.  A writer knows the server's time to within a round trip.
        """CREATE FUNCTION requests_of(entry bigint, request text) RETURNS SETOF json
            LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
            SELECT convert_from(data, 'UTF8')::json FROM ledger
            WHERE id BETWEEN entry >> 32 << 32 AND entry AND kind = 'request' AND request_id = request
            $$""",
        """CREATE FUNCTION check_answer() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
            DECLARE deadline bigint;
            BEGIN
                IF NEW.kind = 'timeout' THEN
                    SELECT CASE WHEN bool_and(data ->> 'deadline' IS NOT NULL)
                        THEN max((data ->> 'deadline')::bigint) END INTO deadline
                    FROM requests_of(NEW.id, NEW.request_id) AS data;
                    IF deadline IS NULL OR NEW.at <= deadline
                        OR to_timestamp(deadline / 1e6) > clock_timestamp() + interval '1 second' THEN
                        RAISE insufficient_privilege USING MESSAGE = 'the deadline is to come';
                    END IF;
                ELSIF EXISTS (SELECT FROM requests_of(NEW.id, NEW.request_id) AS data
                    WHERE NOT is_named(data -> 'logins')) THEN
                    RAISE insufficient_privilege USING MESSAGE = 'the question is for other logins';
                END IF;
                RETURN NEW;
            END $$""",
        """CREATE TRIGGER answers BEFORE INSERT ON ledger FOR EACH ROW
            WHEN (NEW.kind IN ('answer', 'vote', 'timeout')) EXECUTE FUNCTION check_answer()""",
        *(
            f"""CREATE TRIGGER appended BEFORE UPDATE OR TRUNCATE ON {table}
                EXECUTE FUNCTION refuse('what was written in the log stays as it was')"""
            for table in ("record", "checkpoint", "snapshot", "ledger", "store_ledger")
        ),
        """CREATE TRIGGER kept BEFORE DELETE ON store_ledger
            EXECUTE FUNCTION refuse('who deleted what stays written')""",
        """CREATE TRIGGER forward BEFORE UPDATE ON cursor FOR EACH ROW
            WHEN (NEW.thread <> OLD.thread OR NEW.version < OLD.version OR NEW.head < OLD.head)
            EXECUTE FUNCTION refuse('a thread''s version only grows')""",
        """CREATE TRIGGER counted BEFORE UPDATE ON store FOR EACH ROW
            WHEN (NEW.threads NOT IN (OLD.threads, OLD.threads + 1))
            EXECUTE FUNCTION refuse('the keys of threads are counted one by one')""",
        "CREATE TABLE graph (digest text PRIMARY KEY, body bytea NOT NULL)",
        # A damaged graph is repaired by the next thread that uses it; it can't be changed into another graph.
        """CREATE TRIGGER named BEFORE INSERT OR UPDATE ON graph FOR EACH ROW
            WHEN (encode(sha256(NEW.body), 'hex') <> NEW.digest)
            EXECUTE FUNCTION refuse('a graph has the digest of its text')""",
    ),
    FUNCTIONS,
)
"""SQL that upgrades the tables from version n - 1 to version n."""

assert len(MIGRATIONS) == VERSION

TABLES = (
    "pause", "presence", "spending", "snapshot", "ledger", "record", "checkpoint", "cursor", "thread",
    "graph", "store", "store_ledger",
)  # fmt: skip
GUARDS = (
    "ledger.login", "store_ledger.login", "ledger.answers", "record.appended", "checkpoint.appended",
    "snapshot.appended", "ledger.appended", "store_ledger.appended", "store_ledger.kept", "cursor.forward",
    "store.counted", "graph.named", "thread.whole",
)  # fmt: skip
"""The triggers that keep the log as it was written."""
