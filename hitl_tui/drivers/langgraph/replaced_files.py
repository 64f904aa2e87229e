"""Finds mirrors of a checkpoint file that was replaced by another file with the same name."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from hitl_tui.drivers.langgraph.mirror import their_thread
from hitl_tui.engine.log.store import Store, all_threads

_PAGE: Final = 500
_CHECKPOINTS: Final = (
    "SELECT checkpoint_id, parent_checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
)


def was_file_replaced(mirror: Store, file: Path) -> bool:
    """Whether a SQLite file of checkpoints continues none of the threads of its mirror.

    Then all of them were deleted or started again: most likely the whole file was replaced.
    """
    if not file.exists():
        return False
    mirrored = False
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as checkpoints:
        for summary in all_threads(mirror):
            info = summary.info
            if info.owner is not None:
                continue
            try:
                parents = dict(checkpoints.execute(_CHECKPOINTS, (their_thread(info),)).fetchall())
            except sqlite3.Error:  # there is no such table yet, or it can't be read
                return not _has_table(checkpoints)
            if parents and all(parents.values()):
                return False  # its first checkpoints were deleted
            for origin in _origins(mirror, info.thread_id):
                if origin in parents:
                    return False
                mirrored = True
    return mirrored


def _origins(mirror: Store, thread_id: str) -> Iterator[str]:
    """Yield the checkpoints that the steps of a thread mirror, the newest first."""
    before: int | None = None
    while page := mirror.checkpoints(thread_id, before, _PAGE):
        yield from (point.origin for point in page if point.origin)
        before = page[-1].step


def _has_table(checkpoints: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE name = 'checkpoints'"
    try:
        return checkpoints.execute(query).fetchone() is not None
    except sqlite3.Error:
        return True


def rename_mirror(mirror: Path) -> Path | None:
    """Rename the file of a mirror, so that a new mirror is made.

    Returns:
        The new path; None if the file was not renamed, because a process has it open.
    """
    if not _is_free(mirror):
        return None
    stem = mirror.name.removesuffix(".db")
    number = 1
    while (renamed := mirror.with_name(f"{stem}.old-{number}.db")).exists():
        number += 1
    mirror.rename(renamed)
    return renamed


def delete_other_mirrors(mirror: Path, pattern: str) -> None:
    """Delete the other mirrors whose name matches a pattern, except those that a process has open."""
    for other in mirror.parent.glob(pattern):
        if other != mirror and _is_free(other):
            other.unlink(missing_ok=True)


def _is_free(mirror: Path) -> bool:
    """Whether no process has a mirror open: the last one that closes it removes its write-ahead log."""
    try:
        with closing(sqlite3.connect(mirror)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error:
        return False
    return not os.path.exists(f"{mirror}-wal")
