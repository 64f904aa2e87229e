"""One write at a time: all of a block is stored or nothing of it."""

from __future__ import annotations

import sqlite3
import threading
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
