"""Remembers which notices any process has sent to a person, so that each notifier sends each once."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path

from hitl_tui.errors import StoreUnusable

_KEPT = 90 * 86_400_000_000
"""Microseconds after which a sent notice is forgotten; notices that are older are never sent."""


class SentNotices:
    """The sent notices, in a small file in the user's data directory.

    Args:
        scope: the store and the person that the notices are about.

    Raises:
        StoreUnusable: the file can't be opened or written.
    """

    def __init__(self, path: Path, scope: str) -> None:
        self._path = path
        self._scope = scope
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._db.execute("CREATE TABLE IF NOT EXISTS sent (key TEXT PRIMARY KEY, at INTEGER NOT NULL)")
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error

    def claim(self, notifier: str, key: str, now: int) -> bool:
        """Claim a notice for a notifier; return False if it has been sent or claimed."""
        with self._lock:
            try:
                sql = "INSERT OR IGNORE INTO sent (key, at) VALUES (?, ?)"
                return self._db.execute(sql, (f"{self._scope}\n{notifier}\n{key}", now)).rowcount == 1
            except sqlite3.Error as error:
                raise self._unusable(error) from error

    def mark(self, now: int) -> int:
        """Return the time up to which watches have reported ended threads; `now` if none has."""
        with self._lock:
            try:
                self._db.execute("DELETE FROM sent WHERE at < ? AND key NOT LIKE 'mark %'", (now - _KEPT,))
                key = f"mark {self._scope}"
                self._db.execute("INSERT OR IGNORE INTO sent (key, at) VALUES (?, ?)", (key, now))
                return int(self._db.execute("SELECT at FROM sent WHERE key = ?", (key,)).fetchone()[0])
            except sqlite3.Error as error:
                raise self._unusable(error) from error

    def set_mark(self, at: int) -> None:
        """Save the time up to which ended threads were reported."""
        with self._lock:
            try:
                sql = "UPDATE sent SET at = max(at, ?) WHERE key = ?"
                self._db.execute(sql, (at, f"mark {self._scope}"))
            except sqlite3.Error as error:
                raise self._unusable(error) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def _unusable(self, error: OSError | sqlite3.Error) -> StoreUnusable:
        return StoreUnusable(
            f"the list of sent notifications, {self._path}, can't be used: {error}", "move the file away"
        )
