"""Carrying a thread between any two stores, as lines of JSON (format "hitl-tui thread", version 1).

| line | is |
|---|---|
| first | `{"format", "version", "info", "past", "left_out"}`: the thread's fixed facts; `past` has [name, last step, last seq, last decision] of those who wrote the rows, oldest first; `left_out` names the channels whose values are not in the file |
| one a step, from 0 | `{"step": checkpoint, "records": [...], "snapshot": base64}`; a snapshot, where there is one, is the part that `snapshots.part_of` makes of it after the one before |
| one a decision | `{"decision": entry}` |
| last | `{"cursor": ..., "lines": number of lines before, "sha256": of all bytes before}` |

Hashes are written `sha256:<hex>`.  A fork is flattened: the part it shares with its parents comes along
under the names it was written with, so that every hash stays true and `verify` agrees in the new store.
"""  # noqa: E501 - a table

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.events import PRIVATE
from hitl_tui.engine.outcomes import ToolUse
from hitl_tui.engine.records import Checkpoint, Commit, Cursor, LedgerEntry, ThreadInfo, UpdateRecord
from hitl_tui.errors import LogCorrupt, StoreUnusable, UsageError
from hitl_tui.stores import snapshots
from hitl_tui.stores.base import Checkpointer
from hitl_tui.stores.files_json import plain, row_of
from hitl_tui.stores.lineage import Past
from hitl_tui.stores.refusals import check_thread_id, taken, unknown

FORMAT = "hitl-tui thread"
VERSION = 1

# Steps read at a time.
_WINDOW = 256
_HASH = "sha256:"

_encode = msgspec.json.Encoder().encode


class _Header(msgspec.Struct):
    format: str
    version: int
    info: ThreadInfo
    past: tuple[Past, ...]
    left_out: tuple[str, ...]


class _Line(msgspec.Struct):
    step: dict[str, Any] | None = None
    records: list[dict[str, Any]] = []
    snapshot: bytes | None = None
    decision: dict[str, Any] | None = None
    cursor: dict[str, Any] | None = None
    lines: int = 0
    sha256: str = ""


class _Version(msgspec.Struct):
    format: str
    version: int


_decode_line = msgspec.json.Decoder(_Line).decode


def export_thread(store: Checkpointer, thread_id: str, *, private: bool = False) -> Iterator[bytes]:
    """A thread as lines, each with its newline, up to where it stands when the first one is asked for.

    Args:
        private: True brings everything.  Without it, values of private channels are left out of a
            thread that has some, and so is all that could tell them: hashes, snapshots, what
            decisions and requests quote.  Such a file is for reading; it can't be imported.

    Raises:
        UnknownThread: there is no such thread.
    """
    info, cursor = store.info(thread_id), store.cursor(thread_id)
    if info is None or cursor is None:
        raise unknown(thread_id)
    secret = set() if private else private_channels(store, thread_id)
    return _numbered(_lines(store, info, cursor, secret))


def import_thread(store: Checkpointer, lines: Iterable[bytes], thread_id: str | None = None) -> str:
    """Add a thread from the lines of `export_thread`, all of it or nothing; returns its id.

    A thread that was exported in the middle of a run arrives paused.  While a SQLite store takes a
    thread in, others can read it but not write.

    Args:
        thread_id: its name here; its own by default.  Rows keep the names they were written with.

    Raises:
        ThreadBusy: the name is taken.
        UsageError: no export of a thread, or one whose private values were left out.
        StoreUnusable: an export of a newer hitl-tui.
        LogCorrupt: a damaged export; names the line.
    """
    reader = _Reader(lines)
    header = reader.header()
    name = check_thread_id(thread_id or header.info.thread_id)
    if store.info(name) is not None:
        raise taken(name)
    info = replace(header.info, thread_id=name, parent=None, fork_step=-1, fork_seq=0)
    past = header.past
    while past and past[-1].thread_id == name:
        past = past[:-1]
    store.write_thread(info, past, reader.commits(name))
    return name


def private_channels(store: Checkpointer, thread_id: str) -> set[str]:
    """The private channels that a thread has written."""
    cursor = store.cursor(thread_id)
    head = cursor.head if cursor else -1
    return {found.channel for found in store.records(thread_id, 0, head) if found.visibility == "private"}


def _lines(store: Checkpointer, info: ThreadInfo, cursor: Cursor, secret: set[str]) -> Iterator[Any]:
    thread_id = info.thread_id
    yield _Header(FORMAT, VERSION, info, store.past(thread_id, cursor), tuple(sorted(secret)))
    steps = [] if secret else _snapshot_steps(store, thread_id, cursor.head)
    part: bytes | None = None
    for first in range(0, cursor.head + 1, _WINDOW):
        last = min(first + _WINDOW - 1, cursor.head)
        records: dict[int, list[UpdateRecord]] = {}
        for record in store.records(thread_id, first, last):
            records.setdefault(record.step, []).append(record)
        for point in reversed(store.checkpoints(thread_id, last + 1, last + 1 - first)):
            line: dict[str, Any] = {
                "step": _shown(_without_quotes(point) if secret else point, secret),
                "records": [_shown_record(record, secret) for record in records.get(point.step, ())],
            }
            if point.step in steps and (found := store.snapshot(thread_id, point.step)):
                part = snapshots.part_of(found[1], part)
                line["snapshot"] = b64encode(part).decode()
            yield line
    for entry in store.ledger(thread_id)[: cursor.ledger_n]:
        yield {"decision": _shown(replace(entry, data=None) if secret else entry, secret)}
    if secret:
        pending = tuple(replace(request, payload=None, votes=()) for request in cursor.pending)
        calls = tuple(map(_unquoted, cursor.calls))
        cursor = replace(
            cursor, pending=pending, answers=(), exchanges=(), branches=(), error=None, calls=calls
        )
    yield {"cursor": _shown(cursor, secret)}


def _snapshot_steps(store: Checkpointer, thread_id: str, head: int) -> set[int]:
    steps: set[int] = set()
    while found := store.snapshot(thread_id, head):
        head = found[0] - 1
        steps.add(found[0])
    return steps


def _numbered(lines: Iterable[Any]) -> Iterator[bytes]:
    digest = sha256()
    for number, line in enumerate(lines):
        if isinstance(line, dict) and "cursor" in line:
            line |= {"lines": number, "sha256": digest.hexdigest()}
        data = _encode(line) + b"\n"
        digest.update(data)
        yield data


def _shown(row: msgspec.Struct, secret: set[str]) -> dict[str, Any]:
    """A row as JSON; any hash tells of all values before it, so none is shown beside a secret."""
    fields = plain(row)
    if secret:
        hashes = [name for name, value in fields.items() if isinstance(value, str) and _is_hash(name, value)]
        for name in hashes:
            del fields[name]
    return fields


def _without_quotes(point: Checkpoint) -> Checkpoint:
    """A step whose compensations and tools may have been given anything, as its node was free to."""
    return replace(
        point,
        compensations=tuple(replace(one, args=None) for one in point.compensations),
        calls=tuple(map(_unquoted, point.calls)),
    )


def _unquoted(call: ToolUse) -> ToolUse:
    return replace(call, arguments=None, result=None, error=None if call.error is None else repr(PRIVATE))


def _is_hash(name: str, value: str) -> bool:
    return (name.endswith("hash") or name == "seen") and value.startswith(_HASH)


def _shown_record(record: UpdateRecord, secret: set[str]) -> dict[str, Any]:
    if record.channel in secret:
        record = replace(record, update=repr(PRIVATE), result=msgspec.UNSET)
    return _shown(record, secret)


class _Reader:
    """The lines of an export, checked one by one."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self._digest = sha256()
        self._number = 0
        self._parts: list[bytes] = []

    def header(self) -> _Header:
        """The first line."""
        data = self._next()
        try:
            kind = msgspec.json.decode(data, type=_Version)
        except (msgspec.MsgspecError, ValueError):
            kind = _Version("", 0)
        if kind.format != FORMAT:
            raise UsageError("line 1: this is no thread of hitl-tui", "give a file that `export` wrote")
        if kind.version > VERSION:
            raise StoreUnusable(
                f"line 1: the thread was exported by a newer hitl-tui (version {kind.version}, this one "
                f"knows {VERSION})",
                "upgrade hitl-tui",
            )
        with self._checking():
            header = msgspec.json.decode(data, type=_Header)
        self._digest.update(data)
        if header.left_out:
            raise UsageError(
                f"line 1: the values of {', '.join(header.left_out)} were left out of this export",
                "export the thread with its private values to carry it to another store",
            )
        return header

    def commits(self, thread_id: str) -> Iterator[Commit]:
        """All that follows, the cursor last.

        Raises:
            LogCorrupt: names the line.
        """
        at = Cursor(thread_id)
        while True:
            data = self._next()
            with self._checking():
                line = _decode_line(data)
                if line.cursor is not None:
                    break
                commit = self._commit(line, at)
            at = commit.cursor
            self._digest.update(data)
            yield commit
        with self._checking():
            end = self._end(line, at)
        if next(self._lines, b""):
            raise self._damage("there is more behind the last line")
        if end.status == "running":
            end = replace(end, status="waiting", reason="paused", attempt=end.attempt + 1)
        yield Commit(replace(end, thread_id=thread_id), 0, "")

    def _commit(self, line: _Line, at: Cursor) -> Commit:
        if line.decision is not None:
            entry = row_of(LedgerEntry, line.decision)
            if entry.n != at.ledger_n + 1:
                raise ValueError(f"decision {at.ledger_n + 1} is missing")
            return Commit(replace(at, ledger_n=entry.n, ledger_hash=entry.hash), 0, "", ledger=(entry,))
        if line.step is None:
            raise ValueError("it has no step, no decision and no cursor")
        point = row_of(Checkpoint, line.step)
        records = tuple(row_of(UpdateRecord, fields) for fields in line.records)
        if point.step != at.head + 1:
            raise ValueError(f"step {at.head + 1} is missing")
        if [record.seq for record in records] != list(range(at.last_seq + 1, point.last_seq + 1)):
            raise ValueError(f"the records of step {point.step} are not those it counts")
        moved = replace(
            at,
            head=point.step,
            last_seq=point.last_seq,
            last_record_hash=records[-1].record_hash if records else at.last_record_hash,
        )
        return Commit(moved, 0, "", records, point, self._snapshot(line))

    def _snapshot(self, line: _Line) -> bytes | None:
        if line.snapshot is None:
            return None
        self._parts.insert(0, line.snapshot)
        return snapshots.whole(self._parts)

    def _end(self, line: _Line, at: Cursor) -> Cursor:
        if line.lines != self._number - 1:
            raise ValueError(f"{line.lines} lines should stand before it, not {self._number - 1}")
        if line.sha256 != self._digest.hexdigest():
            raise ValueError("the lines before it are not those that were written")
        cursor = row_of(Cursor, line.cursor or {})
        for name in ("head", "last_seq", "last_record_hash", "ledger_n", "ledger_hash"):
            if getattr(cursor, name) != getattr(at, name):
                raise ValueError(f"its {name} is not that of the lines before")
        return cursor

    def _next(self) -> bytes:
        data = next(self._lines, b"")
        self._number += 1
        if not data.endswith(b"\n"):
            raise self._damage("it is cut off" if data else "it is missing")
        return data

    @contextmanager
    def _checking(self) -> Iterator[None]:
        try:
            yield
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
            raise self._damage(str(error)) from error

    def _damage(self, what: str) -> LogCorrupt:
        return LogCorrupt(
            f"line {self._number} of the export is damaged: {what}; nothing was imported",
            "export the thread again",
        )
