"""What a node's own code prints and reads: kept apart from a screen, and from documents on stdout."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from hitl_tui.errors import HitlError

if TYPE_CHECKING:
    from hitl_tui.engine.nodes.activity import Activity


def _running() -> Activity | None:
    """The attempt of a node that this code is part of; no engine is loaded to find that there is none."""
    module = sys.modules.get("hitl_tui.engine.nodes.activity")
    return module.current_activity.get() if module else None


class PrintedByNodes:
    """A stdout that streams what a node prints as the node's own text.

    Args:
        elsewhere: gets what is printed where no node runs, as while a graph is built.
    """

    def __init__(self, elsewhere: TextIO) -> None:
        self._elsewhere = elsewhere

    def write(self, text: str) -> int:
        """Stream a piece of text, or pass it on."""
        activity = _running()
        if activity is None:
            return self._elsewhere.write(text)
        activity.text(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write each of them."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._elsewhere, name)


class _Keyboard:
    """A stdin that a node can't read: it would take keys away from whoever watches, and wait for ever."""

    def __init__(self, real: TextIO, from_all: bool) -> None:
        self._real = real
        self._from_all = from_all

    def fileno(self) -> int:
        """As of the real one; below a node none, so that `input` asks `readline` here."""
        if self._kept:
            raise io.UnsupportedOperation("the keyboard is not for this")
        return self._real.fileno()

    def readline(self, *size: int) -> str:
        """One line."""
        return self._allowed().readline(*size)

    def read(self, *size: int) -> str:
        """The rest."""
        return self._allowed().read(*size)

    def readlines(self, *hint: int) -> list[str]:
        """All lines that are left."""
        return self._allowed().readlines(*hint)

    def __iter__(self) -> Iterator[str]:
        return iter(self._allowed())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    @property
    def _kept(self) -> bool:
        return self._from_all or _running() is not None

    def _allowed(self) -> TextIO:
        if self._kept:
            raise HitlError(
                "it reads the keyboard, which belongs to whoever watches",
                "ask a person in the node: config.interrupt({'kind': 'ask', 'title': …}); instead of a "
                "breakpoint() stop before the node: b, or --break NODE",
            )
        return self._real


@contextmanager
def keyboard_kept(*, from_all: bool = False) -> Iterator[None]:
    """Keep nodes that run meanwhile from reading stdin.

    Args:
        from_all: also what runs below no node, as a graph that is built while a screen is shown.
    """
    real = sys.stdin
    if real is None:
        yield
        return
    sys.stdin = _Keyboard(real, from_all)
    try:
        yield
    finally:
        sys.stdin = real
