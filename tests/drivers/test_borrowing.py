"""A driver that was borrowed is closed to its end before the store is, whoever leaves first."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import closing
from pathlib import Path

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Run, Start
from tests.support.flows import Desk, line
from tests.support.watching import Blocker


async def test_a_borrower_who_is_cancelled_twice_leaves_nothing_open(tmp_path: Path) -> None:
    blocker = Blocker()
    store = SQLiteCheckpointer(tmp_path / "runs.db")
    graph = line(store, lambda state: blocker.sleep())
    Desk(graph, "t").do(Start({}))
    hub = LocalHub(store, lambda info: graph)

    async def borrows() -> None:
        async with hub.borrow("t") as driver:
            await driver.execute(Run())
            await asyncio.Event().wait()

    borrower = asyncio.create_task(borrows())
    await blocker.entered()
    borrower.cancel()
    await asyncio.sleep(0)  # it has started to close the driver
    borrower.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await borrower
    lost = await hub.close()
    blocker.release()
    assert [sentence for sentence in lost if "node" in sentence]
    with closing(SQLiteCheckpointer(tmp_path / "runs.db")) as again:
        cursor = again.cursor("t")
        assert cursor is not None
        assert (cursor.status, cursor.reason) == ("waiting", "paused")
        assert again.lease("t") is None
