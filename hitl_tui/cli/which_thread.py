"""Which thread a command means: the one that was named, the one to go on with, or a new one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hitl_tui.errors import UnknownThread, UsageError

if TYPE_CHECKING:
    from hitl_tui.engine.log.threads import ThreadSummary
    from hitl_tui.stores import Checkpointer

_PAGE = 100


def find_thread(store: Checkpointer, thread: str | None) -> str:
    """The named thread, or without a name the one to go on with.

    That is the one that waits for a human and changed last, or else the last unfinished one.

    Raises:
        UnknownThread: there is no such thread.
        UsageError: no thread is unfinished.
    """
    if thread is not None:
        if store.info(thread) is None:
            from hitl_tui.suggest import did_you_mean

            known = [summary.info.thread_id for summary in store.threads(limit=1000)]
            raise UnknownThread(f"there is no thread {thread!r}", did_you_mean(thread, known))
        return thread
    unfinished = None
    for summary in _all(store):
        if summary.status == "waiting":
            return summary.info.thread_id
        if unfinished is None and summary.status not in ("completed", "cancelled"):
            unfinished = summary.info.thread_id
    if unfinished is None:
        raise UsageError("no thread is unfinished", "`hitl-tui threads` lists all, `hitl-tui demo` makes one")
    return unfinished


def new_thread_id(store: Checkpointer, stem: str) -> str:
    """A name nobody uses yet: stem, day and number, as in "demo-2026-11-21-2"."""
    from datetime import date

    day = f"{stem}-{date.today().isoformat()}"
    number = 1
    while store.info(f"{day}-{number}") is not None:
        number += 1
    return f"{day}-{number}"


def _all(store: Checkpointer) -> Iterator[ThreadSummary]:
    offset = 0
    while page := store.threads(limit=_PAGE, offset=offset):
        yield from page
        offset += len(page)
