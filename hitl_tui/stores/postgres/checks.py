"""Checks the database server of a store, with a hint for each problem; changes nothing there."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg

from hitl_tui.errors import HitlError
from hitl_tui.stores.postgres import jobs, schema
from hitl_tui.stores.postgres.roles import ROLES
from hitl_tui.stores.postgres.server import NOW, Connection, Server
from hitl_tui.stores.postgres.writing import BEGINS, DELETES

_FEWEST_LEFT = 20
"""Connections that should be free: a process uses up to nine."""
_CLOCK_SECONDS = 30
_LEAST_ROOM = 1 << 30
_MEMBER = "SELECT has_role('{}')"
_OWNS = "is_owner()"
_RIGHTS = {
    "look": "has_table_privilege('ledger', 'SELECT') AND has_table_privilege('cursor', 'SELECT')",
    "decide": f"({_MEMBER.format('hitl_reviewer')}) OR ({_MEMBER.format('hitl_operator')}) OR {_OWNS}",
    "run threads": f"has_function_privilege('{BEGINS[0]}', 'EXECUTE')",
    "delete": f"has_function_privilege('{DELETES[-1]}', 'EXECUTE')",
}
_QUEUE = ("queue", "work", "worker", "procrastinate_jobs", "procrastinate_workers", "procrastinate_events")
_HEARD_SECONDS = 10
_AT_WORK = (
    f"SELECT (SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - interval "
    f"'{_HEARD_SECONDS} s'), (SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo' "
    "AND coalesce(scheduled_at, now()) <= now()), "
    # A thread that somebody else has continued since is not stuck any more.
    "(SELECT count(*) FROM procrastinate_jobs AS j JOIN cursor AS c ON c.thread = j.lock::bigint "
    "WHERE j.status = 'doing' AND c.status = 'running' AND NOT EXISTS ("
    "SELECT FROM procrastinate_workers AS w "
    f"WHERE w.id = j.worker_id AND w.last_heartbeat > now() - interval '{_HEARD_SECONDS} s'))"
)
_TRIGGERS = (
    "SELECT c.relname || '.' || t.tgname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal "
    "AND t.tgenabled IN ('O', 'A')"
)


class Check(NamedTuple):
    """Result of one check.

    Attributes:
        hint: what to do if it is not `ok`.
    """

    subject: str
    value: str
    ok: bool = True
    hint: str = ""


def checks(url: str) -> Iterator[Check]:
    """Check the database server of a URL, from this machine and with our login."""
    try:
        server = Server(url, "decisions")
    except HitlError as error:
        yield _failed_check(error)
        return
    try:
        with server.connect() as db:
            yield from _server_checks(server, db)
            yield from _setting_checks(db)
            yield from _store_checks(server, db)
            yield from _queue_checks(db)
    except psycopg.Error as error:
        yield _failed_check(server.translate(error))
    except HitlError as error:
        yield _failed_check(error)


def _failed_check(error: HitlError) -> Check:
    return Check("server", error.message, ok=False, hint=error.hint)


def _row(db: Connection, statement: str) -> tuple[Any, ...]:
    return db.execute(statement.encode()).fetchone() or ()


def _server_checks(server: Server, db: Connection) -> Iterator[Check]:
    try:
        server.check_server(db)
    except HitlError as error:
        yield _failed_check(error)
    else:
        yield Check("server", f"PostgreSQL {_row(db, 'SHOW server_version')[0]}")
    yield Check("login", str(_row(db, "SELECT session_user::text")[0]))
    if db.pgconn.ssl_in_use:
        yield Check("connection", "encrypted")
    elif _is_here(db):
        yield Check("connection", "not encrypted, on this machine")
    else:
        yield Check(
            "connection", "not encrypted: what is decided and the password can be read on the way", ok=False,
            hint="switch TLS on at the server, and add sslmode=verify-full to the URL",
        )  # fmt: skip
    asked = time.time()
    server_time = _row(db, f"SELECT {NOW}")[0] / 1e6
    apart = max(asked - server_time, server_time - time.time(), 0.0)
    ahead = "ahead of" if asked > server_time else "behind"
    words = f"this machine is {apart:,.0f} s {ahead} the server"
    far = apart > _CLOCK_SECONDS
    hint = "set both by NTP: threads go by the server's clock, logs and models' calls by this machine's"
    yield Check("clock", words if far else "as the server's", ok=not far, hint=hint)


def _is_here(db: Connection) -> bool:
    """Whether the database server runs on this machine."""
    return db.info.host.startswith("/") or db.info.hostaddr in ("", "127.0.0.1", "::1")


def _setting_checks(db: Connection) -> Iterator[Check]:
    for name in ("fsync", "full_page_writes"):
        if _row(db, f"SHOW {name}")[0] == "off":
            yield Check(
                "disk", f"{name} is off: a crash of the server loses what was decided, or damages it",
                ok=False, hint=f"set {name} = on in postgresql.conf and restart the server",
            )  # fmt: skip
    if _row(db, "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on'")[0]:
        yield Check(
            "server",
            "it is read-only: a copy, or set so",
            ok=False,
            hint="name the server that can be written",
        )
    used, most = _row(
        db,
        "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
        "current_setting('max_connections')::bigint "
        "- current_setting('superuser_reserved_connections')::bigint",
    )
    yield Check(
        "connections", f"{used} of {most} in use", ok=most - used >= _FEWEST_LEFT,
        hint="raise max_connections in postgresql.conf: each screen and worker takes a few, up to nine",
    )  # fmt: skip
    free = _free_bytes(db)
    if free is None:
        yield Check("room", "unknown: the server is not on this machine, or does not say it")
    else:
        yield Check(
            "room", f"{free / 1e9:,.1f} GB are free on the server's disk", ok=free >= _LEAST_ROOM,
            hint="make room: on a full disk nothing is lost, but no thread can continue",
        )  # fmt: skip


def _free_bytes(db: Connection) -> int | None:
    """Return the free bytes of the server's data disk; None if it is not on this machine, or unknown."""
    if _is_here(db):
        with suppress(psycopg.Error, OSError):
            return shutil.disk_usage(_row(db, "SHOW data_directory")[0]).free
    return None


def _store_checks(server: Server, db: Connection) -> Iterator[Check]:
    version = server.version(db)
    if version != schema.VERSION:
        yield Check(
            "tables",
            "there are none yet"
            if version == 0
            else f"of version {version}, this program knows {schema.VERSION}",
            ok=False,
            hint="upgrade hitl-tui" if version > schema.VERSION else "`hitl-tui store init` makes them",
        )
        return
    missing = _missing_tables(db, schema.TABLES)
    if missing:
        yield Check(
            "tables", f"missing: {', '.join(missing)}", ok=False, hint="restore a backup of the store"
        )
        return
    yield Check("tables", f"{server.name}: all there, of version {version}")
    stand = {str(name) for (name,) in db.execute(_TRIGGERS.encode())}
    off = sorted(set(schema.GUARDS) - stand)
    if off:
        yield Check(
            "guards", f"off or missing: {', '.join(off)}", ok=False,
            hint="ALTER TABLE … ENABLE TRIGGER USER, and ask who switched them off; then verify --strict",
        )  # fmt: skip
    rights = _row(db, f"SELECT {', '.join(_RIGHTS.values())}")
    may = [right for right, given in zip(_RIGHTS, rights, strict=True) if given]
    yield Check(
        "rights", f"may {', '.join(may) or 'do nothing'}", ok="look" in may,
        hint="ask its owner for a role, as GRANT hitl_reviewer TO this login",
    )  # fmt: skip
    there = {str(name) for (name,) in db.execute(b"SELECT rolname FROM pg_roles")}
    roles = [name for name in ROLES if name not in there]
    yield Check(
        "roles", f"missing: {', '.join(roles)}" if roles else "all there", ok=len(roles) in (0, len(ROLES)),
        hint="`hitl-tui store init --roles` makes them",
    )  # fmt: skip


def _queue_checks(db: Connection) -> Iterator[Check]:
    missing = _missing_tables(db, _QUEUE)
    if len(missing) == len(_QUEUE):
        yield Check(
            "workers", "no queue yet: `hitl-tui store init` makes it where hitl-tui[team] is installed"
        )
        return
    if missing:
        yield Check(
            "workers", f"missing: {', '.join(missing)}", ok=False, hint="restore a backup of the store"
        )
        return
    version = _row(db, "SELECT version FROM queue")[0]
    if version != jobs.VERSION:
        yield Check(
            "workers", f"the queue has version {version}, this program knows {jobs.VERSION}", ok=False,
            hint="upgrade hitl-tui where it is older",
        )  # fmt: skip
        return
    there, queued, stuck = _row(db, _AT_WORK)
    words = f"{there} at work, {queued} threads in the queue"
    if stuck:
        words += f", {stuck} started by workers that are gone"
    yield Check(
        "workers", words, ok=bool(there or not (queued or stuck)),
        hint="begin one: hitl-tui worker --graph GRAPH",
    )  # fmt: skip


def _missing_tables(db: Connection, tables: Sequence[str]) -> list[str]:
    named = ", ".join(f"'{name}'" for name in tables)
    asked = f"SELECT name FROM unnest(ARRAY[{named}]) AS name WHERE to_regclass(name) IS NULL"
    return [str(name) for (name,) in db.execute(asked.encode())]
