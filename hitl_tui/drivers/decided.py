"""The decisions of a person, in one thread or in a whole store, with the log after each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from hitl_tui.engine.log.records import NOTE, Checkpoint, LedgerEntry
from hitl_tui.engine.log.signing import DECISIONS
from hitl_tui.engine.log.store import Store, all_threads
from hitl_tui.engine.log.threads import ThreadSummary

_LOOKED_AT: Final = 500
"""Most steps after a decision that are read."""


class Decided(NamedTuple):
    """A decision, and the log of its thread from there on.

    Attributes:
        ledger: the thread's entries, from those of the answered request on.
        points: the steps from the one that it is about on, oldest first.
    """

    thread: str
    status: str
    reason: str
    entry: LedgerEntry
    ledger: Sequence[LedgerEntry]
    points: Sequence[Checkpoint]


def decisions_of(entries: Iterable[LedgerEntry], person: str) -> list[LedgerEntry]:
    """Return the decisions of a person, newest first; a note decides nothing."""
    kinds = DECISIONS - {NOTE}
    return [entry for entry in entries if entry.actor == person and entry.kind in kinds][::-1]


def decided_by(store: Store, person: str, limit: int, thread: str | None = None) -> Iterator[Decided]:
    """Return a person's decisions, newest first, in one thread or in all.

    `limit` is the most decisions to return.
    """
    known: list[tuple[LedgerEntry, ThreadSummary, list[LedgerEntry]]] = []
    for summary in all_threads(store) if thread is None else filter(None, (store.summary(thread),)):
        # Nothing in a thread is newer than its last change.
        if len(known) >= limit and summary.updated_at < known[limit - 1][0].at:
            break
        name = summary.info.thread_id
        # Decisions that a fork shares are listed for its parent.
        shared = min((part.after_entry for part in store.parts(name) if part.thread_id == name), default=0)
        ledger = store.ledger(name, call_data=False)
        own = [entry for entry in decisions_of(ledger, person) if entry.n > shared]
        known = sorted([*known, *((entry, summary, ledger) for entry in own)], key=lambda row: -row[0].at)
    for entry, summary, ledger in known[:limit]:
        name = summary.info.thread_id
        points = store.checkpoints(name, entry.step + _LOOKED_AT, _LOOKED_AT)[::-1]
        yield Decided(name, summary.status, summary.reason, entry, ledger, points)
