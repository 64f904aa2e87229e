"""Directories of a files store in which threads are made, hidden until they are whole (SPEC 10).

Beside each lies a lock that its writer holds: where nobody does, the writer was killed and left it behind.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from hitl_tui.errors import StoreUnusable
from hitl_tui.stores.files_io import locked, remove_file, translate
from hitl_tui.stores.files_layout import PARTS

_HIDDEN = ".new-"
_LOCK = ".lock"


@contextlib.contextmanager
def making(threads: Path) -> Iterator[Path]:
    """An empty directory for a new thread, which is gone afterwards unless it was put in its place."""
    while True:
        path = threads / f"{_HIDDEN}{uuid.uuid4().hex}"
        lock = _lock_of(path)
        with locked(lock):
            # Whoever cleared up at this very moment may have had it first and taken it away.
            if not lock.exists():
                continue
            try:
                _fresh(path)
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
                remove_file(lock)
            return


def unfinished(threads: Path) -> set[Path]:
    """The directories in which threads are made, by a living writer or by a dead one."""
    try:
        found = [name for name in os.listdir(threads) if name.startswith(_HIDDEN)]
    except OSError as error:
        raise translate(error, threads) from error
    return {threads / name.removesuffix(_LOCK) for name in found}


def clear_up(threads: Path) -> None:
    """Take away what killed writers left behind."""
    for path in unfinished(threads):
        with contextlib.suppress(StoreUnusable), locked(_lock_of(path), patience=0):
            shutil.rmtree(path, ignore_errors=True)
            remove_file(_lock_of(path))


def _fresh(path: Path) -> None:
    try:
        path.mkdir(0o700)
        for part in PARTS:
            (path / part).mkdir(0o700)
    except OSError as error:
        raise translate(error, path) from error


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + _LOCK)
