"""Whether the file of an open store is still where it was, and writing it again where it has gone.

SQLite goes on in a file that was deleted, and all of it is lost when the process ends; it does not say so.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from hitl_tui.engine.log.store import Durability
from hitl_tui.errors import HitlError, StoreUnusable
from hitl_tui.stores.sqlite_file import open_file, translate
from hitl_tui.stores.sqlite_transaction import Synced, Transaction


class StoreFile:
    """The open file of a store: one connection, one lock, one write at a time."""

    path: Path
    durability: Durability

    def _open(self) -> None:
        self._lock = threading.RLock()
        self._use(open_file(self.path, self.durability))

    def _use(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._writing = Transaction(db, self._lock, self.path)
        # Elsewhere the connection as a whole is as durable as it was asked to be.
        own = self.durability == "decisions"
        self._deciding = Synced(db, self._lock, self.path) if own else self._writing
        self._presence = Presence(db, self.path, self.durability)

    def _be_there(self) -> None:
        """Before a thread is written: the file is where it was, or is written again."""
        with self._lock:
            again = self._presence.restored()
            if again is not None:
                self._db.close()
                self._use(again)

    def close(self) -> None:
        """Close the file; one that has gone since the last changes is written again."""
        with self._lock, closing(self._db):
            self._presence.save()


class Presence:
    """Looks after the file that a connection was opened on."""

    def __init__(self, db: sqlite3.Connection, path: Path, durability: Durability) -> None:
        self._db = db
        self._path = path
        self._durability: Durability = durability
        self._file = _identity(path)
        self._changes = db.total_changes

    def check(self) -> None:
        """Make sure that what is stored can be found again.

        Raises:
            StoreUnusable: the file was deleted or moved, or another one was put in its place.
        """
        now = _identity(self._path)
        if now is None:
            raise StoreUnusable(
                f"the store {self._path} is not there any more: it was deleted or moved",
                "put it back, or go on: then it is written again with all that was stored",
            )
        if now != self._file:
            raise StoreUnusable(
                f"another file was put in the place of the store {self._path}",
                "put the store itself back in its place, or leave and open the other file",
            )
        self._changes = self._db.total_changes

    def restored(self) -> sqlite3.Connection | None:
        """A connection to the file, written again where it had gone; None where it never had.

        Raises:
            StoreUnusable: it can't be written, or another file was put in its place.
        """
        if _identity(self._path) is None:
            return _write_again(self._db, self._path, self._durability)
        self.check()
        return None

    def save(self) -> None:
        """Before closing: write the file again where it has gone and there were changes since it was seen."""
        try:
            unseen = self._db.total_changes != self._changes
        except sqlite3.ProgrammingError:  # closed before
            return
        if unseen and (again := self.restored()) is not None:
            again.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """What a file is told from another by, None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _write_again(db: sqlite3.Connection, path: Path, durability: Durability) -> sqlite3.Connection:
    """A new file with all that a connection to the old one holds."""
    beside = [path.with_name(path.name + ending) for ending in ("-wal", "-shm")]
    for old in beside:  # they belong to the file that has gone
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
