"""Lists the threads of a checkpointer: mirrored ones, and others by their newest checkpoint.

A page costs one query for all threads, and one state for each row whose mirror is not up to date: a thread is
mirrored when it is opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import dropwhile, islice
from typing import Any, Final

from msgspec.structs import replace

from hitl_tui.drivers.langgraph.discovery import (
    has_thread,
    lists_all_threads,
    outdated,
    thread_heads,
    thread_named,
)
from hitl_tui.drivers.langgraph.mirror import Mirror, is_no_step
from hitl_tui.drivers.langgraph.pregel import config_of
from hitl_tui.engine.log.store import Store, all_threads
from hitl_tui.engine.log.threads import ThreadSummary, Waiting
from hitl_tui.errors import ThreadBusy
from hitl_tui.stores.base import ascii_lower, summary_of

_EPOCH: Final = 0x01B21DD213814000
"""What the time in a checkpoint's id, a UUID of version 6, counts from: 1582, in tenths of microseconds."""


Lend = Callable[[str], AbstractContextManager[Mirror]]
"""Gives the mirror of a thread's graph for a while."""


class ThreadListing:
    """Lists the threads of a checkpointer, page by page.

    Args:
        store: the mirror of the threads.
        saver: the checkpointer.
        lend: returns the mirror of a thread.
        asked: returns all threads with the checkpoints at which they may wait; without it each one is read.
    """

    def __init__(
        self,
        store: Store,
        saver: Any,
        lend: Lend,
        asked: Callable[[], Collection[tuple[str, str]]] | None = None,
    ) -> None:
        self._store = store
        self._saver = saver
        self._lend = lend
        self._asked = asked
        self._seen: dict[str, str] = {}
        """The heads of threads that were mirrored, or did not wait."""

    async def page(
        self,
        query: str = "",
        limit: int = 50,
        after: ThreadSummary | None = None,
        within: str | None = None,
        *,
        running: Collection[str] = (),
    ) -> tuple[ThreadSummary, ...]:
        """Return threads by last change, newest first; arguments as for `Store.threads`.

        Args:
            running: LangGraph threads that this process runs: their mirror is up to date.
        """
        store = self._store
        heads = await thread_heads(self._saver)
        times = sorted(((moment_of(head), name) for name, head in heads.items()), reverse=True)
        part = ascii_lower(query)

        @cache
        def moved(name: str) -> bool:
            return name in heads and name not in running and bool(outdated(store, {name: heads[name]}))

        def is_listed(name: str) -> bool:
            return name in running or not moved(name)

        mirrored = (row for row in all_threads(store, query, within) if is_listed(row.info.thread_id))
        others = (each for each in times if part in ascii_lower(each[1]) and moved(each[1]))
        rows = in_order(mirrored, others)
        if after is not None:
            last = after.info.thread_id
            rows = islice(dropwhile(lambda row: _name(row) != last, rows), 1, None)
        page: list[ThreadSummary] = []
        while len(page) < limit and (row := await asyncio.to_thread(next, rows, None)) is not None:
            if isinstance(row, str):
                summary = await self._head_row(row)
            else:
                summary = None if await self._is_gone(row.info.thread_id, heads, running) else row
            if summary is not None:
                page.append(summary)
        return tuple(page)

    async def _is_gone(self, name: str, heads: Collection[str], running: Collection[str]) -> bool:
        """Whether a mirrored thread was deleted in the checkpointer."""
        thread = thread_named(self._store, name)
        if name in running or thread in heads:
            return False
        return lists_all_threads(self._saver) or not await has_thread(self._saver, thread)

    async def still_there(self, rows: Sequence[Waiting], running: Collection[str]) -> tuple[Waiting, ...]:
        """Return the rows whose threads still exist in the checkpointer."""
        heads = await thread_heads(self._saver)
        gone = [await self._is_gone(row.thread.info.thread_id, heads, running) for row in rows]
        return tuple(row for row, is_gone in zip(rows, gone, strict=True) if not is_gone)

    async def mirror_waiting(
        self,
        *,
        running: Collection[str] = (),
        on_progress: Callable[[int, int], object] = lambda done, total: None,
    ) -> None:
        """Mirror the threads that wait for a person; the others are checked again when they have moved.

        Args:
            running: as for `page`.
            on_progress: called with the number of moved threads checked and the number of all.
        """
        store = self._store
        heads = await thread_heads(self._saver)
        moved = [name for name, head in heads.items() if self._seen.get(name) != head and name not in running]
        if self._asked is not None:
            asked = await asyncio.to_thread(self._asked)
            moved = [name for name in moved if (name, heads[name]) in asked or store.info(name) is not None]
        for done, name in enumerate(moved):
            on_progress(done, len(moved))
            if store.info(name) is not None:
                waits = bool(outdated(store, {name: heads[name]}))
            else:
                row = await self._head_row(name)
                waits = row is not None and row.waiting_since is not None
            if waits:
                try:
                    with self._lend(name) as mirror:
                        await mirror.sync(name)
                except ThreadBusy:
                    continue  # another process runs and mirrors it
            self._seen[name] = heads[name]

    async def _head_row(self, thread: str) -> ThreadSummary | None:
        with self._lend(thread) as mirror:
            return await head_row(mirror, thread)


def listing_of(mirror: Mirror) -> ThreadListing:
    """Return the listing of a graph's threads, which share one mirror."""
    return ThreadListing(mirror.store, mirror.app.root.checkpointer, lambda thread: nullcontext(mirror))


def _name(row: ThreadSummary | str) -> str:
    return row if isinstance(row, str) else row.info.thread_id


def in_order(
    mirrored: Iterable[ThreadSummary], others: Iterator[tuple[int, str]]
) -> Iterator[ThreadSummary | str]:
    """Merge mirrored threads with the names of others, the last changed first.

    Args:
        mirrored: the last changed first, to about a second.
        others: the last changed first, each with its time in microseconds since the epoch.
    """
    since: int | None = None
    other = next(others, None)
    for row in mirrored:
        since = row.updated_at if since is None else min(since, row.updated_at)
        while other is not None and other[0] >= since:
            yield other[1]
            other = next(others, None)
        yield row
    if other is not None:
        yield other[1]
    yield from (name for _, name in others)


async def head_row(mirror: Mirror, thread: str) -> ThreadSummary | None:
    """Return a thread's row, made of its newest checkpoint; None if it has no step yet."""
    saved = await mirror.app.state(config_of(thread))
    if saved is None or is_no_step(None, saved):
        return None
    if saved.source == "fork" and mirror.store.info(thread) is not None:
        before = await mirror.app.state(config_of(thread, saved.parent))
        if is_no_step(before, saved):  # a fork starts with it: the thread itself has not changed
            rows = all_threads(mirror.store, thread)
            return next((row for row in rows if row.info.thread_id == thread), None)
    session = mirror.new(thread)
    session.info = mirror.store.info(thread) or replace(session.info, created_at=saved.at)
    session.cursor = replace(session.cursor, head=max(saved.step, 0))
    cursor = replace(mirror.settled(session, saved), updated_at=saved.at)
    return summary_of(session.info, cursor, "", None, mirror.store.now())


def moment_of(checkpoint: str) -> int:
    """Return a checkpoint's time from its id, in microseconds since the epoch; 0 if the id has none."""
    try:
        high, middle, low = checkpoint.split("-")[:3]
        ticks = int(high, 16) << 28 | int(middle, 16) << 12 | int(low, 16) & 0xFFF
    except ValueError:
        return 0
    return max(ticks - _EPOCH, 0) // 10
