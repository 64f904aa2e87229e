"""The threads that the subgraphs of a thread ran in, found again in a store (SPEC 7)."""

from __future__ import annotations

from hitl_tui.engine.records import Checkpoint, Cursor, ThreadInfo
from hitl_tui.engine.store import Store

_PAGE = 256


def owned(store: Store, thread_id: str) -> dict[str, ThreadInfo]:
    """The threads a thread has begun itself, oldest first, those that it has given up among them."""
    found: list[ThreadInfo] = []
    offset = 0
    while rows := store.threads(f"{thread_id}/", _PAGE, offset):
        found += [row.info for row in rows if row.info.owner and row.info.owner.thread_id == thread_id]
        offset += len(rows)
    # Renamed by an import, they may be as old as each other.
    found.sort(key=lambda info: (info.created_at, info.thread_id))
    return {info.thread_id: info for info in found}


def named(point: Checkpoint) -> list[str]:
    """The threads that made a step."""
    return [outcome.thread for outcome in point.branches if outcome.thread]


def threads_below(store: Store, cursor: Cursor) -> list[str]:
    """All threads below a thread, each before those below it; some may not be in the store.

    A fork is told of those of the steps that it shares, too.
    """
    found: dict[str, None] = {}
    before: int | None = None
    while points := store.checkpoints(cursor.thread_id, before, _PAGE):
        for point in points:
            found |= dict.fromkeys(named(point))
        before = points[-1].step
    found |= dict.fromkeys(owned(store, cursor.thread_id))
    below: dict[str, None] = {}
    for thread_id in sorted(found):
        below[thread_id] = None
        inner = store.cursor(thread_id)
        if inner is not None:
            below |= dict.fromkeys(threads_below(store, inner))
    return list(below)
