"""What another process asks of a run: a pause of this one, not of one before it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from hitl_tui import Channel, GraphRunner
from hitl_tui.drivers import watching
from hitl_tui.engine.commands import Start
from hitl_tui.engine.log.threads import PauseRequest
from hitl_tui.engine.thread.session import now_us
from hitl_tui.stores import Checkpointer
from tests.drivers.conftest import Bench
from tests.engine.building import chain
from tests.support.flows import ledger_of
from tests.support.watching import PATIENCE


@pytest.fixture
def looked(store: Checkpointer, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once the run has looked at what is asked of it."""
    event, look = threading.Event(), store.pause_request

    def pause_request(thread_id: str) -> PauseRequest | None:
        asyncio.get_running_loop().call_soon(event.set)  # once what was found has been heeded
        return look(thread_id)

    monkeypatch.setattr(watching, "EVERY", 0.01)
    monkeypatch.setattr(store, "pause_request", pause_request)
    return event


def patient(store: Checkpointer, looked: threading.Event) -> GraphRunner:
    """Two nodes, of which the first takes until its run was looked after."""

    def first(_state: Any, _config: Any) -> dict[str, Any]:
        assert looked.wait(PATIENCE)
        return {"n": 1}

    return chain({"n": Channel(0)}, first, lambda _state, _config: {"n": 2}).compile(checkpointer=store)


@pytest.mark.parametrize(
    ("asked", "status"),
    [(-1_000_000, "completed"), (60_000_000, "waiting")],
    ids=["before this run began: it goes on", "of this run: it pauses"],
)
async def test_a_pause_that_was_asked(
    bench: Bench, store: Checkpointer, looked: threading.Event, asked: int, status: str
) -> None:
    watcher = await bench.watch(patient(store, looked))
    await watcher.driver.execute(Start({}))
    store.request_pause("t", PauseRequest("ann", "look", now_us() + asked))
    view = await watcher.run()
    assert view.progress.status == status
    if status == "waiting":
        view = await watcher.until(lambda view: view.ledger)
        assert [(entry.kind, entry.actor, entry.note) for entry in view.ledger] == [("pause", "ann", "look")]
    else:
        assert ledger_of(store, "t", "pause") == []


async def test_one_that_is_asked_at_once_gives_up_the_node_in_flight(
    bench: Bench, store: Checkpointer, looked: threading.Event
) -> None:
    async def first(_state: Any, _config: Any) -> dict[str, Any]:
        store.request_pause("t", PauseRequest("ann", "enough", now_us() + 60_000_000, at_once=True))
        await asyncio.Event().wait()
        return {"n": 1}

    graph = chain({"n": Channel(0)}, first, lambda _state, _config: {"n": 2}).compile(checkpointer=store)
    watcher = await bench.watch(graph)
    await watcher.driver.execute(Start({}))
    view = await watcher.run()
    assert (view.progress.status, view.progress.reason, view.progress.head) == ("waiting", "paused", 0)
    assert looked.is_set()
