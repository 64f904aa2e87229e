"""Makes what is stored of a thread: records, checkpoints, ledger entries and snapshots in their chains.

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


def with_use(cursor: Cursor, uses: Sequence[ModelUse], duration: int) -> Cursor:
    """Return the cursor with model calls and active time (microseconds) added to its totals."""
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
    """Return the total cost of model calls, None if a price is unknown."""
    if not uses:
        return 0.0
    costs = [use.cost for use in uses]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def with_branches(cursor: Cursor, branches: tuple[BranchState, ...] = ()) -> Cursor:
    """Return the cursor with other branches; what a dropped child thread has used stays counted."""
    kept = {state.child.thread_id for state in branches if state.child}
    left = [state.child for state in cursor.branches if state.child and state.child.thread_id not in kept]
    uses = (*cursor.uses, *(use for child in left for use in child.uses))
    return replace(cursor, branches=branches, uses=uses)


_encode = msgspec.json.Encoder().encode

# From this size (bytes) on, only what changed in a value is recorded, if that is at most this part of it.
_SMALLEST_PATCHED = 512
_PATCH_PART = 2
# Bytes of a record in the log besides its update, to decide when a snapshot is due.
_RECORD_OVERHEAD = 200
_SMALLEST_SNAPSHOT = 16_384
# Reducing one record takes as long as reading this many bytes of a snapshot, and so many records are allowed.
_RECORD_WORTH = 1_600
_FEWEST_RECORDS = 80


def _edits_between(before: Any, value: Any, size: int) -> list[Edit] | None:
    """Return the edits that turn the value before into a new one; None if the new value is not much larger.

    Args:
        size: about the value's canonical size in bytes.
    """
    return patch(before, value, size // _PATCH_PART) if size >= _SMALLEST_PATCHED else None


@cache
def account() -> str:
    """Return the operating system's account of this process and its host, as "ann@box".

    It is found by the user's number, not by environment variables, which anybody can set.
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
"""Who makes entries of a kind, for kinds that are not made by a person."""


def _digest_bytes(shown: str) -> bytes:
    """Return the digest in the text that `show_hash` has written; b"" for none."""
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
    """Make the next entry of the decision ledger after the cursor's last one; see `after_entries`.

    Args:
        request, request_id: the request that it is about, as it will be after the entry; or only its id if
            there is no request now.
        signer: signs it, if it is a decision with a name.
        made_by: who decided; the default depends on its kind.

    Raises:
        SigningFailed: nothing was decided.
        UsageError: the actor or the note is not text, so it could not be read back.
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
        request_hash=_digest_bytes(request.request_hash) if request else b"",
        made_by=made_by or _MADE_BY.get(kind, "person"),
        account=account(),
    )
    if signer and actor is not None and kind in DECISIONS:
        entry = msgspec.structs.replace(entry, signature=signer.sign(signed_words(entry)))
    return msgspec.structs.replace(entry, hash=ledger_hash(entry))


def with_cursor(entry: LedgerEntry, cursor: Cursor) -> LedgerEntry:
    """Return the last entry of a commit without a step, with the hash of the cursor after it."""
    entry = msgspec.structs.replace(entry, cursor_hash=cursor_hash(cursor))
    return msgspec.structs.replace(entry, hash=ledger_hash(entry))


def request_entry(cursor: Cursor, request: Request, at: int) -> LedgerEntry:
    """Return the ledger's entry for a request that was opened."""
    data = {"node": request.node, "when": request.when, "kind": request.kind, "payload": request.payload}
    terms: dict[str, Any] = {
        "policy": request.policy,
        "breakpoint": request.breakpoint,
        "reviewers": list(request.reviewers),
        "quorum": request.quorum if request.quorum > 1 else 0,
        "one_account": request.one_account,
        "logins": list(request.logins),
        "signed": request.signed,
        "four_eyes": request.four_eyes,
        "rubric": list(request.rubric),
        "second_reading": request.second_reading,
        "authors": list(request.authors),
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
    if (
        request.request_hash and not request.thread
    ):  # the request of a subgraph's thread is hashed in that thread
        data[HASHED] = hashed_facts(request)
    return ledger_entry(
        cursor, "request", at=at, step=request.step, request=request, note=request.title, data=data
    )


def after_entries(cursor: Cursor, ledger: Sequence[LedgerEntry]) -> Cursor:
    """Return the cursor for the next entry, after entries that are not committed yet."""
    last = ledger[-1] if ledger else None
    return msgspec.structs.replace(cursor, ledger_n=last.n, ledger_hash=last.hash) if last else cursor


def with_channels(
    ledger: Sequence[LedgerEntry], cursor: Cursor, step: int, other: OtherChannels, at: int
) -> tuple[LedgerEntry, ...]:
    """Return the entries of a step's commit, with one more if the state has other channels from now on."""
    data = {"new": list(other.new), "gone": list(other.gone)}
    return (*ledger, ledger_entry(after_entries(cursor, ledger), CHANNELS, at=at, step=step, data=data))


def graph_entry(cursor: Cursor, was: str, digest: str, *, at: int, actor: str | None = None) -> LedgerEntry:
    """Return the entry for a thread that continues with another graph, with the digests of both."""
    return ledger_entry(cursor, GRAPH, at=at, actor=actor, data={"was": was, "is": digest})


def takeover_entry(cursor: Cursor, dead: Lease, at: int) -> LedgerEntry:
    """Return the entry for a thread that is taken over from a dead process; its note names that process."""
    who = f"{dead.user}@{dead.host}, process {dead.pid}"
    return ledger_entry(cursor, "takeover", at=at, note=who, data={"status": cursor.status})


def log_size(changes: Sequence[Change], records: Sequence[UpdateRecord]) -> int:
    """Return about how many bytes the records of changes add to the log."""
    size = _RECORD_OVERHEAD * len(changes)
    for change, record in zip(changes, records, strict=True):
        size += len(_encode(record.update)) if record.patched else change.size
    return size


def snapshot_of(
    cursor: Cursor, log_bytes: int, records: int, values: dict[str, Any], *, always: bool = False
) -> tuple[bytes | None, int, int, int]:
    """Return the snapshot of a step as JSON, if one is due or `always` is set; and the new sizes.

    The sizes are `log_bytes`, `log_records` and `snapshot_bytes` of the cursor. A snapshot is due when the
    log since the last snapshot is larger than that one. So all snapshots together stay within a constant
    factor of the log, and a rebuild costs about as much as reading one state.

    Args:
        cursor: has the sizes before the step.
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
    data = _encode(values)  # a store may compress it
    return data, 0, 0, len(data)


class StepFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What happened in a step, besides its changes.

    Attributes:
        source: the kind of the step.
        node: the node that ran, "" for the input and for steps of people.
        decision: the id of the choice, for a step that an answer made.
        made_by: who made it; by default the node, or a person if there is no node.
        text: the node's summary.
        duration: microseconds.
        uses, calls: calls of models and tools by its agents, also in failed attempts.
        streamed: what was printed and streamed in these attempts.
        artifacts: files that the node returned.
        origin: the checkpoint of another engine that it mirrors.
        read: what the node read, if that was recorded.
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
    """Make the records of a step's changes, following the last record of `cursor`.

    That cursor is the one before the step.

    Args:
        at: microseconds since the epoch.
        follows: the log has the values before the step, so a record may contain only what changed in them.
    """
    records = []
    thread_id, invocation, number = cursor.thread_id, cursor.invocation, cursor.head + 1
    node, source, attempt, actor, note = step.node, step.source, step.attempt, step.actor, step.note
    made_by = step.made_by
    follows = follows and cursor.head >= 0  # before the first step the log has no values of channels
    previous = cursor.last_record_hash
    for seq, change in enumerate(changes, cursor.last_seq + 1):
        channel = change.channel
        update: Any = change.update
        result: Any = change.after if channel.reducer.custom and change.op == "reduce" else msgspec.UNSET
        fields: Patched = ()
        if follows and channel.alike:
            if (edits := _edits_between(change.before, update, change.size)) is not None:
                update, fields = edits, ("update",)
            if result is not msgspec.UNSET:
                edits = _edits_between(change.before, result, known(result) >> SIZE_SHIFT)
                if edits is not None:
                    result, fields = edits, (*fields, "result")
        # Positional arguments, in the order of the fields: keyword arguments take ten times as long.
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
        # Nothing else refers to it yet; a copy of so many fields would take longer than making it.
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
    """Make the checkpoint of a step, still without its own hash.

    Args:
        cursor: the one after the step, but with the head and last record from before it.
        records: how many records the step has.
        parent_thread: the thread of the step before.
        ledger_hash: the hash of the newest decision.
        at: microseconds since the epoch.
    """
    number, uses = cursor.head + 1, step.uses
    # Positional arguments, in the order of the fields: keyword arguments take ten times as long.
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
    """Refuse a commit that could not be read back, before any of it is stored.

    Texts of people and nodes are encoded and decoded as a store would do it: requests, answers and other
    decisions, and a step's texts besides its updates, which were normalised already. A step without texts
    costs nothing.

    Args:
        before: the cursor before the commit; what is the same in both was checked then.

    Raises:
        StoreUnusable: says what could not be read back; nothing is stored, and the thread is unchanged.
    """
    cursor, point = commit.cursor, commit.checkpoint
    parts: list[Any] = [*commit.ledger]
    if any(map(is_not, _free_of(cursor), _free_of(before))):
        # Empty fields are left out, except an empty dict of its own type.
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
                "give a value of the declared type in the node's result or the decision",
            )


_PARTS: dict[type, str] = {
    LedgerEntry: "a decision",
    Cursor: "a request or an answer",
    Checkpoint: "what the step says",
}


@cache
def _decoder(kind: type) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
