"""The hashes that chain a thread's log, and what each of them covers.

Three chains run side by side: update records, checkpoints and ledger entries.  Each begins with what is
fixed about its thread (`chained`); a fork's go on from where its parent's stood.  A checkpoint names the
newest record and the newest ledger entry at its commit, so its hash stands for all that was written
until then.

Hashes are over msgspec's JSON of fields in a fixed order, which comes out the same after a value was stored
and read back.

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
# Values and hashes of a record stand between the facts that go into its own hash, in the order of its fields;
# of a checkpoint the hash of the state does.
_place = UpdateRecord.__struct_fields__.index
_VALUES, _REST, _CHAINED = _place("update"), _place("tainted"), _place("prev_record_hash")
_place = Checkpoint.__struct_fields__.index
_STATE_HASH, _ORIGIN, _LEDGER_HASH = _place("state_hash"), _place("origin"), _place("ledger_hash")
_UNCHAINED: Final = frozenset(
    (
        # What the chains and the thread's facts say themselves.
        *("thread_id", "head", "last_seq", "last_record_hash", "checkpoint_hash", "ledger_n", "ledger_hash"),
        # What says nothing about the run: how many commits there were, and when the last one was.
        *("version", "updated_at"),
        # These enter the hash in another form.
        *("status", "reason", "pending", "branches"),
    )
)
_UNDER_WAY: Final = frozenset((("pending", ""), ("running", ""), ("waiting", "paused")))
_chained_of: Final = attrgetter(*(name for name in Cursor.__struct_fields__ if name not in _UNCHAINED))


def chained(previous: bytes, facts: bytes) -> bytes:
    """What the first link of a thread is chained to.

    Args:
        previous: where the parent's chain stood at the fork; b"" for a thread of its own.
        facts: the thread's `facts_hash`.
    """
    return sha256(previous + facts).digest()


def source_hash(source: Mapping[str, Any]) -> bytes:
    """The digest of how a thread's graph is built, but for the path to it inside another graph.

    An export leaves the source out and carries this digest in its place.
    """
    return sha256(_encoded({name: part for name, part in source.items() if name != WITHIN})).digest()


def facts_hash(
    info: ThreadInfo, shared_entries: int = 0, past: Sequence[Any] = (), source: bytes | None = None
) -> bytes:
    """The digest of all that never changes about a thread.

    Args:
        shared_entries: how many of its parent's decisions a fork shares.
        past: of a thread that was imported, under which names its rows were written.
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
    """The digest of a record, chained to the one before it; values enter by their hashes."""
    fields = astuple(record)
    facts = _encode(fields[:_VALUES] + fields[_REST:_CHAINED])
    if record.lineage is not None:
        facts += _encode(record.lineage)
    if record.result is not msgspec.UNSET:
        facts += b"result"  # its value is in `next_hash`
    if record.patched:
        # Their values are in their hashes, but there are many ways to say what changed.
        edits = [getattr(record, name) for name in record.patched]
        facts += _encode((record.patched, [None if edit is msgspec.UNSET else edit for edit in edits]))
    if record.made_by != "node":
        facts += _encode(record.made_by)
    hashes = record.prev_record_hash + record.previous_hash + record.update_hash + record.next_hash
    return sha256(hashes + facts).digest()


def checkpoint_hash(point: Checkpoint, previous: bytes, record: bytes) -> bytes:
    """The digest of all fields of a checkpoint.

    Args:
        previous: the hash of the checkpoint before it.
        record: the hash of the newest record at its commit.
    """
    if point.branches:
        # The thread of a subgraph's run gets a new name with its parent's; its own part stays.
        branches = [replace(branch, thread=own_part(branch.thread)) for branch in point.branches]
        point = replace(point, branches=tuple(branches))
    fields = astuple(point)
    rest = _LEDGER_HASH if point.origin is not None else _ORIGIN
    facts = _encoded(fields[:_STATE_HASH] + fields[_STATE_HASH + 1 : rest])
    hashes = previous + record + point.ledger_hash + point.state_hash + point.cursor_hash
    return sha256(hashes + facts).digest()


def chained_part(cursor: Cursor) -> tuple[Any, ...]:
    """The part of a cursor that its hash covers."""
    return _standing(cursor), cursor.pending, cursor.branches, _chained_of(cursor)


def cursor_hash(cursor: Cursor) -> bytes:
    """The digest of a cursor, which the newest entry of the chains keeps: a checkpoint or a ledger entry.

    It covers all that affects the run.  What the chains and the facts of the thread say anyway is left out,
    and so are the number of commits and the time of the last one.  Whether the run has yet to begin, is
    under way or is paused makes no difference: a run begins and pauses without an entry.
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
    """A branch without the part of its thread's name that changes with the thread around it."""
    child = branch.child
    return (
        branch
        if child is None
        else replace(branch, child=replace(child, thread_id=own_part(child.thread_id)))
    )


def own_part(thread_id: str) -> str:
    """Of the name of a thread inside another, `node#n`: what stays when the other is called otherwise."""
    return thread_id.rpartition("/")[2]


def pending_hash(request: Request) -> bytes:
    """The digest of a whole request as it stands, which its newest ledger entry keeps."""
    if request.thread:
        request = replace(request, thread=own_part(request.thread))
    return sha256(_encoded(request)).digest()


def question_hash(request: Request) -> bytes:
    """The digest of what a request asks about and what of it: what has become of it since is left out."""
    return pending_hash(replace(request, votes=(), reviewers=(), escalate_at=None, handed=None))


def signed_words(entry: LedgerEntry) -> bytes:
    """What a person's signature of a decision is over, as canonical JSON: all of it, and where it stands.

    Raises:
        ValueRejected: an answer or a note that is no text that can be written.
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
    """The digest of a ledger entry, chained to the one before it."""
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
