"""Tells mirrors whose file of checkpoints was replaced by another one of the same name."""

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


def is_of_another_file(mirror: Store, file: Path) -> bool:
    """Whether none of the threads of a mirror goes on in a SQLite file of checkpoints.

    They were all deleted then, or begun anew: most likely the whole file was.
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
            except sqlite3.Error:  # it has no such table yet, or can't be read
                return not _has_table(checkpoints)
            if parents and all(parents.values()):
                return False  # its first checkpoints were deleted
            for origin in _origins(mirror, info.thread_id):
                if origin in parents:
                    return False
                mirrored = True
    return mirrored


def _origins(mirror: Store, line: str) -> Iterator[str]:
    """The checkpoints that the steps of a line mirror, the newest first."""
    before: int | None = None
    while page := mirror.checkpoints(line, before, _PAGE):
        yield from (point.origin for point in page if point.origin)
        before = page[-1].step


def _has_table(checkpoints: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE name = 'checkpoints'"
    try:
        return checkpoints.execute(query).fetchone() is not None
    except sqlite3.Error:
        return True


def set_aside(mirror: Path) -> Path | None:
    """Give the file of a mirror another name, so that a new one is begun.

    Returns:
        Where it is now; None where a process has it open, so that it stays.
    """
    if not _is_free(mirror):
        return None
    stem = mirror.name.removesuffix(".db")
    number = 1
    while (aside := mirror.with_name(f"{stem}.old-{number}.db")).exists():
        number += 1
    mirror.rename(aside)
    return aside


def remove_others(mirror: Path, pattern: str) -> None:
    """Delete the mirrors of a pattern beside one, but for those that a process has open."""
    for other in mirror.parent.glob(pattern):
        if other != mirror and _is_free(other):
            other.unlink(missing_ok=True)


def _is_free(mirror: Path) -> bool:
    """Whether no process has a mirror open: its last one takes its write-ahead log away."""
    try:
        with closing(sqlite3.connect(mirror)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error:
        return False
    return not os.path.exists(f"{mirror}-wal")
