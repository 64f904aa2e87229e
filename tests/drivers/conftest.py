"""Drivers of threads in a store, closed at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hitl_tui import GraphRunner
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.stores import Checkpointer
from tests.support.any_store import new_store
from tests.support.watching import Watcher


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Checkpointer]:
    with closing(new_store("sqlite", tmp_path)) as opened:
        yield opened


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
