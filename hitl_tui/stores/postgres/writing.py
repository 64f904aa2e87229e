"""SQL functions that write a PostgreSQL store: roles can't write its tables in any other way.

Each runs with the rights of the tables' owner and checks what the session's login may write (docs/roles.md).
The owner could write the tables directly, so for the owner only the order of rows is checked.
"""

from __future__ import annotations

from typing import Final

from hitl_tui.engine.log.signing import DECISIONS
from hitl_tui.stores import rows

_DECISIONS: Final = ", ".join(f"'{kind}'" for kind in sorted(DECISIONS))
RUN_KINDS: Final = (
    "input", "call", "failed", "stop", "rollback", "rolled_back", "undone", "undo_failed",
)  # fmt: skip
"""Kinds of ledger entries that only a run or a rollback writes, never a reviewer."""
_RUNS: Final = ", ".join(f"'{kind}'" for kind in RUN_KINDS)
_RECORD_ROW: Final = (
    "id bigint, step bigint, invocation bigint, node text, path text, attempt bigint, channel text, "
    "reducer text, flags bigint, at bigint, hashes bytea, change bytea, actor text, note text, result bytea, "
    "lineage bytea"
)
_SAFE: Final = "SECURITY DEFINER SET search_path FROM CURRENT"
_ROWS: Final = (
    "records record_row[] DEFAULT NULL, point checkpoint DEFAULT NULL, spent spending DEFAULT NULL, "
    "part snapshot DEFAULT NULL, entries ledger[] DEFAULT NULL, brought graph DEFAULT NULL"
)

# Both terms are about the login of the session: the function itself runs as the owner of the tables.
_HELPERS: Final = (
    f"CREATE TYPE record_row AS ({_RECORD_ROW})",
    """CREATE FUNCTION has_role(role text) RETURNS boolean
        LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
        BEGIN
            RETURN coalesce(pg_has_role(session_user, to_regrole(quote_ident(role))::oid, 'MEMBER'), false);
        END $$""",
    f"""CREATE FUNCTION is_owner() RETURNS boolean LANGUAGE plpgsql STABLE {_SAFE} AS $$
        BEGIN
            RETURN pg_has_role(session_user, current_user, 'MEMBER');
        END $$""",
    """CREATE FUNCTION refuse_unless(allowed boolean, why text) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            IF allowed IS NOT TRUE THEN
                RAISE insufficient_privilege USING MESSAGE = why;
            END IF;
        END $$""",
    # A default may be written or left out.
    """CREATE FUNCTION not_default(value json) RETURNS text LANGUAGE sql IMMUTABLE AS $$
        SELECT CASE WHEN value::text NOT IN ('null', '{}', '[]', '""') THEN value::text END
    $$""",
    """CREATE FUNCTION is_named(logins json) RETURNS boolean
    LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
        SELECT logins IS NULL OR json_array_length(logins) = 0 OR EXISTS (
            SELECT FROM json_array_elements_text(logins) AS name WHERE has_role(name))
    $$""",
)

# An allowance is a decision of its own: the entry that grants it is in the ledger, and none that revokes it.
_ALLOWANCES = """
    CREATE FUNCTION is_allowed(data json) RETURNS boolean
    LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
        SELECT coalesce(json_array_length(data -> 'allowances'), 0) > 0 AND NOT EXISTS (
            SELECT FROM json_array_elements(data -> 'allowances') AS given
            WHERE coalesce((
                SELECT l.kind FROM thread AS t JOIN ledger AS l
                    ON l.id BETWEEN t.key << 32 AND t.key << 32 | 4294967295
                WHERE t.id = given ->> 'thread' AND l.kind IN ('allowed', 'allowance_revoked')
                    AND convert_from(l.data, 'UTF8')::json ->> 'id' = given ->> 'id'
                ORDER BY l.id DESC LIMIT 1), '') <> 'allowed')
    $$
"""
# The answers that let a run continue, wherever a cursor keeps them.
_KEPT = """
    CREATE FUNCTION kept_answers(body json) RETURNS TABLE (n bigint, hash text)
    LANGUAGE sql IMMUTABLE AS $$
        SELECT (kept ->> 'n')::bigint, kept ->> 'request_hash' FROM (
            SELECT json_array_elements(body -> 'passed') AS kept
            UNION ALL SELECT json_array_elements(body -> 'answers')
            UNION ALL SELECT json_array_elements(branch -> 'answers')
                FROM json_array_elements(body -> 'branches') AS branch
        ) AS every
    $$
"""

# One commit: numbers continue the existing ones, and columns agree with the hashed body.
_CHECK_ORDER = """
    CREATE FUNCTION check_order(was cursor, moved cursor, before json, after json,
        records record_row[], point checkpoint, spent spending, part snapshot, entries ledger[])
    RETURNS void LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
    DECLARE
        base bigint := moved.thread << 32;
        first_entry bigint;
        first_record bigint;
        facts thread;
        said record;
        steps int := CASE WHEN (point).id IS NULL THEN 0 ELSE 1 END;
    BEGIN
        SELECT coalesce(b.ledger_n, 0), coalesce(b.last_seq, 0) INTO first_entry, first_record
            FROM json_to_record(before) AS b (ledger_n bigint, last_seq bigint);
        SELECT * INTO said FROM json_to_record(after) AS a (thread_id text, version bigint, head bigint,
            status text, reason text, position text, ledger_n bigint, last_seq bigint);
        SELECT * INTO facts FROM thread WHERE key = moved.thread;
        PERFORM refuse_unless(
            moved.version = was.version + 1 AND moved.head = was.head + steps
            AND ((point).id IS NULL OR (point).id = base | moved.head)
            AND (records IS NULL OR (point).id IS NOT NULL)
            AND ((spent).id IS NULL OR (spent).id = base | moved.head)
            AND ((part).id IS NULL OR (part).id = base | moved.head)
            AND NOT EXISTS (SELECT FROM unnest(entries) WITH ORDINALITY AS e
                WHERE e.id IS DISTINCT FROM (base | first_entry + e.ordinality))
            AND NOT EXISTS (SELECT FROM unnest(records) WITH ORDINALITY AS r
                WHERE r.id IS DISTINCT FROM (base | first_record + r.ordinality))
            AND coalesce(said.ledger_n, 0) = first_entry + coalesce(cardinality(entries), 0)
            AND coalesce(said.last_seq, 0) = first_record + coalesce(cardinality(records), 0),
            'the rows of a commit follow on what is stored');
        PERFORM refuse_unless(
            moved.digest = sha256(moved.body || facts.facts_hash)
            AND said.thread_id = facts.id
            AND coalesce(said.version, 0) = moved.version
            AND coalesce(said.head, -1) = moved.head
            AND coalesce(said.status, 'pending') = moved.status
            AND coalesce(said.reason, '') = moved.reason
            AND coalesce(said.position, 'end') = moved.position,
            'the columns of a cursor say what its body says');
    END $$
"""
# Which roles may write which entries.  A worker decides nothing: a breakpoint only stops, an allowance was
# decided by somebody else, and a thread inside another ends with it.
_CHECK_ENTRIES = f"""
    CREATE FUNCTION check_entries(of_thread bigint, before json, entries ledger[], is_new boolean)
    RETURNS void LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
    DECLARE
        operates boolean := has_role('hitl_operator');
        runs boolean := operates OR has_role('hitl_worker');
        decides boolean := operates OR has_role('hitl_reviewer');
        entry ledger;
        request json;
        votes bigint;
    BEGIN
        FOREACH entry IN ARRAY coalesce(entries, '{{}}') LOOP
            request := (SELECT asked FROM json_array_elements(before -> 'pending') AS asked
                WHERE asked ->> 'id' = entry.request_id);
            IF NOT is_new AND entry.kind IN ('answer', 'vote', 'timeout') THEN
                PERFORM refuse_unless(request IS NOT NULL
                    AND encode(entry.request_hash, 'hex') = split_part(request ->> 'request_hash', ':', 2),
                    'an answer is to a request that waits');
            END IF;
            IF entry.kind = 'answer' AND coalesce((request ->> 'quorum')::bigint, 1) > 1
                AND request ->> 'thread' = '' THEN
                SELECT CASE WHEN json_array_length(request -> 'logins') > 0
                        THEN count(DISTINCT login) ELSE count(*) END
                    INTO votes FROM ledger
                    WHERE id BETWEEN of_thread << 32 AND entry.id AND kind = 'vote'
                        AND request_id = entry.request_id
                        AND (json_array_length(request -> 'logins') = 0 OR login <> session_user);
                PERFORM refuse_unless(is_new OR votes + 1 >= (request ->> 'quorum')::bigint,
                    'the request waits for more votes');
            END IF;
            IF entry.kind IN ({_DECISIONS}) AND NOT decides THEN
                PERFORM refuse_unless(
                    entry.kind = 'answer' AND request ->> 'breakpoint' = 'true'
                    OR entry.kind = 'answer' AND entry.made_by = 'policy' AND entry.actor IS NULL
                        AND request ->> 'shape' <> ''
                        AND is_allowed(convert_from(entry.data, 'UTF8')::json)
                    OR entry.kind IN ('cancel', 'fork') AND entry.actor IS NULL
                        AND (SELECT owner IS NOT NULL FROM thread WHERE key = of_thread),
                    'a hitl_worker decides nothing');
            END IF;
            IF entry.kind IN ({_RUNS}) THEN
                PERFORM refuse_unless(runs, 'a hitl_reviewer runs no thread');
            END IF;
            IF entry.kind = 'rollback' THEN
                PERFORM refuse_unless(operates, 'a hitl_operator rolls a thread back');
            END IF;
        END LOOP;
    END $$
"""
# At each place the newest request to other logins was answered: no edit moves a thread past an open one, not
# even after the thread ended without an answer.
_MAY_PASS = """
    CREATE FUNCTION may_pass(of_thread bigint) RETURNS boolean
    LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
        SELECT NOT EXISTS (
            SELECT FROM (
                SELECT DISTINCT ON (asked ->> 'node', asked ->> 'when') request_id, asked FROM (
                    SELECT id, request_id, convert_from(data, 'UTF8')::json AS asked FROM ledger
                    WHERE id BETWEEN of_thread << 32 AND of_thread << 32 | 4294967295 AND kind = 'request'
                ) AS every
                ORDER BY asked ->> 'node', asked ->> 'when', id DESC
            ) AS newest
            WHERE NOT is_named(asked -> 'logins') AND NOT EXISTS (
                SELECT FROM ledger AS l
                WHERE l.id BETWEEN of_thread << 32 AND of_thread << 32 | 4294967295
                    AND l.kind IN ('answer', 'timeout') AND l.request_id = newest.request_id))
    $$
"""
# Only answers let a run continue.  A request leaves the cursor only with an entry that says why.
# Each answer in the cursor is in the ledger, too.  A reviewer moves a thread only by decisions.
_CHECK_MOVE = """
    CREATE FUNCTION check_move(was cursor, moved cursor, before json, after json, point checkpoint,
        entries ledger[])
    RETURNS void LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
    DECLARE
        operates boolean := has_role('hitl_operator');
        runs boolean := operates OR has_role('hitl_worker');
        decides boolean := operates OR has_role('hitl_reviewer');
        request json;
        earlier json;
    BEGIN
        FOR request IN SELECT json_array_elements(before -> 'pending') LOOP
            PERFORM refuse_unless(
                moved.status IN ('cancelled', 'failed')
                OR EXISTS (SELECT FROM json_array_elements(after -> 'pending') AS asked
                    WHERE asked ->> 'id' = request ->> 'id')
                OR EXISTS (SELECT FROM unnest(entries) AS e WHERE e.request_id = request ->> 'id'
                    AND e.kind IN ('answer', 'timeout', 'withdrawn', 'reopened')),
                'a request waits until the ledger says what became of it');
            PERFORM refuse_unless(
                NOT decides OR is_named(request -> 'logins')
                OR moved.status IN ('cancelled', 'failed')
                OR EXISTS (SELECT FROM unnest(entries) AS e WHERE e.kind = 'rollback'
                    OR e.request_id = request ->> 'id' AND e.kind IN ('answer', 'timeout'))
                OR moved.position = was.position AND EXISTS (
                    SELECT FROM json_array_elements(after -> 'pending') AS asked
                    WHERE asked ->> 'node' = request ->> 'node' AND asked ->> 'when' = request ->> 'when'
                        AND (asked -> 'logins')::text = (request -> 'logins')::text),
                'the question is for other logins');
        END LOOP;
        FOR request IN SELECT json_array_elements(after -> 'pending') LOOP
            earlier := (SELECT asked FROM json_array_elements(before -> 'pending') AS asked
                WHERE asked ->> 'id' = request ->> 'id');
            IF earlier IS NOT NULL THEN
                PERFORM refuse_unless(
                    (earlier -> 'logins')::text IS NOT DISTINCT FROM (request -> 'logins')::text
                    AND earlier ->> 'quorum' IS NOT DISTINCT FROM request ->> 'quorum'
                    AND earlier ->> 'deadline' IS NOT DISTINCT FROM request ->> 'deadline'
                    AND earlier ->> 'breakpoint' IS NOT DISTINCT FROM request ->> 'breakpoint'
                    AND earlier ->> 'request_hash' IS NOT DISTINCT FROM request ->> 'request_hash',
                    'the terms of a request stay while it waits');
            ELSE
                PERFORM refuse_unless(EXISTS (SELECT FROM unnest(entries) AS e
                    WHERE e.kind = 'request' AND e.request_id = request ->> 'id'
                        AND encode(e.request_hash, 'hex') = split_part(request ->> 'request_hash', ':', 2)
                        AND coalesce((convert_from(e.data, 'UTF8')::json -> 'logins')::text, '[]')
                            = coalesce((request -> 'logins')::text, '[]')),
                    'a request that waits is in the ledger');
                PERFORM refuse_unless(runs OR EXISTS (
                    SELECT FROM json_array_elements(before -> 'pending') AS asked
                    WHERE asked ->> 'node' = request ->> 'node' AND asked ->> 'when' = request ->> 'when'
                        AND (asked -> 'logins')::text IS NOT DISTINCT FROM (request -> 'logins')::text
                        AND asked ->> 'quorum' IS NOT DISTINCT FROM request ->> 'quorum'),
                    'a hitl_reviewer asks only what was asked before');
            END IF;
        END LOOP;
        PERFORM refuse_unless(NOT EXISTS (
            SELECT FROM unnest(entries) AS e WHERE e.kind = 'request' AND (
                EXISTS (SELECT FROM json_array_elements(before -> 'pending') AS asked
                    WHERE asked ->> 'id' = e.request_id)
                OR NOT EXISTS (SELECT FROM json_array_elements(after -> 'pending') AS asked
                    WHERE asked ->> 'id' = e.request_id))), 'a request is asked once, and waits');
        PERFORM refuse_unless(
            coalesce(after -> 'passed', after -> 'answers', after -> 'branches') IS NULL OR NOT EXISTS (
            SELECT n, hash FROM kept_answers(after) EXCEPT SELECT n, hash FROM kept_answers(before)
            EXCEPT SELECT l.id & 4294967295, 'sha256:' || encode(l.request_hash, 'hex')
                FROM (SELECT id, kind, request_hash FROM unnest(entries)
                    UNION ALL SELECT id, kind, request_hash FROM ledger
                        WHERE id = ANY(ARRAY(SELECT was.thread << 32 | n FROM kept_answers(after)))) AS l
                WHERE l.kind IN ('answer', 'timeout')),
            'what counts as answered is answered in the ledger');
        PERFORM refuse_unless((point).source IS DISTINCT FROM 'human' OR EXISTS (
            SELECT FROM unnest(entries) AS e WHERE e.kind = 'timeout' OR e.kind IN (DECISION_KINDS)),
            'what a person did is in the ledger');
        IF (point).source = 'human' AND NOT decides THEN
            PERFORM refuse_unless(
                EXISTS (SELECT FROM unnest(entries) AS e WHERE e.kind IN ('answer', 'timeout')),
                'a hitl_worker decides nothing');
        END IF;
        IF moved.position <> was.position
            AND EXISTS (SELECT FROM unnest(entries) AS e WHERE e.kind = 'update_state') THEN
            PERFORM refuse_unless(may_pass(was.thread), 'the question is for other logins');
        END IF;
        IF NOT runs THEN
            PERFORM refuse_unless(
                moved.status IN (was.status, 'running')
                OR EXISTS (SELECT FROM unnest(entries) AS e WHERE e.kind IN (
                    'answer', 'timeout', 'update_state', 'extend', 'cancel', 'reopened', 'withdrawn')),
                'a hitl_reviewer ends a thread by a decision');
            PERFORM refuse_unless(
                moved.status <> 'running' AND coalesce((point).source, 'human') = 'human'
                AND (moved.position = was.position OR EXISTS (SELECT FROM unnest(entries) AS e
                    WHERE e.kind IN ('answer', 'timeout', 'update_state'))),
                'a hitl_reviewer runs no thread');
            PERFORM refuse_unless(NOT EXISTS (
                    SELECT FROM unnest(ARRAY[
                        'goal', 'constraints', 'context', 'private_context', 'invocation']) AS name
                    WHERE not_default(before -> name) IS DISTINCT FROM not_default(after -> name))
                AND ((before -> 'limits')::text IS NOT DISTINCT FROM (after -> 'limits')::text
                    OR EXISTS (SELECT FROM unnest(entries) AS e WHERE e.kind = 'extend'))
                AND NOT EXISTS (
                    SELECT branch ->> 'path', (branch -> 'outcome')::text
                        FROM json_array_elements(after -> 'branches') AS branch
                        WHERE json_typeof(branch -> 'outcome') <> 'null'
                    EXCEPT SELECT branch ->> 'path', (branch -> 'outcome')::text
                        FROM json_array_elements(before -> 'branches') AS branch),
                'a hitl_reviewer changes no input and no result of a thread');
        END IF;
    END $$
""".replace("DECISION_KINDS", _DECISIONS)
_ADD_ROWS = f"""
    CREATE FUNCTION add_rows({_ROWS}) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        IF records IS NOT NULL THEN
            INSERT INTO record SELECT * FROM unnest(records);
        END IF;
        IF (point).id IS NOT NULL THEN
            INSERT INTO checkpoint SELECT (point).*;
        END IF;
        IF (spent).id IS NOT NULL THEN
            INSERT INTO spending SELECT (spent).*;
        END IF;
        IF (part).id IS NOT NULL THEN
            INSERT INTO snapshot SELECT (part).*;
        END IF;
        IF entries IS NOT NULL THEN
            INSERT INTO ledger (id, kind, step, request_id, actor, note, seen, data, at, hash, pending_hash,
                request_hash, account, signature, made_by, cursor_hash)
            SELECT e.id, e.kind, e.step, e.request_id, e.actor, e.note, e.seen, e.data, e.at, e.hash,
                e.pending_hash, e.request_hash, e.account, e.signature, e.made_by, e.cursor_hash
            FROM unnest(entries) AS e;
        END IF;
        -- A body that already exists is replaced: it may have been damaged since.
        IF (brought).digest IS NOT NULL THEN
            INSERT INTO graph SELECT (brought).*
            ON CONFLICT (digest) DO UPDATE SET body = excluded.body WHERE graph.body <> excluded.body;
        END IF;
    END $$
"""
_LEASE: Final = ", ".join(
    f"{name} = CASE WHEN lease_change = '' THEN cursor.{name} ELSE moved.{name} END"
    for name in rows.LEASE.split(", ")
)
# Returns the time; nothing if the thread has another version or somebody else holds it.
_COMMIT = f"""
    CREATE FUNCTION commit_thread(expected bigint, held text, lease_change text, moved cursor, {_ROWS})
    RETURNS bigint LANGUAGE plpgsql {_SAFE} AS $$
    DECLARE
        was "cursor";
        before json;
        after json;
    BEGIN
        SELECT * INTO was FROM cursor
            WHERE thread = moved.thread AND version = expected AND token IS NOT DISTINCT FROM held FOR UPDATE;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        IF NOT is_owner() THEN
            before := convert_from(was.body, 'UTF8')::json;
            after := convert_from(moved.body, 'UTF8')::json;
            PERFORM check_order(was, moved, before, after, records, point, spent, part, entries);
            PERFORM check_entries(moved.thread, before, entries, false);
            PERFORM check_move(was, moved, before, after, point, entries);
        END IF;
        UPDATE cursor SET version = moved.version, head = moved.head, status = moved.status,
            reason = moved.reason, position = moved.position, waiting_for = moved.waiting_for,
            waiting_since = moved.waiting_since, last_writer = coalesce(moved.last_writer, last_writer),
            updated_at = moved.updated_at, body = moved.body, digest = moved.digest, touched = moved.touched,
            {_LEASE}
            WHERE thread = moved.thread;
        PERFORM add_rows(records, point, spent, part, entries, brought);
        RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    END $$
"""
# Keys are assigned one at a time, so a waiting process then sees threads made meanwhile.
_BEGIN = f"""
    CREATE FUNCTION begin_thread(made thread, parent_id text) RETURNS bigint LANGUAGE plpgsql {_SAFE} AS $$
    BEGIN
        UPDATE store SET threads = threads + 1 RETURNING threads INTO made.key;
        IF EXISTS (SELECT FROM thread WHERE id = made.id) THEN
            RETURN -1;
        END IF;
        IF parent_id IS NOT NULL THEN
            SELECT key INTO made.parent FROM thread WHERE id = parent_id;
            IF NOT FOUND THEN
                RETURN -2;
            END IF;
        END IF;
        INSERT INTO thread SELECT made.*;
        RETURN made.key;
    END $$
"""
_HISTORY = f"""
    CREATE FUNCTION add_history(of_thread bigint, {_ROWS}) RETURNS void LANGUAGE plpgsql {_SAFE} AS $$
    BEGIN
        PERFORM refuse_unless(NOT EXISTS (SELECT FROM cursor WHERE thread = of_thread),
            'a thread that is there gets only commits');
        IF NOT is_owner() THEN
            PERFORM refuse_unless(NOT EXISTS (
                SELECT FROM (SELECT id FROM unnest(records) UNION ALL SELECT id FROM unnest(entries)
                    UNION ALL VALUES ((point).id), ((spent).id), ((part).id)) AS each (id)
                WHERE id IS NOT NULL AND id >> 32 <> of_thread), 'the rows are of another thread');
            PERFORM check_entries(of_thread, NULL, entries, true);
        END IF;
        PERFORM add_rows(records, point, spent, part, entries, brought);
    END $$
"""
_PLACE = f"""
    CREATE FUNCTION begin_cursor(made cursor) RETURNS void LANGUAGE plpgsql {_SAFE} AS $$
    BEGIN
        IF NOT is_owner() THEN
            PERFORM refuse_unless(
                made.token IS NULL
                AND made.digest
                    = sha256(made.body || (SELECT facts_hash FROM thread WHERE key = made.thread)),
                'a thread begins with its own cursor, and nobody holds it');
        END IF;
        INSERT INTO cursor SELECT made.*;
    END $$
"""
_ONE_CURSOR = """
    CREATE FUNCTION need_cursor() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        PERFORM refuse_unless(EXISTS (SELECT FROM cursor WHERE thread = NEW.key)
            OR NOT EXISTS (SELECT FROM thread WHERE key = NEW.key), 'a thread is made with its cursor');
        RETURN NULL;
    END $$
"""
# No commit or other deletion can happen between the checks and the deletion.
_HOLD = f"""
    CREATE FUNCTION hold_threads(names text[]) RETURNS TABLE (id text, key bigint)
    LANGUAGE plpgsql {_SAFE} AS $$
    #variable_conflict use_column
    BEGIN
        PERFORM 1 FROM store FOR UPDATE;
        RETURN QUERY SELECT t.id::text, t.key FROM thread AS t JOIN cursor AS c ON c.thread = t.key
            WHERE t.id = ANY(names) ORDER BY t.key FOR UPDATE OF c;
    END $$
"""
_DELETE = f"""
    CREATE FUNCTION delete_threads(keys bigint[], entries store_ledger[]) RETURNS void
    LANGUAGE plpgsql {_SAFE} AS $$
    DECLARE of_thread bigint;
    BEGIN
        PERFORM refuse_unless(
            cardinality(keys) = cardinality(entries) AND NOT EXISTS (
                SELECT t.id FROM thread AS t WHERE t.key = ANY(keys)
                EXCEPT SELECT e.thread FROM unnest(entries) AS e),
            'the ledger of the store says of each thread who deleted it');
        DELETE FROM pause WHERE thread = ANY(keys);
        DELETE FROM presence WHERE thread = ANY(keys);
        FOREACH of_thread IN ARRAY keys LOOP
            DELETE FROM spending WHERE id BETWEEN of_thread << 32 AND of_thread << 32 | 4294967295;
            DELETE FROM snapshot WHERE id BETWEEN of_thread << 32 AND of_thread << 32 | 4294967295;
            DELETE FROM ledger WHERE id BETWEEN of_thread << 32 AND of_thread << 32 | 4294967295;
            DELETE FROM record WHERE id BETWEEN of_thread << 32 AND of_thread << 32 | 4294967295;
            DELETE FROM checkpoint WHERE id BETWEEN of_thread << 32 AND of_thread << 32 | 4294967295;
        END LOOP;
        DELETE FROM cursor WHERE thread = ANY(keys);
        DELETE FROM thread WHERE key = ANY(keys);
        INSERT INTO store_ledger (id, kind, step, request_id, actor, note, seen, data, at, hash, pending_hash,
            request_hash, account, signature, made_by, cursor_hash, thread)
        SELECT e.id, e.kind, e.step, e.request_id, e.actor, e.note, e.seen, e.data, e.at, e.hash,
            e.pending_hash, e.request_hash, e.account, e.signature, e.made_by, e.cursor_hash, e.thread
        FROM unnest(entries) AS e;
    END $$
"""

# Lists show presence to everybody, so one unreadable row would hide all threads.
_PRESENCE = """
    CREATE FUNCTION check_presence() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    DECLARE
        said json := convert_from(NEW.body, 'UTF8')::json;
        lease json := said -> 'lease';
    BEGIN
        PERFORM refuse_unless(
            length(decode(said ->> 'request_hash', 'base64')) >= 0
            AND NOT EXISTS (SELECT FROM (VALUES
                    (said, 'request'), (said, 'request_hash'), (said, 'actor'), (said, 'account'),
                    (lease, 'token'), (lease, 'user'), (lease, 'host'), (lease, 'boot'),
                    (lease, 'namespace')) AS texts (place, name)
                WHERE (json_typeof(place -> name) = 'string' AND length(place ->> name) >= 0) IS NOT TRUE)
            AND NOT EXISTS (SELECT FROM (VALUES (said, 'since'), (said, 'until'), (lease, 'pid'),
                    (lease, 'process_started'), (lease, 'expires_at')) AS numbers (place, name)
                WHERE (json_typeof(place -> name) = 'number'
                    AND place ->> name ~ '^[0-9]{1,18}$') IS NOT TRUE)
            AND json_typeof(said -> 'claims') = 'boolean' AND json_typeof(said -> 'lasts') = 'boolean'
            AND lease ->> 'token' = NEW.token, 'presence says who has a thread open');
        RETURN NEW;
    END $$
"""

COMMITS: Final = (
    "commit_thread(bigint, text, text, cursor, record_row[], checkpoint, spending, snapshot, ledger[], graph)"
)
BEGINS: Final = (
    "begin_thread(thread, text)",
    "add_history(bigint, record_row[], checkpoint, spending, snapshot, ledger[], graph)",
    "begin_cursor(cursor)",
)
DELETES: Final = ("hold_threads(text[])", "delete_threads(bigint[], store_ledger[])")
_INNER: Final = (
    "is_allowed(json)", "may_pass(bigint)", "kept_answers(json)",
    "check_order(cursor, cursor, json, json, record_row[], checkpoint, spending, snapshot, ledger[])",
    "check_entries(bigint, json, ledger[], boolean)",
    "check_move(cursor, cursor, json, json, checkpoint, ledger[])",
    "add_rows(record_row[], checkpoint, spending, snapshot, ledger[], graph)",
)  # fmt: skip
_EVERY: Final = ", ".join((COMMITS, *BEGINS, *DELETES, *_INNER))

FUNCTIONS: Final = (
    *_HELPERS, _PRESENCE, _ALLOWANCES, _KEPT, _CHECK_ORDER, _CHECK_ENTRIES, _MAY_PASS, _CHECK_MOVE, _ADD_ROWS,
    _COMMIT, _BEGIN, _HISTORY, _PLACE, _ONE_CURSOR, _HOLD, _DELETE,
    """CREATE CONSTRAINT TRIGGER whole AFTER INSERT ON thread DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        EXECUTE FUNCTION need_cursor()""",
    """CREATE TRIGGER readable BEFORE INSERT OR UPDATE ON presence FOR EACH ROW
        EXECUTE FUNCTION check_presence()""",
    f"REVOKE EXECUTE ON FUNCTION {_EVERY} FROM PUBLIC",
)  # fmt: skip
"""SQL that makes the functions, after the tables."""
