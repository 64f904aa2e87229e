"""Deleting threads of a files store: all of them or none, whenever a process is killed.

A list file names the directories to delete and the new entries of the store's ledger; writing it is the
commit. If its writer is killed, the next process that writes to the store finishes it.
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
"""Number of entries of the ledger, and the hash of the newest."""


class _Head(msgspec.Struct):
    n: int = 0
    hash: str = ""


class _Listed(msgspec.Struct):
    """A new ledger entry, and the hidden name that the directory gets before it is removed."""

    entry: dict[str, Any]
    hidden: str


def is_begun(root: Path) -> bool:
    """Whether a deletion is running, or was left unfinished by a killed process."""
    return (root / _LIST).exists()


def begin(root: Path, entries: Sequence[LedgerEntry]) -> None:
    """Commit a deletion, which `finish` then carries out.  The caller holds the store's lock.

    Without entries it deletes nothing, but makes writers of threads wait for `finish`.
    """
    make_directories(root / DELETED)
    check_directory(root / DELETED)
    listed = [_Listed(shapes.plain(entry), f".new-{uuid.uuid4().hex}") for entry in entries]
    replace_file(root / _LIST, msgspec.json.encode(listed) + b"\n")
    sync_directory(root)


def finish(root: Path) -> None:
    """Carry out what remains of a committed deletion; the caller holds the store's lock."""
    data = read_file(root / _LIST)
    if data is None:
        return
    try:
        listed = msgspec.json.decode(data, type=list[_Listed])
        entries = [shapes.row_of(LedgerEntry, each.entry) for each in listed]
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise damaged(root / _LIST, str(error), "take it away") from error
    threads = root / "threads"
    # All are hidden first, outermost first, so that nobody sees a half-deleted thread.
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
        pass  # already hidden
    except OSError as error:
        raise translate(error, path) from error


def entries(root: Path, newest: int | None = None) -> list[LedgerEntry]:
    """Return entries of the store's ledger, oldest first: all, or only so many of the newest.

    Raises:
        LogCorrupt: a part of it can't be read.
    """
    head = _head(root)
    if head.n:
        check_directory(root / DELETED)
    first = 1 if newest is None else max(head.n - newest, 0) + 1
    return [_entry(root, n) for n in range(first, head.n + 1)]


def faults(root: Path) -> Iterator[Fault]:
    """Return the inconsistencies between the ledger and the files beside it."""
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
