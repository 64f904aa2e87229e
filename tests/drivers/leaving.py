"""Starts a thread whose second node never ends, and leaves."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any

from hitl_tui import GraphRunner, SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Run, Start
from hitl_tui.stores import Checkpointer
from tests.support.flows import line, say


def runner(store: Checkpointer, entered: Callable[[], object] | None, style: str = "sync") -> GraphRunner:
    """Two nodes; the second never ends where there is somebody to tell that it has started."""

    def sync(state: Any) -> dict[str, Any]:
        if entered:
            entered()
            threading.Event().wait()
        return {"log": "two"}

    async def on_a_loop(state: Any) -> dict[str, Any]:
        return sync(state)

    return line(store, say("one"), sync if style == "sync" else on_a_loop)


async def main(path: str, style: str) -> None:
    loop, entered = asyncio.get_running_loop(), asyncio.Event()
    store = SQLiteCheckpointer(path)
    graph = runner(store, lambda: loop.call_soon_threadsafe(entered.set), style)
    hub = LocalHub(store, lambda info: graph)
    driver = await hub.new("t", graph)
    await driver.execute(Start({}))
    await driver.execute(Run())
    await entered.wait()
    print(*await hub.close(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
