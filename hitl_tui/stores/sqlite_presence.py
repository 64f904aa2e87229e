"""Whether the file of an open store is still where it was, and writing it again where it has gone.

SQLite goes on in a file that was deleted, and all of it is lost when the process ends; it does not say so.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from hitl_tui.engine.log.store import Durability
from hitl_tui.errors import HitlError, StoreUnusable
from hitl_tui.stores.sqlite_file import file_identity, is_read_only, open_file, translate
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
        self._writable = False

    def _be_there(self) -> None:
        """Before a thread is written: the file is where it was, or is written again."""
        with self._lock:
            again = self._presence.restored() or self._opened_for_writing()
            if again is not None:
                self._db.close()
                self._use(again)

    def _opened_for_writing(self) -> sqlite3.Connection | None:
        """A new connection where SQLite could open the file for reading alone, None where it could write.

        It does so without a word when there is any trouble, and would keep to it when that is over.
        """
        if self._writable:
            return None
        try:
            with self._writing as db:
                db.execute("DELETE FROM lease WHERE 0")  # to begin is nothing to it yet
                self._writable = True
        except StoreUnusable as error:
            if is_read_only(error.__cause__):
                return open_file(self.path, self.durability)
            raise
        return None

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
        self._file = file_identity(path)
        self._changes = db.total_changes

    def check(self) -> None:
        """Make sure that what is stored can be found again.

        Raises:
            StoreUnusable: the file was deleted or moved, or another one was put in its place.
        """
        now = file_identity(self._path)
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
        if file_identity(self._path) is None:
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
