"""The hashes that chain a thread's log, and what each of them covers.

There are three chains: update records, checkpoints and ledger entries. Each starts with what is fixed about
its thread (`chained`); those of a fork continue from its parent's. A checkpoint names the newest record and
the newest ledger entry at its commit, so its hash covers all that was written until then.

Hashes are made of msgspec's JSON of fields in a fixed order, which is the same after a value was stored and
read back.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec.structs import astuple, replace

from hitl_tui.engine.log.outcomes import BranchState
from hitl_tui.engine.log.records import Checkpoint, Cursor, LedgerEntry, UpdateRecord
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.threads import WITHIN, ThreadInfo
from hitl_tui.engine.state.canonical import canonical
from hitl_tui.errors import ValueRejected

_encode = msgspec.json.Encoder().encode
# In a record's own hash, its values and their hashes come between the other fields, in the fields' order;
# in a checkpoint's hash, the hash of the state does.
_place = UpdateRecord.__struct_fields__.index
_VALUES, _REST, _CHAINED = _place("update"), _place("tainted"), _place("prev_record_hash")
_place = Checkpoint.__struct_fields__.index
_STATE_HASH, _ORIGIN, _LEDGER_HASH = _place("state_hash"), _place("origin"), _place("ledger_hash")
_UNCHAINED: Final = frozenset(
    (
        # Fields that the chains and the thread's facts already cover.
        *("thread_id", "head", "last_seq", "last_record_hash", "checkpoint_hash", "ledger_n", "ledger_hash"),
        # Fields that are not about the run: the number of commits, and the time of the last one.
        *("version", "updated_at"),
        # These are part of the hash in another form.
        *("status", "reason", "pending", "branches"),
    )
)
_UNDER_WAY: Final = frozenset((("pending", ""), ("running", ""), ("waiting", "paused")))
_chained_of: Final = attrgetter(*(name for name in Cursor.__struct_fields__ if name not in _UNCHAINED))


def chained(previous: bytes, facts: bytes) -> bytes:
    """Return the hash to which the first link of a thread is chained.

    Args:
        previous: the parent's hash at the fork; b"" for a thread that is not a fork.
        facts: the thread's `facts_hash`.
    """
    return sha256(previous + facts).digest()


def source_hash(source: Mapping[str, Any]) -> bytes:
    """Return the digest of how a thread's graph is built, without its path inside another graph.

    An export leaves the source out and has this digest instead.
    """
    return sha256(_encoded({name: part for name, part in source.items() if name != WITHIN})).digest()


def facts_hash(
    info: ThreadInfo, shared_entries: int = 0, past: Sequence[Any] = (), source: bytes | None = None
) -> bytes:
    """Return the digest of all that never changes about a thread.

    Args:
        shared_entries: how many of its parent's decisions a fork shares.
        past: for an imported thread, the names under which its rows were written.
        source: the `source_hash`; None computes it.
    """
    facts = (
        info.thread_id,
        info.graph_name,
        info.graph_digest,
        info.source.get(WITHIN),
        (source_hash(info.source) if source is None else source).hex(),
        info.parent,
        info.fork_step,
        info.fork_seq,
        info.created_at,
        info.created_by,
        info.owner,
        shared_entries,
        [(*part[:4], part[4].hex()) for part in past],
    )
    return sha256(_encoded(facts)).digest()


def record_hash(record: UpdateRecord) -> bytes:
    """Return the digest of a record, chained to the one before it; it contains the hashes of values."""
    fields = astuple(record)
    facts = _encode(fields[:_VALUES] + fields[_REST:_CHAINED])
    if record.lineage is not None:
        facts += _encode(record.lineage)
    if record.result is not msgspec.UNSET:
        facts += b"result"  # its value is in `next_hash`
    if record.patched:
        # Their values are covered by their hashes; there are many ways to write what changed.
        edits = [getattr(record, name) for name in record.patched]
        facts += _encode((record.patched, [None if edit is msgspec.UNSET else edit for edit in edits]))
    if record.made_by != "node":
        facts += _encode(record.made_by)
    hashes = record.prev_record_hash + record.previous_hash + record.update_hash + record.next_hash
    return sha256(hashes + facts).digest()


def checkpoint_hash(point: Checkpoint, previous: bytes, record: bytes) -> bytes:
    """Return the digest of all fields of a checkpoint.

    Args:
        previous: the hash of the checkpoint before it.
        record: the hash of the newest record at its commit.
    """
    if point.branches:
        # A child thread is renamed together with its parent; its own part of the name stays.
        branches = [replace(branch, thread=own_part(branch.thread)) for branch in point.branches]
        point = replace(point, branches=tuple(branches))
    fields = astuple(point)
    rest = _LEDGER_HASH if point.origin is not None else _ORIGIN
    facts = _encoded(fields[:_STATE_HASH] + fields[_STATE_HASH + 1 : rest])
    hashes = previous + record + point.ledger_hash + point.state_hash + point.cursor_hash
    return sha256(hashes + facts).digest()


def chained_part(cursor: Cursor) -> tuple[Any, ...]:
    """Return the part of a cursor that its hash covers."""
    return _standing(cursor), cursor.pending, cursor.branches, _chained_of(cursor)


def cursor_hash(cursor: Cursor) -> bytes:
    """Return the digest of a cursor, which the newest checkpoint or ledger entry keeps.

    It covers all that affects the run. It leaves out what the chains and the facts of the thread already
    cover, the number of commits and the time of the last one. A run that has not started, one that is running
    and one that is paused have the same digest, because a run starts and pauses without an entry.
    """
    standing, pending, branches, rest = chained_part(cursor)
    if pending:
        pending = [replace(request, thread=own_part(request.thread)) for request in pending]
    if branches:
        branches = [_renamed(branch) for branch in branches]
    return sha256(_encoded((standing, pending, branches, rest))).digest()


def _standing(cursor: Cursor) -> tuple[str, str]:
    standing = cursor.status, cursor.reason
    return ("running", "") if standing in _UNDER_WAY else standing


def _renamed(branch: BranchState) -> BranchState:
    """Return a branch without the part of its thread's name that changes with its parent's name."""
    child = branch.child
    return (
        branch
        if child is None
        else replace(branch, child=replace(child, thread_id=own_part(child.thread_id)))
    )


def own_part(thread_id: str) -> str:
    """Return the part `node#n` of a child's name, which stays when its parent is renamed."""
    return thread_id.rpartition("/")[2]


def pending_hash(request: Request) -> bytes:
    """Return the digest of a whole request as it is now, which its newest ledger entry keeps."""
    if request.thread:
        request = replace(request, thread=own_part(request.thread))
    return sha256(_encoded(request)).digest()


def question_hash(request: Request) -> bytes:
    """Return the digest of what a request asks, without what has happened to it since."""
    return pending_hash(replace(request, votes=(), reviewers=(), escalate_at=None, handed=None))


def signed_words(entry: LedgerEntry) -> bytes:
    """Return what a signature of a decision covers, as canonical JSON: the whole decision and its place.

    Raises:
        ValueRejected: an answer or a note can't be encoded as text.
    """
    facts = {
        "thread": entry.thread_id,
        "n": entry.n,
        "kind": entry.kind,
        "step": entry.step,
        "request": entry.request_id,
        "pending_hash": entry.pending_hash.hex(),
        "request_hash": entry.request_hash.hex(),
        "actor": entry.actor,
        "account": entry.account,
        "made_by": entry.made_by,
        "note": entry.note,
        "seen": entry.seen.hex(),
        "data": entry.data,
        "at": entry.at,
        "previous": entry.prev_hash.hex(),
    }
    try:
        return canonical(facts)
    except UnicodeEncodeError as error:
        raise _surrogate(error) from None


def ledger_hash(entry: LedgerEntry) -> bytes:
    """Return the digest of a ledger entry, chained to the one before it."""
    facts = [
        entry.thread_id,
        entry.n,
        entry.kind,
        entry.step,
        entry.request_id,
        entry.pending_hash.hex(),
        entry.request_hash.hex(),
        entry.actor,
        entry.note,
        entry.seen.hex(),
        entry.data,
        entry.at,
        entry.account,
        entry.signature,
        entry.made_by,
        entry.cursor_hash.hex(),
    ]
    try:
        return sha256(entry.prev_hash + canonical(facts)).digest()
    except UnicodeEncodeError as error:
        raise _surrogate(error) from None


def _encoded(facts: Any) -> bytes:
    try:
        return _encode(facts)
    except UnicodeEncodeError as error:
        raise _surrogate(error) from None


def _surrogate(error: UnicodeEncodeError) -> ValueRejected:
    return ValueRejected(
        f"a name, a note or an answer has text with a lone surrogate at {error.start}",
        'decode bytes with errors="replace"',
    )
