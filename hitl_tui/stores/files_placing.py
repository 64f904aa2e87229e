"""Putting several new threads of a files store in their places, all of them or none (SPEC 10).

A list of what is to be renamed is written first and taken away last: where one is found, its writer was
killed in between, and what it had put in place is taken back before anybody else puts something there.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from hitl_tui.stores.files_io import (
    damaged,
    locked,
    read_file,
    remove_file,
    replace_file,
    sync_directory,
    translate,
)
from hitl_tui.stores.files_layout import LOCK, directory_name
from hitl_tui.stores.files_making import clear_up, unfinished
from hitl_tui.stores.refusals import taken

LIST = "placing.json"


class _Move(msgspec.Struct):
    """A directory in `threads`: the hidden name it was filled under, and the one it is to get."""

    new: Annotated[str, msgspec.Meta(pattern=r"^\.new-[0-9a-f]{32}$")]
    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]+-[0-9a-f]{16}$")]


def place(root: Path, made: Sequence[tuple[Path, str]]) -> None:
    """Make directories of `threads` the threads with these ids.

    Args:
        made: the first one is placed last: whoever finds it finds the others, too.

    Raises:
        ThreadBusy: there is a thread with one of the ids; none is placed.
        StoreUnusable: no space, no permission or read-only; none is placed.
    """
    if len(made) == 1:
        _move(root / "threads", made[0])
        sync_directory(root / "threads")
    else:
        with locked(root / LOCK):
            _take_back(root)
            _place_all(root, made)


def recover(root: Path) -> None:
    """Take back what a killed writer has put in place without getting to the end, and clear up after it."""
    threads = root / "threads"
    if (root / LIST).exists() or unfinished(threads):
        with locked(root / LOCK):
            # In this order: what is missing counts as put in place.
            _take_back(root)
            clear_up(threads)


def _place_all(root: Path, made: Sequence[tuple[Path, str]]) -> None:
    moves = [_Move(path.name, directory_name(thread_id)) for path, thread_id in made]
    replace_file(root / LIST, msgspec.json.encode(moves) + b"\n")
    sync_directory(root)
    try:
        for one in reversed(made):
            _move(root / "threads", one)
        sync_directory(root / "threads")
    except BaseException:
        _take_back(root)
        raise
    remove_file(root / LIST)


def _move(threads: Path, made: tuple[Path, str]) -> None:
    path, thread_id = made
    target = threads / directory_name(thread_id)
    try:
        os.rename(path, target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            raise taken(thread_id) from None
        raise translate(error, target) from error


def _take_back(root: Path) -> None:
    """Undo the moves of a list that is there, unless all were made; the lock of the store is held."""
    threads = root / "threads"
    moves = _listed(root / LIST)
    # The name of one that was not moved may be somebody else's.
    moved = [move for move in moves if not (threads / move.new).exists()]
    try:
        for move in moved if len(moved) < len(moves) else ():
            os.rename(threads / move.name, threads / move.new)
    except OSError as error:
        raise translate(error, threads) from error
    # Before anything is deleted: what is missing must never look as if it had been moved.
    remove_file(root / LIST)
    for move in moves:
        shutil.rmtree(threads / move.new, ignore_errors=True)


def _listed(file: Path) -> list[_Move]:
    data = read_file(file)
    if data is None:
        return []
    try:
        return msgspec.json.decode(data, type=list[_Move])
    except (msgspec.MsgspecError, ValueError) as error:
        raise damaged(file, str(error), "take it away") from error
