"""What another process asks of a run: a pause of this one, not of one before it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import Channel, GraphRunner, SQLiteCheckpointer
from hitl_tui.drivers import watching
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Cancel, Pause, Run, Start
from hitl_tui.engine.log.events import RunEnded
from hitl_tui.engine.log.threads import PauseRequest
from hitl_tui.engine.run import loop
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


def patient(store: Checkpointer, event: threading.Event) -> GraphRunner:
    """Two nodes, of which the first waits for an event."""

    def first(_state: Any, _config: Any) -> dict[str, Any]:
        assert event.wait(PATIENCE)
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


async def test_the_person_who_pauses_in_this_process_is_in_the_ledger(
    bench: Bench, store: Checkpointer
) -> None:
    paused = threading.Event()
    watcher = await bench.watch(patient(store, paused))
    await watcher.driver.execute(Start({}))
    await watcher.driver.execute(Run())
    await watcher.driver.execute(Pause("ann", "lunch"))
    paused.set()  # the first node runs until then, so the pause always comes before the run ends
    await watcher.until(lambda view: view.ledger)
    (entry,) = ledger_of(store, watcher.driver.thread_id, "pause")
    assert (entry.actor, entry.note, entry.made_by) == ("ann", "lunch", "person")


async def test_an_immediate_pause_cancels_the_running_node(
    bench: Bench, store: Checkpointer, looked: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_CANCEL_PATIENCE", 0.01)  # whoever asked has died

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


async def test_a_run_that_another_process_cancels_ends_as_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "EVERY", 0.01)
    started = asyncio.Event()

    async def first(_state: Any, _config: Any) -> dict[str, Any]:
        here.call_soon_threadsafe(started.set)
        await asyncio.Event().wait()
        return {"n": 1}

    here = asyncio.get_running_loop()
    with (
        closing(SQLiteCheckpointer(tmp_path / "runs.db")) as ours,
        closing(SQLiteCheckpointer(tmp_path / "runs.db")) as theirs,
    ):
        graph = chain({"n": Channel(0)}, first, lambda _state, _config: {"n": 2})
        runners = [graph.compile(checkpointer=store) for store in (ours, theirs)]
        hubs = [LocalHub(runner.store, lambda info: runners[0]) for runner in runners if runner.store]
        try:
            driver = await hubs[0].new("t", runners[0])
            await driver.execute(Start({}))
            await driver.execute(Run())
            async with asyncio.timeout(PATIENCE):
                await started.wait()
                other = await hubs[1].open("t")
                await other.execute(Cancel("eve", "enough"))
                await driver.ended(0)
            ended = [at.event for at in driver.events(0) if isinstance(at.event, RunEnded)]
            assert [(end.progress.status, end.progress.reason) for end in ended] == [("cancelled", "user")]
            kinds = [
                (entry.kind, entry.actor) for entry in ours.ledger("t") if entry.kind in ("pause", "cancel")
            ]
            assert kinds == [("cancel", "eve")]
            assert runners[1].verify("t").ok
        finally:
            for hub in hubs:
                await hub.close()


async def test_a_run_that_another_process_pauses_waits_before_its_next_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "EVERY", 0.01)
    started, asked = asyncio.Event(), threading.Event()

    def first(_state: Any, _config: Any) -> dict[str, Any]:
        here.call_soon_threadsafe(started.set)
        assert asked.wait(PATIENCE)
        return {"n": 1}

    here = asyncio.get_running_loop()
    with (
        closing(SQLiteCheckpointer(tmp_path / "runs.db")) as ours,
        closing(SQLiteCheckpointer(tmp_path / "runs.db")) as theirs,
    ):
        graph = chain({"n": Channel(0)}, first, lambda _state, _config: {"n": 2})
        runners = [graph.compile(checkpointer=store) for store in (ours, theirs)]
        hubs = [LocalHub(runner.store, lambda info: runners[0]) for runner in runners if runner.store]
        try:
            store = runners[0].store
            assert store is not None
            look = store.pause_request

            def pause_request(thread_id: str) -> PauseRequest | None:
                if (found := look(thread_id)) is not None:
                    asyncio.get_running_loop().call_soon(asked.set)  # once the run has taken it into account
                return found

            monkeypatch.setattr(store, "pause_request", pause_request)
            driver = await hubs[0].new("t", runners[0])
            await driver.execute(Start({}))
            await driver.execute(Run())
            async with asyncio.timeout(PATIENCE):
                await started.wait()
                other = await hubs[1].open("t")
                assert await other.execute(Pause("eve", "enough", wait=PATIENCE)) == ""
            assert (await other.snapshot()).progress.reason == "paused"
            (entry,) = ledger_of(ours, "t", "pause")
            assert (entry.actor, entry.note) == ("eve", "enough")
            assert runners[1].verify("t").ok
        finally:
            for hub in hubs:
                await hub.close()
