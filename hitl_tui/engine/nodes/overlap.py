"""Attempts that timed out and whose code still runs: the next attempt waits for it.

Specified in docs/spec/graphs.md.
"""

from __future__ import annotations

import asyncio
from typing import Final

from hitl_tui.engine.graph.retry import RetryPolicy
from hitl_tui.engine.nodes.calling import Begun, TookTooLong
from hitl_tui.errors import NodeFailed

_BETWEEN_LOOKS: Final = 0.02
"""Seconds; code that runs in a thread doesn't say when it ends."""


class TimedOutAttempts:
    """The attempts at one run of a node that timed out."""

    def __init__(self, retry: RetryPolicy) -> None:
        self._overlap = retry.overlap
        self._begun: dict[int, Begun] = {}

    def add(self, error: NodeFailed) -> None:
        """Note a failed attempt; the error names earlier ones whose code still runs."""
        running = [str(attempt) for attempt, begun in self._begun.items() if begun.is_sync_running]
        if running:
            hint = f"code of attempt {', '.join(running)} still runs in its thread"
            error.hint = f"{error.hint}; {hint}" if error.hint else hint
        if isinstance(error.__cause__, TookTooLong):
            self._begun[error.attempt] = error.__cause__.begun

    @property
    def note(self) -> str:
        """What to say about the wait for the next attempt; "" where nothing holds it up."""
        if self._overlap or not any(begun.is_sync_running for begun in self._begun.values()):
            return ""
        return " (the next attempt waits until the code of this one has ended)"

    async def ended(self) -> None:
        """Wait until no code of them runs, unless attempts may overlap."""
        while not self._overlap:
            if not any(begun.is_running for begun in self._begun.values()):
                return
            await asyncio.sleep(_BETWEEN_LOOKS)
