"""Jobs of a PostgreSQL store: procrastinate's tables, and triggers that fill them.

A commit after which a thread can continue queues it in the same transaction, so that each decision has its
job, whatever program made it.  Queueing needs only psycopg: only workers, and a process that makes the
tables, need procrastinate.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hitl_tui.engine.log.jobs import AtWork, HandedGraph, OrphanGraph, WorkerInfo, WorkerJob
from hitl_tui.engine.log.threads import Lease
from hitl_tui.errors import StoreUnusable, UsageError
from hitl_tui.stores.base import unknown_thread
from hitl_tui.stores.postgres.server import NOW, Server

VERSION: Final = 3
"""Version of these tables; each belongs to one version of procrastinate."""

DIGEST: Final = 32
"""Length of the part of a graph's digest in its queue's name: the name of a channel has at most 63 bytes."""

_PENDING = "coalesce(json_array_length(convert_from({}, 'UTF8')::json -> 'pending'), 0)"
_DUE = """
    SELECT to_timestamp(min(least((asked ->> 'deadline')::bigint, (asked ->> 'escalate_at')::bigint)) / 1e6)
    FROM json_array_elements(coalesce(convert_from({}, 'UTF8')::json -> 'pending', '[]')) AS asked
"""
_QUEUE = (
    f"left(coalesce(nullif(convert_from(c.body, 'UTF8')::json ->> 'graph', ''), t.graph_digest), {DIGEST})"
)
# A thread has at most one waiting job.  An existing one is updated, which locks it until the end of the
# transaction: no worker can take it and read the thread as it was before.
_PUT = f"""
    CREATE FUNCTION put_job(of_thread bigint, due timestamptz, tries int, why text) RETURNS void
    LANGUAGE plpgsql AS $$
    DECLARE queued record;
    BEGIN
        INSERT INTO procrastinate_jobs
            (queue_name, task_name, priority, lock, queueing_lock, args, scheduled_at)
        SELECT
            {_QUEUE},
            'advance', w.priority, t.key::text, t.key::text,
            jsonb_build_object('thread', t.id, 'version', c.version, 'tries', tries, 'why', why),
            greatest(due, CASE WHEN w.start_at > now() THEN w.start_at END)
        FROM work AS w JOIN thread AS t ON t.key = w.thread JOIN cursor AS c ON c.thread = w.thread
        WHERE w.thread = of_thread
        ON CONFLICT (queueing_lock) WHERE status = 'todo' DO UPDATE SET
            queue_name = excluded.queue_name, priority = excluded.priority, args = excluded.args,
            scheduled_at = excluded.scheduled_at
        RETURNING id, queue_name INTO queued;
        IF FOUND AND due IS NULL THEN
            PERFORM pg_notify('procrastinate_queue_v1#' || queued.queue_name,
                json_build_object('type', 'job_inserted', 'job_id', queued.id)::text);
        END IF;
    END $$
"""
_TIMER = f"""
    CREATE FUNCTION put_timer(of_thread bigint) RETURNS void
    LANGUAGE plpgsql AS $$
    DECLARE due timestamptz;
    BEGIN
        SELECT ({_DUE.format("c.body")}) INTO due FROM cursor AS c
        WHERE c.thread = of_thread AND c.status = 'waiting';
        IF due IS NOT NULL AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs
            WHERE queueing_lock = of_thread::text AND status = 'todo' AND scheduled_at IS NULL) THEN
            PERFORM put_job(of_thread, due, 0, 'a deadline');
        END IF;
    END $$
"""
# A subgraph's thread is run by its owner: when it can continue or ends, and the owner does not run, the owner
# is queued.
_PUT_OWNER = """
    CREATE FUNCTION put_owner(of_thread bigint) RETURNS void
    LANGUAGE plpgsql AS $$
    DECLARE above record;
    BEGIN
        SELECT key, owner_thread AS owner INTO above FROM thread WHERE key = of_thread;
        WHILE above.owner IS NOT NULL LOOP
            SELECT t.key, t.owner_thread AS owner, c.status INTO above
            FROM thread AS t JOIN cursor AS c ON c.thread = t.key WHERE t.id = above.owner;
            IF NOT FOUND OR above.status <> 'waiting' THEN
                RETURN;
            END IF;
            IF EXISTS (SELECT 1 FROM work WHERE thread = above.key) THEN
                PERFORM put_job(above.key, NULL, 0, '');
                RETURN;
            END IF;
        END LOOP;
    END $$
"""
# A thread can continue after its first input, an answer, an edit that moves it, or a raised limit.  After a
# run that stopped it can't; then only a deadline may be left to wait for.
_GOES_ON = f"""
    CREATE FUNCTION goes_on() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = {{schema}}, pg_temp AS $$
    DECLARE
        ended boolean := NEW.status NOT IN ('pending', 'waiting');
        let_on boolean := NOT ended AND OLD.status <> 'running' AND (
            (OLD.status, OLD.reason) <> (NEW.status, NEW.reason)
            OR {_PENDING.format("NEW.body")} < {_PENDING.format("OLD.body")});
    BEGIN
        IF ended OR let_on THEN
            PERFORM put_owner(NEW.thread);
        END IF;
        IF NOT EXISTS (SELECT 1 FROM work WHERE thread = NEW.thread) THEN
            RETURN NULL;
        END IF;
        IF ended THEN
            DELETE FROM procrastinate_jobs WHERE queueing_lock = NEW.thread::text AND status = 'todo';
        ELSIF let_on THEN
            PERFORM put_job(NEW.thread, NULL, 0, '');
        ELSE
            PERFORM put_timer(NEW.thread);
        END IF;
        RETURN NULL;
    END $$
"""
_HANDED = """
    CREATE FUNCTION handed() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    BEGIN
        PERFORM put_job(NEW.thread, NULL, 0, '');
        RETURN NULL;
    END $$
"""
# A pause also removes the queued job; the one for a deadline stays.
_LET_GO = """
    CREATE FUNCTION let_go() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    BEGIN
        DELETE FROM procrastinate_jobs
        WHERE queueing_lock = OLD.thread::text AND status = 'todo';
        RETURN NULL;
    END $$
"""
_PAUSED = f"""
    CREATE FUNCTION paused() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = {{schema}}, pg_temp AS $$
    BEGIN
        DELETE FROM procrastinate_jobs USING cursor AS c
        WHERE lock = NEW.thread::text AND procrastinate_jobs.status = 'todo' AND c.thread = NEW.thread
            AND {_PENDING.format("c.body")} = 0;
        RETURN NULL;
    END $$
"""
# Taking a job scans no jobs of other graphs, of other threads or of a later time.
_INDEXES: Final = (
    """CREATE INDEX jobs_of_thread ON procrastinate_jobs (lock) WHERE status IN ('todo', 'doing')""",
    """CREATE INDEX jobs_ready ON procrastinate_jobs (queue_name, priority DESC, id)
        WHERE status = 'todo' AND scheduled_at IS NULL""",
    """CREATE INDEX jobs_next ON procrastinate_jobs (priority DESC, id)
        WHERE status = 'todo' AND scheduled_at IS NULL""",
    """CREATE INDEX jobs_later ON procrastinate_jobs (scheduled_at)
        WHERE status = 'todo' AND scheduled_at IS NOT NULL""",
)
# Procrastinate's own function scans all jobs of the queues, later ones included.  The queue's name is
# compared as a range, so that only the index `jobs_ready` can give the order.
_TAKE = """
    CREATE FUNCTION take_job(queues text[], taker bigint) RETURNS SETOF procrastinate_jobs LANGUAGE sql AS $$
        WITH taken AS (
            SELECT ready.id FROM unnest(queues) AS queue (name), LATERAL (
                SELECT j.id, j.priority FROM procrastinate_jobs AS j
                WHERE j.status = 'todo' AND j.scheduled_at IS NULL
                    AND j.queue_name >= queue.name AND j.queue_name <= queue.name
                    AND NOT EXISTS (
                        SELECT FROM procrastinate_jobs AS other
                        WHERE other.lock = j.lock AND other.status IN ('todo', 'doing')
                            AND (other.status = 'doing' OR other.scheduled_at IS NULL
                                AND (other.priority, -other.id) > (j.priority, -j.id)))
                ORDER BY j.queue_name, j.priority DESC, j.id LIMIT 1 FOR UPDATE SKIP LOCKED
            ) AS ready ORDER BY ready.priority DESC, ready.id LIMIT 1
        )
        UPDATE procrastinate_jobs AS j SET status = 'doing', worker_id = taker
        FROM taken WHERE j.id = taken.id RETURNING j.*
    $$
"""
# Lists show the rows of jobs to everybody, so one unreadable row would hide all others.
_CHECK_JOB = """
    CREATE FUNCTION check_job() RETURNS trigger LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
    DECLARE named text;
    BEGIN
        IF NEW.lock ~ '^[1-9][0-9]{0,17}$' THEN
            named := (SELECT id FROM thread WHERE key = NEW.lock::bigint);
        END IF;
        IF (named IS NOT NULL AND NEW.task_name = 'advance'
            AND (NEW.queueing_lock IS NULL OR NEW.queueing_lock = NEW.lock)
            AND jsonb_typeof(NEW.args) = 'object' AND NEW.args ->> 'thread' = named
            AND jsonb_typeof(NEW.args -> 'version') = 'number' AND NEW.args ->> 'version' ~ '^[0-9]{1,18}$'
            AND jsonb_typeof(NEW.args -> 'tries') = 'number' AND NEW.args ->> 'tries' ~ '^[0-9]{1,9}$'
            AND jsonb_typeof(NEW.args -> 'why') = 'string' AND length(NEW.args ->> 'why') <= 10000
        ) IS NOT TRUE THEN
            RAISE insufficient_privilege USING MESSAGE = 'a job advances a thread that is there';
        END IF;
        RETURN NEW;
    END $$
"""
_CHECK_WORKER = """
    CREATE FUNCTION check_worker() RETURNS trigger LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
    BEGIN
        IF TG_OP = 'UPDATE' AND OLD.login <> session_user::text THEN
            RAISE insufficient_privilege USING MESSAGE = 'a worker is registered by its own login';
        END IF;
        NEW.login := session_user::text;
        IF (json_typeof(NEW.graphs::json) = 'array' AND NOT EXISTS (
            SELECT FROM json_array_elements(NEW.graphs::json) AS has
            WHERE (json_typeof(has) = 'object' AND json_typeof(has -> 'name') = 'string'
                AND json_typeof(has -> 'digest') = 'string'
                AND length(has ->> 'name') < 1000 AND length(has ->> 'digest') < 1000) IS NOT TRUE)
            AND NEW.started_at BETWEEN 0 AND 253370764800000000) IS NOT TRUE THEN
            RAISE insufficient_privilege USING MESSAGE = 'a worker says which graphs it has';
        END IF;
        RETURN NEW;
    END $$
"""
_OWN_LOGIN = """
    CREATE FUNCTION own_login() RETURNS trigger LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
    BEGIN
        NEW.login := session_user::text;
        RETURN NEW;
    END $$
"""
_TABLES: Final = (
    *_INDEXES,
    "CREATE TABLE queue (version bigint NOT NULL)",
    f"INSERT INTO queue VALUES ({VERSION})",
    """CREATE TABLE work (
        thread bigint PRIMARY KEY REFERENCES thread (key) ON DELETE CASCADE,
        priority int NOT NULL,
        start_at timestamptz,
        login text NOT NULL DEFAULT session_user
    )""",
    """CREATE TABLE worker (
        id bigint PRIMARY KEY REFERENCES procrastinate_workers (id) ON DELETE CASCADE,
        "user" text NOT NULL,
        host text NOT NULL,
        pid bigint NOT NULL,
        process_started bigint NOT NULL,
        boot text NOT NULL,
        namespace text NOT NULL,
        backend int NOT NULL,
        concurrency int NOT NULL,
        graphs text NOT NULL,
        started_at bigint NOT NULL,
        stopping boolean NOT NULL DEFAULT false,
        login text NOT NULL DEFAULT session_user
    )""",
    _CHECK_JOB,
    _CHECK_WORKER,
    _OWN_LOGIN,
    _PUT,
    _TAKE,
    _TIMER,
    _PUT_OWNER,
    _GOES_ON,
    _HANDED,
    _LET_GO,
    _PAUSED,
    """CREATE TRIGGER goes_on AFTER UPDATE ON cursor FOR EACH ROW
        WHEN (NEW.status <> 'running' AND NEW.version <> OLD.version) EXECUTE FUNCTION goes_on()""",
    """CREATE TRIGGER readable BEFORE INSERT OR UPDATE OF lock, queueing_lock, task_name, args
        ON procrastinate_jobs FOR EACH ROW EXECUTE FUNCTION check_job()""",
    """CREATE TRIGGER readable BEFORE INSERT OR UPDATE ON worker FOR EACH ROW
        EXECUTE FUNCTION check_worker()""",
    """CREATE TRIGGER own_login BEFORE INSERT OR UPDATE ON work FOR EACH ROW
        EXECUTE FUNCTION own_login()""",
    "CREATE TRIGGER handed AFTER INSERT OR UPDATE ON work FOR EACH ROW EXECUTE FUNCTION handed()",
    "CREATE TRIGGER let_go AFTER DELETE ON work FOR EACH ROW EXECUTE FUNCTION let_go()",
    "CREATE TRIGGER paused AFTER INSERT ON pause FOR EACH ROW EXECUTE FUNCTION paused()",
)

_OWN = "queue, work, worker"
_THEIRS = "procrastinate_jobs, procrastinate_workers, procrastinate_events, procrastinate_periodic_defers"
_SEQUENCES = "procrastinate_jobs_id_seq, procrastinate_events_id_seq, procrastinate_workers_id_seq"
GRANTS: Final = (
    "REVOKE EXECUTE ON FUNCTION put_job, put_owner, put_timer, take_job FROM PUBLIC",
    "REVOKE EXECUTE ON FUNCTION goes_on, handed, let_go, paused FROM PUBLIC",
    f"GRANT SELECT ON {_OWN}, {_THEIRS} TO hitl_viewer, hitl_reviewer, hitl_worker, hitl_operator",
    "GRANT INSERT, UPDATE ON work TO hitl_worker, hitl_operator",
    f"GRANT INSERT, UPDATE, DELETE ON worker, {_THEIRS} TO hitl_worker",
    f"GRANT USAGE ON {_SEQUENCES} TO hitl_worker",
    "GRANT EXECUTE ON FUNCTION put_job, take_job, put_timer TO hitl_worker",
)
"""Rights of a store's roles on its jobs."""

# Keeps times in range: somebody may have written 'infinity'.
_US = (
    "(extract(epoch FROM least(greatest({}, timestamptz 'epoch'), timestamptz '9999-01-01')) * 1000000)"
    "::bigint"
)
_BEGAN = "coalesce(j.scheduled_at, (SELECT max(at) FROM procrastinate_events WHERE job_id = j.id))"
_JOB = f"""
    SELECT t.id, j.status::text, t.graph_name, j.queue_name, j.priority::bigint,
        {_US.format(_BEGAN)},
        coalesce((j.args ->> 'tries')::bigint, 0), coalesce(j.args ->> 'why', ''), j.worker_id,
        j.scheduled_at > now(),
        j.status = 'todo' AND NOT EXISTS (
            SELECT 1 FROM worker AS w, json_array_elements(w.graphs::json) AS has
            WHERE has ->> 'digest' = j.queue_name)
    FROM {{}} AS j JOIN thread AS t ON t.key = j.lock::bigint
"""
# A killed worker leaves its job behind; if somebody else has ended the thread since, nothing is left to do.
_UNDER_WAY = (
    "{0}.status = 'doing' AND EXISTS (SELECT FROM cursor AS c WHERE c.thread = {0}.lock::bigint "
    "AND c.status IN ('pending', 'waiting', 'running'))"
)
_RUNS = f"{_UNDER_WAY.format('procrastinate_jobs')} ORDER BY id"
_READY = "status = 'todo' AND scheduled_at IS NULL ORDER BY priority DESC, id"
_LATER = "status = 'todo' AND scheduled_at IS NOT NULL ORDER BY scheduled_at"
_FIRST = " UNION ALL ".join(
    f"(SELECT {turn} AS turn, row_number() OVER () AS place, * FROM "
    f"(SELECT * FROM procrastinate_jobs WHERE {which} LIMIT :limit) AS part)"
    for turn, which in enumerate((_RUNS, _READY, _LATER))
)
_LIST = f"{_JOB.format(f'({_FIRST})')} ORDER BY j.turn, j.place LIMIT :limit"
_LIST_OF = f"""
    {_JOB.format("procrastinate_jobs")} WHERE (j.status = 'todo' OR {_UNDER_WAY.format("j")})
        AND j.lock IN (SELECT key::text FROM thread WHERE id = ANY(:threads)) ORDER BY j.status
"""
_ORPHANS = """
    WITH RECURSIVE queue (name) AS (
        SELECT min(queue_name) FROM procrastinate_jobs
        UNION ALL SELECT (SELECT min(queue_name) FROM procrastinate_jobs WHERE queue_name > queue.name)
            FROM queue WHERE name IS NOT NULL
    ), waits AS (
        SELECT name, (SELECT count(*) FROM procrastinate_jobs WHERE queue_name = name AND status = 'todo')
        FROM queue WHERE name NOT IN (
            SELECT has ->> 'digest' FROM worker AS w, json_array_elements(w.graphs::json) AS has)
    )
    SELECT (SELECT t.graph_name FROM procrastinate_jobs AS j JOIN thread AS t ON t.key = j.lock::bigint
            WHERE j.queue_name = name AND j.status = 'todo' LIMIT 1),
        name, count
    FROM waits WHERE count > 0 ORDER BY name
"""
_NUMBERS = f"""
    SELECT (SELECT count(*) FROM procrastinate_jobs AS j WHERE {_UNDER_WAY.format("j")}),
        (SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo' AND scheduled_at IS NULL)
            + (SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo' AND scheduled_at <= now()),
        (SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo' AND scheduled_at > now())
"""
_ORPHANED = f"""
    SELECT t.id FROM work AS w JOIN thread AS t ON t.key = w.thread JOIN cursor AS c ON c.thread = w.thread
    WHERE t.id = ANY(?) AND {_QUEUE} NOT IN (
        SELECT has ->> 'digest' FROM worker AS w, json_array_elements(w.graphs::json) AS has)
"""
_WORKERS = f"""
    SELECT w.id, w."user", w.host, w.pid, w.login, w.concurrency::bigint, w.graphs, w.started_at,
        {_US.format("p.last_heartbeat")}, w.stopping
    FROM worker AS w JOIN procrastinate_workers AS p ON p.id = w.id ORDER BY w.id
"""
_REGISTER = f"""
    WITH there AS (
        INSERT INTO procrastinate_workers (id, last_heartbeat) OVERRIDING SYSTEM VALUE VALUES (:id, now())
        ON CONFLICT (id) DO UPDATE SET last_heartbeat = now() RETURNING id
    )
    INSERT INTO worker (id, "user", host, pid, process_started, boot, namespace, backend, concurrency, graphs,
        started_at, stopping)
    SELECT id, :user, :host, :pid, :process_started, :boot, :namespace, pg_backend_pid(), :concurrency,
        :graphs, {NOW}, :stopping FROM there
    ON CONFLICT (id) DO UPDATE SET stopping = excluded.stopping, backend = excluded.backend
"""
# A worker's connection ends with its process; a worker that is stopped or cut off keeps it.  After a restart
# of the server all have lost their connections, and get time to come back.
_DEAD = """
    now() > pg_postmaster_start_time() + make_interval(secs => :outage) AND (
        p.last_heartbeat < now() - make_interval(secs => :silence)
        OR p.last_heartbeat < now() - make_interval(secs => :gone) AND w.id IS NOT NULL
            AND NOT EXISTS (SELECT FROM pg_stat_get_activity(w.backend)))
"""
# One statement removes dead workers: it queues their jobs again and ends their leases, so that the next
# worker takes over and records it.  A worker's thread has status "running" from its first commit on, but is
# the worker's shortly before.  A removed worker that still lives can't finish its threads: leases have
# tokens, and jobs count their attempts.  Rows that somebody else has locked, such as a writer that was
# stopped in the middle, are skipped until the next call.  A job's worker is checked again after
# locking: another process may have queued the job, and a third may have taken it.
_LEASE = "(c.pid, c.boot, c.namespace, c.process_started)"
_REAP = f"""
    WITH dead AS (
        SELECT p.id, w."user", w.host, w.pid, w.process_started, w.boot, w.namespace
        FROM procrastinate_workers AS p LEFT JOIN worker AS w ON w.id = p.id
        WHERE {_DEAD}
        FOR UPDATE OF p SKIP LOCKED
    ), lost AS (
        SELECT id, lock::bigint AS thread, worker_id FROM procrastinate_jobs
        WHERE status = 'doing' AND (worker_id IS NULL OR worker_id IN (SELECT id FROM dead))
    ), running AS (
        SELECT c.thread, dead.id FROM dead JOIN cursor AS c ON c.status = 'running' AND c.token IS NOT NULL
            AND {_LEASE} = (dead.pid, dead.boot, dead.namespace, dead.process_started)
    ), theirs AS (
        SELECT thread FROM cursor
        WHERE thread = ANY(ARRAY(SELECT thread FROM lost UNION SELECT thread FROM running))
        FOR UPDATE SKIP LOCKED
    ), free AS (
        SELECT id FROM procrastinate_jobs
        WHERE status = 'doing' AND (worker_id IS NULL OR worker_id IN (SELECT id FROM dead))
            AND id = ANY(ARRAY(
                SELECT id FROM lost WHERE thread IN (SELECT thread FROM theirs)
                    OR NOT EXISTS (SELECT FROM cursor AS c WHERE c.thread = lost.thread)))
        FOR UPDATE SKIP LOCKED
    ), queued AS (
        UPDATE procrastinate_jobs AS j SET status = 'todo', queueing_lock = NULL, worker_id = NULL,
            attempts = attempts + 1, scheduled_at = NULL, abort_requested = false,
            args = j.args || jsonb_build_object('why', coalesce((
                SELECT 'worker ' || id || ' (' || host || ', process ' || pid || ') was not heard of any more'
                FROM dead WHERE id = j.worker_id), 'its worker has ended'))
        WHERE j.id = ANY(ARRAY(SELECT id FROM free))
        RETURNING j.id, j.queue_name, j.args ->> 'thread' AS thread, j.args ->> 'why' AS why
    ), due AS (
        UPDATE procrastinate_jobs SET scheduled_at = NULL WHERE id IN (
            SELECT id FROM procrastinate_jobs WHERE status = 'todo' AND scheduled_at <= now()
            ORDER BY scheduled_at LIMIT 1000 FOR UPDATE SKIP LOCKED)
        RETURNING id, queue_name
    ), ended AS (
        UPDATE cursor AS c SET boot = '', expires_at = 0 FROM dead
        WHERE c.thread = ANY(ARRAY(SELECT thread FROM theirs)) AND c.token IS NOT NULL
            AND {_LEASE} = (dead.pid, dead.boot, dead.namespace, dead.process_started)
    ), gone AS (
        DELETE FROM procrastinate_workers AS p USING dead WHERE p.id = dead.id
            AND NOT EXISTS (
                SELECT FROM lost WHERE worker_id = dead.id AND id NOT IN (SELECT id FROM free))
            AND NOT EXISTS (
                SELECT FROM running WHERE id = dead.id AND thread NOT IN (SELECT thread FROM theirs))
    ), told AS (
        SELECT pg_notify('procrastinate_queue_v1#' || queue_name,
            json_build_object('type', 'job_inserted', 'job_id', min(id))::text)
        FROM (SELECT id, queue_name FROM queued UNION ALL SELECT id, queue_name FROM due) AS ready
        GROUP BY queue_name
    )
    SELECT thread, why FROM queued, (SELECT count(*) FROM told) AS notices
"""
# Jobs of a live worker that it was given but does not know of, since its connection broke.
_GIVE_BACK = """
    UPDATE procrastinate_jobs SET status = 'todo', queueing_lock = NULL, worker_id = NULL,
        attempts = attempts + 1
    WHERE status = 'doing' AND worker_id = ? AND NOT id = ANY(?)
"""
_LOOK_AGAIN: Final = 10.0
"""Seconds between two checks whether the store has tables for jobs."""
_NO_QUEUE = (
    "`hitl-tui store init` makes it where hitl-tui[team] is installed, as does a worker whose user may"
)


class PostgresJobs:
    """The jobs of a store; see `engine.log.jobs.Jobs`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._there = False
        self._looked = -_LOOK_AGAIN
        self._handed: set[str] = set()

    # -- tables -----------------------------------------------------------------------------------

    def exist(self) -> bool:
        """Whether the store has tables for jobs.

        Raises:
            StoreUnusable: the tables are of another version.
        """
        if self._there or time.monotonic() < self._looked + _LOOK_AGAIN:
            return self._there
        there = self._server.rows("SELECT to_regclass(?) IS NOT NULL", (f"{self._server.schema}.queue",))
        if not there[0][0]:
            # Only now, so that another thread of ours that asks meanwhile checks for itself.
            self._looked = time.monotonic()
            return False
        version = self._server.rows("SELECT version FROM queue")[0][0]
        if version != VERSION:
            raise StoreUnusable(
                f"the queue of the store {self._server.name} has version {version}, this one knows {VERSION}",
                "upgrade hitl-tui where it is older",
            )
        self._there = True
        return True

    def make(self) -> None:
        """Make the tables, if missing, with procrastinate's, which has to be installed.

        Raises:
            UsageError: procrastinate is not installed.
            StoreUnusable: this user has no right to.
        """
        try:
            from procrastinate.schema import SchemaManager
        except ImportError as error:
            raise UsageError("a queue for workers takes procrastinate", "install hitl-tui[team]") from error
        schema = self._server.schema
        with self._server.transaction() as db:
            db.rows("SELECT pg_advisory_xact_lock(hashtext(?))", (f"hitl-tui {schema}",))
            self._looked = -_LOOK_AGAIN
            if self.exist():
                return
            db.write(SchemaManager.get_schema(), None)
            for statement in _TABLES:
                db.write(statement.replace("{schema}", f'"{schema}"'), None)
            if db.rows("SELECT 1 FROM pg_roles WHERE rolname = 'hitl_worker'"):
                for statement in GRANTS:
                    db.write(statement, None)
        self._there = True

    def need(self) -> None:
        """Raise `StoreUnusable` if the store has no tables for jobs."""
        if not self.exist():
            raise StoreUnusable(f"the store {self._server.name} has no queue for workers yet", _NO_QUEUE)

    # -- threads ----------------------------------------------------------------------------------

    def hand(self, thread_id: str, *, priority: int = 0, at: int | None = None) -> None:
        self.need()
        handed = self._server.rows(
            "INSERT INTO work (thread, priority, start_at) "
            "SELECT key, ?, to_timestamp(?::double precision / 1000000) FROM thread WHERE id = ? "
            "ON CONFLICT (thread) DO UPDATE SET priority = excluded.priority, start_at = excluded.start_at "
            "RETURNING 1",
            (priority, at, thread_id),
        )
        if not handed:
            raise unknown_thread(thread_id)

    def is_handed(self, thread_id: str) -> bool:
        sql = "SELECT 1 FROM work JOIN thread ON key = thread WHERE id = ?"
        if thread_id not in self._handed and self.exist() and self._server.rows(sql, (thread_id,)):
            self._handed.add(thread_id)
        return thread_id in self._handed

    def listed(self, limit: int) -> Sequence[WorkerJob]:
        """Return the first jobs: running ones first, then the others in the order in which they will run."""
        return self._listed(_LIST, {"limit": limit})

    def forget(self, thread_id: str) -> None:
        """Clear what is cached of a deleted thread."""
        self._handed.discard(thread_id)

    def of_threads(self, threads: Collection[str]) -> Sequence[WorkerJob]:
        return self._listed(_LIST_OF, {"threads": list(threads)})

    def _listed(self, statement: str, values: dict[str, Any]) -> list[WorkerJob]:
        if not self.exist():
            return []
        return [
            WorkerJob(
                thread=thread,
                state="running" if status == "doing" else "later" if later else "queued",
                graph=graph,
                digest=digest,
                priority=priority,
                since=since,
                tries=tries,
                why=why,
                worker=worker,
                orphan=orphan,
            )
            for thread, status, graph, digest, priority, since, tries, why, worker, later, orphan in (
                self._server.rows(statement, values)
            )
        ]

    def at_work(self, limit: int) -> AtWork:
        if not self.exist():
            return AtWork((), (), (), 0, 0, 0, self._server.clock.now())
        running, queued, later = self._server.rows(_NUMBERS)[0]
        there, listed, orphans = tuple(self.workers()), tuple(self.listed(limit)), tuple(self.orphans())
        return AtWork(there, listed, orphans, running, queued, later, self._server.clock.now())

    def orphaned(self, threads: Collection[str]) -> Collection[str]:
        if not threads or not self.exist():
            return ()
        return {thread for (thread,) in self._server.rows(_ORPHANED, (list(threads),))}

    def workers(self) -> Sequence[WorkerInfo]:
        """Return the live workers, oldest first."""
        if not self.exist():
            return []
        return [
            WorkerInfo(
                id=number,
                user=user,
                host=host,
                pid=pid,
                login=login,
                concurrency=concurrency,
                graphs=_graphs(graphs),
                since=since,
                last_seen=last_seen,
                stopping=stopping,
            )
            for number, user, host, pid, login, concurrency, graphs, since, last_seen, stopping in (
                self._server.rows(_WORKERS)
            )
        ]

    # -- workers ----------------------------------------------------------------------------------

    @property
    def conninfo(self) -> str:
        """Return connection settings for procrastinate.

        They make the database plan each fetch for its own queues: a generic plan would scan all of them.
        """
        if not self._server.takes_options:
            raise StoreUnusable(
                f"the pooler in front of {self._server.name} takes no startup options, which workers need",
                "give workers the URL of the server itself",
            )
        given = conninfo_to_dict(self._server.conninfo).get("options", "")
        return make_conninfo(
            self._server.conninfo, options=f"{given} -cplan_cache_mode=force_custom_plan".strip()
        )

    def register(
        self, worker: int, lease: Lease, graphs: Sequence[HandedGraph], concurrency: int, *, stopping: bool
    ) -> None:
        """Register a worker, or renew its registration; a worker has to repeat this while it lives.

        Args:
            lease: identifies its process.
        """
        self._server.rows(
            _REGISTER,
            {
                "id": worker,
                "user": lease.user,
                "host": lease.host,
                "pid": lease.pid,
                "process_started": lease.process_started,
                "boot": lease.boot,
                "namespace": lease.namespace,
                "concurrency": concurrency,
                "graphs": msgspec.json.encode(list(graphs)).decode(),
                "stopping": stopping,
            },
        )

    def reap(self, *, silence: float, gone: float, outage: float) -> list[tuple[str, str]]:
        """Queue jobs of dead workers again, and jobs whose time has come.

        Args:
            silence: seconds without a sign of life after which a worker counts as dead.
            gone: the same for one whose connection has ended.
            outage: seconds after the server's start before any worker counts as dead.

        Returns:
            Threads of the dead workers, each with the reason.
        """
        given = {"silence": silence, "gone": gone, "outage": outage}
        return [(thread, why) for thread, why in self._server.rows(_REAP, given)]

    def give_back(self, worker: int, running: Collection[int]) -> None:
        """Queue a worker's jobs again, except the running ones, given by their ids."""
        self._server.rows(_GIVE_BACK, (worker, list(running)))

    def orphans(self) -> list[OrphanGraph]:
        """Return the graphs that queued threads need and no worker has."""
        return [OrphanGraph(*row) for row in self._server.rows(_ORPHANS)]

    def settle(self, thread_id: str) -> None:
        """Queue a thread for the next deadline or escalation of its requests, unless it is queued already."""
        self._server.rows("SELECT put_timer(key) FROM thread WHERE id = ?", (thread_id,))

    def put(self, thread_id: str, delay: float | None, tries: int, why: str) -> None:
        """Queue a thread that was handed to the workers, now or in some seconds.

        Args:
            tries: how often it was postponed.
        """
        due = "now() + make_interval(secs => ?::double precision)" if delay else "NULL::timestamptz"
        values: tuple[Any, ...] = (*((delay,) if delay else ()), tries, why, thread_id)
        self._server.rows(f"SELECT put_job(key, {due}, ?::int, ?) FROM thread WHERE id = ?", values)


def _graphs(text: str) -> tuple[HandedGraph, ...]:
    """Return the graphs of a worker; none if its row can't be read, so that the others are still listed."""
    try:
        return msgspec.json.decode(text, type=tuple[HandedGraph, ...])
    except msgspec.MsgspecError:
        return ()
