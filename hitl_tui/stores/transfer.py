"""Exports and imports a thread, with its child threads, as lines of JSON, between any two stores.

`docs/spec/verify.md` specifies every line, what each hash covers and how an export is checked.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, Self, get_args

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.outcomes import BranchOutcome, BranchState, ToolUse
from hitl_tui.engine.log.records import (
    Checkpoint,
    Commit,
    Cursor,
    LedgerEntry,
    StoredGraph,
    UpdateRecord,
)
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import WITHIN, Owner, Part, ThreadInfo, check_thread_id, child_id
from hitl_tui.engine.nodes.children import descendants, threads_of, threads_of_cursor, threads_of_step
from hitl_tui.engine.state.values import check_nesting
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.hashes import chained, cursor_hash, facts_hash, source_hash
from hitl_tui.engine.thread.logged import chained_cursor_hash, ledger_links
from hitl_tui.engine.thread.run_inputs import inputs_at_steps
from hitl_tui.errors import HitlError, LogCorrupt, UsageError
from hitl_tui.stores import snapshots
from hitl_tui.stores.base import Checkpointer, name_taken, of_other_version, unknown_thread
from hitl_tui.stores.files.json import PREFIX, digest_of, hash_text, plain, row_of
from hitl_tui.stores.lineage import ImportedThread, Past

FORMAT = "hitl-tui thread"
VERSION = 9


class ChildPlace(NamedTuple):
    """A child thread and its parent."""

    thread_id: str
    of: str


class Header(NamedTuple):
    """The content of the first line of a thread.

    Args:
        info: its fixed facts, without the source of its graph.
        source: the `source_hash` of that source.
        shared_entries: how many of its parent's decisions a fork shares.
        past: which threads wrote its rows, the thread itself last.
        left_out: the private names whose values were left out.
        inside: in the first thread of an export, the other threads.
        missing: in the first thread, the threads that the export names but does not contain.
    """

    info: ThreadInfo
    source: bytes
    shared_entries: int
    past: tuple[Past, ...]
    left_out: tuple[str, ...]
    inside: tuple[ChildPlace, ...] = ()
    missing: tuple[str, ...] = ()


class HeaderLine(msgspec.Struct):
    """The first line of a thread."""

    format: str
    version: int
    info: dict[str, Any]
    source: str
    shared_entries: int
    past: tuple[tuple[str, int, int, int, str], ...]
    left_out: tuple[str, ...]
    inside: tuple[ChildPlace, ...]
    missing: tuple[str, ...]

    @classmethod
    def of(cls, header: Header) -> Self:
        """Return the line of a header; it has no hashes if private values are left out."""
        shown = (lambda digest: "") if header.left_out else hash_text
        return cls(
            FORMAT,
            VERSION,
            {**plain(header.info), "facts_hash": shown(header.info.facts_hash)},
            shown(header.source),
            header.shared_entries,
            tuple((*part[:4], shown(part.facts)) for part in header.past),
            header.left_out,
            header.inside,
            header.missing,
        )

    def read(self) -> Header:
        """Return the header in a line; raises `ValueError`."""
        past = tuple(Past(*part[:4], digest_of(part[4], "past")) for part in self.past)
        return Header(
            row_of(ThreadInfo, self.info),
            digest_of(self.source, "source"),
            self.shared_entries,
            past,
            self.left_out,
            self.inside,
            self.missing,
        )


class Line(msgspec.Struct):
    """Any line after the first one."""

    graph: msgspec.Raw = msgspec.Raw()
    step: dict[str, Any] | None = None
    records: list[dict[str, Any]] = []
    snapshot: bytes | None = None
    decision: dict[str, Any] | None = None
    cursor: msgspec.Raw = msgspec.Raw()
    lines: int = 0
    sha256: str = ""


class Kind(msgspec.Struct):
    """The format and version in a first line."""

    format: str
    version: int


class Names:
    """The new names of all threads of an export.

    Each child is named after its parent, as in the engine: `parent/node#n`. A fork's shared child threads are
    imported under the fork's name; if two would get the same name, one gets the next number.

    Args:
        header: that of the first thread.
        name: the new name of the first thread; by default its old one.
    """

    def __init__(self, header: Header, name: str | None = None) -> None:
        name = name or header.info.thread_id
        self._new = {header.info.thread_id: name}
        self._taken = {name}
        self._of = {place.thread_id: place.of for place in header.inside}
        own = [place for place in header.inside if _is_own(place)]
        for place in (*own, *header.inside):
            if place.of in self._new and place.thread_id not in self._new:
                self._new[place.thread_id] = self._free(_name_after_parent(self._new[place.of], place))

    def all(self) -> list[str]:
        """Return every new name, that of the first thread first."""
        return list(self._new.values())

    def of(self, thread_id: str) -> str:
        """Return the new name of a thread of the export."""
        return self._new[thread_id]

    def info(self, header: Header) -> ThreadInfo:
        """Return a thread's fixed facts with its new name, and without its fork parent."""
        old = header.info
        name, above = self._new[old.thread_id], self._of.get(old.thread_id)
        owner = old.owner
        if above is not None and owner is not None:
            owner = Owner(self._new[above], owner.node)
        elif name != old.thread_id:
            owner = None  # with another name, it is not the thread that its parent expects
        return replace(sourceless(old), thread_id=name, parent=None, fork_seq=0, owner=owner)

    def step(self, point: Checkpoint, header: Header) -> Checkpoint:
        """Return a step with the new names of its child threads."""
        if not any(outcome.thread for outcome in point.branches):
            return point
        return replace(point, branches=tuple(self._outcome(branch, header) for branch in point.branches))

    def cursor(self, cursor: Cursor, header: Header) -> Cursor:
        """Return a cursor with the new names of its child threads."""
        return replace(
            cursor,
            thread_id=self._new[header.info.thread_id],
            pending=tuple(self._request(request, header) for request in cursor.pending),
            branches=tuple(self._branch(branch, header) for branch in cursor.branches),
        )

    def _outcome(self, outcome: BranchOutcome, header: Header) -> BranchOutcome:
        return replace(outcome, thread=self._name(outcome.thread, header))

    def _request(self, request: Request, header: Header) -> Request:
        return replace(request, thread=self._name(request.thread, header))

    def _branch(self, branch: BranchState, header: Header) -> BranchState:
        if branch.child is None:
            return branch
        return replace(
            branch, child=replace(branch.child, thread_id=self._name(branch.child.thread_id, header))
        )

    def _name(self, old: str, header: Header) -> str:
        """Return the new name of a child thread, also of one that is not in the file."""
        if not old or old in self._new:
            return self._new.get(old, old)
        for above in (header.info.thread_id, *(past.thread_id for past in header.past)):
            if old.startswith(f"{above}/"):
                return child_id(self._new[header.info.thread_id], old.removeprefix(f"{above}/"))
        return old

    def _free(self, name: str) -> str:
        above, _, own = name.rpartition("/")
        n = 1
        while name in self._taken:
            n += 1
            # Its own part stays: the hash of its step contains it.
            name = child_id(f"{above}/{n}", own)
        self._taken.add(name)
        return name


def sourceless(info: ThreadInfo) -> ThreadInfo:
    """Return a thread's fixed facts without the source of its graph, which an importer must not trust.

    The path to a subgraph inside its parent's graph is kept.
    """
    way = info.source.get(WITHIN)
    named = isinstance(way, list) and all(isinstance(node, str) for node in way)
    return replace(info, source={WITHIN: way} if named else {})


def _is_own(place: ChildPlace) -> bool:
    """Whether a child's name starts with its parent's name; otherwise a fork shares it."""
    return place.thread_id.startswith(f"{place.of}/")


def _name_after_parent(above: str, place: ChildPlace) -> str:
    """Return the new name of a child whose parent is now called `above`."""
    own = place.thread_id.removeprefix(f"{place.of}/")
    return child_id(above, own if _is_own(place) else own.rpartition("/")[2])


_decode_line = msgspec.json.Decoder(Line).decode


class Reader:
    """Reads the lines of an export and checks them one by one.

    Raises (all of its methods):
        LogCorrupt: a damaged export; names the line.
        StoreUnusable: an export of another version.
        UsageError: not an export of a thread, or one whose private values were left out.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self._digest = sha256()
        self._number = 0
        # The threads that steps and cursors name.
        self._named: set[str] = set()

    def header(self) -> Header:
        """Read the next line, which must be the first one of a thread."""
        data = self._next()
        try:
            kind = msgspec.json.decode(data, type=Kind)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            kind = Kind("", 0)
        if kind.format != FORMAT:
            raise UsageError(
                f"line {self._number}: this is not a hitl-tui thread", "give a file that `export` wrote"
            )
        if kind.version != VERSION:
            what = f"line {self._number}: the thread was exported"
            raise of_other_version(what, kind.version, VERSION, "export it again")
        with self._checking():
            check_nesting(data)
            line = msgspec.json.decode(data, type=HeaderLine)
            header = line.read()
            _check_written(HeaderLine.of(header), data)
        self._digest.update(data)
        if header.left_out:
            raise UsageError(
                f"line {self._number}: the values of {', '.join(header.left_out)} were left out of this "
                "export",
                "export the thread with its private values to carry it to another store",
            )
        with self._checking():
            _check_numbers(header.info)
            _check_order(header)
            _check_past(header)
        return header

    def threads(self, first: Header, names: Names) -> Iterator[ImportedThread]:
        """Yield the thread of a header and its children; read each to its end before the next."""
        past = {first.info.thread_id: {part.thread_id for part in first.past}}
        yield self._thread(first, names)
        for place in first.inside:
            header = self.header()
            with self._checking():
                _check_place(header, place, past[place.of])
            past[place.thread_id] = {part.thread_id for part in header.past}
            yield self._thread(header, names)
        with self._checking():
            if others := (self._named - past.keys()) ^ set(first.missing):
                raise ValueError(f"line 1 and the steps name different threads: {_listed_names(others)}")
        if next(self._lines, b""):
            self._number += 1
            raise self._damage("there is more after the last line")

    def _thread(self, header: Header, names: Names) -> ImportedThread:
        info = names.info(header)
        info = replace(info, facts_hash=facts_hash(info, past=header.past))
        return ImportedThread(info, header.past, self._commits(header, names, info))

    def _commits(self, header: Header, names: Names, info: ThreadInfo) -> Iterator[Commit]:
        """Yield the commits of a thread, the cursor last."""
        with self._checking():
            rows = _Rows(header)
        while True:
            data = self._next()
            with self._checking():
                check_nesting(data)
                line = _decode_line(data)
                if bytes(line.cursor):
                    break
                commit = rows.read(line, data)
            if commit.checkpoint:
                self._named.update(threads_of_step(commit.checkpoint))
                commit = replace(commit, checkpoint=names.step(commit.checkpoint, header))
            self._digest.update(data)
            yield commit
        with self._checking():
            end = self._end(line, data)
            rows.check_end(end)
        self._named |= threads_of_cursor(end)
        self._digest.update(data)
        links = ("last_record_hash", "checkpoint_hash", "ledger_hash")
        # What is written from here on is chained to the thread with its new name.
        end = replace(end, **{name: chained(getattr(end, name), info.facts_hash) for name in links})
        end = names.cursor(end, header)
        ledger: tuple[LedgerEntry, ...] = ()
        if end.status == "running":
            end = replace(end, status="waiting", reason="paused", attempt=end.attempt + 1)
            note = "it was exported while another store's process ran it"
            entry = journal.ledger_entry(
                end, "takeover", at=end.updated_at, note=note, data={"status": "running"}
            )
            ledger = (journal.with_cursor(entry, end),)
            end = journal.after_entries(end, ledger)
        yield Commit(end, 0, "", ledger=ledger)

    def _end(self, line: Line, data: bytes) -> Cursor:
        if line.lines != self._number - 1:
            raise ValueError(f"it counts {line.lines} lines before it, and there are {self._number - 1}")
        body = bytes(line.cursor)
        sealed = self._digest.copy()
        sealed.update(body)
        if line.sha256 != sealed.hexdigest():
            raise ValueError("the lines are not those that were written")
        cursor = row_of(Cursor, msgspec.json.decode(body, type=dict[str, Any]))
        _check_numbers(cursor)
        _check_written(_last_line(_encode(plain(cursor)), line.lines, line.sha256), data)
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
    """Refuse child threads that come before their parents, or are named twice."""
    known = {header.info.thread_id}
    for thread_id, of in header.inside:
        if of not in known or thread_id in known:
            raise ValueError(f"the thread {thread_id!r} is not inside one before it")
        known.add(thread_id)
    if list(header.missing) != sorted(set(header.missing) - known):
        raise ValueError("its list of missing threads is not in order")


def _check_past(header: Header) -> None:
    """Refuse facts that do not match the digest of a thread's facts, and rows without a writer."""
    info, past = header.info, header.past
    before = (-1, 0, 0)
    for part in past:
        if any(number < least for number, least in zip(part[1:4], before, strict=True)):
            raise ValueError("its parts do not follow one another")
        before = part[1:4]
    if info != sourceless(info):
        raise ValueError("it says how its graph is built")
    if not past or (past[-1].thread_id, past[-1].facts) != (info.thread_id, info.facts_hash):
        raise ValueError("its last part is not its own")
    is_fork = info.parent is not None
    facts = facts_hash(info, header.shared_entries, () if is_fork else past[:-1], header.source)
    if facts != info.facts_hash or (header.shared_entries and not is_fork):
        raise ValueError("what is fixed about the thread was changed")
    if is_fork and (len(past) < 2 or past[-2][1:3] != (info.fork_step, info.fork_seq)):
        raise ValueError("it does not begin where its parent's steps end")


def _check_place(header: Header, place: ChildPlace, names: set[str]) -> None:
    """Refuse a thread that is not the next one, or is not a child of its stated parent.

    Args:
        names: the names under which the parent's rows were written.
    """
    info = header.info
    if info.thread_id != place.thread_id:
        raise ValueError(f"the thread {place.thread_id!r} should begin here")
    if info.owner is None or info.owner.thread_id not in names:
        raise ValueError(f"the thread {info.thread_id!r} did not run inside {place.of!r}")
    if header.inside or header.missing:
        raise ValueError("only the first thread names others")


def _listed_names(names: Collection[str]) -> str:
    return ", ".join(map(repr, sorted(names)))


def _check_written(row: Any, data: bytes) -> None:
    """Refuse a line that differs in any byte from what `export_thread` writes for its content."""
    if _encode(row) + b"\n" != data:
        raise ValueError("it is not written as `export` writes it")


_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@cache
def _own_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields of a row, except those with user values."""
    return tuple(field.name for field in msgspec.structs.fields(kind) if not _may_be_any(field.type))


def _may_be_any(kind: Any) -> bool:
    return kind is Any or any(map(_may_be_any, get_args(kind)))


def _check_numbers(row: msgspec.Struct, where: str = "") -> None:
    """Refuse a row with a number that is too large for a database column; values of channels are not checked.

    Raises:
        ValueError: names the field.
    """
    for name in _own_fields(type(row)):
        value = getattr(row, name)
        if type(value) is int:
            if not _LEAST <= value <= _MOST:
                raise ValueError(f"{where}{name} does not fit into 64 bits")
        elif isinstance(value, msgspec.Struct):
            _check_numbers(value, f"{where}{name}.")
        elif type(value) is tuple:
            for part in value:
                if isinstance(part, msgspec.Struct):
                    _check_numbers(part, f"{where}{name}.")


class _Rows:
    """Reads the lines of one thread between its first and its last: graphs, steps, decisions.

    Raises (all of its methods):
        ValueError: a line does not follow those before it.
    """

    def __init__(self, header: Header) -> None:
        self._info, self._past = header.info, header.past
        self._at = Cursor(header.info.thread_id)
        self._graphs: list[str] = []
        # Parts of snapshots, newest first.
        self._parts: list[bytes] = []
        self._newest: Checkpoint | None = None
        self._decided: LedgerEntry | None = None
        self._check_part(-1)

    def read(self, line: Line, data: bytes) -> Commit:
        """Return what a line adds to the thread."""
        written: dict[str, Any]
        if body := bytes(line.graph):
            commit, written = self._graph(body), {"graph": line.graph}
        elif line.decision is not None:
            commit, written = self._decision(line.decision)
        elif line.step is not None:
            commit, written = self._step(line.step, line)
        else:
            raise ValueError("it has no graph, no step, no decision and no cursor")
        _check_written(written, data)
        self._at = commit.cursor
        return commit

    def check_end(self, end: Cursor) -> None:
        """Refuse a cursor that does not match these lines."""
        for name in ("thread_id", "head", "last_seq", "ledger_n"):
            if getattr(end, name) != getattr(self._at, name):
                raise ValueError(f"its {name} is not that of the lines before")
        if self._past[-1][1:4] != (end.head, end.last_seq, end.ledger_n):
            raise ValueError("the first line of its thread counts other rows than those before it")
        wanted = [digest for digest in dict.fromkeys((self._info.graph_digest, end.graph)) if digest]
        for digest in (digest for digest in wanted if digest not in self._graphs):
            raise ValueError(f"the graph {digest[:12]} is missing")
        if self._graphs != wanted:
            raise ValueError("the thread has graphs that it does not name")
        links = ledger_links(self._decided, list(self._own_parts()))
        if cursor_hash(end) != chained_cursor_hash(self._info, end, self._newest, self._decided, links):
            raise ValueError("the cursor is not the one that the newest step or decision was written with")

    def _own_parts(self) -> Iterator[Part]:
        """Return the parts of the thread as a store has them."""
        after = (-1, 0, 0)
        for name, *last, facts in self._past:
            yield Part(self._info.thread_id, name, *after, facts)
            after = (last[0], last[1], last[2])

    def _graph(self, body: bytes) -> Commit:
        if self._at.head >= 0 or self._at.ledger_n:
            raise ValueError("a graph comes before the steps")
        graph = StoredGraph(sha256(body).hexdigest(), body)
        self._graphs.append(graph.digest)
        return Commit(self._at, 0, "", graph=graph)

    def _decision(self, fields: dict[str, Any]) -> tuple[Commit, dict[str, Any]]:
        entry, at = row_of(LedgerEntry, fields), self._at
        _check_numbers(entry)
        if entry.n != at.ledger_n + 1:
            raise ValueError(f"decision {at.ledger_n + 1} is missing")
        if entry.thread_id != self._name("last_entry", entry.n):
            raise ValueError("its thread is not the one that wrote it")
        self._decided = entry
        moved = replace(at, ledger_n=entry.n, ledger_hash=entry.hash)
        return Commit(moved, 0, "", ledger=(entry,)), {"decision": plain(entry)}

    def _step(self, fields: dict[str, Any], line: Line) -> tuple[Commit, dict[str, Any]]:
        at, point = self._at, row_of(Checkpoint, fields)
        records = tuple(row_of(UpdateRecord, row) for row in line.records)
        rows: tuple[Checkpoint | UpdateRecord, ...] = (point, *records)
        for row in rows:
            _check_numbers(row)
        if at.ledger_n:
            raise ValueError("a step comes before the decisions")
        if point.step != at.head + 1:
            raise ValueError(f"step {at.head + 1} is missing")
        last = at.last_seq + len(records)
        numbers = [(row.seq, row.step) for row in records]
        if point.last_seq != last or numbers != [(n, point.step) for n in range(at.last_seq + 1, last + 1)]:
            raise ValueError(f"the records of step {point.step} are not those it counts")
        if {row.thread_id for row in rows} != {self._name("last_step", point.step)}:
            raise ValueError("its thread is not the one that wrote it")
        moved = replace(
            at,
            head=point.step,
            last_seq=last,
            last_record_hash=records[-1].record_hash if records else at.last_record_hash,
        )
        self._newest = point
        self._check_part(point.step, last)
        written = {"step": plain(point), "records": [plain(row) for row in records]}
        snapshot = None
        if line.snapshot is not None:
            written["snapshot"] = b64encode(line.snapshot).decode()
            self._parts.insert(0, line.snapshot)
            snapshot = snapshots.whole(self._parts)
        return Commit(moved, 0, "", records, point, snapshot), written

    def _name(self, field: Literal["last_step", "last_entry"], number: int) -> str:
        """Return the name of the thread that wrote the row with a number; `field` says what is numbered."""
        for part in self._past:
            last: int = getattr(part, field)
            if number <= last:
                return part.thread_id
        raise ValueError("the first line of its thread counts fewer rows")

    def _check_part(self, step: int, seq: int = 0) -> None:
        """Refuse a part that ends at this step, but at another record."""
        for part in self._past:
            if part.last_step == step and part.last_seq != seq:
                raise ValueError("the first line of its thread counts other records")


# Steps read at a time.
_WINDOW = 256

_encode = msgspec.json.Encoder().encode


class _ThreadAtExport(NamedTuple):
    """A thread as it was when the export started; `of` is its parent."""

    info: ThreadInfo
    cursor: Cursor
    of: str
    secret: frozenset[str]


def export_thread(
    store: Checkpointer, thread_id: str, *, private: bool = False, alone: bool = False
) -> Iterator[bytes]:
    """Yield a thread as lines, each with its newline, as it is when the first one is read.

    Args:
        private: True exports everything. Otherwise values of private channels are left out, together with all
            that could reveal them: hashes, snapshots, texts of decisions and requests. Such a file is for
            reading; it can't be imported.
        alone: True leaves out child threads.

    Raises:
        UnknownThread: there is no such thread.
        LogCorrupt: a thread's log can't be read.
    """
    standings = [_standing(store, thread_id, "", private)]
    if standings[0] is None:
        raise unknown_thread(thread_id)
    if not alone:
        standings += [
            _standing(store, child.thread_id, child.parent, private)
            for child in descendants(store, standings[0].cursor)
        ]
    return _numbered(_all_lines(store, [standing for standing in standings if standing]))


def import_thread(store: Checkpointer, lines: Iterable[bytes], thread_id: str | None = None) -> str:
    """Add a thread from the lines of `export_thread`, all of it or nothing; return its id.

    Its child threads are imported, too, named after it. A thread that was exported in the middle of a run is
    paused here. Everything is checked as by `verify` before anything is written. During an import into a
    SQLite store, others can read it but not write.

    Args:
        thread_id: its new name; by default its old one. Rows keep the names with which they were written.

    Raises:
        ThreadBusy: the name is taken, or that of a child thread.
        UsageError: not an export of a thread, or one whose private values were left out.
        StoreUnusable: an export of another version.
        LogCorrupt: an export that is damaged, or was changed.
    """
    with _spool(lines) as (header, spool):
        names = Names(header, thread_id)
        for name in names.all():
            if store.info(check_thread_id(name)) is not None:
                raise name_taken(name)
        with _store_for(spool) as checked:
            checked.write_threads(_threads(spool, names))
            _check_chains(checked, names.all()[0])
        store.write_threads(_threads(spool, names))
    return names.all()[0]


_MOST_IN_MEMORY = 8 << 20
"""Bytes of an export; a larger one is kept in temporary files while it is checked."""


@contextmanager
def _spool(lines: Iterable[bytes]) -> Iterator[tuple[Header, IO[bytes]]]:
    """Read the first line of an export, and keep all lines to be read twice: to check and to write them.

    Raises:
        LogCorrupt, StoreUnusable, UsageError: its first line is not that of an export.
        HitlError: there is no room for temporary files.
    """
    from tempfile import SpooledTemporaryFile

    rest = iter(lines)
    first = next(rest, b"")
    header = Reader([first]).header()
    with SpooledTemporaryFile(_MOST_IN_MEMORY) as spool:
        for line in chain([first], rest):
            try:
                spool.write(line)
            except OSError as error:
                raise HitlError(
                    f"the export can't be kept while it is checked: {error.strerror}",
                    "free room for temporary files, or set TMPDIR to another directory",
                ) from error
            if not line.endswith(b"\n"):
                break  # it is cut off, which reading it will report
        yield header, spool


def _threads(spool: IO[bytes], names: Names) -> Iterator[ImportedThread]:
    """Yield the threads of an export."""
    spool.seek(0)
    reader = Reader(spool)
    return reader.threads(reader.header(), names)


@contextmanager
def _store_for(spool: IO[bytes]) -> Iterator[Checkpointer]:
    """Return a store in which an export is checked; for a large one, a temporary file."""
    from hitl_tui.stores.memory import MemoryCheckpointer

    if spool.tell() <= _MOST_IN_MEMORY:
        yield MemoryCheckpointer()
        return
    from tempfile import TemporaryDirectory

    from hitl_tui.stores.sqlite.store import SQLiteCheckpointer

    with (
        TemporaryDirectory() as place,
        closing(SQLiteCheckpointer(Path(place) / "export.db", "none")) as store,
    ):
        yield store


def _check_chains(store: Checkpointer, thread_id: str) -> None:
    """Refuse threads whose logs have findings."""
    from hitl_tui.engine.audit.verify import verify_tree

    report = verify_tree(store, thread_id)
    # A thread may have been left out, for example with `alone`; the first line names it.
    found = [one for one in report.mismatches if (one.kind, one.field) != ("gap", "thread")]
    if found:
        wrong = found[0]
        where = wrong.thread or thread_id
        step = "" if wrong.step is None else f", step {wrong.step}"
        raise LogCorrupt(
            f"the export was changed after it was written: thread {where!r}{step}: {wrong.kind} "
            f"{wrong.field} is not what it was; nothing was imported",
            "export the thread again; `hitl-tui verify` checks the store that it came from",
        )


def private_names(store: Store, thread_id: str) -> set[str]:
    """Return the private names of a thread: channels that it has written, and context as `context.NAME`."""
    cursor = store.cursor(thread_id)
    head = cursor.head if cursor else -1
    given = inputs_at_steps(store.ledger(thread_id)).values()
    names = {f"context.{name}" for fields in given for name in fields.get("private_context", ())}
    return names | {
        record.channel for record in store.records(thread_id, 0, head) if record.visibility == "private"
    }


def _standing(store: Checkpointer, thread_id: str, of: str, private: bool) -> _ThreadAtExport | None:
    info, cursor = store.info(thread_id), store.cursor(thread_id)
    if info is None or cursor is None:
        return None
    secret = frozenset() if private else frozenset(private_names(store, thread_id))
    return _ThreadAtExport(info, cursor, of, secret)


def _all_lines(store: Checkpointer, threads: list[_ThreadAtExport]) -> Iterator[Any]:
    places = tuple(ChildPlace(thread.info.thread_id, thread.of) for thread in threads[1:])
    wanted = {name for thread in threads for name in threads_of(store, thread.cursor)}
    missing = tuple(sorted(wanted - {thread.info.thread_id for thread in threads}))
    for info, cursor, _, secret in threads:
        header = Header(
            sourceless(info),
            source_hash(info.source),
            store.shared_entries(info.thread_id),
            store.past(info.thread_id, cursor),
            tuple(sorted(secret)),
            places,
            missing,
        )
        yield HeaderLine.of(header)
        yield from _lines(store, info, cursor, secret)
        places = missing = ()


def _lines(store: Checkpointer, info: ThreadInfo, cursor: Cursor, secret: frozenset[str]) -> Iterator[Any]:
    thread_id = info.thread_id
    for digest in dict.fromkeys((info.graph_digest, cursor.graph)):
        stored = store.graph(digest) if digest else None
        if stored is not None:
            yield {"graph": msgspec.Raw(stored.body)}
    steps = [] if secret else _snapshot_steps(store, thread_id, cursor.head)
    parts: list[bytes] = []
    for first in range(0, cursor.head + 1, _WINDOW):
        last = min(first + _WINDOW - 1, cursor.head)
        records: dict[int, list[UpdateRecord]] = {}
        for record in store.records(thread_id, first, last):
            records.setdefault(record.step, []).append(record)
        for point in reversed(store.checkpoints(thread_id, last + 1, last + 1 - first)):
            line: dict[str, Any] = {
                "step": _row_as_json(_without_quotes(point) if secret else point, secret),
                "records": [_shown_record(record, secret) for record in records.get(point.step, ())],
            }
            if point.step in steps and (snapshot := store.snapshot(thread_id, point.step)):
                parts.insert(0, snapshots.part_of(snapshot[1], parts))
                line["snapshot"] = b64encode(parts[0]).decode()
            yield line
    for entry in store.ledger(thread_id)[: cursor.ledger_n]:
        yield {"decision": _row_as_json(replace(entry, data=None) if secret else entry, secret)}
    if secret:
        pending = tuple(replace(request, payload=None, votes=()) for request in cursor.pending)
        calls = tuple(map(_unquoted, cursor.calls))
        cursor = replace(
            cursor,
            pending=pending,
            answers=(),
            first_call=0,
            counted=0,
            branches=(),
            error=None,
            calls=calls,
            streamed=(),
            context={},
            private_context=(),
        )
    yield {"cursor": _row_as_json(cursor, secret)}


def _snapshot_steps(store: Checkpointer, thread_id: str, head: int) -> set[int]:
    steps: set[int] = set()
    while snapshot := store.snapshot(thread_id, head):
        head = snapshot[0] - 1
        steps.add(snapshot[0])
    return steps


def _numbered(lines: Iterable[Any]) -> Iterator[bytes]:
    digest = sha256()
    for number, line in enumerate(lines):
        written = line
        if isinstance(line, dict) and "cursor" in line:
            # The digest also covers the cursor, by its JSON in the line.
            cursor = _encode(line["cursor"])
            sealed = digest.copy()
            sealed.update(cursor)
            written = _last_line(cursor, number, sealed.hexdigest())
        data = _encode(written) + b"\n"
        digest.update(data)
        yield data


def _last_line(cursor: bytes, lines: int, digest: str) -> dict[str, Any]:
    return {"cursor": msgspec.Raw(cursor), "lines": lines, "sha256": digest}


def _row_as_json(row: msgspec.Struct, secret: frozenset[str]) -> dict[str, Any]:
    """Encode a row for an export.

    Without hashes if it has secrets, since a hash depends on all values before it.
    """
    fields = plain(row)
    if secret:
        hashes = [name for name, value in fields.items() if isinstance(value, str) and _is_hash(name, value)]
        for name in hashes:
            del fields[name]
    return fields


def _without_quotes(point: Checkpoint) -> Checkpoint:
    """Return a step without texts that may quote private values.

    These are arguments of compensations and tools, and output.
    """
    return replace(
        point,
        compensations=tuple(replace(compensation, args=None) for compensation in point.compensations),
        calls=tuple(map(_unquoted, point.calls)),
        streamed=(),
        artifacts=(),
    )


def _unquoted(call: ToolUse) -> ToolUse:
    return replace(call, arguments=None, result=None, error=None if call.error is None else repr(PRIVATE))


def _is_hash(name: str, value: str) -> bool:
    return (name.endswith("hash") or name == "seen") and value.startswith(PREFIX)


def _shown_record(record: UpdateRecord, secret: frozenset[str]) -> dict[str, Any]:
    if record.channel in secret:
        record = replace(record, update=repr(PRIVATE), result=msgspec.UNSET, patched=())
    return _row_as_json(record, secret)
