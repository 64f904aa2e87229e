"""Database server of a store: connections, statements and transactions, and its errors as ours.

A connection may break at any time.  Then a read is repeated, and so is a write that may run twice.  If a
transaction's result was lost, the server is asked whether it was committed.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg
from psycopg import errors, sql
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import Int8BinaryDumper
from psycopg_pool import ConnectionPool, PoolTimeout

from hitl_tui.engine.log.store import Durability
from hitl_tui.errors import (
    HitlError,
    LogCorrupt,
    NoSuchStore,
    NotAllowed,
    StoreUnusable,
    UsageError,
    ValueRejected,
)
from hitl_tui.stores.base import of_other_version
from hitl_tui.stores.postgres import schema

T = TypeVar("T")
Values = Sequence[Any] | dict[str, Any]
Connection = psycopg.Connection[tuple[Any, ...]]

PATIENCE = 10.0
"""Seconds within which a lost server may come back before it is an error."""

_AGAIN = 0.1
"""Seconds between two attempts to reach it."""

_OLDEST = 140000
"""The oldest supported version of the server."""

_LOOK = 1.0
"""Seconds to wait for a connection of the pool at a time: asking again makes the pool reconnect."""

_MOST_CONNECTIONS = 8
_LOCK_SECONDS = 5
_IDLE_SECONDS = 3
"""Time after which a process that stopped or lost its connection during a write loses its locks."""

_SET_ALL = (
    "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS setting (name, value)"
)
NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
"""Microseconds since the epoch, in SQL."""

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_GUESS = re.compile(r"\s|DETAIL:|HINT:")
_DISTRUST = re.compile("certificate verify failed|(root certificate file|server certificate for) .*")
_MARK = re.compile(r"\?|(?<!:):([a-z]\w*)")

# With these, a connection through a broken network fails in time, also when idle.
_ALIVE = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

# The database can't store a NUL in a text, but notes may have one: it is escaped as this and a digit.
_ESCAPE = "\x1a"


class _TextDumper(Dumper):
    format = Format.BINARY
    oid = psycopg.postgres.types["text"].oid

    def dump(self, obj: str) -> Buffer:
        if _ESCAPE in obj or "\0" in obj:
            obj = obj.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")
        return obj.encode()


class _TextLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        return text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE) if _ESCAPE in text else text


class Gone(Exception):
    """The connection broke before the result came, so it is unknown whether the statement was executed."""


class Server:
    """Database server that a URL names.

    Args:
        url: `postgresql://user@host/database`, with `?schema=NAME` for tables in another schema than
            "hitl_tui".
        durability: "none" waits for no disk; otherwise each commit waits, since other processes act upon it
            and may survive a crash of the server.

    Raises:
        UsageError: the URL can't be read.
    """

    def __init__(self, url: str, durability: Durability) -> None:
        self.schema, conninfo = _read_url(url)
        self._facts = conninfo_to_dict(conninfo)
        self.name = _name(self._facts, self.schema)
        # Statements use bare table names; also overrides settings that a role may have.
        self._settings = {
            "search_path": self.schema,
            "lock_timeout": f"{_LOCK_SECONDS}s",
            "idle_in_transaction_session_timeout": f"{_IDLE_SECONDS}s",
            "synchronous_commit": "off" if durability == "none" else "on",
            "jit": "off",
            "timezone": "UTC",
            "statement_timeout": "0",
            "array_nulls": "on",
        }
        options = " ".join(f"-c{name}={value}" for name, value in self._settings.items())
        self._direct = make_conninfo(
            conninfo,
            **{name: value for name, value in _ALIVE.items() if name not in self._facts},
            application_name=self._facts.get("application_name", "hitl-tui"),
            client_encoding="utf8",
        )
        self.conninfo = make_conninfo(
            self._direct, options=f"{self._facts.get('options') or ''} {options}".strip()
        )
        self._drops_options: bool | None = None
        """Whether a pooler between refuses or drops startup options; None until it is known."""
        self._settling = threading.Lock()
        self.clock = _Clock()
        self.login = ""
        self._own = threading.local()
        self._pool: ConnectionPool[Connection] | None = None
        self._closed = False

    # -- connections ------------------------------------------------------------------------------

    def connect(self) -> Connection:
        """Return a new connection outside the pool; raises `StoreUnusable`."""
        try:
            connection = self._connected()
            try:
                self._configure(connection)
            except BaseException:
                connection.close()
                raise
        except psycopg.Error as error:
            raise self._unreachable(error) from error
        return connection

    def _connected(self) -> Connection:
        """Return an unconfigured connection, without startup options if they are refused."""
        try:
            return psycopg.connect(self.conninfo, autocommit=True, prepare_threshold=2)
        except psycopg.OperationalError as error:
            if "unsupported startup parameter" not in str(error):
                raise
        self.conninfo = self._direct
        return psycopg.connect(self.conninfo, autocommit=True, prepare_threshold=2)

    def _configure(self, connection: Connection) -> None:
        """Apply our settings to a new connection, also if a pooler has dropped the startup options.

        Raises:
            StoreUnusable: the pooler keeps no sessions, so settings would be lost.
        """
        _adapt(connection)
        if self._drops_options is None:
            with self._settling:
                if self._drops_options is None:
                    found = connection.execute("SELECT current_setting('search_path')").fetchone()
                    drops = found != (self.schema,)
                    if drops:
                        self._check_sessions(connection)
                    self._drops_options = drops
        if self._drops_options:
            connection.execute(_SET_ALL, (list(self._settings), list(self._settings.values())))

    def _check_sessions(self, connection: Connection) -> None:
        """Refuse a pooler that shares sessions between clients, one transaction at a time."""
        token = uuid.uuid4().hex
        connection.execute("SELECT set_config('hitl_tui.client', %s, false)", (token,))
        with psycopg.connect(self.conninfo, autocommit=True) as other:
            found = other.execute("SELECT current_setting('hitl_tui.client', true)").fetchone()
        if found == (token,):
            raise StoreUnusable(
                f"the pooler in front of {self.name} gives each transaction another session",
                "let it keep sessions, as PgBouncer does with pool_mode=session, or name the server itself",
            )

    @property
    def takes_options(self) -> bool:
        """Whether connections accept settings as startup options."""
        self.connect().close()
        return not self._drops_options

    def _pooled(self) -> ConnectionPool[Connection]:
        if self._closed:
            raise StoreUnusable(f"the store {self.name} is closed")
        if self._pool is None:
            self.connect().close()  # from here on it is known what a pooler accepts
            self._pool = ConnectionPool(
                self.conninfo,
                kwargs={"autocommit": True, "prepare_threshold": 2},
                min_size=1,
                max_size=_MOST_CONNECTIONS,
                configure=self._configure,
                open=True,
                num_workers=1,
                reconnect_timeout=1,
                name="hitl-tui",
            )
        return self._pool

    @contextmanager
    def _connection(self, end: float) -> Iterator[Connection]:
        """Return the connection of this thread's transaction, or one of the pool."""
        pool = self._pooled()
        while True:
            try:
                connection = pool.getconn(timeout=max(0.05, min(_LOOK, end - time.monotonic())))
                break
            except PoolTimeout as error:
                if time.monotonic() < end:
                    continue
                self.connect().close()  # raises the reason if it fails
                raise StoreUnusable(
                    f"the store {self.name} gave no connection within {PATIENCE:g} s", "try again"
                ) from error
        try:
            yield connection
        finally:
            pool.putconn(connection)

    def close(self) -> None:
        """Close all connections; may be called twice."""
        self._closed = True
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    # -- statements -------------------------------------------------------------------------------

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; it is repeated if the connection breaks, so it may run twice.

        Raises:
            StoreUnusable: the server can't be reached, or refuses.
        """
        connection = getattr(self._own, "connection", None)
        if connection is not None:
            return _fetched(connection, statement, values)
        return self.attempt(lambda again: again.rows(statement, values))[0]

    def attempt(self, work: Callable[[Statements], T]) -> tuple[T, int]:
        """Call `work` with a connection, again if it breaks; returns its result and the attempts."""
        end, attempts = time.monotonic() + PATIENCE, 0
        while True:
            attempts += 1
            try:
                with self._connection(end) as connection:
                    return work(Statements(connection, self.clock)), attempts
            except psycopg.Error as error:
                if not _is_gone(error) or time.monotonic() >= end:
                    raise self.translate(error) from error
                self._renew_connections()
            except StoreUnusable:
                if time.monotonic() >= end or self._closed:
                    raise
                time.sleep(_AGAIN)

    def _renew_connections(self) -> None:
        # If one connection broke, the others probably did, too.
        with suppress(psycopg.Error, PoolTimeout):
            self._pooled().check()

    @contextmanager
    def transaction(self) -> Iterator[Statements]:
        """Run a block of statements as one transaction; reads inside it see its writes.

        Raises:
            StoreUnusable: the server refused or was lost, and nothing was written; or it stayed away so long
                that the result is unknown.
            ValueRejected: a text has a lone surrogate.
        """
        end = time.monotonic() + PATIENCE
        number = ""
        try:
            with self._connection(end) as connection:
                self._own.connection = connection
                try:
                    number = _fetched(connection, "BEGIN; SELECT pg_current_xact_id()::text", None)[0][0]
                    yield Statements(connection, self.clock)
                    _end(connection, number)
                finally:
                    self._own.connection = None
                    # If it breaks here, nothing has to be rolled back; the pool replaces it.
                    with suppress(psycopg.Error):
                        connection.rollback()
        except Gone as error:
            if not self._was_committed(number):
                raise StoreUnusable(
                    f"the connection to the store {self.name} was lost during a write: nothing was stored",
                    "try again",
                ) from error
        except psycopg.Error as error:
            raise self.translate(error) from error
        except UnicodeEncodeError as error:
            raise ValueRejected(f"a text has a lone surrogate: {error}") from error

    def _was_committed(self, number: str) -> bool:
        """Whether a transaction whose result was lost was committed."""
        while True:
            state = self.rows("SELECT pg_xact_status(CAST(? AS xid8))", (number,))[0][0]
            if state != "in progress":
                return bool(state == "committed")
            time.sleep(_AGAIN)

    # -- tables -----------------------------------------------------------------------------------

    def prepare(self, *, create: bool) -> None:
        """Check the server and its tables.

        Args:
            create: make missing tables, or upgrade older ones.

        Raises:
            StoreUnusable: the server can't be reached or refuses us, or its tables are of another version.
            NoSuchStore: there are no tables.
        """
        connection = self.connect()
        try:
            self.check_server(connection)
            self._prepare_tables(connection, create=create)
        except psycopg.Error as error:
            raise self.translate(error) from error
        finally:
            connection.close()

    def check_server(self, connection: Connection) -> None:
        """Read the server's time and our login; raises `StoreUnusable` for an unsupported server."""
        info = connection.info
        if info.server_version < _OLDEST:
            raise StoreUnusable(
                f"the server of {self.name} is PostgreSQL {info.server_version // 10000}",
                f"use PostgreSQL {_OLDEST // 10000} or newer",
            )
        if (encoding := info.parameter_status("server_encoding")) != "UTF8":
            raise StoreUnusable(
                f"the database of {self.name} is encoded as {encoding}", "create it with ENCODING 'UTF8'"
            )
        asked = time.monotonic()
        row = connection.execute(f"SELECT {NOW}, session_user::text".encode()).fetchone()
        if row is not None:
            self.clock.correct(row[0], asked)
            self.login = str(row[1])

    def _prepare_tables(self, connection: Connection, *, create: bool) -> None:
        version = self.version(connection)
        if version == schema.VERSION:
            return
        if version > schema.VERSION:
            what = f"the store {self.name} was made"
            raise of_other_version(what, version, schema.VERSION, "name another store or schema")
        if not create:
            if version == 0:
                raise NoSuchStore(
                    f"the store {self.name} has no tables yet", "`hitl-tui store init` makes them"
                )
            what = f"the tables of the store {self.name} were made"
            raise of_other_version(
                what, version, schema.VERSION, "`hitl-tui store init` brings them up to date"
            )
        with connection.transaction():
            # Another process may do this at the same moment.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"hitl-tui {self.schema}",))
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self.schema)))
            # For the functions: temporary tables would be found first, unless their schema is named last.
            connection.execute(
                sql.SQL("SET LOCAL search_path = {}, pg_temp").format(sql.Identifier(self.schema))
            )
            for number in range(self.version(connection) + 1, schema.VERSION + 1):
                for statement in schema.MIGRATIONS[number - 1]:
                    connection.execute(statement.encode())
                connection.execute("UPDATE store SET version = %s", (number,))

    def version(self, connection: Connection) -> int:
        """Return the version of the tables, 0 if there are none."""
        table = connection.execute("SELECT to_regclass(%s)::text", (f"{self.schema}.store",)).fetchone()
        if table is None or table[0] is None:
            return 0
        row = connection.execute("SELECT version FROM store").fetchone()
        if row is None:
            raise LogCorrupt(f"the store {self.name} is damaged: it has no version", "restore a backup")
        return int(row[0])

    # -- errors -----------------------------------------------------------------------------------

    def translate(self, error: psycopg.Error) -> HitlError:
        """Turn an error of the server into one for users."""
        if isinstance(error, errors.InsufficientPrivilege):
            return NotAllowed(
                f"{self._user()} may not do that in the store {self.name}: {_message(error)}",
                "ask the database's administrator for the role",
            )
        if isinstance(error, (errors.DiskFull, errors.OutOfMemory, errors.IoError)):
            return StoreUnusable(
                f"no space is left on the server of {self.name}: {_message(error)}", "make room and try again"
            )
        if isinstance(error, (errors.LockNotAvailable, errors.DeadlockDetected, errors.QueryCanceled)):
            return StoreUnusable(
                f"the store {self.name} stayed locked by others for {_LOCK_SECONDS} s", "try again"
            )
        if isinstance(error, errors.IdleInTransactionSessionTimeout):
            return StoreUnusable(
                f"this process was stopped for {_IDLE_SECONDS} s in the middle of a write to the store "
                f"{self.name}: nothing was stored",
                "try again",
            )
        if isinstance(error, errors.ReadOnlySqlTransaction):
            return StoreUnusable(
                f"the server of {self.name} is read-only", "name the server that can be written"
            )
        if isinstance(error, (errors.DataCorrupted, errors.IndexCorrupted)):
            return LogCorrupt(f"the store {self.name} is damaged: {_message(error)}", "restore a backup")
        if isinstance(error, (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName)):
            return StoreUnusable(
                f"the tables of the store {self.name} no longer exist: {_message(error)}",
                "restore a backup, or open it again to make new ones",
            )
        if _is_gone(error):
            return self._unreachable(error)
        return StoreUnusable(f"the store {self.name} can't be used: {_message(error)}")

    def _unreachable(self, error: psycopg.Error) -> StoreUnusable:
        message = _message(error)
        if "no password supplied" in message or "password authentication failed" in message:
            return StoreUnusable(
                f"the server of {self.name} does not take the password of {self._user()}",
                "set PGPASSWORD, or write a line for it in ~/.pgpass",
            )
        if distrust := _DISTRUST.search(str(error)):
            return StoreUnusable(
                f"the server of {self.name} can't be trusted as sslmode wants it: {distrust[0]}",
                "name the file of its authority as sslrootcert=FILE, and the host as its certificate does",
            )
        if re.search('(database|role) ".*" does not exist', message) or "permission denied" in message:
            return StoreUnusable(f"the store {self.name} can't be opened: {message}", "check the URL")
        if "unrecognized configuration parameter" in message:
            return StoreUnusable(
                f"the server of {self.name} is not a supported PostgreSQL: {message}",
                f"use PostgreSQL {_OLDEST // 10000} or newer",
            )
        return StoreUnusable(
            f"the server of {self.name} can't be reached: {message}", "check that it runs, and the URL"
        )

    def _user(self) -> str:
        return f"user {self._facts['user']!r}" if self._facts.get("user") else "this user"


class Statements:
    """Executes statements on a connection."""

    def __init__(self, connection: Connection, clock: _Clock) -> None:
        self._connection = connection
        self._clock = clock

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; its placeholders are `?`, or `:name` for a dict."""
        return _fetched(self._connection, statement, values)

    def run(self, statement: str, values: Values = ()) -> int:
        """Execute a statement; returns the number of rows concerned."""
        return self._connection.execute(_marked(statement), values).rowcount

    def write(self, statement: str, values: Sequence[Any] | None) -> None:
        """Execute a statement with psycopg's placeholders."""
        self._connection.execute(statement.encode(), values)

    def committed(self, statement: str, values: Sequence[Any]) -> bool:
        """Execute a statement that returns the time if it wrote something; returns whether it did."""
        asked = time.monotonic()
        row = self._connection.execute(statement.encode(), values, binary=True).fetchone()
        if row is not None:
            self._clock.correct(row[0], asked)
        return row is not None


class _Clock:
    """Estimate of the server's clock: its last known time plus the time passed since.

    The estimate changes only if it must be wrong: a time from the server was right at some moment between the
    question and the answer.
    """

    def __init__(self) -> None:
        self._ahead = time.time_ns() // 1000 - time.monotonic_ns() // 1000

    def now(self) -> int:
        """Return microseconds since the epoch."""
        return time.monotonic_ns() // 1000 + self._ahead

    def correct(self, server_time: int, asked: float) -> None:
        """Correct the estimate by the server's time, requested at the `time.monotonic` moment `asked`."""
        now = time.monotonic_ns() // 1000
        first, last = server_time - now, server_time - int(asked * 1e6)
        self._ahead = min(max(self._ahead, first), last)


def _adapt(connection: Connection) -> None:
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_dumper(list, ListBinaryDumper)
    connection.adapters.register_loader("text", _TextLoader)


def _fetched(connection: Connection, statement: str, values: Values | None) -> list[tuple[Any, ...]]:
    cursor = connection.execute(
        statement.encode() if values is None else _marked(statement), values, binary=values is not None
    )
    while cursor.nextset():
        pass
    return cursor.fetchall() if cursor.description else []


@lru_cache(maxsize=256)
def _marked(statement: str) -> bytes:
    """Return a statement with psycopg's placeholders."""

    def mark(match: re.Match[str]) -> str:
        return f"%({match[1]})s" if match[1] else "%s"

    return _MARK.sub(mark, statement.replace("%", "%%")).encode()


def _end(connection: Connection, number: str) -> None:
    try:
        # Never prepared: preparing takes a separate round trip, and if that were lost, nothing would be
        # committed.
        connection.execute("COMMIT", prepare=False)
    except psycopg.Error as error:
        if _is_gone(error):
            raise Gone(number) from error
        raise


def _is_gone(error: psycopg.Error) -> bool:
    """Whether an error means that the connection broke, or could not be made."""
    # Codes of a server that stops, starts, or has no connection left.
    state = error.sqlstate or ""
    if state.startswith(("08", "57P")) or isinstance(error, errors.TooManyConnections):
        return True
    return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)) and not state


def _message(error: psycopg.Error) -> str:
    """Return the server's message, or why the last attempt to reach it failed, without libpq's guesses."""
    text = error.diag.message_primary or str(error)
    lines = [line for line in text.splitlines() if line.strip() and not _GUESS.match(line)]
    return (
        lines[-1].rpartition(" failed: ")[2].removeprefix("FATAL:").strip() if lines else type(error).__name__
    )


def _read_url(url: str) -> tuple[str, str]:
    """Return the schema that a URL names, and the URL without it."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    name = query.pop("schema", schema.NAME)
    if not _SCHEMA.fullmatch(name):
        raise UsageError(
            f"{name!r} can't be the schema of a store",
            "use lower case letters, digits and _, such as ?schema=team",
        )
    if parts.netloc.count("@") > 1:
        # With several, the rest would be taken for the host and shown in errors.
        raise UsageError("the URL of the store has an @ in its password", "write it there as %40")
    # `urlunsplit` leaves out the slashes where there is no host, as in postgresql:///?service=team.
    conninfo = f"{parts.scheme}://{parts.netloc}{parts.path}"
    if query:
        conninfo += f"?{urlencode(query)}"
    try:
        conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError as error:
        # The error may quote the password.
        raise UsageError(
            "the URL of the store can't be read as one of PostgreSQL",
            "write postgresql://user@host:5432/database",
        ) from error
    return name, conninfo


def _name(facts: dict[str, Any], name: str) -> str:
    """Return the name of a store for messages: its URL without user and password."""
    host, port, database = (facts.get(key) for key in ("host", "port", "dbname"))
    where = f"{host or ''}{f':{port}' if port else ''}"
    return f"postgresql://{where}/{database or ''}" + ("" if name == schema.NAME else f"?schema={name}")
