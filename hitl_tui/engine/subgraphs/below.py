"""The threads that the subgraphs of a thread ran in, found again in a store (SPEC 7)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from hitl_tui.engine.log.records import Checkpoint, Cursor
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.errors import LogCorrupt

_PAGE = 256


class Inside(NamedTuple):
    """A thread that ran inside another.

    Attributes:
        thread_id: its name, as the other one has it.
        of: the thread that it ran for, or that shares the step it made.
        step: the step of `of` that it made; None where it has made none, as while it waits.
        needed: whether `of` can't do without it: it made a step, was counted, or asks.
    """

    thread_id: str
    of: str
    step: int | None
    needed: bool


def owned(store: Store, thread_id: str) -> dict[str, ThreadInfo]:
    """The threads a thread has begun itself, oldest first, those that it has given up among them."""
    found: list[ThreadInfo] = []
    offset = 0
    while rows := store.threads(limit=_PAGE, offset=offset, within=thread_id):
        found += [row.info for row in rows]
        offset += len(rows)
    return {info.thread_id: info for info in found}


def named(point: Checkpoint) -> list[str]:
    """The threads that made a step."""
    return [outcome.thread for outcome in point.branches if outcome.thread]


def inside(store: Store, cursor: Cursor, above: frozenset[str] = frozenset()) -> list[Inside]:
    """All threads below a thread, each before those below it; some may not be in the store.

    A fork is told of those of the steps that it shares, too.  What is below a thread whose own log can't
    be read stays unknown, and so does one that is said to be inside itself.

    Args:
        above: the threads that this one is inside of.

    Raises:
        LogCorrupt: the log of the thread itself can't be read.
    """
    found: dict[str, Inside] = {}
    for thread_id, step, needed in _told(store, cursor):
        found.setdefault(thread_id, Inside(thread_id, cursor.thread_id, step, needed))
    for thread_id in owned(store, cursor.thread_id):
        found.setdefault(thread_id, Inside(thread_id, cursor.thread_id, None, needed=False))
    below: dict[str, Inside] = {}
    around = above | {cursor.thread_id}
    for thread_id in sorted(found.keys() - around):
        below.setdefault(thread_id, found[thread_id])
        with suppress(LogCorrupt):
            inner = store.cursor(thread_id)
            for one in inside(store, inner, around) if inner else ():
                below.setdefault(one.thread_id, one)
    return list(below.values())


def _told(store: Store, cursor: Cursor) -> Iterator[tuple[str, int | None, bool]]:
    """The threads that a thread itself tells of: in its steps, and where it stands."""
    before = cursor.head + 1
    while points := store.checkpoints(cursor.thread_id, before, _PAGE):
        for point in points:
            yield from ((name, point.step, True) for name in named(point))
        before = points[-1].step
    for request in cursor.pending:
        if request.thread:
            yield request.thread, None, True
    for link in (state.child for state in cursor.branches if state.child):
        # It is noted before it is made, so that it may be missing until it has spent something.
        yield link.thread_id, None, bool(link.tokens_in or link.tokens_out or link.cost)
