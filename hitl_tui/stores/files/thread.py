"""Reads the files of one thread in a files store."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from hitl_tui.engine.log.records import Checkpoint, Commit, Cursor, LedgerEntry, UpdateRecord
from hitl_tui.engine.log.threads import Fault, Lease, PauseRequest, Presence
from hitl_tui.errors import LogCorrupt
from hitl_tui.stores import snapshots
from hitl_tui.stores.files import json as shapes
from hitl_tui.stores.files.directory import (
    PARTS,
    check_directory,
    damaged,
    directory_name,
    number_file,
    read_file,
    read_part,
    translate,
)
from hitl_tui.stores.lineage import Origin, Spending, sum_by_node

T = TypeVar("T")

# Every so many steps a step's file has the spending so far, so that totals need not read all steps.
_SPENDING_STEPS = 64
_LET_GO = "it only says who holds the thread: if nobody runs the thread, delete the file"
_SNAPSHOT = re.compile(r"([0-9]{8,10})\.part")


class ThreadFiles:
    """A thread's files; only what can't change is cached.

    Raises (all of its methods):
        LogCorrupt: a file is damaged or missing.
        StoreUnusable: a file is unreadable for us, or no plain file.
    """

    def __init__(self, path: Path, origin: Origin, order: int = 0) -> None:
        self.path = path
        self.origin = origin
        self.order = order
        self.cursor_file = path / "cursor.json"
        self.lease_file = path / "lease.json"
        self.pause_file = path / "pause.json"
        self.presence_file = path / "presence.json"
        self.identity = self.identity_of(path)

    @staticmethod
    def identity_of(path: Path) -> tuple[int, int] | None:
        """Return a value that identifies the thread in a directory; None if there is none."""
        try:
            facts = os.lstat(path / "info.json")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translate(error, path) from error
        return facts.st_ino, facts.st_mtime_ns

    def filled(self, part: str) -> int:
        """Return the size of the files of a part."""
        with os.scandir(self.path / part) as files:
            return sum(file.stat(follow_symlinks=False).st_size for file in files)

    @classmethod
    def open(cls, path: Path) -> ThreadFiles:
        """Open the thread in a directory."""
        for directory in (path, *(path / part for part in PARTS)):
            check_directory(directory)
        file = path / "info.json"
        origin, order = _decoded(file, shapes.info_of)
        if directory_name(origin.info.thread_id) != path.name:
            thread_id = origin.info.thread_id
            raise damaged(file, f"it belongs to another thread, {thread_id!r}", "rename the directory back")
        return cls(path, origin, order)

    def standing(self, *, unchecked: bool = False) -> tuple[Cursor, str]:
        """Return the cursor and the last writer."""
        facts = None if unchecked else self.origin.info.facts_hash
        return _decoded(self.cursor_file, lambda data: shapes.cursor_of(data, facts))

    def cursor(self, *, unchecked: bool = False) -> Cursor:
        """Return the thread's cursor."""
        cursor, _ = self.standing(unchecked=unchecked)
        known = self.origin.info.thread_id
        if cursor.thread_id != known:
            raise damaged(self.cursor_file, f"it is of another thread, {cursor.thread_id!r}")
        return cursor

    def lease(self) -> Lease | None:
        """Return the thread's lease, of a living or dead process."""
        data = read_file(self.lease_file)
        return None if data is None else _read(self.lease_file, data, shapes.lease_of, _LET_GO)

    def pause(self) -> PauseRequest | None:
        """Return the pause request to the thread's holder."""
        data = read_file(self.pause_file)
        return None if data is None else _read(self.pause_file, data, shapes.pause_of, _LET_GO)

    def attending(self) -> tuple[Presence, ...]:
        """Return who viewed or claimed its requests, of living and dead processes."""
        data = read_file(self.presence_file)
        return () if data is None else _read(self.presence_file, data, shapes.presence_of, _LET_GO)

    def point(self, step: int) -> Checkpoint:
        """Return the checkpoint of a step up to the cursor's."""
        return self._point(step)[0]

    def records(self, step: int) -> list[UpdateRecord]:
        """Return the records of a step up to the cursor's."""
        return _decoded(number_file(self.path, "steps", step), shapes.records_of)

    def entry(self, n: int) -> LedgerEntry:
        """Return a decision up to the cursor's."""
        return _decoded(number_file(self.path, "decisions", n), shapes.entry_of)

    def spending(self, last: int) -> list[Spending]:
        """Return the spending of the thread's own steps up to `last`."""
        info = self.origin.info
        spent: list[Spending] = []
        for step in range(last, -1 if info.parent is None else info.fork_step, -1):
            point, noted = self._point(step)
            if noted is not None:
                return spent + noted
            spent.append(Spending.of(point))
        return spent

    def spending_faults(self, last: int, since: int = 0) -> Iterator[Fault]:
        """Yield stored sums of spending that differ from the steps'; sums before `since` are not checked."""
        info = self.origin.info
        first = 0 if info.parent is None else info.fork_step + 1
        noted: list[Spending] | None = []
        for step in range(since - 1, first - 1, -1):
            with suppress(LogCorrupt):  # reported for the step itself
                if (spent := self._point(step)[1]) is not None:
                    first, noted = step + 1, spent
                    break
        for step in range(first, last + 1):
            try:
                point, spent = self._point(step)
            except LogCorrupt:
                noted = None  # the check of the steps reports it; the sum is unknown until the next note
                continue
            if noted is not None:
                noted.append(Spending.of(point))
                if spent is not None and sorted(expected := sum_by_node(noted)) != sorted(spent):
                    yield Fault("spending", step, str(expected), str(spent))
            if spent is not None:
                noted = spent

    def snapshot(self, first: int, last: int) -> tuple[int, bytes] | None:
        """Return the newest snapshot of steps `first` to `last`, up to the cursor's."""
        steps = self._snapshot_steps(last)
        if not steps or steps[0] < first:
            return None
        try:
            return steps[0], snapshots.whole(map(self._part, steps))
        except ValueError as error:
            directory = self.path / "snapshots"
            hint = f"snapshots are a cache: delete the files in {directory}"
            raise damaged(number_file(self.path, "snapshots", steps[0]), str(error), hint) from error

    def files_of(self, commit: Commit, head: int) -> Iterator[tuple[Path, bytes]]:
        """Return the files of a commit after step `head`, all but the cursor's."""
        for entry in commit.ledger:
            yield number_file(self.path, "decisions", entry.n), shapes.entry_file(entry)
        point = commit.checkpoint
        if point is not None:
            spent = None
            if point.step % _SPENDING_STEPS == 0:
                spent = sum_by_node([*self.spending(head), Spending.of(point)])
            yield number_file(self.path, "steps", point.step), shapes.step_file(commit, point, spent)
        if commit.snapshot is not None:
            part = snapshots.part_of(commit.snapshot, map(self._part, self._snapshot_steps(head)))
            yield number_file(self.path, "snapshots", commit.cursor.head), part

    def _point(self, step: int) -> tuple[Checkpoint, list[Spending] | None]:
        file = number_file(self.path, "steps", step)
        point, spent = _decoded(file, shapes.checkpoint_of)
        if point.step != step:
            raise damaged(file, f"it holds step {point.step}")
        return point, spent

    def _snapshot_steps(self, last: int) -> list[int]:
        """Yield the steps up to `last` that have a snapshot, newest first."""
        directory = self.path / "snapshots"
        try:
            names = os.listdir(directory)
        except OSError as error:
            raise translate(error, directory) from error
        steps = [int(match[1]) for name in names if (match := _SNAPSHOT.fullmatch(name))]
        return sorted((step for step in steps if step <= last), reverse=True)

    def _part(self, step: int) -> bytes:
        return _decoded(number_file(self.path, "snapshots", step), bytes)


def _decoded(file: Path, decode: Callable[[bytes], T]) -> T:
    data = read_part(file)
    if data is None:
        raise damaged(file, "it is missing")
    return _read(file, data, decode)


def _read(file: Path, data: bytes, decode: Callable[[bytes], T], hint: str = "restore a backup of it") -> T:
    try:
        return decode(data)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        raise damaged(file, str(error), hint) from error
