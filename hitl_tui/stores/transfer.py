"""Carrying a thread, with the threads of its subgraphs' runs, between any two stores (see transfer_format).

A fork is flattened: the part it shares with its parents comes along under the names it was written with,
so that every hash stays true and `verify` agrees in the new store.  What it shares stays the other thread's
doing: a rollback shows it and leaves it alone.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.outcomes import ToolUse
from hitl_tui.engine.log.records import Checkpoint, Cursor, UpdateRecord
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.subgraphs.below import inside
from hitl_tui.stores import snapshots
from hitl_tui.stores.base import Checkpointer
from hitl_tui.stores.files_json import plain
from hitl_tui.stores.refusals import check_thread_id, taken, unknown
from hitl_tui.stores.transfer_format import FORMAT, VERSION, Header, Place
from hitl_tui.stores.transfer_names import Names, sourceless
from hitl_tui.stores.transfer_reading import Reader

# Steps read at a time.
_WINDOW = 256
_HASH = "sha256:"

_encode = msgspec.json.Encoder().encode


class _Standing(NamedTuple):
    """A thread up to where it stood when it was asked for; `of` is the thread it is below."""

    info: ThreadInfo
    cursor: Cursor
    of: str
    secret: frozenset[str]


def export_thread(
    store: Checkpointer, thread_id: str, *, private: bool = False, alone: bool = False
) -> Iterator[bytes]:
    """A thread as lines, each with its newline, up to where it stands when the first one is asked for.

    Args:
        private: True brings everything.  Without it, values of private channels are left out of a
            thread that has some, and so is all that could tell them: hashes, snapshots, what
            decisions and requests quote.  Such a file is for reading; it can't be imported.
        alone: True leaves the threads of its subgraphs' runs behind.

    Raises:
        UnknownThread: there is no such thread.
        LogCorrupt: what a thread's log should say can't be read.
    """
    found = [_standing(store, thread_id, "", private)]
    if found[0] is None:
        raise unknown(thread_id)
    if not alone:
        found += [_standing(store, one.thread_id, one.of, private) for one in inside(store, found[0].cursor)]
    return _numbered(_all_lines(store, [one for one in found if one]))


def import_thread(store: Checkpointer, lines: Iterable[bytes], thread_id: str | None = None) -> str:
    """Add a thread from the lines of `export_thread`, all of it or nothing; returns its id.

    The threads of its subgraphs' runs come along, named after it.  A thread that was exported in the middle
    of a run arrives paused.  While a SQLite store takes a thread in, others can read it but not write.

    Args:
        thread_id: its name here; its own by default.  Rows keep the names they were written with.

    Raises:
        ThreadBusy: the name is taken, or that of a thread below it.
        UsageError: no export of a thread, or one whose private values were left out.
        StoreUnusable: an export of a newer hitl-tui.
        LogCorrupt: a damaged export; names the line.
    """
    reader = Reader(lines)
    header = reader.header()
    names = Names(header, thread_id or header.info.thread_id)
    for name in names.all():
        if store.info(check_thread_id(name)) is not None:
            raise taken(name)
    store.write_threads(reader.threads(header, names))
    return names.all()[0]


def private_channels(store: Checkpointer, thread_id: str) -> set[str]:
    """The private channels that a thread has written."""
    cursor = store.cursor(thread_id)
    head = cursor.head if cursor else -1
    return {found.channel for found in store.records(thread_id, 0, head) if found.visibility == "private"}


def _standing(store: Checkpointer, thread_id: str, of: str, private: bool) -> _Standing | None:
    info, cursor = store.info(thread_id), store.cursor(thread_id)
    if info is None or cursor is None:
        return None
    secret = frozenset() if private else frozenset(private_channels(store, thread_id))
    return _Standing(info, cursor, of, secret)


def _all_lines(store: Checkpointer, threads: list[_Standing]) -> Iterator[Any]:
    places = tuple(Place(one.info.thread_id, one.of) for one in threads[1:])
    for one in threads:
        past = store.past(one.info.thread_id, one.cursor)
        yield Header(FORMAT, VERSION, sourceless(one.info), past, tuple(sorted(one.secret)), places)
        yield from _lines(store, one.info, one.cursor, one.secret)
        places = ()


def _lines(store: Checkpointer, info: ThreadInfo, cursor: Cursor, secret: frozenset[str]) -> Iterator[Any]:
    thread_id = info.thread_id
    for digest in dict.fromkeys((info.graph_digest, cursor.graph)):
        stored = store.graph(digest) if digest else None
        if stored is not None:
            yield {"graph": msgspec.Raw(stored.body)}
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


def _shown(row: msgspec.Struct, secret: frozenset[str]) -> dict[str, Any]:
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


def _shown_record(record: UpdateRecord, secret: frozenset[str]) -> dict[str, Any]:
    if record.channel in secret:
        record = replace(record, update=repr(PRIVATE), result=msgspec.UNSET)
    return _shown(record, secret)
