"""Two processes on one LangGraph thread, and one that is killed in the middle of an edit."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.engine.commands import Start, UpdateState
from hitl_tui.errors import StaleWriter
from hitl_tui.stores import open_store
from tests.drivers.langgraph import graphs
from tests.support.watching import Watcher

langgraph_types = pytest.importorskip("langgraph.types")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not hasattr(langgraph_types, "Overwrite"), reason="this LangGraph has no Overwrite"),
]

_OTHER = """
import asyncio, os, signal, sqlite3, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.engine.commands import UpdateState
from hitl_tui.stores import open_store
from tests.drivers.langgraph import graphs

directory, kill = sys.argv[1:]
saver = SqliteSaver(sqlite3.connect(f"{directory}/theirs.sqlite", check_same_thread=False))

class Killed(SqliteSaver):
    def put(self, *given):
        if kill == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        config = super().put(*given)
        if kill == "behind":
            os.kill(os.getpid(), signal.SIGKILL)
        return config

async def work():
    app = graphs.routed([]).compile(checkpointer=Killed(saver.conn))
    hub = LangGraphHub(app, open_store(f"{directory}/mirror.db"), name="graph")
    driver = await hub.open("t")
    await driver.execute(UpdateState({"draft": "theirs"}, actor="bob", note="from elsewhere"))
    await hub.close()

asyncio.run(work())
"""


class Thread:
    """A thread in files that several processes open."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.connection = sqlite3.connect(directory / "theirs.sqlite", check_same_thread=False)
        self._hubs: list[LangGraphHub] = []

    async def open(self) -> Watcher:
        app = graphs.routed([]).compile(checkpointer=SqliteSaver(self.connection))
        hub = LangGraphHub(app, open_store(str(self.directory / "mirror.db")), name="graph")
        self._hubs.append(hub)
        return await Watcher.open(await hub.begin("t", "ann"))

    def elsewhere(self, kill: str = "") -> int:
        """Edit it in another process, which may be killed around its write to LangGraph's database."""
        command = [sys.executable, "-c", _OTHER, str(self.directory), kill]
        root = Path(__file__).parents[3]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        return subprocess.run(command, env=environment, timeout=120, check=False).returncode

    async def close(self) -> None:
        for hub in self._hubs:
            await hub.close()
        self._hubs.clear()


@pytest.fixture
async def thread(tmp_path: Path) -> AsyncIterator[Thread]:
    opened = Thread(tmp_path)
    watcher = await opened.open()
    await watcher.driver.execute(Start({"log": []}, actor="ann"))
    await watcher.step()
    yield opened
    await opened.close()
    opened.connection.close()


async def _draft(watcher: Watcher) -> Any:
    return (await watcher.check()).values["draft"]


async def test_commits_of_another_process_are_seen_before_ours_are_accepted(thread: Thread) -> None:
    watcher = await thread.open()
    head = watcher.view.progress.head
    assert thread.elsewhere() == 0
    with pytest.raises(StaleWriter):
        await watcher.driver.execute(UpdateState({"draft": "mine"}, head, actor="ann"))
    assert await _draft(watcher) == "theirs"
    point = watcher.view.checkpoints[-1]
    assert (point.actor, point.note) == ("bob", "from elsewhere")
    await watcher.driver.execute(UpdateState({"draft": "mine"}, head + 1, actor="ann"))
    assert await _draft(watcher) == "mine"


@pytest.mark.parametrize(
    ("kill", "draft", "notice"),
    [("before", "d", "was not stored"), ("behind", "theirs", "was found")],
)
async def test_a_kill_around_their_write_loses_nothing_and_applies_nothing_twice(
    thread: Thread, kill: str, draft: str, notice: str
) -> None:
    await thread.close()
    assert thread.elsewhere(kill) == -signal.SIGKILL
    watcher = await thread.open()
    assert await _draft(watcher) == draft
    assert f"an edit by bob {notice}" in watcher.view.notice
    edits = [point for point in watcher.view.checkpoints if point.source == "human"]
    assert [(point.actor, point.note) for point in edits] == (
        [("bob", "from elsewhere")] if kill == "behind" else []
    )
    assert (await watcher.driver.check("log", lambda _done, _all: None)).mismatches == ()
