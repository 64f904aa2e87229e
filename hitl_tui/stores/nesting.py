"""Lists of threads, nested: which ran inside which (SPEC 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from hitl_tui.engine.log.threads import ThreadInfo


def within(info: ThreadInfo, thread_id: str | None, known: Collection[str]) -> bool:
    """Whether a thread is in a list of `Store.threads` that is asked for with `within=thread_id`.

    Args:
        known: the names of all threads of the store.
    """
    if thread_id is None:
        return True
    owner = info.owner.thread_id if info.owner else ""
    return owner == thread_id if thread_id else owner not in known


def inside_each(infos: Iterable[ThreadInfo]) -> Counter[str]:
    """How many threads ran directly inside each."""
    return Counter(info.owner.thread_id for info in infos if info.owner)
