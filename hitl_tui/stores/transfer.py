"""Export and import: a thread, with those of its subgraphs' runs, as lines, between any two stores."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, NamedTuple

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
from hitl_tui.engine.log.threads import Owner, ThreadInfo, child_id
from hitl_tui.engine.nodes.children import WITHIN, inside
from hitl_tui.engine.state.values import check_nesting
from hitl_tui.engine.thread.hashes import chained, facts_hash
from hitl_tui.engine.thread.run_inputs import inputs_at_steps
from hitl_tui.errors import LogCorrupt, UsageError
from hitl_tui.stores import snapshots
from hitl_tui.stores.base import Checkpointer, check_thread_id, name_taken, of_other_version, unknown
from hitl_tui.stores.files.json import plain, row_of
from hitl_tui.stores.lineage import Carried, Past

FORMAT = "hitl-tui thread"
VERSION = 7


class ChildPlace(NamedTuple):
    """A thread of a subgraph's run, and the thread it is below."""

    thread_id: str
    of: str


class Header(msgspec.Struct):
    """The first line of a thread."""

    format: str
    version: int
    info: ThreadInfo
    past: tuple[Past, ...]
    left_out: tuple[str, ...]
    inside: tuple[ChildPlace, ...] = ()


class Line(msgspec.Struct):
    """Any line after the first."""

    graph: msgspec.Raw = msgspec.Raw()
    step: dict[str, Any] | None = None
    records: list[dict[str, Any]] = []
    snapshot: bytes | None = None
    decision: dict[str, Any] | None = None
    cursor: dict[str, Any] | None = None
    lines: int = 0
    sha256: str = ""


class Kind(msgspec.Struct):
    """What a first line says of the file it begins."""

    format: str
    version: int


class Names:
    """The new names of all threads of an export.

    Each thread below another is named after it, as the engine does: `parent/node#n`.  A fork brings the
    threads of the steps it shares under its own name; where two would be called the same, one is counted on.

    Args:
        header: of the first thread, which is to be called `name`.
    """

    def __init__(self, header: Header, name: str) -> None:
        self._new = {header.info.thread_id: name}
        self._taken = {name}
        self._of = {place.thread_id: place.of for place in header.inside}
        own = [place for place in header.inside if _is_own(place)]
        for place in (*own, *header.inside):
            if place.of in self._new and place.thread_id not in self._new:
                self._new[place.thread_id] = self._free(_after(self._new[place.of], place))

    def all(self) -> list[str]:
        """Every new name, the first thread's first."""
        return list(self._new.values())

    def of(self, thread_id: str) -> str:
        """The new name of a thread of the export."""
        return self._new[thread_id]

    def info(self, header: Header) -> ThreadInfo:
        """A thread's fixed facts under its new name; it leaves the parent it was forked from behind."""
        old = header.info
        name, above = self._new[old.thread_id], self._of.get(old.thread_id)
        owner = old.owner
        if above is not None and owner is not None:
            owner = Owner(self._new[above], owner.node)
        elif name != old.thread_id:
            owner = None  # of another name, it is not the thread its owner looks for
        return replace(sourceless(old), thread_id=name, parent=None, fork_seq=0, owner=owner)

    def step(self, point: Checkpoint, header: Header) -> Checkpoint:
        """A step that leads to the threads below it under their new names."""
        if not any(outcome.thread for outcome in point.branches):
            return point
        return replace(point, branches=tuple(self._outcome(branch, header) for branch in point.branches))

    def cursor(self, cursor: Cursor, header: Header) -> Cursor:
        """Where a thread stands, waiting for the threads below it under their new names."""
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
        """The new name of a thread below another; of one that is not in the file, too."""
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
            # Its own part stays: the step that it made has it in its hash.
            name = child_id(f"{above}/{n}", own)
        self._taken.add(name)
        return name


def sourceless(info: ThreadInfo) -> ThreadInfo:
    """A thread's fixed facts without what would build its graph: somebody else's word for what to run here.

    The way to the graph of a subgraph's run, inside the one of the thread it ran for, is kept.
    """
    way = info.source.get(WITHIN)
    named = isinstance(way, list) and all(isinstance(node, str) for node in way)
    return replace(info, source={WITHIN: way} if named else {})


def _is_own(place: ChildPlace) -> bool:
    """Whether a thread has the name of the one it is below: else a fork shares it."""
    return place.thread_id.startswith(f"{place.of}/")


def _after(above: str, place: ChildPlace) -> str:
    """The name of a thread below one that is now called `above`."""
    own = place.thread_id.removeprefix(f"{place.of}/")
    return child_id(above, own if _is_own(place) else own.rpartition("/")[2])


_decode_line = msgspec.json.Decoder(Line).decode


class Reader:
    """The lines of an export, checked one by one.

    Raises (all of its methods):
        LogCorrupt: a damaged export; names the line.
        StoreUnusable: an export of another version.
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
        if kind.version != VERSION:
            what = f"line {self._number}: the thread was exported"
            raise of_other_version(what, kind.version, VERSION, "export it again")
        with self._checking():
            check_nesting(data)
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
                check_nesting(data)
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
    for thread_id, of in (ChildPlace(*place) for place in header.inside):
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
    standings = [_standing(store, thread_id, "", private)]
    if standings[0] is None:
        raise unknown(thread_id)
    if not alone:
        standings += [
            _standing(store, child.thread_id, child.of, private)
            for child in inside(store, standings[0].cursor)
        ]
    return _numbered(_all_lines(store, [standing for standing in standings if standing]))


def import_thread(store: Checkpointer, lines: Iterable[bytes], thread_id: str | None = None) -> str:
    """Add a thread from the lines of `export_thread`, all of it or nothing; returns its id.

    The threads of its subgraphs' runs come along, named after it.  A thread that was exported in the middle
    of a run arrives paused.  While a SQLite store takes a thread in, others can read it but not write.

    Args:
        thread_id: its name here; its own by default.  Rows keep the names they were written with.

    Raises:
        ThreadBusy: the name is taken, or that of a thread below it.
        UsageError: no export of a thread, or one whose private values were left out.
        StoreUnusable: an export of another version.
        LogCorrupt: a damaged export; names the line.
    """
    reader = Reader(lines)
    header = reader.header()
    names = Names(header, thread_id or header.info.thread_id)
    for name in names.all():
        if store.info(check_thread_id(name)) is not None:
            raise name_taken(name)
    store.write_threads(reader.threads(header, names))
    return names.all()[0]


def private_names(store: Checkpointer, thread_id: str) -> set[str]:
    """What is private of a thread: the channels that it has written, and its contexts', as `context.NAME`."""
    cursor = store.cursor(thread_id)
    head = cursor.head if cursor else -1
    given = inputs_at_steps(store.ledger(thread_id)).values()
    names = {f"context.{name}" for fields in given for name in fields.get("private_context", ())}
    return names | {
        record.channel for record in store.records(thread_id, 0, head) if record.visibility == "private"
    }


def _standing(store: Checkpointer, thread_id: str, of: str, private: bool) -> _Standing | None:
    info, cursor = store.info(thread_id), store.cursor(thread_id)
    if info is None or cursor is None:
        return None
    secret = frozenset() if private else frozenset(private_names(store, thread_id))
    return _Standing(info, cursor, of, secret)


def _all_lines(store: Checkpointer, threads: list[_Standing]) -> Iterator[Any]:
    places = tuple(ChildPlace(thread.info.thread_id, thread.of) for thread in threads[1:])
    for thread in threads:
        past = store.past(thread.info.thread_id, thread.cursor)
        yield Header(FORMAT, VERSION, sourceless(thread.info), past, tuple(sorted(thread.secret)), places)
        yield from _lines(store, thread.info, thread.cursor, thread.secret)
        places = ()


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
                "step": _shown(_without_quotes(point) if secret else point, secret),
                "records": [_shown_record(record, secret) for record in records.get(point.step, ())],
            }
            if point.step in steps and (snapshot := store.snapshot(thread_id, point.step)):
                parts.insert(0, snapshots.part_of(snapshot[1], parts))
                line["snapshot"] = b64encode(parts[0]).decode()
            yield line
    for entry in store.ledger(thread_id)[: cursor.ledger_n]:
        yield {"decision": _shown(replace(entry, data=None) if secret else entry, secret)}
    if secret:
        pending = tuple(replace(request, payload=None, votes=()) for request in cursor.pending)
        calls = tuple(map(_unquoted, cursor.calls))
        cursor = replace(
            cursor,
            pending=pending,
            answers=(),
            exchanges=(),
            branches=(),
            error=None,
            calls=calls,
            streamed=(),
            context={},
            private_context=(),
        )
    yield {"cursor": _shown(cursor, secret)}


def _snapshot_steps(store: Checkpointer, thread_id: str, head: int) -> set[int]:
    steps: set[int] = set()
    while snapshot := store.snapshot(thread_id, head):
        head = snapshot[0] - 1
        steps.add(snapshot[0])
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
    """A step whose compensations and tools may have been given anything, as its node was free to, and which
    may have printed anything."""
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
    return (name.endswith("hash") or name == "seen") and value.startswith(_HASH)


def _shown_record(record: UpdateRecord, secret: frozenset[str]) -> dict[str, Any]:
    if record.channel in secret:
        record = replace(record, update=repr(PRIVATE), result=msgspec.UNSET, patched=())
    return _shown(record, secret)
