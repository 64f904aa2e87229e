"""The family of a thread: where it was forked from, and what was forked from it."""

from __future__ import annotations

from hitl_tui.drivers.protocol import Relative
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo

MOST = 40
"""Relatives shown at most: the thread's own line first, then forks by age."""


def family(store: Store, thread_id: str, page: int) -> tuple[Relative, ...]:
    """The thread, its parents and the forks of all of them, each with its newest checkpoints."""
    line: list[ThreadInfo] = []
    info = store.info(thread_id)
    while info is not None:
        line.append(info)
        info = store.info(info.parent) if info.parent else None
    found = {one.thread_id: one for one in line}
    queue = list(line)
    while queue and len(found) < MOST:
        for child in store.children(queue.pop(0).thread_id):
            if child.thread_id not in found and len(found) < MOST:
                found[child.thread_id] = child
                queue.append(child)
    relatives = []
    for one in found.values():
        summary = store.summary(one.thread_id)
        if summary is not None:
            newest = store.checkpoints(one.thread_id, None, page)
            # A fork that was carried here without its parent owns all of its steps.
            shared = one.fork_step if one.parent else -1
            own = tuple(checkpoint for checkpoint in reversed(newest) if checkpoint.step > shared)
            relatives.append(Relative(one.thread_id, one.parent, shared, summary, own))
    return tuple(relatives)
