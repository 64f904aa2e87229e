"""What a commit costs a screen that it does not concern: statements that each asks the server for.

    python -m tests.benchmarks.idle_screens [--quick]

Screens are open on threads that wait, in the queue, in the page of workers and in `watch`; another process'
store commits steps of a thread that none of them shows.  A run screen is to ask nothing, whatever others
commit; a list reads now and then, however many commits there are.  The last line is JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from hitl_tui import Gate, GateChoice
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from hitl_tui.team.sent_notices import SentNotices
from hitl_tui.team.watch import Watch
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.theme import Look
from tests.support.flows import line, say
from tests.support.postgres import Postgres, binaries

_PACE = 0.02
"""Seconds between two commits."""
_SETTLES = 3.0


class Counted(PostgresCheckpointer):
    """A store that counts what it asks the server for."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked = 0
        asks: Any = self._server
        asks.attempt, asks.transaction = self._counted(asks.attempt), self._counted(asks.transaction)

    def _counted(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def do(*values: Any) -> Any:
            self.asked += 1
            return ask(*values)

        return do


def commits(url: str, seconds: float) -> int:
    """Commit steps of a thread of its own for a while; how many."""
    with closing(PostgresCheckpointer(url)) as store:
        runner = line(store, *(say(str(number)) for number in range(2)))
        end, made = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            runner.invoke({}, thread_id=f"other {made}")
            made += 3
            time.sleep(_PACE)
        return made


async def screen(url: str, keys: tuple[str, ...], seconds: float) -> tuple[int, int, float]:
    """What a screen asks for while others commit, how many commits those were, and what it asks for else."""
    store = Counted(url)
    hub = LocalHub(store, lambda info: line(store, say("x")))

    async def open_driver() -> tuple[Hub, Driver]:
        return hub, await hub.open("t")

    app = HitlApp(AppStart(open_driver, "ann", None, ask_inputs=False), Look(""))
    async with app.run_test(size=(120, 40)) as pilot:
        while app.run_screen is None or app.screen is not app.run_screen:
            await pilot.pause(0.05)
        await pilot.press(*keys)
        await pilot.pause(_SETTLES)
        before = store.asked
        await pilot.pause(seconds)
        alone = store.asked - before
        before = store.asked
        made = await asyncio.to_thread(commits, url, seconds)
        await pilot.pause(0.5)
        asked = store.asked - before
    await hub.close()
    return asked, made, alone


def watching(url: str, seconds: float) -> tuple[int, int, float]:
    """The same of `watch`."""
    with tempfile.TemporaryDirectory() as folder, closing(Counted(url)) as store:
        sent = SentNotices(Path(folder) / "notices.db", "x")
        watch = Watch(
            store, sent, (), person="ann", before=0, encode=lambda notice: b"", failed=lambda error: None
        )
        running = threading.Thread(target=watch.run, args=(2.0,))
        running.start()
        time.sleep(_SETTLES)
        before = store.asked
        time.sleep(seconds)
        alone = store.asked - before
        before = store.asked
        made = commits(url, seconds)
        asked = store.asked - before
        watch.stop()
        running.join()
        sent.close()
        return asked, made, alone


def main() -> None:
    """Print what each kind of screen asks for."""
    programs = binaries()
    if programs is None:
        sys.exit("there is no PostgreSQL server here")
    seconds = 3.0 if "--quick" in sys.argv else 10.0
    running = Postgres(programs)
    try:
        url = running.new_url()
        with closing(PostgresCheckpointer(url)) as store:
            store.jobs().make()
            gate = Gate("a", "Go on?", [GateChoice("yes", "yes")])
            line(store, say("x"), interrupt_after=[gate]).invoke({}, thread_id="t")
        kinds: dict[str, Callable[[], tuple[int, int, float]]] = {
            "run screen": lambda: asyncio.run(screen(url, (), seconds)),
            "queue": lambda: asyncio.run(screen(url, ("Q",), seconds)),
            "list of threads": lambda: asyncio.run(screen(url, ("t",), seconds)),
            "workers": lambda: asyncio.run(screen(url, ("ctrl+g",), seconds)),
            "watch": lambda: watching(url, seconds),
        }
        figures: dict[str, object] = {"script": "idle_screens"}
        for name, measure in kinds.items():
            asked, made, alone = measure()
            figures[name] = {
                "a_commit": round(asked / made, 3),
                "a_second": round(asked / seconds, 2),
                "alone_a_second": round(alone / seconds, 2),
                "commits_a_second": round(made / seconds, 1),
            }
            print(f"{name:16} {figures[name]}", flush=True)
        print(json.dumps(figures))
    finally:
        running.close()


if __name__ == "__main__":
    main()
