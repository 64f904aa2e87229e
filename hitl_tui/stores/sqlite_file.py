"""Opening a store file: is it ours, is it whole, may we write it, is its version ours (SPEC 8, 10).

Nothing is written to a file that is not ours, not even a lock: its first bytes are read first.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from pathlib import Path
from typing import Any

from hitl_tui.engine.log.store import Durability
from hitl_tui.errors import HitlError, LogCorrupt, StoreUnusable
from hitl_tui.stores import sqlite_schema
from hitl_tui.stores.files_io import make_directories, sync_directory

BUSY_SECONDS = 5.0
"""How long a writer waits for another process before the store counts as locked."""

# A log beside the file grows to this before it is put into the file, which waits for the disk.
_LOG_BYTES = 8 << 20

_SYNCHRONOUS: dict[Durability, str] = {"decisions": "NORMAL", "steps": "FULL", "none": "OFF"}

_MAGIC = b"SQLite format 3\x00"
_HEADER = 100
_APPLICATION_ID_AT = 68


class Connection(sqlite3.Connection):
    """A connection to a store, known to this process while it is open."""

    file: tuple[int, int] | None = None
    """The file's device and number."""

    def close(self) -> None:
        """Close it; twice is fine."""
        super().close()
        _open.discard(self)


# A process that closes a file that it has read loses all its locks on it, SQLite's too: another process
# then takes the log away from beside a store that is open here, with all that is written afterwards.
# So a file that is open is never read but by SQLite.
_open: weakref.WeakSet[Connection] = weakref.WeakSet()
_opening = threading.Lock()


def open_file(path: Path, durability: Durability = "decisions") -> sqlite3.Connection:
    """A connection to the store in `path`, created as needed.

    Args:
        durability: how its transactions are synced; those of decisions see to themselves (`Synced`).

    Raises:
        StoreUnusable: not ours, made by another version of hitl-tui, read-only, locked or full.
        LogCorrupt: ours, but damaged.
    """
    db = _connect(path)
    try:
        db.execute("PRAGMA foreign_keys = ON")
        db.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        db.execute("PRAGMA fullfsync = ON")  # on macOS a sync alone does not reach the disk
        db.execute(f"PRAGMA page_size = {sqlite_schema.PAGE_BYTES}")
        _prepare(db, path)
        # Last, so that a file is marked as ours in its first bytes before a log lies beside it.
        _write_ahead(db)
        page_bytes = db.execute("PRAGMA page_size").fetchone()[0]
        db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_BYTES // page_bytes}")
        if durability != "none":
            # The log may be another process's, whose name in the directory nobody has synced yet.
            sync_directory(path.parent)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        db.close()
        raise translate(error, path) from error
    except HitlError:
        db.close()
        raise
    return db


def _connect(path: Path) -> Connection:
    try:
        with _opening:
            identity = file_identity(path)
            if identity is None or all(other.file != identity for other in _open):
                _create_or_examine(path)
            db: Any = sqlite3.connect(
                f"{path.as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=BUSY_SECONDS,
                factory=Connection,
            )
            assert isinstance(db, Connection)
            db.file = file_identity(path)
            _open.add(db)
            return db
    except (OSError, ValueError) as error:
        raise _no_access(path, error) from error
    except sqlite3.Error as error:
        raise translate(error, path) from error


def file_identity(path: Path) -> tuple[int, int] | None:
    """What a file is told from another by, None where there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def is_read_only(error: BaseException | None) -> bool:
    """Whether SQLite refused to write what it has open for reading alone."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, sqlite3.Error) and code == sqlite3.SQLITE_READONLY


def translate(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> HitlError:
    """What an error of SQLite means to a user, in words.

    One about a damaged schema quotes it, which Python then may not be able to decode.
    """
    if isinstance(error, UnicodeDecodeError):
        return damaged(path, "its schema can't be read")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnusable(
            f"the store {path} stayed locked by another program for {BUSY_SECONDS:g} s",
            "end that program or try again",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreUnusable(f"the store {path} is read-only", "make the file and its directory writable")
    if code == sqlite3.SQLITE_FULL:
        return StoreUnusable(f"no space is left for the store {path}", "make room and try again")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "decode to UTF-8" in str(error):
        return damaged(path, str(error))
    return StoreUnusable(f"the store {path} can't be used: {error}")


def damaged(path: Path, what: str, hint: str = "") -> LogCorrupt:
    """The error for a store that is ours but can't be read as it should."""
    return LogCorrupt(
        f"the store {path} is damaged: {what}",
        hint or f"go back to a copy of it, or save what can be read with `sqlite3 {path} .recover`",
    )


def _create_or_examine(path: Path) -> None:
    make_directories(path.parent)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        return
    if not path.is_file():
        raise StoreUnusable(f"the store {path} is not a file", "name a file, such as runs.db")
    with path.open("rb") as file:
        head = file.read(_HEADER)
    if not head:
        path.chmod(0o600)
    elif not head.startswith(_MAGIC):
        raise StoreUnusable(f"{path} is not a store: it is no SQLite file", "name another file")
    elif len(head) < _HEADER:
        raise damaged(path, "the file ends within its first page")
    elif int.from_bytes(head[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]) != sqlite_schema.APPLICATION_ID:
        raise StoreUnusable(f"{path} is a SQLite file of another program", "name another file")
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise StoreUnusable(f"the store {path} is read-only", "make the file and its directory writable")


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file.

    Raises:
        StoreUnusable: the file is of another version.
    """
    if _known_version(db, path):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        # Read again: another process may have done it while we waited for the lock.
        if not _known_version(db, path):
            for statement in sqlite_schema.TABLES:
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {sqlite_schema.APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {sqlite_schema.VERSION}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _write_ahead(db: sqlite3.Connection) -> None:
    # SQLite does not wait here by itself for another process that opens the file at the same moment.
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                raise
            time.sleep(0.005)


def _known_version(db: sqlite3.Connection, path: Path) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    known = sqlite_schema.VERSION
    if version not in (0, known):
        age, hint = ("a newer", "upgrade hitl-tui, or name") if version > known else ("an older", "name")
        raise StoreUnusable(
            f"the store {path} was made by {age} hitl-tui (version {version}, this one knows {known})",
            f"{hint} another file",
        )
    return version


def _no_access(path: Path, error: OSError | ValueError) -> StoreUnusable:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return StoreUnusable(f"the store {path} can't be opened: {reason}", "check the path and its permissions")
