"""Writes threads the way the engine does, with made-up hashes; used by tests and their processes."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.log.records import Checkpoint, Commit, Cursor, LedgerEntry, StoredGraph, UpdateRecord
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.thread.hashes import chained
from hitl_tui.stores import Checkpointer

NOW = 1_760_000_000_000_000
"""A time in 2025, in microseconds."""


def digest(*facts: object) -> bytes:
    return sha256(repr(facts).encode()).digest()


_GRAPH = b"{}"
GRAPH = StoredGraph(sha256(_GRAPH).hexdigest(), _GRAPH)
"""The graph of every thread here, as far as stores look at it."""


def info(thread_id: str, **changes: Any) -> ThreadInfo:
    plain = ThreadInfo(thread_id, "advisor", GRAPH.digest, {"graph": "m:g"}, None, -1, 0, NOW, "ann")
    facts = msgspec.structs.replace(plain, **changes)
    return msgspec.structs.replace(facts, facts_hash=digest("facts", thread_id))


def start(facts: ThreadInfo) -> dict[str, bytes]:
    """What the first rows of a thread are chained to."""
    link = chained(b"", facts.facts_hash)
    return {"last_record_hash": link, "checkpoint_hash": link, "ledger_hash": link}


def entry(cursor: Cursor, kind: str = "answer", **changes: Any) -> LedgerEntry:
    """The next decision after a cursor."""
    n = cursor.ledger_n + 1
    plain = LedgerEntry(
        thread_id=cursor.thread_id,
        n=n,
        kind=kind,
        step=cursor.head,
        request_id="r1",
        actor="ann",
        note=None,
        seen=b"",
        data={"answer": [1, None]},
        at=NOW + n,
        prev_hash=cursor.ledger_hash,
        hash=digest("entry", cursor.thread_id, n),
    )
    return msgspec.structs.replace(plain, **changes)


class Writer:
    """One holder of one thread."""

    def __init__(self, store: Checkpointer, thread_id: str = "t", *, create: bool = True) -> None:
        self.store = store
        self.thread_id = thread_id
        if create:
            facts = info(thread_id)
            store.create_thread(facts, Cursor(thread_id, created_at=NOW, updated_at=NOW, **start(facts)))
        self.lease = store.new_lease(NOW)
        store.acquire(thread_id, self.lease, NOW)

    @property
    def cursor(self) -> Cursor:
        found = self.store.cursor(self.thread_id)
        assert found is not None
        return found

    def record(self, channel: str, update: Any, place: int = 0, **changes: Any) -> UpdateRecord:
        """The next record but `place`, of the next step."""
        cursor = self.cursor
        seq = cursor.last_seq + 1 + place
        previous = digest("record", self.thread_id, seq - 1) if place else cursor.last_record_hash
        plain = UpdateRecord(
            thread_id=self.thread_id,
            seq=seq,
            step=cursor.head + 1,
            invocation=1,
            node="write",
            path="",
            attempt=1,
            channel=channel,
            op="reduce",
            reducer="append",
            visibility="public",
            source="node",
            update=update,
            previous_hash=digest("value", channel, seq - 1),
            update_hash=digest("update", update),
            next_hash=digest("value", channel, seq),
            tainted=False,
            actor=None,
            note=None,
            at=NOW + seq,
            prev_record_hash=previous,
            record_hash=digest("record", self.thread_id, seq),
        )
        return msgspec.structs.replace(plain, **changes)

    def point(self, records: tuple[UpdateRecord, ...], **changes: Any) -> Checkpoint:
        """The checkpoint of the next step."""
        cursor = self.cursor
        step = cursor.head + 1
        plain = Checkpoint(
            thread_id=self.thread_id,
            step=step,
            parent_thread=self.thread_id if step else None,
            parent_step=step - 1,
            source="node" if step else "input",
            node="write" if step else "",
            position="node:write",
            status="running",
            reason="",
            invocation=1,
            iteration=step,
            attempt=1,
            duration=100,
            tokens_in=10,
            tokens_out=5,
            cost=0.25,
            state_hash=digest("state", self.thread_id, step),
            first_seq=cursor.last_seq + 1,
            last_seq=cursor.last_seq + len(records),
            at=NOW + step,
            ledger_hash=cursor.ledger_hash,
            cursor_hash=digest("cursor", self.thread_id, step),
            checkpoint_hash=digest("checkpoint", self.thread_id, step),
        )
        return msgspec.structs.replace(plain, **changes)

    def commit_of(
        self,
        updates: Mapping[str, Any],
        *,
        snapshot: bytes | None = None,
        ledger: tuple[LedgerEntry, ...] = (),
        point: Mapping[str, Any] | None = None,
        **cursor_changes: Any,
    ) -> Commit:
        """The next step as a commit that is not written yet."""
        cursor = self.cursor
        records = tuple(
            self.record(channel, update, place) for place, (channel, update) in enumerate(updates.items())
        )
        checkpoint = self.point(records, **(point or {}))
        moved = msgspec.structs.replace(
            cursor,
            **{
                "version": cursor.version + 1,
                "head": checkpoint.step,
                "last_seq": checkpoint.last_seq,
                "last_record_hash": records[-1].record_hash if records else cursor.last_record_hash,
                "checkpoint_hash": checkpoint.checkpoint_hash,
                "ledger_n": cursor.ledger_n + len(ledger),
                "ledger_hash": ledger[-1].hash if ledger else cursor.ledger_hash,
                "status": checkpoint.status,
                "position": checkpoint.position,
                "updated_at": checkpoint.at,
                **cursor_changes,
            },
        )
        graph = None if cursor.version else GRAPH
        return Commit(moved, cursor.version, self.lease.token, records, checkpoint, snapshot, ledger, graph)

    def step(self, updates: Mapping[str, Any] | None = None, **changes: Any) -> Commit:
        """Write the next step."""
        commit = self.commit_of({"messages": "hello"} if updates is None else updates, **changes)
        self.store.commit(self.thread_id, commit)
        return commit

    def fork(self, step: int, thread_id: str) -> Writer:
        """A fork at a step, sharing the decisions made up to it."""
        shared = self.store.checkpoint(self.thread_id, step)
        assert shared is not None
        decisions = [made for made in self.store.ledger(self.thread_id) if made.step < step]
        records = list(self.store.records(self.thread_id, max(0, step - 1), step))
        facts = info(thread_id, parent=self.thread_id, fork_step=step, fork_seq=shared.last_seq)
        parent = start(info(self.thread_id))["ledger_hash"]
        cursor = Cursor(
            thread_id,
            head=step,
            last_seq=shared.last_seq,
            last_record_hash=chained(records[-1].record_hash if records else parent, facts.facts_hash),
            checkpoint_hash=chained(shared.checkpoint_hash, facts.facts_hash),
            ledger_n=len(decisions),
            ledger_hash=chained(decisions[-1].hash if decisions else parent, facts.facts_hash),
            updated_at=NOW,
        )
        self.store.create_thread(facts, cursor)
        return Writer(self.store, thread_id, create=False)


MODEL_USE = ModelUse("advisor", "anthropic", "opus", 10, 5, None)
