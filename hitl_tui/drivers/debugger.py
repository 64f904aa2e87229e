"""A debugger for `breakpoint()` in the code of nodes; the terminal is lent to it for each prompt."""

from __future__ import annotations

import os
import pdb
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import Final, TextIO, cast

Lend = Callable[[], AbstractContextManager[None]]
"""A context that lends the terminal, for any thread but the one that owns it."""

_one_prompt: Final = threading.Lock()


class _HeldOutput:
    """Keeps output while the terminal is not lent, and shows it once it is."""

    encoding = "utf-8"

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._held: list[str] = []
        self.is_lent = False

    def write(self, text: str) -> int:
        """Show a text, or keep it."""
        self._held.append(text)
        if self.is_lent:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Show what was kept, if the terminal is lent."""
        if self.is_lent:
            self._terminal.write("".join(self._held))
            self._terminal.flush()
            self._held.clear()


class NodeDebugger(pdb.Pdb):
    """pdb in the thread of a node."""

    def __init__(self, keyboard: TextIO, terminal: TextIO, lend: Lend) -> None:
        self._output = _HeldOutput(terminal)
        super().__init__(stdin=keyboard, stdout=cast("TextIO", self._output), nosigint=True)
        self._lend = lend

    def interaction(self, frame: FrameType | None, traceback: TracebackType | None) -> None:
        """Ask for commands on the terminal, one thread at a time; then the screen is back."""
        with _one_prompt, self._lend():
            self._output.is_lent = True
            try:
                super().interaction(frame, traceback)
            finally:
                self._output.is_lent = False


def debug(frame: FrameType, keyboard: TextIO, terminal: TextIO, lend: Lend) -> None:
    """Debug a frame from its next line on."""
    NodeDebugger(keyboard, terminal, lend).set_trace(frame)


def is_wanted() -> bool:
    """Whether `breakpoint()` means pdb, as PYTHONBREAKPOINT has it."""
    return os.environ.get("PYTHONBREAKPOINT", "") in ("", "pdb.set_trace")
