"""The rows of a list of threads, with the threads inside each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hitl_tui.engine.log.threads import ThreadSummary


class ThreadRow(NamedTuple):
    """A thread in the list, or a note that more can be loaded.

    Attributes:
        depth: how many threads contain it.
        opened: whether the threads inside it are shown below it.
        left: 0 for the thread's own row; else how many threads inside it are still to be fetched.
    """

    thread: ThreadSummary
    depth: int = 0
    opened: bool = False
    left: int = 0

    @property
    def name(self) -> str:
        """The thread's id."""
        return self.thread.info.thread_id


class ThreadRows:
    """The fetched threads, and which of them are open; `whole` means that all at the top are fetched."""

    def __init__(self, top: Sequence[ThreadSummary] = (), *, whole: bool = True) -> None:
        self.top = tuple(top)
        self.whole = whole
        self._inside: dict[str, tuple[ThreadSummary, ...]] = {}
        self.rows: tuple[ThreadRow, ...] = ()
        self._make()

    def add(self, threads: Sequence[ThreadSummary], *, whole: bool) -> None:
        """Add threads at the top level."""
        self.top += tuple(threads)
        self.whole = whole
        self._make()

    def inside(self, name: str) -> tuple[ThreadSummary, ...]:
        """Return the fetched threads that ran inside another one."""
        return self._inside.get(name, ())

    def open(self, name: str, threads: Sequence[ThreadSummary]) -> None:
        """Show threads inside another, below those that are already shown."""
        self._inside[name] = (*self._inside.get(name, ()), *threads)
        self._make()

    def close(self, name: str) -> None:
        """Hide the threads inside a thread."""
        self._inside.pop(name, None)
        self._make()

    def outer(self, row: int) -> int | None:
        """Return the row of the thread that contains the one on a row; None at the top."""
        depth = self.rows[row].depth
        above = (at for at in range(row - 1, -1, -1) if self.rows[at].depth < depth)
        return next(above, None)

    def _make(self) -> None:
        self.rows = tuple(self._below(self.top, 0))

    def _below(self, threads: Sequence[ThreadSummary], depth: int) -> Iterator[ThreadRow]:
        for thread in threads:
            inside = self._inside.get(thread.info.thread_id)
            yield ThreadRow(thread, depth, inside is not None)
            if inside is None:
                continue
            yield from self._below(inside, depth + 1)
            left = (thread.inside or 0) - len(inside)
            if left > 0:
                yield ThreadRow(thread, depth + 1, left=left)
