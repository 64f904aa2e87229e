"""One write at a time: all of a block is stored or nothing of it."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from hitl_tui.errors import StoreUnusable, ValueRejected
from hitl_tui.stores.sqlite_file import translate


class Transaction:
    """A reusable `with` block that holds the lock of the connection and the write lock of the file.

    Raises:
        StoreUnusable: the store is read-only, full, locked or closed.
        LogCorrupt: the store is damaged.
        ValueRejected: a text has a lone surrogate.
    """

    def __init__(self, db: sqlite3.Connection, lock: threading.RLock, path: Path) -> None:
        self._db = db
        self._lock = lock
        self._path = path

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self._lock.release()
            raise translate(error, self._path) from error
        except BaseException:
            self._lock.release()
            raise
        return self._db

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._db.execute("COMMIT")
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

    def _roll_back(self) -> None:
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise StoreUnusable(f"the store {self._path} could not undo a write: {error}") from error


class Synced(Transaction):
    """A transaction that is on the disk when its block ends, on a connection whose others need not be.

    The log beside the file is synced as a whole, so all that was committed before is on the disk, too.
    """

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        try:
            # SQLite takes this between transactions alone; beside a sync it costs nothing.
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
            with suppress(sqlite3.Error):  # of a closed connection, which has been told
                self._db.execute("PRAGMA synchronous = NORMAL")
        finally:
            self._lock.release()
