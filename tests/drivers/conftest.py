"""Drivers of threads in a store of each kind, closed at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hitl_tui import GraphRunner
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.stores import Checkpointer, open_store
from tests.support.watching import Watcher


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    opened = open_store("memory:" if request.param == "memory" else str(tmp_path / "runs.db"))
    yield opened
    opened.close()


class Bench:
    """Opens drivers, each with someone who watches it."""

    def __init__(self, store: Checkpointer) -> None:
        self.store = store
        self._hubs: list[LocalHub] = []

    async def watch(
        self, runner: GraphRunner, thread: str = "t", store: Checkpointer | None = None
    ) -> Watcher:
        """A watcher of a thread's driver; each call makes another driver."""
        hub = LocalHub(store or self.store, lambda info: runner)
        self._hubs.append(hub)
        return await Watcher.open(await hub.new(thread, runner))

    async def close(self) -> None:
        for hub in self._hubs:
            await hub.close()


@pytest.fixture
async def bench(store: Checkpointer) -> AsyncIterator[Bench]:
    made = Bench(store)
    yield made
    await made.close()
