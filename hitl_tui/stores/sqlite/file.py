"""The file of a SQLite store: checks that it is ours, undamaged and writable; one write at a time."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from hitl_tui.engine.log.store import Durability
from hitl_tui.errors import HitlError, LogCorrupt, StoreUnusable, ValueRejected
from hitl_tui.stores.base import of_other_version
from hitl_tui.stores.files.directory import make_directories, sync_directory
from hitl_tui.stores.sqlite import schema

BUSY_SECONDS = 5.0
"""How long a writer waits for another process before the store counts as locked."""

# The write-ahead log grows to this before it is copied into the file, which waits for the disk.
_LOG_BYTES = 8 << 20

_SYNCHRONOUS: dict[Durability, str] = {"decisions": "NORMAL", "steps": "FULL", "none": "OFF"}

# How much of a file that is read as a whole is mapped: reading its small pages one by one takes longer.
_MAPPED = 1 << 40

_MAGIC = b"SQLite format 3\x00"
_HEADER = 100
_APPLICATION_ID_AT = 68


class Connection(sqlite3.Connection):
    """A connection to a store, registered in this process while it is open."""

    file: tuple[int, int] | None = None
    """The file's device and number."""

    def close(self) -> None:
        """Close it; twice is fine."""
        super().close()
        _open.discard(self)


# A process that closes a file loses all its locks on it, also SQLite's. Then another process would remove the
# log of a store that is open here, with all that is written afterwards. So only SQLite may read an open file.
_open: weakref.WeakSet[Connection] = weakref.WeakSet()
_opening = threading.Lock()


def open_file(path: Path, durability: Durability = "decisions") -> sqlite3.Connection:
    """Open the store in `path`, created if necessary.

    Args:
        durability: how its transactions are synced; those of decisions sync themselves (`Synced`).

    Raises:
        StoreUnusable: not ours, made by another version of hitl-tui, read-only, locked or full.
        LogCorrupt: ours, but damaged.
    """
    db = _connect(path)
    with _closed_on_error(db, path):
        db.execute("PRAGMA foreign_keys = ON")
        db.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        db.execute("PRAGMA fullfsync = ON")  # on macOS, a plain fsync does not reach the disk
        db.execute(f"PRAGMA page_size = {schema.PAGE_BYTES}")
        _prepare(db, path)
        # Last, so that a file is marked as ours in its first bytes before it has a log.
        _write_ahead(db)
        page_bytes = db.execute("PRAGMA page_size").fetchone()[0]
        db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_BYTES // page_bytes}")
        if durability != "none":
            # The log may have been made by another process, and its directory entry may not be synced yet.
            sync_directory(path.parent)
    return db


@contextmanager
def _closed_on_error(db: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Close a connection if the block fails; errors of SQLite are translated."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        db.close()
        raise translate(error, path) from error
    except HitlError:
        db.close()
        raise


def may_only_read(path: Path) -> bool:
    """Whether a file exists, and it or its directory can't be written, for example on a read-only mount."""
    return os.path.exists(path) and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def open_to_look(path: Path) -> sqlite3.Connection:
    """Open a store that can't be written, for reading; raises the errors of `open_file`."""
    try:
        _examine(path)
    except OSError as error:
        raise _no_access(path, error) from error
    log = path.with_name(f"{path.name}-wal")
    if not os.access(path.parent, os.W_OK) and log.exists() and log.stat().st_size:
        raise StoreUnusable(
            f"the store {path} is read-only, and what was written last is still in {log.name} beside it",
            "copy both files to a directory that can be written, and open the copy",
        )
    db = open_reading(path, immutable=not os.access(path.parent, os.W_OK))
    with _closed_on_error(db, path):
        if not _known_version(db, path):
            raise StoreUnusable(f"{path} is not a store: it has no tables", "name another file")
    return db


def open_reading(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    """Open a store that is open elsewhere, to read all of it; raises the errors of `open_file`.

    Args:
        immutable: nobody can write it while it is open, so that no other files are needed.
    """
    try:
        db = sqlite3.connect(
            f"{path.as_uri()}?mode=ro{'&immutable=1' if immutable else ''}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_SECONDS,
            factory=Connection,
        )
        db.execute(f"PRAGMA mmap_size = {_MAPPED}")
    except sqlite3.Error as error:
        raise translate(error, path) from error
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
    """Return what identifies a file, None if there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def is_read_only(error: BaseException | None) -> bool:
    """Whether SQLite refused to write because it has opened the file for reading only."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, sqlite3.Error) and code == sqlite3.SQLITE_READONLY


def translate(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> HitlError:
    """Translate an error of SQLite into one for users.

    An error about a damaged schema quotes it, and Python may not be able to decode that.
    """
    if isinstance(error, UnicodeDecodeError):
        return damaged(path, "its schema can't be read")
    exact = getattr(error, "sqlite_errorcode", 0)
    code = exact & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR) and not _has_locks(path):
        return StoreUnusable(
            f"the file system of the store {path} has no locks, so two programs could damage it",
            "keep the store on a local disk, or mount the file system with locks",
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnusable(
            f"the store {path} stayed locked by another program for {BUSY_SECONDS:g} s",
            "end that program or try again",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return _read_only(path)
    # The shared-memory file of a store could not be made large enough.
    if code == sqlite3.SQLITE_FULL or exact == sqlite3.SQLITE_IOERR_SHMSIZE:
        return StoreUnusable(f"no space is left for the store {path}", "make room and try again")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or "decode to UTF-8" in str(error):
        return damaged(path, str(error))
    return StoreUnusable(f"the store {path} can't be used: {error}")


def _read_only(path: Path) -> StoreUnusable:
    return StoreUnusable(f"the store {path} is read-only", "make the file and its directory writable")


def _has_locks(path: Path) -> bool:
    """Whether the file system of a store supports file locks; an NFS mount may not."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        # A separate file, because closing a file releases all locks that the process has on it.
        with tempfile.TemporaryFile(dir=path.parent) as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno != errno.ENOLCK
    return True


def damaged(path: Path, what: str, hint: str = "") -> LogCorrupt:
    """Return the error for a store that is ours but damaged."""
    return LogCorrupt(
        f"the store {path} is damaged: {what}",
        hint or f"restore a backup, or save what can be read with `sqlite3 {path} .recover`",
    )


def _create_or_examine(path: Path) -> None:
    make_directories(path.parent)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        return
    if not _examine(path):
        path.chmod(0o600)


def _examine(path: Path) -> bool:
    """Check a file; return whether it has any content.

    Raises:
        StoreUnusable: it is not a store.
        LogCorrupt: it ends within its first page.
    """
    if path.is_symlink() and not path.exists():
        raise StoreUnusable(
            f"the store {path} is a link to {path.readlink()}, which does not exist",
            "repair the link, or name the file itself",
        )
    if not path.is_file():
        raise StoreUnusable(f"the store {path} is not a file", "name a file, such as runs.db")
    with path.open("rb") as file:
        head = file.read(_HEADER)
    if not head:
        return False
    if not head.startswith(_MAGIC):
        raise StoreUnusable(f"{path} is not a store: it is not an SQLite file", "name another file")
    if len(head) < _HEADER:
        raise damaged(path, "the file ends within its first page")
    if int.from_bytes(head[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]) != schema.APPLICATION_ID:
        raise StoreUnusable(f"{path} is a SQLite file of another program", "name another file")
    return True


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file.

    Raises:
        StoreUnusable: the file is of another version.
    """
    if _known_version(db, path):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        # Read again: another process may have made them while we waited for the lock.
        if not _known_version(db, path):
            for statement in schema.TABLES:
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {schema.VERSION}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _write_ahead(db: sqlite3.Connection) -> None:
    # SQLite itself does not wait here for another process that opens the file at the same moment.
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
    if version not in (0, schema.VERSION):
        what = f"the store {path} was made"
        raise of_other_version(what, version, schema.VERSION, "name another file")
    return version


def _no_access(path: Path, error: OSError | ValueError) -> StoreUnusable:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return StoreUnusable(f"the store {path} can't be opened: {reason}", "check the path and its permissions")


class Transaction:
    """A reusable `with` block that holds the lock of the connection and the write lock of the file.

    Raises:
        StoreUnusable: the store is read-only, full, locked or closed.
        LogCorrupt: the store is damaged.
        ValueRejected: a text has a lone surrogate.
    """

    def __init__(self, db: sqlite3.Connection, lock: threading.RLock, path: Path) -> None:
        self._db = db
        self._cursor: sqlite3.Cursor | None = None
        self._lock = lock
        self._path = path

    def __enter__(self) -> sqlite3.Cursor:
        self._lock.acquire()
        try:
            # One cursor for all statements: making one for each takes time.
            cursor = self._cursor = self._cursor or self._db.cursor()
            cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self._lock.release()
            raise translate(error, self._path) from error
        except BaseException:
            self._lock.release()
            raise
        return cursor

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and self._cursor is not None:
                self._cursor.execute("COMMIT")
                return
        except sqlite3.Error as failure:
            error = failure
        finally:
            self._roll_back()
            self._lock.release()
        if isinstance(error, sqlite3.Error):
            raise translate(error, self._path) from error
        if isinstance(error, UnicodeEncodeError):
            raise ValueRejected(f"a text has a lone surrogate: {error}") from error

    def close(self) -> None:
        """Release its statements, so that the connection can be closed."""
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def _roll_back(self) -> None:
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise StoreUnusable(f"the store {self._path} could not undo a write: {error}") from error


class Synced(Transaction):
    """A transaction that is on the disk when its block ends, on a connection whose others need not be.

    The write-ahead log is synced as a whole, so all that was committed before is on the disk, too.
    """

    def __enter__(self) -> sqlite3.Cursor:
        self._lock.acquire()
        try:
            # SQLite accepts this only between transactions; compared with a sync it takes no time.
            self._db.execute("PRAGMA synchronous = FULL")
            return super().__enter__()
        except sqlite3.Error as error:
            self._leave()
            raise translate(error, self._path) from error
        except BaseException:
            self._leave()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            self._leave()

    def _leave(self) -> None:
        try:
            with suppress(sqlite3.Error):  # the connection is closed, which was reported already
                self._db.execute("PRAGMA synchronous = NORMAL")
        finally:
            self._lock.release()


class StoreFile:
    """The open file of a store: one connection, one lock, one write at a time."""

    path: Path
    durability: Durability

    def _open(self, *, reading: bool = False) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self.only_read = not reading and may_only_read(self.path)
        if self.only_read:
            self._use(open_to_look(self.path))
        else:
            self._use(open_reading(self.path) if reading else open_file(self.path, self.durability))
        with _opening:
            _stores.add(self)

    def _use(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._writing = Transaction(db, self._lock, self.path)
        # Otherwise the whole connection has the requested durability.
        own = self.durability == "decisions"
        self._deciding = Synced(db, self._lock, self.path) if own else self._writing
        self._presence = FilePresence(db, self.path, self.durability)
        self._writable = False
        self._broken = False

    def _be_there(self) -> None:
        """Make sure before a write that the file is where it was, or write it again."""
        if self.only_read:
            raise _read_only(self.path)
        with self._lock:
            again = self._presence.restored() or self._opened_for_writing()
            if again is not None:
                self._db.close()
                self._use(again)

    def _opened_for_writing(self) -> sqlite3.Connection | None:
        """Return a new connection if SQLite has opened the file for reading only, None if it can write.

        SQLite does so silently on any trouble, for example if the disk is full.
        """
        if self._writable:
            return None
        try:
            with self._writing as db:
                db.execute("DELETE FROM lease WHERE 0")  # SQLite does nothing at the start of a transaction
                self._writable = True
        except StoreUnusable as error:
            if not (self._broken or is_read_only(error.__cause__)):
                raise
        else:
            return None
        return self._opened_again()

    def _opened_again(self) -> sqlite3.Connection:
        """Return a new connection, after closing this one and those of other stores to the file.

        All connections of a process to a file share how it was opened: a new one could not write before they
        are closed. If none that can write can be opened yet, reading continues if possible.
        """
        # One that is in use is left alone: it may be idle at the next write.
        others = [store for store in self._others() if store._lock.acquire(blocking=False)]
        try:
            for store in (self, *others):
                store._let_go()
            try:
                return open_file(self.path, self.durability)
            except HitlError:
                self._read_on()
                raise
            finally:
                for store in others:
                    store._read_on()
        finally:
            for store in others:
                store._lock.release()

    def _others(self) -> list[StoreFile]:
        with _opening:
            return [store for store in _stores if store is not self and store.path == self.path]

    def _let_go(self) -> None:
        for transaction in (self._writing, self._deciding):
            transaction.close()  # SQLite keeps a connection open while it has unfinished statements
        self._db.close()

    def _read_on(self) -> None:
        """Continue with reading until the next write opens the file for writing."""
        if not self._closed:
            with suppress(HitlError):
                self._use(open_reading(self.path))
            self._broken = True

    def close(self) -> None:
        """Close the file; write it again if it was removed since the last changes."""
        with self._lock, closing(self._db):
            self._closed = True
            self._presence.save()


_stores: weakref.WeakSet[StoreFile] = weakref.WeakSet()
"""The stores of this process."""


class FilePresence:
    """Watches the file that a connection has opened."""

    def __init__(self, db: sqlite3.Connection, path: Path, durability: Durability) -> None:
        self._db = db
        self._path = path
        self._durability: Durability = durability
        self._file = file_identity(path)
        self._changes = db.total_changes

    def check(self) -> None:
        """Check that the stored threads can be found again.

        Raises:
            StoreUnusable: the file was deleted or moved, or another one was put in its place.
        """
        self._check(file_identity(self._path))

    def _check(self, now: tuple[int, int] | None) -> None:
        if now is None:
            raise StoreUnusable(
                f"the store {self._path} no longer exists: it was deleted or moved",
                "put it back, or continue: then it is written again with all that was stored",
            )
        if now != self._file:
            raise StoreUnusable(
                f"another file was put in the place of the store {self._path}",
                "put the store back, or leave and open the other file",
            )
        self._changes = self._db.total_changes

    def is_there(self) -> bool:
        """Whether others find the file by its name."""
        return self._file is not None and file_identity(self._path) == self._file

    def restored(self) -> sqlite3.Connection | None:
        """Return a connection to the file, which is written again if it was removed; None if it was not.

        Raises:
            StoreUnusable: it can't be written, or another file was put in its place.
        """
        now = file_identity(self._path)
        if now is None:
            return _write_again(self._db, self._path, self._durability)
        self._check(now)
        return None

    def save(self) -> None:
        """Before closing, write the file again if it was removed and there were changes since."""
        try:
            unseen = self._db.total_changes != self._changes
        except sqlite3.ProgrammingError:  # closed before
            return
        if unseen and (again := self.restored()) is not None:
            again.close()


def _write_again(db: sqlite3.Connection, path: Path, durability: Durability) -> sqlite3.Connection:
    """Write a new file with all that a connection to the old one can read."""
    beside = [path.with_name(path.name + ending) for ending in ("-wal", "-shm")]
    for old in beside:  # they belong to the removed file
        old.unlink(missing_ok=True)
    again = open_file(path, durability)
    try:
        db.backup(again)
    except sqlite3.Error as error:
        again.close()
        for part in (path, *beside):
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        failed: HitlError = translate(error, path)
        raise failed from error
    return again
