"""Continues a thread in the background."""

from __future__ import annotations

from hitl_tui.drivers.protocol import Hub
from hitl_tui.engine.commands import Run


async def run_on(hub: Hub, thread: str) -> None:
    """Run a decided thread until it stops, as after a decision on its card."""
    async with hub.borrow(thread) as driver:
        snapshot = await driver.snapshot()
        if (
            snapshot.handed
            or driver.refusal(Run)
            or snapshot.progress.pending
            or snapshot.progress.status not in ("waiting", "running")
        ):
            return
        if snapshot.progress.status == "waiting":
            await driver.execute(Run())
            snapshot = await driver.snapshot()
        while snapshot.progress.status == "running":
            await driver.changed(snapshot.last_event)
            snapshot = await driver.snapshot()
