"""The threads that wait for a human, one after another, for a reviewer who goes from one to the next."""

from __future__ import annotations

from collections.abc import Collection

from hitl_tui.drivers.protocol import Hub
from hitl_tui.engine.log.threads import ThreadSummary

_PAGE = 100


class WaitingQueue:
    """Shows each of them once, the one that has waited longest first, then begins again.

    A thread that asks anew stands at the end, as one that has not been shown.
    """

    def __init__(self) -> None:
        self._shown: set[tuple[str, int | None]] = set()

    async def following(self, hub: Hub, open_now: Collection[str]) -> ThreadSummary | None:
        """The next one; None where no other thread waits.

        Args:
            open_now: the names of the thread that is open and of those that it runs for.
        """
        first: ThreadSummary | None = None
        offset = 0
        while page := await hub.threads("", _PAGE, offset, "", waiting=True):
            for thread in page:
                known = _asked(thread) in self._shown
                self._shown.add(_asked(thread))
                if thread.info.thread_id in open_now:
                    continue
                if not known:
                    return thread
                first = first or thread
            offset += len(page)
        self._shown = {_asked(first)} if first is not None else set()
        return first


def _asked(thread: ThreadSummary) -> tuple[str, int | None]:
    return thread.info.thread_id, thread.waiting_since
