"""Converts between records and rows of a store's tables; the tables are in the schema of each database.

Python's sqlite3 looks for an adapter for each None and each `bytes`, which takes as long as the rest of an
insert. So what is written with every step is a `bytearray`, and columns that are mostly None come last, so
that `trim_trailing_nulls` can leave them out.

`hashes` of a record is the previous, next and record hash, then the update's hash unless it equals the next
one, as it does whenever a value is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, TypeVar

import msgspec

from hitl_tui.engine.log.outcomes import (
    BranchOutcome,
    Compensation,
    KeptArtifact,
    ModelUse,
    StreamedText,
    ToolUse,
)
from hitl_tui.engine.log.records import (
    Checkpoint,
    Cursor,
    Effect,
    LedgerEntry,
    MadeBy,
    Operation,
    Patched,
    Source,
    UpdateRecord,
    Visibility,
    next_of,
)
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.taint import Lineage, Taint
from hitl_tui.engine.log.threads import (
    DecisionPlace,
    Lease,
    Owner,
    PauseRequest,
    Presence,
    ThreadInfo,
    ThreadSummary,
    Waiting,
)
from hitl_tui.engine.state.values import check_nesting
from hitl_tui.engine.thread.hashes import chained
from hitl_tui.stores.base import as_opened, still_present, waiting
from hitl_tui.stores.lease import holder
from hitl_tui.stores.lineage import Past, Spending, sum_by_node

Row = Sequence[Any]
T = TypeVar("T")

TOUCHED_SHIFT = 20
"""`cursor.touched` is its `updated_at` in microseconds without this many low bits: about its second."""

NUMBER = 0xFFFFFFFF
"""Mask of the lower half of an id: seq, step or entry number."""

_HASH = 32
# Indexes in this tuple are stored: only append to it.
_SOURCES: tuple[Source, ...] = ("input", "node", "map", "subgraph", "human", "fork", "rollback")
_SOURCE_BITS, _SET, _PRIVATE, _TAINTED, _UPDATE_PATCHED, _RESULT_PATCHED = 7, 8, 16, 32, 64, 128
_EACH = 2047
_MADE_BY: tuple[MadeBy, ...] = ("node", "person", "deadline", "policy", "program")
_MADE_BY_SHIFT = 8

_PATCHED: dict[Literal["update", "result"], int] = {"update": _UPDATE_PATCHED, "result": _RESULT_PATCHED}


def _lazy_decoder(kind: type[T]) -> Callable[[bytes | str], T]:
    """Return a decoder that is made at its first use: making all of them would slow down short programs."""

    @cache
    def decoder() -> msgspec.json.Decoder[T]:
        return msgspec.json.Decoder(kind)

    def decode(data: bytes | str) -> T:
        return decoder().decode(data)

    return decode


_encode = msgspec.json.Encoder().encode
_decode_any = msgspec.json.Decoder().decode
_decode_cursor = _lazy_decoder(Cursor)
_decode_spending = _lazy_decoder(list[Spending])
_decode_presence = _lazy_decoder(Presence)
_decode_past = _lazy_decoder(tuple[Past, ...])
_decode_branches = _lazy_decoder(tuple[BranchOutcome, ...])
_decode_owner = _lazy_decoder(Owner)
_decode_compensations = _lazy_decoder(tuple[Compensation, ...])
_decode_uses = _lazy_decoder(tuple[ModelUse, ...])
_decode_calls = _lazy_decoder(tuple[ToolUse, ...])
_decode_streamed = _lazy_decoder(tuple[StreamedText, ...])
_decode_artifacts = _lazy_decoder(tuple[KeptArtifact, ...])
_decode_tainted = _lazy_decoder(tuple[Taint, ...])
_decode_read = _lazy_decoder(tuple[str, ...])
_decode_lineage = _lazy_decoder(Lineage)


def _decode(data: bytes) -> Any:
    value = _decode_any(data)
    if isinstance(value, (list, dict)):
        check_nesting(data, value)
    return value


def _nested(data: bytes | str) -> bytes | str:
    """Return JSON that may contain any value, after checking that it is not nested too deeply."""
    check_nesting(data)
    return data


_TEXT, _BLOB, _COST = (str, type(None)), (bytes, type(None)), (float, type(None))


def _typed(row: Row, kinds: Sequence[Any]) -> None:
    """Refuse a row whose columns have wrong types, as in a damaged file."""
    if not all(map(isinstance, row, kinds)):
        raise ValueError("a column is of another type than it was written")


def _typed_alike(row: Row, kinds: Sequence[Any], known: set[tuple[type, ...]]) -> None:
    """Do what `_typed` does, for many rows: `known` are the types of rows that were good before."""
    types = tuple(map(type, row))
    if types not in known:
        _typed(row, kinds)
        known.add(types)


def value_of(kind: type[T], row: Row) -> T:
    """Return the only column of a row."""
    _typed(row, (kind,))
    value: T = row[0]
    return value


def trim_trailing_nulls(row: Row) -> Row:
    """Return a row without the columns at its end that are None."""
    length = len(row)
    while row[length - 1] is None:
        length -= 1
    return row[:length]


RECORD = (
    "id, step, invocation, node, path, attempt, channel, reducer, flags, at, hashes, change, "
    "actor, note, result, lineage"
)


def record_row(base: int, record: UpdateRecord) -> Row:
    """Return a record as a row of the thread whose ids start at `base`."""
    update_hash, next_hash = record.update_hash, record.next_hash
    hashes = record.previous_hash + next_hash + record.record_hash
    if update_hash != next_hash:
        hashes += update_hash
    if len(hashes) not in (3 * _HASH, 4 * _HASH):
        raise ValueError("the hashes of a record have 32 bytes each")
    flags = _SOURCES.index(record.source)
    if record.op == "set":
        flags |= _SET
    if record.visibility == "private":
        flags |= _PRIVATE
    if record.tainted:
        flags |= _TAINTED
    if record.patched:
        flags |= sum(_PATCHED[name] for name in record.patched)
    if record.made_by != "node":
        flags |= _MADE_BY.index(record.made_by) << _MADE_BY_SHIFT
    return (
        base | record.seq,
        record.step,
        record.invocation,
        record.node,
        record.path,
        record.attempt,
        record.channel,
        record.reducer,
        flags,
        record.at,
        bytearray(hashes),
        bytearray(_encode(record.update)),
        record.actor,
        record.note,
        None if record.result is msgspec.UNSET else _encode(record.result),
        None if record.lineage is None else _encode(record.lineage),
    )


_RECORD_KINDS = (
    *(int, int, int, str, str, int, str, str, int, int, bytes, bytes),
    *(_TEXT, _TEXT, _BLOB, _BLOB),
)
_RECORD_TYPES: set[tuple[type, ...]] = set()


def records_of(thread_id: str, rows: Iterable[Row], previous: bytes) -> Iterator[UpdateRecord]:
    """Yield the records of consecutive rows, given the hash of the record before them."""
    for row in rows:
        record = _record_of(thread_id, row, previous)
        previous = record.record_hash
        yield record


def _record_of(thread_id: str, row: Row, prev_record_hash: bytes) -> UpdateRecord:
    if tuple(map(type, row)) not in _RECORD_TYPES:
        _typed_alike(row, _RECORD_KINDS, _RECORD_TYPES)
    (
        row_id, step, invocation, node, path, attempt, channel, reducer, flags, at, hashes,
        change, actor, note, result, lineage,
    ) = row  # fmt: skip
    op, visibility, source, tainted, patched, made_by = _decode_flags(flags)
    next_hash = hashes[_HASH : 2 * _HASH]
    return UpdateRecord(
        thread_id,
        row_id & NUMBER,
        step,
        invocation,
        node,
        path,
        attempt,
        channel,
        op,
        reducer,
        visibility,
        source,
        _decode(change),
        hashes[:_HASH],
        hashes[3 * _HASH :] or next_hash,
        next_hash,
        tainted,
        actor,
        note,
        at,
        prev_record_hash,
        hashes[2 * _HASH : 3 * _HASH],
        msgspec.UNSET if result is None else _decode(result),
        None if lineage is None else _decode_lineage(lineage),
        patched,
        made_by,
    )


@lru_cache
def _decode_flags(flags: int) -> tuple[Operation, Visibility, Source, bool, Patched, MadeBy]:
    """Decode a record's flags: operation, visibility, source, taint, patched fields, and who made it."""
    return (
        "set" if flags & _SET else "reduce",
        "private" if flags & _PRIVATE else "public",
        _SOURCES[flags & _SOURCE_BITS],
        bool(flags & _TAINTED),
        _patched_fields(flags),
        _MADE_BY[flags >> _MADE_BY_SHIFT],
    )


def _patched_fields(flags: int) -> Patched:
    """Return the fields of a record that are patches."""
    if 0 <= flags < _UPDATE_PATCHED:
        return ()
    if not 0 < flags <= _EACH:
        raise ValueError("there are no such flags")
    return tuple([name for name, flag in _PATCHED.items() if flags & flag])


EFFECT = "id, step, channel, reducer, flags, change, result"


def effect_of(row: Row) -> Effect:
    """Return the effect of a row's record on its channel."""
    _typed(row, (int, int, str, str, int, bytes, _BLOB))
    _, step, channel, reducer, flags, change, result = row
    op: Operation = "set" if flags & _SET else "reduce"
    kept = msgspec.UNSET if result is None else _decode(result)
    return Effect(channel, op, reducer, _decode(change), kept, _patched_fields(flags), step)


PATCHED_FLAGS = _UPDATE_PATCHED | _RESULT_PATCHED
_ALIKE = re.compile(r"[ !#-\[\]-~]+")
"""Characters that are the same in JSON."""


def like_pattern(text: str) -> str:
    """Return an SQL pattern for columns, text or JSON, that contain a text, ignoring case; "" for any."""
    longest = max(_ALIKE.findall(text), key=len, default="")
    escaped = "".join(f"\\{char}" if char in "%_" else char for char in longest)
    return f"%{escaped}%" if longest else ""


def record_hash_of(hashes: bytes) -> bytes:
    """Return the record hash from a row's hashes."""
    return hashes[2 * _HASH : 3 * _HASH]


CHECKPOINT = (
    "id, parent_thread, parent_step, source, node, position, status, reason, invocation, iteration, attempt, "
    "duration, tokens_in, tokens_out, cost, hashes, first_seq, last_seq, at, read, actor, note, decision, "
    "made_by, text, uses, branches, tainted, compensations, calls, streamed, artifacts, origin"
)


_CHECKPOINT_KINDS = (
    *(int, _TEXT, int, str, str, str, str, str, int, int, int, int, int, int, _COST, bytes, int, int, int),
    *(_BLOB, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT, _BLOB, _BLOB, _BLOB, _BLOB, _BLOB, _BLOB, _BLOB, _TEXT),
)
_CHECKPOINT_TYPES: set[tuple[type, ...]] = set()
_HASHES = CHECKPOINT.split(", ").index("hashes") - 2
_READ = CHECKPOINT.split(", ").index("read") - 2
_MADE_BY_COLUMN = CHECKPOINT.split(", ").index("made_by") - 3  # without `read`, which comes before it


def checkpoint_row(base: int, point: Checkpoint) -> Row:
    """Return a checkpoint as a row of the thread whose ids start at `base`."""
    hashes = hashes_of(point)
    if len(hashes) != 4 * _HASH:
        raise ValueError("the hashes of a checkpoint have 32 bytes each")
    return (
        base | point.step,
        "" if point.parent_thread == point.thread_id else point.parent_thread,
        point.parent_step,
        point.source,
        point.node,
        point.position,
        point.status,
        point.reason,
        point.invocation,
        point.iteration,
        point.attempt,
        point.duration,
        point.tokens_in,
        point.tokens_out,
        point.cost,
        bytearray(hashes),
        point.first_seq,
        point.last_seq,
        point.at,
        bytearray(_encode(point.read)) if point.read else None,
        point.actor,
        point.note,
        point.decision,
        None if point.made_by == "node" else point.made_by,
        point.text,
        _encode(point.uses) if point.uses else None,
        _encode(point.branches) if point.branches else None,
        _encode(point.tainted) if point.tainted else None,
        _encode(point.compensations) if point.compensations else None,
        _encode(point.calls) if point.calls else None,
        _encode(point.streamed) if point.streamed else None,
        _encode(point.artifacts) if point.artifacts else None,
        point.origin,
    )


def hashes_of(point: Checkpoint) -> bytes:
    """Return the hashes of a checkpoint as its row has them."""
    return point.state_hash + point.ledger_hash + point.cursor_hash + point.checkpoint_hash


def checkpoint_of(thread_id: str, row: Row) -> Checkpoint:
    """Return the checkpoint of a row; its columns are the fields of `Checkpoint` in their order."""
    if tuple(map(type, row)) not in _CHECKPOINT_TYPES:
        _typed_alike(row, _CHECKPOINT_KINDS, _CHECKPOINT_TYPES)
    row_id, parent, *rest = row
    read, uses, branches, tainted, compensations, calls, streamed, artifacts, origin = (
        rest.pop(_READ),
        *rest[-8:],
    )
    hashes = rest[_HASHES]
    rest[_HASHES] = hashes[:_HASH]
    rest[_MADE_BY_COLUMN] = rest[_MADE_BY_COLUMN] or "node"
    rest[-8:] = (
        _decode_uses(uses) if uses else (),
        _decode_branches(branches) if branches else (),
        _decode_tainted(tainted) if tainted else (),
        _decode_read(read) if read else (),
        _decode_compensations(_nested(compensations)) if compensations else (),
        _decode_calls(_nested(calls)) if calls else (),
        _decode_streamed(streamed) if streamed else (),
        _decode_artifacts(artifacts) if artifacts else (),
        origin,
        hashes[_HASH : 2 * _HASH],
        hashes[2 * _HASH : 3 * _HASH],
        hashes[3 * _HASH :],
    )
    return Checkpoint(thread_id, row_id & NUMBER, thread_id if parent == "" else parent, *rest)


def spending_body(spent: Iterable[Spending]) -> bytes:
    """Return what steps have used, one part for each source and node, as JSON."""
    return _encode(sum_by_node(spent))


def spending_of(body: bytes) -> list[Spending]:
    """Decode what `spending_body` has encoded."""
    return _decode_spending(body)


def spent_of(row: Row) -> Spending:
    """Return what the steps of one source and node have used."""
    _typed(row, (str, str, int, int, int, float, int, int))
    return Spending(*row)


LEDGER = (
    "id, kind, step, request_id, actor, note, seen, data, at, hash, pending_hash, request_hash, account, "
    "signature, made_by, cursor_hash"
)


def ledger_row(base: int, entry: LedgerEntry) -> Row:
    """Return a ledger entry as a row of the thread whose ids start at `base`."""
    return (
        base | entry.n,
        entry.kind,
        entry.step,
        entry.request_id,
        entry.actor,
        entry.note,
        entry.seen,
        _encode(entry.data),
        entry.at,
        entry.hash,
        entry.pending_hash,
        entry.request_hash,
        entry.account,
        entry.signature,
        entry.made_by,
        entry.cursor_hash,
    )


def ledger_of(thread_id: str, rows: Iterable[Row], previous: bytes) -> Iterator[LedgerEntry]:
    """Yield the ledger entries of consecutive rows, given the hash of the one before them.

    A database with logins has the login of each entry in the last column.
    """
    for row in rows:
        _typed(
            row,
            (
                int,
                str,
                int,
                _TEXT,
                _TEXT,
                _TEXT,
                bytes,
                bytes,
                int,
                bytes,
                bytes,
                bytes,
                str,
                str,
                str,
                bytes,
                str,
            ),
        )
        row_id, kind, step, request_id, actor, note, seen, data, at, own, *rest = row
        n, value = row_id & NUMBER, _decode(data)
        yield LedgerEntry(
            thread_id, n, kind, step, request_id, actor, note, seen, value, at, previous, own, *rest
        )
        previous = own


def decision_of(row: Row) -> DecisionPlace:
    """Return the place of a decision: when, the thread's name, the entry's id, and by whom."""
    _typed(row, (int, str, int, _TEXT))
    at, thread_id, row_id, actor = row
    return DecisionPlace(at, thread_id, row_id & NUMBER, actor)


CURSOR = (
    "version, head, status, reason, position, waiting_for, waiting_since, last_writer, updated_at, "
    "body, digest"
)
NEVER = -1
"""The `waiting_since` of a thread that does not wait."""


def cursor_row(cursor: Cursor, facts: bytes, last_writer: str | None) -> Row:
    """Return a cursor as the columns of `CURSOR`; `facts` is its thread's `facts_hash`."""
    waiting_for, since = waiting(cursor)
    body = _encode(cursor)
    return (
        cursor.version,
        cursor.head,
        cursor.status,
        cursor.reason,
        cursor.position,
        waiting_for,
        NEVER if since is None else since,
        last_writer,
        cursor.updated_at,
        bytearray(body),
        bytearray(chained(body, facts)),
    )


def cursor_of(body: bytes, digest: bytes | None, facts: bytes) -> Cursor:
    """Return the cursor from its JSON; raises `ValueError` if it was changed.

    Args:
        digest: None skips this check.
        facts: its thread's `facts_hash`.
    """
    if digest is not None and chained(body, facts) != digest:
        raise ValueError("a cursor is not what was written")
    return _decode_cursor(_nested(body))


class _RequestFields(msgspec.Struct, gc=False):
    """The fields of a cursor about its thread's requests: reading all fields takes twice as long."""

    pending: tuple[Request, ...] = ()
    goal: Any = None


_decode_asked = _lazy_decoder(_RequestFields)
STANDING = 3
"""The columns of `waiting_of`."""


def waiting_of(thread: ThreadSummary, body: bytes, digest: bytes, hashes: bytes) -> Waiting:
    """Return what a thread asks, from its cursor and the hashes of its newest checkpoint.

    Raises:
        ValueError, TypeError: these were changed.
    """
    if chained(body, thread.info.facts_hash) != digest:
        raise ValueError("a cursor is not what was written")
    asked = _decode_asked(_nested(body))
    return Waiting(thread, asked.pending, asked.goal, hashes[:_HASH])


# Columns of `thread AS t LEFT JOIN thread AS p ON p.key = t.parent`.
THREAD = (
    "t.id, t.graph_name, t.graph_digest, t.source, p.id, t.fork_step, t.fork_seq, t.created_at, "
    "t.created_by, t.owner, t.facts_hash"
)
THREAD_COLUMNS = 11


def thread_of(row: Row) -> ThreadInfo:
    """Return the fixed facts of a thread."""
    _typed(row, (str, str, str, bytes, _TEXT, int, int, int, _TEXT, _BLOB, bytes))
    thread_id, name, digest, source, parent, fork_step, fork_seq, created_at, created_by, owner, facts = row
    return ThreadInfo(
        thread_id,
        name,
        digest,
        _decode(source),
        parent,
        fork_step,
        fork_seq,
        created_at,
        created_by,
        _decode_owner(owner) if owner else None,
        facts,
    )


def owner_of(info: ThreadInfo) -> bytes | None:
    """Return the parent of a child thread as JSON; None for other threads."""
    return _encode(info.owner) if info.owner else None


def past_body(past: Sequence[Past]) -> bytes | None:
    """Return an imported thread's past as JSON, None for other threads."""
    return _encode(past) if past else None


def past_of(body: bytes | None) -> tuple[Past, ...]:
    """Decode what `past_body` has encoded."""
    return _decode_past(body) if body else ()


def source_of(info: ThreadInfo) -> bytes:
    """Return how to build a thread's graph again, as JSON."""
    return _encode(info.source)


LEASE = 'token, "user", host, pid, process_started, expires_at, boot, namespace'
# Columns of the cursor AS c and the lease AS l (left joined) after those of `THREAD`; a count comes last.
SUMMARY = (
    "c.head, c.status, c.reason, c.position, c.waiting_for, c.waiting_since, c.last_writer, c.updated_at, "
    "l.token, l.user, l.host, l.pid, l.process_started, l.expires_at, l.boot, l.namespace"
)


def lease_of(row: Row) -> Lease:
    """Return the lease of a row; its columns are the fields of `Lease` in their order."""
    _typed(row, (str, str, str, int, int, int, str, str))
    return Lease(*row)


def pause_of(row: Row) -> PauseRequest:
    """Return the pause request of a row: actor, note, at, at_once."""
    _typed(row, (_TEXT, _TEXT, int, int))
    actor, note, at, at_once = row
    return PauseRequest(actor, note, at, bool(at_once))


def presence_body(presence: Presence) -> bytes:
    """Return a presence as JSON."""
    return _encode(presence)


def presence_of(body: Any) -> Presence:
    """Decode what `presence_body` has encoded."""
    return _decode_presence(body)


def summary_of(row: Row, now: int, attending: Mapping[str, list[Presence]]) -> ThreadSummary:
    """Return a line of a list of threads; a holder counts only while its process lives.

    Args:
        attending: who has requests open, by thread.
    """
    facts, held, inside = row[THREAD_COLUMNS:-9], row[-9:-1], row[-1]
    _typed(facts, (int, str, str, str, str, (int, type(None)), str, int))
    head, status, reason, position, waiting_for, waiting_since, last_writer, updated_at = facts
    held_by = holder(lease_of(held) if any(part is not None for part in held) else None, now)
    stored = Cursor(row[0], status=status, reason=reason, updated_at=updated_at)
    cursor = as_opened(stored, held_by)
    if cursor is not stored:
        waiting_for, waiting_since = waiting(cursor)
    return ThreadSummary(
        info=thread_of(row[:THREAD_COLUMNS]),
        head=head,
        status=cursor.status,
        reason=cursor.reason,
        next_node=next_of(position),
        waiting_for=waiting_for,
        waiting_since=waiting_since,
        last_writer=last_writer,
        updated_at=updated_at,
        held_by=held_by,
        inside=inside,
        attending=still_present(attending.get(row[0], ()), now),
    )
