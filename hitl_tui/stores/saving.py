"""Saves a caller's state as a step of a thread, without a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hitl_tui.engine.log.records import Checkpoint, Commit, Cursor, LedgerEntry, Source
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.state.canonical import channel_hash
from hitl_tui.engine.state.changes import Change, after, set_values
from hitl_tui.engine.state.channel import BoundChannel, Channel
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.hashes import chained, checkpoint_hash, cursor_hash, facts_hash
from hitl_tui.errors import StaleWriter, ThreadBusy, UsageError

if TYPE_CHECKING:
    from hitl_tui.stores.base import Checkpointer


def save(store: Checkpointer, thread_id: str, step: int, state: Mapping[str, Any]) -> None:
    """See `Checkpointer.save`."""
    now = store.now()
    cursor = store.cursor(thread_id)
    head = cursor.head if cursor else -1
    if step <= head:
        _check_same(store, thread_id, step, state)
        return
    if step > head + 1 and (head, step) != (-1, 1):
        raise UsageError(
            f"step {step} does not follow step {head} of thread {thread_id!r}", f"save it as step {head + 1}"
        )
    if cursor and cursor.status == "running":
        raise ThreadBusy(
            f"thread {thread_id!r} is in the middle of a run", "resume it until it waits or ends"
        )
    if cursor is None:
        # Refuse bad values before a thread is made for them.
        _differences(store, thread_id, head, state)
        info = ThreadInfo(thread_id, "", "", {}, None, -1, 0, now)
        info = replace(info, facts_hash=facts_hash(info))
        link = chained(b"", info.facts_hash)
        cursor = Cursor(
            thread_id,
            last_record_hash=link,
            checkpoint_hash=link,
            ledger_hash=link,
            created_at=now,
            updated_at=now,
        )
        store.create_thread(info, cursor)
    lease = store.new_lease(now)
    store.acquire(thread_id, lease, now)
    try:
        if head + 1 < step:
            _write(store, thread_id, lease.token, 0, {}, now=now)
        _write(store, thread_id, lease.token, step, state, now=now)
    finally:
        store.release(thread_id, lease.token)


def _check_same(store: Checkpointer, thread_id: str, step: int, state: Mapping[str, Any]) -> None:
    if _differences(store, thread_id, step, state)[1]:
        raise StaleWriter(
            f"thread {thread_id!r} has a step {step} already, with another state; nothing was stored",
            "the log is append-only: save a later step, or fork the thread there",
        )


def _write(
    store: Checkpointer, thread_id: str, token: str, step: int, state: Mapping[str, Any], *, now: int
) -> None:
    cursor, info = store.cursor(thread_id), store.info(thread_id)
    if cursor is None or info is None or cursor.head != step - 1:
        raise StaleWriter(f"thread {thread_id!r} has moved; nothing was stored", "load it again")
    live, changes = _differences(store, thread_id, cursor.head, state)
    at_fork = info.parent is not None and cursor.head == info.fork_step
    parent = None if cursor.head < 0 else info.parent if at_fork else thread_id
    store.commit(thread_id, _commit(cursor, token, parent, live, changes, now=now))


def _differences(
    store: Checkpointer, thread_id: str, step: int, state: Mapping[str, Any]
) -> tuple[LiveState, list[Change]]:
    """Return the state at a step, null for channels without records, and the changes that lead to `state`."""
    known = (store.load_step(thread_id, step) or {}) if step >= 0 else {}
    values = {**dict.fromkeys(state), **known}
    point = store.checkpoint(thread_id, step) if step >= 0 else None
    taint = {taint.channel: taint for taint in point.tainted} if point else {}
    live = LiveState(values, {name: channel_hash(value) for name, value in values.items()}, taint)
    private = _private(store, thread_id)
    channels = {
        name: BoundChannel(
            name, Channel(None, reducer="overwrite", visibility="private" if name in private else "public")
        )
        for name in state
    }
    changes = [
        change
        for change in set_values(live, channels, state)
        if change.before_hash != change.after_hash or change.channel.name not in known
    ]
    return live, changes


def _private(store: Checkpointer, thread_id: str) -> set[str]:
    """Return the channels whose values must stay private, by the graph on which the thread last ran."""
    from hitl_tui.engine.thread.logged import logged_digest, logged_graph

    info, cursor = store.info(thread_id), store.cursor(thread_id)
    if info is None or cursor is None or not logged_digest(info, cursor):
        return set()
    channels = logged_graph(store, info, cursor).channels
    return {channel.name for channel in channels if channel.visibility == "private"}


def _commit(
    cursor: Cursor, token: str, parent: str | None, live: LiveState, changes: list[Change], *, now: int
) -> Commit:
    new, step = parent is None, cursor.head + 1
    source: Source = "input" if new else "human"
    if new:
        cursor = replace(cursor, status="completed", reason="end", position="end")
    records = journal.records_of(journal.StepFacts(source=source, made_by="program"), cursor, changes, now)
    state = after(live, changes)
    added = journal.log_size(changes, records)
    snapshot, log_bytes, log_records, snapshot_bytes = journal.snapshot_of(
        cursor, added, len(records), state.values
    )
    point = Checkpoint(
        thread_id=cursor.thread_id,
        step=step,
        parent_thread=parent,
        parent_step=step - 1,
        source=source,
        node="",
        position=cursor.position,
        status=cursor.status,
        reason=cursor.reason,
        invocation=cursor.invocation,
        iteration=cursor.iteration,
        attempt=1,
        duration=0,
        tokens_in=0,
        tokens_out=0,
        cost=0.0,
        state_hash=state.hash,
        first_seq=cursor.last_seq + 1,
        last_seq=cursor.last_seq + len(records),
        at=now,
        note="saved",
        made_by="program",
        tainted=tuple(state.taint.values()),
    )
    pending = tuple(replace(request, step=step, votes=()) for request in cursor.pending)
    ledger: list[LedgerEntry] = []
    for request in pending:
        said = journal.after_entries(cursor, ledger)
        ledger.append(journal.ledger_entry(said, "rebound", at=now, step=step, request=request))
    said = journal.after_entries(cursor, ledger)
    record = records[-1].record_hash if records else cursor.last_record_hash
    moved = replace(
        said,
        version=cursor.version + 1,
        head=step,
        last_seq=point.last_seq,
        last_record_hash=record,
        pending=pending,
        log_bytes=log_bytes,
        log_records=log_records,
        snapshot_bytes=snapshot_bytes,
        updated_at=now,
    )
    point = replace(point, ledger_hash=said.ledger_hash, cursor_hash=cursor_hash(moved))
    point = replace(point, checkpoint_hash=checkpoint_hash(point, cursor.checkpoint_hash, record))
    moved = replace(moved, checkpoint_hash=point.checkpoint_hash)
    return Commit(moved, cursor.version, token, records, point, snapshot, tuple(ledger))
