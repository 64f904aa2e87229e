"""Writing a thread down: records, checkpoints, ledger entries and snapshots in their chains.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from operator import attrgetter, is_not
from typing import Any

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.log.outcomes import (
    HASHED,
    BranchOutcome,
    BranchState,
    Compensation,
    KeptArtifact,
    ModelUse,
    StreamedText,
    ToolUse,
)
from hitl_tui.engine.log.records import (
    CALL,
    CHANNELS,
    GRAPH,
    PROGRESS,
    Checkpoint,
    Commit,
    Cursor,
    LedgerEntry,
    MadeBy,
    Patched,
    Source,
    UpdateRecord,
)
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.signing import DECISIONS, Signer
from hitl_tui.engine.log.threads import Lease
from hitl_tui.engine.state.changes import Change
from hitl_tui.engine.state.frozen import SIZE_SHIFT, known, thaw
from hitl_tui.engine.state.patches import Edit, patch
from hitl_tui.engine.state.state import LiveState, OtherChannels
from hitl_tui.engine.thread.binding import hashed_facts
from hitl_tui.engine.thread.hashes import cursor_hash, ledger_hash, pending_hash, record_hash, signed_words
from hitl_tui.errors import StoreUnusable, UsageError, in_words


def spent(cursor: Cursor, uses: Sequence[ModelUse], duration: int) -> Cursor:
    """The cursor with model calls and active time (microseconds) added to its totals."""
    if not uses:
        return replace(cursor, active=cursor.active + duration)
    return replace(
        cursor,
        active=cursor.active + duration,
        tokens_in=cursor.tokens_in + sum(use.tokens_in for use in uses),
        tokens_out=cursor.tokens_out + sum(use.tokens_out for use in uses),
        cost=cursor.cost + sum(use.cost or 0.0 for use in uses),
        cost_known=cursor.cost_known and all(use.cost is not None for use in uses),
    )


def cost_of(uses: Sequence[ModelUse]) -> float | None:
    """What model calls cost together, None where a price is unknown."""
    if not uses:
        return 0.0
    costs = [use.cost for use in uses]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def with_branches(cursor: Cursor, branches: tuple[BranchState, ...] = ()) -> Cursor:
    """The cursor with other branches; what a child thread used that is left behind stays counted."""
    kept = {state.child.thread_id for state in branches if state.child}
    left = [state.child for state in cursor.branches if state.child and state.child.thread_id not in kept]
    uses = (*cursor.uses, *(use for child in left for use in child.uses))
    return replace(cursor, branches=branches, uses=uses)


_encode = msgspec.json.Encoder().encode

# From how many bytes on it is looked for what changed in a value, and what part of them that may take.
_SMALLEST_PATCHED = 512
_PATCH_PART = 2
# What a record takes in the log besides its update, for the balance of log and snapshots.
_RECORD_OVERHEAD = 200
_SMALLEST_SNAPSHOT = 16_384
# To reduce a record takes a rebuild as long as to read so many bytes of a snapshot, and some always may be.
_RECORD_WORTH = 1_600
_FEWEST_RECORDS = 80


def _edits(before: Any, value: Any, size: int) -> list[Edit] | None:
    """What to change in the value before to get one, None where the value itself is not much larger.

    Args:
        size: about the value's canonical size in bytes.
    """
    return patch(before, value, size // _PATCH_PART) if size >= _SMALLEST_PATCHED else None


@cache
def account() -> str:
    """The operating system's account of this process and its host, as "ann@box".

    By the user's number, not by variables of the environment, which anybody may set.
    """
    try:
        import pwd

        user = pwd.getpwuid(os.geteuid()).pw_name
    except ImportError:  # not POSIX
        import getpass

        user = getpass.getuser()
    except KeyError:
        user = str(os.geteuid())
    import socket

    return f"{user}@{socket.gethostname()}"


_MADE_BY: Mapping[str, MadeBy] = {
    "request": "node",
    "rebound": "node",
    "reopened": "node",
    "withdrawn": "node",
    "unused": "node",
    "stop": "node",
    "failed": "node",
    "taint": "node",
    "timeout": "deadline",
    "escalated": "deadline",
    "takeover": "program",
    PROGRESS: "program",
    GRAPH: "program",
    CHANNELS: "program",
}
"""Who makes entries of a kind, where it is not a person."""


def _raw(shown: str) -> bytes:
    """The digest that `show_hash` has written; b"" for none."""
    return bytes.fromhex(shown.partition(":")[2])


def ledger_entry(
    cursor: Cursor,
    kind: str,
    *,
    at: int,
    step: int | None = None,
    request: Request | None = None,
    request_id: str | None = None,
    actor: str | None = None,
    note: str | None = None,
    seen: bytes = b"",
    data: Any = None,
    signer: Signer | None = None,
    made_by: MadeBy | None = None,
) -> LedgerEntry:
    """The next entry of the decision ledger after the cursor's last one; see `after_entries`.

    Args:
        request, request_id: the request it is about, as it stands after it; or its id alone where there is
            none (any more).
        signer: signs it, where it is a decision of somebody named.
        made_by: who decided; by default whoever makes entries of its kind.

    Raises:
        SigningFailed: nothing was decided.
        UsageError: the actor or the note is no text, as which it would be read again.
    """
    for name, text in (("actor", actor), ("note", note)):
        if text is not None and not isinstance(text, str):
            raise UsageError(f"the {name} of a decision is {in_words(text)}", "give text")
    entry = LedgerEntry(
        thread_id=cursor.thread_id,
        n=cursor.ledger_n + 1,
        kind=kind,
        step=cursor.head if step is None else step,
        request_id=request.id if request else request_id,
        actor=actor,
        note=note,
        seen=seen,
        data=thaw(data),
        at=at,
        prev_hash=cursor.ledger_hash,
        hash=b"",
        pending_hash=pending_hash(request) if request else b"",
        request_hash=_raw(request.request_hash) if request else b"",
        made_by=made_by or _MADE_BY.get(kind, "person"),
        account=account(),
    )
    if signer and actor is not None and kind in DECISIONS:
        entry = msgspec.structs.replace(entry, signature=signer.sign(signed_words(entry)))
    return msgspec.structs.replace(entry, hash=ledger_hash(entry))


def with_cursor(entry: LedgerEntry, cursor: Cursor) -> LedgerEntry:
    """The last entry of a commit without a step, with the hash of the cursor after it."""
    entry = msgspec.structs.replace(entry, cursor_hash=cursor_hash(cursor))
    return msgspec.structs.replace(entry, hash=ledger_hash(entry))


def request_entry(cursor: Cursor, request: Request, at: int) -> LedgerEntry:
    """The ledger's entry for a request that was opened."""
    data = {"node": request.node, "when": request.when, "kind": request.kind, "payload": request.payload}
    terms: dict[str, Any] = {
        "policy": request.policy,
        "breakpoint": request.breakpoint,
        "reviewers": list(request.reviewers),
        "quorum": request.quorum if request.quorum > 1 else 0,
        "one_account": request.one_account,
        "logins": list(request.logins),
        "signed": request.signed,
        "escalate_to": list(request.escalate_to),
        "escalate_at": request.escalate_at,
        "deadline": request.deadline,
    }
    data |= {name: value for name, value in terms.items() if value}
    if request.on_timeout is not None:
        data["on_timeout"] = request.on_timeout
    if request.notes:
        data["notes"] = list(request.notes)
    if request.differs:
        data["differs"] = list(request.differs)
    if request.request_hash and not request.thread:  # what a subgraph's thread asks is hashed there
        data[HASHED] = hashed_facts(request)
    return ledger_entry(
        cursor, "request", at=at, step=request.step, request=request, note=request.title, data=data
    )


def after_entries(cursor: Cursor, ledger: Sequence[LedgerEntry]) -> Cursor:
    """The cursor as the next entry follows on it, after entries that are not committed yet."""
    last = ledger[-1] if ledger else None
    return msgspec.structs.replace(cursor, ledger_n=last.n, ledger_hash=last.hash) if last else cursor


def with_channels(
    ledger: Sequence[LedgerEntry], cursor: Cursor, step: int, other: OtherChannels, at: int
) -> tuple[LedgerEntry, ...]:
    """The entries of a step's commit, and one that says that from it on the state has other channels."""
    data = {"new": list(other.new), "gone": list(other.gone)}
    return (*ledger, ledger_entry(after_entries(cursor, ledger), CHANNELS, at=at, step=step, data=data))


def graph_entry(cursor: Cursor, was: str, digest: str, *, at: int, actor: str | None = None) -> LedgerEntry:
    """What is written down when a thread goes on with another graph, with the digests of both."""
    return ledger_entry(cursor, GRAPH, at=at, actor=actor, data={"was": was, "is": digest})


def takeover_entry(cursor: Cursor, dead: Lease, at: int) -> LedgerEntry:
    """What is written down when a thread is taken over from a process that died; its note says from whom."""
    who = f"{dead.user}@{dead.host}, process {dead.pid}"
    return ledger_entry(cursor, "takeover", at=at, note=who, data={"status": cursor.status})


def log_size(changes: Sequence[Change], records: Sequence[UpdateRecord]) -> int:
    """About how many bytes the records of changes add to the log."""
    size = _RECORD_OVERHEAD * len(changes)
    for change, record in zip(changes, records, strict=True):
        size += len(_encode(record.update)) if record.patched else change.size
    return size


def snapshot_of(
    cursor: Cursor, log_bytes: int, records: int, values: dict[str, Any], *, always: bool = False
) -> tuple[bytes | None, int, int, int]:
    """The snapshot of a step as JSON, where one is due or `always` wanted.

    Gives the balance behind it, too: `log_bytes`, `log_records` and `snapshot_bytes` of the cursor.  One is
    due when the log since the last has outgrown that, so that all together stay a constant factor of the
    log, and a rebuild costs about one state.

    Args:
        cursor: with the balance before the step.
        log_bytes, records: what the step adds to the log.
    """
    log_bytes, last = log_bytes + cursor.log_bytes, cursor.snapshot_bytes
    records += cursor.log_records
    if (
        not always
        and (log_bytes <= last or log_bytes <= _SMALLEST_SNAPSHOT)
        and (records <= _FEWEST_RECORDS or records <= last // _RECORD_WORTH)
    ):
        return None, log_bytes, records, last
    data = _encode(values)  # how small it is stored is the store's business
    return data, 0, 0, len(data)


class StepFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What happened in a step, besides its changes.

    Attributes:
        source: who made it.
        node: the node that ran, "" for the input and for humans.
        decision: the id of the choice that made it, where it is a human's answer.
        made_by: who made it; by default the node, and a person where there is none.
        text: what the node said.
        duration: microseconds.
        uses, calls: what its agents asked of models and tools, in failed attempts, too.
        streamed: what was printed and streamed in them.
        artifacts: what its node gave besides its updates.
        origin: the checkpoint of another engine that it mirrors.
        read: what the node read, where that was noted.
    """

    source: Source
    node: str = ""
    attempt: int = 1
    actor: str | None = None
    note: str | None = None
    decision: str | None = None
    made_by: MadeBy = "node"
    text: str | None = None
    duration: int = 0
    uses: tuple[ModelUse, ...] = ()
    calls: tuple[ToolUse, ...] = ()
    branches: tuple[BranchOutcome, ...] = ()
    read: tuple[str, ...] = ()
    compensations: tuple[Compensation, ...] = ()
    streamed: tuple[StreamedText, ...] = ()
    artifacts: tuple[KeptArtifact, ...] = ()
    origin: str | None = None


def records_of(
    step: StepFacts, cursor: Cursor, changes: Sequence[Change], at: int, *, follows: bool = True
) -> tuple[UpdateRecord, ...]:
    """The records of a step's changes, behind those that `cursor`, the one before the step, tells of.

    Args:
        at: microseconds since the epoch.
        follows: the log gives the values before the step, so that a record may say what changed in them.
    """
    records = []
    thread_id, invocation, number = cursor.thread_id, cursor.invocation, cursor.head + 1
    node, source, attempt, actor, note = step.node, step.source, step.attempt, step.actor, step.note
    made_by = step.made_by
    follows = follows and cursor.head >= 0  # what channels begin with is in no log before the first step
    previous = cursor.last_record_hash
    for seq, change in enumerate(changes, cursor.last_seq + 1):
        channel = change.channel
        update: Any = change.update
        result: Any = change.after if channel.reducer.custom and change.op == "reduce" else msgspec.UNSET
        fields: Patched = ()
        if follows and channel.alike:
            if (edits := _edits(change.before, update, change.size)) is not None:
                update, fields = edits, ("update",)
            if result is not msgspec.UNSET:
                edits = _edits(change.before, result, known(result) >> SIZE_SHIFT)
                if edits is not None:
                    result, fields = edits, (*fields, "result")
        # By place, in the order of its fields: finding so many by their names takes ten times as long.
        record = UpdateRecord(
            thread_id,
            seq,
            number,
            invocation,
            node,
            change.path,
            change.attempt or attempt,
            channel.name,
            change.op,
            channel.reducer.signature,
            channel.visibility,
            source,
            update,
            change.before_hash,
            change.update_hash,
            change.after_hash,
            change.tainted,
            actor,
            note,
            at,
            previous,
            b"",
            result,
            change.lineage,
            fields,
            made_by,
        )
        previous = record_hash(record)
        # Nobody has seen it yet; a copy of so many fields would take longer than making them.
        msgspec.structs.force_setattr(record, "record_hash", previous)
        records.append(record)
    return tuple(records)


def checkpoint_of(
    step: StepFacts,
    cursor: Cursor,
    state: LiveState,
    records: int,
    *,
    parent_thread: str,
    ledger_hash: bytes,
    at: int,
) -> Checkpoint:
    """The checkpoint of a step, still without its own hash.

    Args:
        cursor: the one after the step, whose head and last record are still those before it.
        records: how many the step has.
        parent_thread: the thread of the step before.
        ledger_hash: of the newest decision.
        at: microseconds since the epoch.
    """
    number, uses = cursor.head + 1, step.uses
    # By place, in the order of its fields: finding so many by their names takes ten times as long.
    return Checkpoint(
        cursor.thread_id,
        number,
        parent_thread if number else None,
        number - 1,
        step.source,
        step.node,
        cursor.position,
        cursor.status,
        cursor.reason,
        cursor.invocation,
        cursor.iteration,
        step.attempt,
        step.duration,
        sum([use.tokens_in for use in uses]) if uses else 0,
        sum([use.tokens_out for use in uses]) if uses else 0,
        cost_of(uses) if uses else 0.0,
        state.hash,
        cursor.last_seq + 1,
        cursor.last_seq + records,
        at,
        step.actor,
        step.note,
        step.decision,
        step.made_by,
        step.text,
        uses,
        step.branches,
        tuple(state.taint.values()) if state.taint else (),
        step.read,
        step.compensations,
        step.calls,
        step.streamed,
        step.artifacts,
        step.origin,
        ledger_hash,
    )


_free_of = attrgetter(
    "pending",
    "answers",
    "branches",
    "error",
    "agents",
    "limits",
    "context",
    "uses",
    "calls",
    "streamed",
)
_said_by = attrgetter(
    "actor",
    "note",
    "decision",
    "text",
    "uses",
    "branches",
    "compensations",
    "calls",
    "streamed",
    "artifacts",
)


def check_readable(commit: Commit, before: Cursor) -> None:
    """Refuse a commit that could not be read again, before anything of it is stored.

    What people and nodes say in words of their own is read back as a store would read it: requests, answers
    and other decisions, and what a step says besides its updates, which were normalised already.  A step
    that says nothing costs nothing here.

    Args:
        before: the cursor that it follows on; what is the same in it was read back then.

    Raises:
        StoreUnusable: says what could not be read; nothing is stored, and the thread is as it was.
    """
    cursor, point = commit.cursor, commit.checkpoint
    parts: list[Any] = [*commit.ledger]
    if any(map(is_not, _free_of(cursor), _free_of(before))):
        # What is empty is left out of it, but for an empty dict of a kind of its own.
        parts.append(cursor if cursor.context else replace(cursor, context={}))
    if point is not None and any(_said_by(point)):
        parts.append(point)
    for part in parts:
        kind: Any = type(part)
        try:
            data = _encode(part)
            problem = "" if _encode(_decoder(kind).decode(data)) == data else "it comes back otherwise"
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
            problem = str(error)
        if problem:
            is_call = isinstance(part, LedgerEntry) and part.kind == CALL
            name = "a completed call" if is_call else _PARTS[kind]
            raise StoreUnusable(
                f"thread {cursor.thread_id!r}: {name} could not be read again: {problem}; "
                "nothing was stored, and the thread is as it was",
                "look which value of the node or of the decision it names, and give one of the declared type",
            )


_PARTS: dict[type, str] = {
    LedgerEntry: "a decision",
    Cursor: "a request or an answer",
    Checkpoint: "what the step says",
}


@cache
def _decoder(kind: type) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
