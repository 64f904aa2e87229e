"""Deleting threads of a files store: all of them or none, whenever a process is killed.

A list says which directories go, with the entries of the store's ledger; it is the commit.  What it says is
then done, by whoever writes to the store next where its writer was killed.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.threads import Fault
from hitl_tui.stores.files import json as shapes
from hitl_tui.stores.files.directory import (
    DELETED,
    check_directory,
    damaged,
    directory_name,
    make_directories,
    number_file,
    read_file,
    remove_file,
    replace_file,
    sync_directory,
    translate,
)

_LIST = "deleting.json"
_HEAD = "deleted.json"
"""How many entries the ledger has, and the hash of the newest."""


class _Head(msgspec.Struct):
    n: int = 0
    hash: str = ""


class _Listed(msgspec.Struct):
    """An entry to be, and the hidden name under which the directory is taken away."""

    entry: dict[str, Any]
    hidden: str


def is_begun(root: Path) -> bool:
    """Whether somebody has begun to delete and was killed, or is at it."""
    return (root / _LIST).exists()


def begin(root: Path, entries: Sequence[LedgerEntry]) -> None:
    """Settle what is deleted; `finish` does it.  The lock of the store is held.

    With no entries yet it deletes nothing, and whoever comes to write a thread waits for `finish`.
    """
    make_directories(root / DELETED)
    check_directory(root / DELETED)
    listed = [_Listed(shapes.plain(entry), f".new-{uuid.uuid4().hex}") for entry in entries]
    replace_file(root / _LIST, msgspec.json.encode(listed) + b"\n")
    sync_directory(root)


def finish(root: Path) -> None:
    """Do what a list says, as far as it is not done; the lock of the store is held."""
    data = read_file(root / _LIST)
    if data is None:
        return
    try:
        listed = msgspec.json.decode(data, type=list[_Listed])
        entries = [shapes.row_of(LedgerEntry, each.entry) for each in listed]
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise damaged(root / _LIST, str(error), "take it away") from error
    threads = root / "threads"
    # Hidden first, so that nobody finds a half of one; the outermost come first.
    for each, entry in zip(listed, entries, strict=True):
        _hide(threads / directory_name(entry.thread_id), threads / each.hidden)
    sync_directory(threads)
    for entry in entries:
        replace_file(number_file(root, DELETED, entry.n), shapes.entry_file(entry))
    sync_directory(root / DELETED)
    if entries:
        head = _Head(entries[-1].n, entries[-1].hash.hex())
        replace_file(root / _HEAD, msgspec.json.encode(head) + b"\n")
    sync_directory(root)
    for each in listed:
        shutil.rmtree(threads / each.hidden, ignore_errors=True)
    remove_file(root / _LIST)


def _hide(path: Path, hidden: Path) -> None:
    try:
        os.rename(path, hidden)
    except FileNotFoundError:
        pass  # it was done before
    except OSError as error:
        raise translate(error, path) from error


def entries(root: Path, newest: int | None = None) -> list[LedgerEntry]:
    """The ledger of the store, oldest first; of all entries, or so many of the newest.

    Raises:
        LogCorrupt: a part of it can't be read.
    """
    head = _head(root)
    if head.n:
        check_directory(root / DELETED)
    first = 1 if newest is None else max(head.n - newest, 0) + 1
    return [_entry(root, n) for n in range(first, head.n + 1)]


def faults(root: Path) -> Iterator[Fault]:
    """What stands beside the ledger and differs from it."""
    head = _head(root)
    newest = _entry(root, head.n).hash.hex() if head.n else ""
    if head.hash != newest:
        yield Fault("store_ledger", head.n, newest, head.hash)
    beyond = number_file(root, DELETED, head.n + 1)
    if beyond.exists() and not is_begun(root):
        yield Fault("store_ledger", head.n + 1, None, "an entry that is no part of the ledger")


def _head(root: Path) -> _Head:
    file = root / _HEAD
    data = read_file(file)
    if data is None:
        return _Head()
    try:
        return msgspec.json.decode(data, type=_Head)
    except (msgspec.MsgspecError, ValueError) as error:
        raise damaged(file, str(error)) from error


def _entry(root: Path, n: int) -> LedgerEntry:
    file = number_file(root, DELETED, n)
    data = read_file(file)
    if data is None:
        raise damaged(file, "it is missing")
    try:
        return shapes.entry_of(data)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        raise damaged(file, str(error)) from error
