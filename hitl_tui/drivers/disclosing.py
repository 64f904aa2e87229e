"""The part of the local driver by which a human answers for something: taint, private values, limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_tui.drivers.part import DriverPart
from hitl_tui.engine.humans import decisions, disclosure
from hitl_tui.engine.reports.taint_lineage import Arrival, lineage
from hitl_tui.engine.thread.session import Session


class Disclosing(DriverPart):
    """Part of the local driver."""

    async def lineage(self, channel: str, step: int) -> tuple[Arrival, ...]:
        """Why a channel is tainted at a step: every way by which it came in, oldest first."""

        def look(session: Session) -> tuple[Arrival, ...]:
            return lineage(self._store.records(session.thread_id, 0, step), channel)

        return await self._on_engine(look)

    async def declassify(
        self, channel: str, *, expected_step: int, actor: str, reason: str, seen: bytes = b""
    ) -> int:
        """Clear a channel's taint as a new step; returns it."""
        return await self._write(
            lambda session: disclosure.declassify(
                session, channel, actor=actor, reason=reason, expected_step=expected_step, seen=seen
            )
        )

    async def reveal(self, channel: str, step: int, *, actor: str) -> Any:
        """A channel's value at a step though it is private; the ledger keeps who has seen it."""
        return await self._write(
            lambda session: disclosure.reveal(session, channel, step, actor=actor), graph=False
        )

    async def extend_limits(
        self, limits: Mapping[str, float | None], *, actor: str | None = None, note: str | None = None
    ) -> None:
        """Raise limits, so that a thread stopped by one may go on; logged."""
        await self._write(lambda session: decisions.extend_limits(session, limits, actor=actor, note=note))
