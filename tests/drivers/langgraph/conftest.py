"""Hubs over LangGraph graphs, closed at the end."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="the extra `langgraph` is not installed")

from langgraph.checkpoint.memory import InMemorySaver

from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.drivers.langgraph.server import ServerGraph
from hitl_tui.stores import open_store
from tests.drivers.langgraph.graph_server import serving
from tests.support.watching import Watcher


@pytest.fixture(autouse=True)
def _no_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep clients of servers on loopback from reading the certificates of the machine, which takes long."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))


@pytest.fixture(params=["memory", pytest.param("sqlite", marks=pytest.mark.slow)])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    from langgraph.checkpoint.sqlite import SqliteSaver

    if request.param != "sqlite":
        yield ServersSaver() if request.param == "server" else InMemorySaver()
        return
    connection = sqlite3.connect(tmp_path / "theirs.sqlite", check_same_thread=False)
    yield SqliteSaver(connection)
    connection.close()


class ServersSaver(InMemorySaver):
    """That of a graph which is on a server."""


class Hubs:
    """Hubs over graphs, each with its own mirror unless one is named."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.opened: list[LangGraphHub] = []
        self._servers = ExitStack()

    def over(self, graph: Any, mirror: str = "memory:", **options: Any) -> LangGraphHub:
        if isinstance(graph.checkpointer, ServersSaver):
            graph = ServerGraph(self._servers.enter_context(serving(graph)).url)
            self._servers.callback(graph.close)
        store = open_store(mirror if mirror == "memory:" else str(self._directory / mirror))
        hub = LangGraphHub(graph, store, name="graph", source={"graph": "app.py"}, **options)
        self.opened.append(hub)
        return hub

    async def watch(self, graph: Any, thread: str = "t", mirror: str = "memory:") -> Watcher:
        return await Watcher.open(await self.over(graph, mirror).begin(thread, "ann"))

    async def close(self) -> None:
        for hub in self.opened:
            await hub.close()
        self.opened.clear()
        self._servers.close()


@pytest.fixture
async def hubs(tmp_path: Path) -> AsyncIterator[Hubs]:
    opened = Hubs(tmp_path)
    yield opened
    await opened.close()


Graph = Callable[[Any], Any]
