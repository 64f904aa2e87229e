"""The newest page of a long LangGraph thread, shown read-only while the whole thread is mirrored.

The page is a thread in memory whose steps have LangGraph's numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from hitl_tui.drivers.langgraph.mirror import Mirror, committing_at, is_no_step, newest_mirrored
from hitl_tui.drivers.langgraph.pregel import Saved, config_of
from hitl_tui.drivers.langgraph.steps import facts_of
from hitl_tui.engine.thread.session import Session
from hitl_tui.stores.memory import MemoryCheckpointer

_PAGE: Final = 50
_DUE: Final = 1 << 40
"""Records since the last snapshot, so that the first step has one: nothing before it is there."""


class Window:
    """The newest page of a thread.

    Args:
        mirror: a mirror of the page alone, in memory.
        leaf: the newest checkpoint of the thread.
    """

    def __init__(self, mirror: Mirror, thread: str, leaf: str) -> None:
        self.store = mirror.store
        self.leaf = leaf
        self._mirror = mirror
        self._thread = thread

    def session(self) -> Session:
        """Open the session of the page's thread."""
        return self._mirror.open(self._thread)


async def newest_page(mirror: Mirror, thread: str) -> Window | None:
    """Return the newest page of a LangGraph thread, None if the thread is short or mostly mirrored."""
    page = await mirror.app.history(thread, limit=_PAGE + 1)
    if len(page) <= _PAGE or page[-1].id <= newest_mirrored(mirror.store, thread):
        return None
    leaf = await mirror.app.state(config_of(thread, page[0].id), subgraphs=True)
    line = _line(page)
    if leaf is None or len(line) < 2:
        return None
    last = max(leaf.step, len(line))
    steps = [(before, saved) for before, saved in pairwise(line) if not is_no_step(before, saved)]
    window = mirror.in_store(MemoryCheckpointer())
    session = window.new(thread)
    session.cursor = replace(session.cursor, head=last - len(steps), log_records=_DUE)
    with session.writing():
        for number, (before, saved) in enumerate(steps):
            with committing_at(session, saved.at):
                window.append(session, before, saved, facts_of(before, saved), begins=not number)
        window.settle(session, leaf)
    return Window(window, thread, leaf.id)


def _line(page: list[Saved]) -> list[Saved]:
    """Return the newest checkpoint and its predecessors, oldest first."""
    known = {saved.id: saved for saved in page}
    line = [page[0]]
    while (before := known.get(line[-1].parent)) is not None:
        line.append(before)
    return line[::-1]
