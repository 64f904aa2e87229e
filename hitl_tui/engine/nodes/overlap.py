"""Attempts that have timed out but whose code still runs: the next attempt waits for it.

Specified in docs/spec/graphs.md.
"""

from __future__ import annotations

import asyncio
from typing import Final

from hitl_tui.engine.graph.retry import RetryPolicy
from hitl_tui.engine.nodes.calling import CallTimedOut, StartedCode
from hitl_tui.errors import NodeFailed

_POLL_SECONDS: Final = 0.02
"""Seconds; code that runs in a thread doesn't say when it ends."""
_LOOKS: Final = 10
"""How many checks are made whether stopped code has ended, since it may be about to."""


async def still_runs(code: StartedCode | None) -> bool:
    """Return whether code runs that nothing can stop, a moment after its attempt was stopped."""
    for _ in range(_LOOKS):
        if code is None or not code.is_sync_running:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


class TimedOutAttempts:
    """The attempts at one run of a node that timed out."""

    def __init__(self, retry: RetryPolicy) -> None:
        self._overlap = retry.overlap
        self._started_by_attempt: dict[int, StartedCode] = {}

    def add(self, error: NodeFailed) -> None:
        """Note a failed attempt, and add to its error which earlier ones still run."""
        running = [
            str(attempt) for attempt, started in self._started_by_attempt.items() if started.is_sync_running
        ]
        if running:
            hint = f"code of attempt {', '.join(running)} still runs in its thread"
            error.hint = f"{error.hint}; {hint}" if error.hint else hint
        if isinstance(error.__cause__, CallTimedOut):
            self._started_by_attempt[error.attempt] = error.__cause__.started

    @property
    def note(self) -> str:
        """Text about the wait before the next attempt; "" if there is none."""
        if self._overlap or not any(started.is_sync_running for started in self._started_by_attempt.values()):
            return ""
        return " (the next attempt waits until the code of this one has ended)"

    async def ended(self) -> None:
        """Wait until none of their code runs, unless attempts may overlap."""
        while not self._overlap:
            if not any(started.is_running for started in self._started_by_attempt.values()):
                return
            await asyncio.sleep(_POLL_SECONDS)
