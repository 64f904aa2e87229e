"""Reading the lines of an export, each checked before it is taken in (see transfer_format)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.log.records import (
    Checkpoint,
    Commit,
    Cursor,
    LedgerEntry,
    StoredGraph,
    UpdateRecord,
)
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.thread.hashes import chained, facts_hash
from hitl_tui.errors import LogCorrupt, StoreUnusable, UsageError
from hitl_tui.stores import snapshots
from hitl_tui.stores.files_json import row_of
from hitl_tui.stores.lineage import Carried
from hitl_tui.stores.transfer_format import FORMAT, VERSION, Header, Kind, Line, Place
from hitl_tui.stores.transfer_names import Names

_decode_line = msgspec.json.Decoder(Line).decode


class Reader:
    """The lines of an export, checked one by one.

    Raises (all of its methods):
        LogCorrupt: a damaged export; names the line.
        StoreUnusable: an export of a newer hitl-tui.
        UsageError: no export of a thread, or one whose private values were left out.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self._digest = sha256()
        self._number = 0

    def header(self) -> Header:
        """The next line, which is the first one of a thread."""
        data = self._next()
        try:
            kind = msgspec.json.decode(data, type=Kind)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            kind = Kind("", 0)
        if kind.format != FORMAT:
            raise UsageError(
                f"line {self._number}: this is no thread of hitl-tui", "give a file that `export` wrote"
            )
        if kind.version > VERSION:
            raise StoreUnusable(
                f"line {self._number}: the thread was exported by a newer hitl-tui (version {kind.version}, "
                f"this one knows {VERSION})",
                "upgrade hitl-tui",
            )
        with self._checking():
            header = msgspec.json.decode(data, type=Header)
            _check_order(header)
        self._digest.update(data)
        if header.left_out:
            raise UsageError(
                f"line {self._number}: the values of {', '.join(header.left_out)} were left out of this "
                "export",
                "export the thread with its private values to carry it to another store",
            )
        return header

    def threads(self, first: Header, names: Names) -> Iterator[Carried]:
        """The thread of a header and those that came along, each to be read to its end before the next."""
        yield self._thread(first, names)
        for place in first.inside:
            header = self.header()
            if header.info.thread_id != place.thread_id:
                raise self._damage(f"the thread {place.thread_id!r} should begin here")
            yield self._thread(header, names)
        if next(self._lines, b""):
            self._number += 1
            raise self._damage("there is more behind the last line")

    def _thread(self, header: Header, names: Names) -> Carried:
        info = names.info(header)
        info = replace(info, facts_hash=facts_hash(info, 0, header.past))
        return Carried(info, header.past, self._commits(header, names, info))

    def _commits(self, header: Header, names: Names, info: ThreadInfo) -> Iterator[Commit]:
        """All that follows in a thread, the cursor last."""
        at = Cursor(header.info.thread_id)
        parts: list[bytes] = []
        graphs: set[str] = set()
        while True:
            data = self._next()
            with self._checking():
                line = _decode_line(data)
                if line.cursor is not None:
                    break
                commit = _commit(line, at, parts)
            if commit.graph:
                graphs.add(commit.graph.digest)
            if commit.checkpoint:
                commit = replace(commit, checkpoint=names.step(commit.checkpoint, header))
            at = commit.cursor
            self._digest.update(data)
            yield commit
        with self._checking():
            end = self._end(line, at)
            _check_graphs({header.info.graph_digest, end.graph} - {""}, graphs)
        self._digest.update(data)
        if end.status == "running":
            end = replace(end, status="waiting", reason="paused", attempt=end.attempt + 1)
        links = ("last_record_hash", "checkpoint_hash", "ledger_hash")
        # What is written from here on is chained to the thread as it is called here.
        end = replace(end, **{name: chained(getattr(end, name), info.facts_hash) for name in links})
        yield Commit(names.cursor(end, header), 0, "")

    def _end(self, line: Line, at: Cursor) -> Cursor:
        if line.lines != self._number - 1:
            raise ValueError(f"{line.lines} lines should stand before it, not {self._number - 1}")
        if line.sha256 != self._digest.hexdigest():
            raise ValueError("the lines before it are not those that were written")
        cursor = row_of(Cursor, line.cursor or {})
        for name in ("head", "last_seq", "ledger_n"):
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


def _check_order(header: Header) -> None:
    """Refuse threads that are below none before them, or named twice."""
    known = {header.info.thread_id}
    for thread_id, of in (Place(*place) for place in header.inside):
        if of not in known or thread_id in known:
            raise ValueError(f"the thread {thread_id!r} is not below one before it")
        known.add(thread_id)


def _check_graphs(named: set[str], graphs: set[str]) -> None:
    """Refuse a thread without a graph that it names."""
    for digest in named - graphs:
        raise ValueError(f"the graph {digest[:12]} is missing")


def _commit(line: Line, at: Cursor, parts: list[bytes]) -> Commit:
    """What a line adds to a thread; `parts` are those of its snapshots, newest first."""
    if body := bytes(line.graph):
        return Commit(at, 0, "", graph=StoredGraph(sha256(body).hexdigest(), body))
    if line.decision is not None:
        entry = row_of(LedgerEntry, line.decision)
        if entry.n != at.ledger_n + 1:
            raise ValueError(f"decision {at.ledger_n + 1} is missing")
        return Commit(replace(at, ledger_n=entry.n, ledger_hash=entry.hash), 0, "", ledger=(entry,))
    if line.step is None:
        raise ValueError("it has no graph, no step, no decision and no cursor")
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
    return Commit(moved, 0, "", records, point, _snapshot(line, parts))


def _snapshot(line: Line, parts: list[bytes]) -> bytes | None:
    if line.snapshot is None:
        return None
    parts.insert(0, line.snapshot)
    return snapshots.whole(parts)
