"""A thread that another process runs: seen as it moves, out of reach, taken over when that process dies."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from msgspec.structs import replace

from hitl_tui import MemoryCheckpointer, SQLiteCheckpointer, ThreadBusy
from hitl_tui.drivers import graph_file, watching
from hitl_tui.drivers.graph_file import until_next
from hitl_tui.drivers.watching import EVERY
from hitl_tui.drivers.watching import Watcher as Follower
from hitl_tui.engine.commands import ExtendLimits, Fork, Run, Step, UpdateState
from hitl_tui.engine.log.events import Event, HolderChanged, RunEnded, StepCommitted
from hitl_tui.engine.thread.session import Session
from hitl_tui.stores import open_store
from tests.drivers.conftest import Bench
from tests.drivers.holding import another, gated, ticker
from tests.support.flows import check_log, ledger_of, line, say
from tests.support.spec import spec
from tests.support.watching import Watcher

pytestmark = spec("10")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteCheckpointer]:
    opened = SQLiteCheckpointer(path)
    yield opened
    opened.close()


@pytest.fixture
async def desk(store: SQLiteCheckpointer) -> AsyncIterator[Bench]:
    """Drivers of this process, on the file that the other one writes."""
    made = Bench(store)
    yield made
    await made.close()


async def watch(desk: Bench) -> Watcher:
    return await desk.watch(ticker(desk.store, lambda _: None))


@pytest.mark.integration
async def test_each_step_of_another_process_is_emitted(desk: Bench, path: Path) -> None:
    async with another("asked", path) as other:
        await other.wait_for_line("at 1")
        watcher = await watch(desk)
        for number in (1, 2, 3):
            other.send_line()  # it doesn't go on after that, so the step is told while it is the newest
            view = await watcher.until(lambda view, number=number: view.values["n"] == number)
            assert (view.progress.head, view.progress.status) == (number, "running")
        assert [event.checkpoint.step for event in watcher.events_of(StepCommitted)] == [1, 2, 3]
        assert [update.channel for update in watcher.view.head_updates] == ["log", "n"]
        await other.wait_for_line("at 4")
        await watcher.driver.snapshot()
        await watcher.check()


def test_a_check_emits_all_earlier_commits_and_runs_four_times_a_second() -> None:
    store = MemoryCheckpointer()
    runner = ticker(store, lambda _: None)
    with closing(runner.stream({}, thread_id="t")) as run:
        next(run)
        events: list[Event] = []
        session = Session.open(runner.graph, store, "t")
        one_look = Follower(
            session,
            store,
            emit=events.append,
            together=nullcontext(),
            resync=lambda: None,
            busy=lambda: False,
            inside=lambda: False,
        ).look
        one_look()
        assert isinstance(events[0], HolderChanged)
        assert f"process {os.getpid()}" in events[0].holder
        for steps in (1, 1, 3):
            events.clear()
            before = session.cursor.head
            made = [next(run).step for _ in range(steps)]
            one_look()
            assert [event.checkpoint.step for event in events if isinstance(event, StepCommitted)] == made
            assert session.cursor.head == before + steps
        events.clear()
        one_look()
        assert events == []
    assert EVERY <= 0.25, "the promise is half a second, and a look and a paint take their time"


async def test_an_unexpected_error_of_a_check_is_logged_once_and_checks_continue(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("hitl_tui.drivers.watching.until_next", lambda _: 0.001)
    store = MemoryCheckpointer()
    runner = ticker(store, lambda _: None)
    runner.invoke({}, thread_id="t")
    looks: list[int] = []
    four = asyncio.Event()

    def busy() -> bool:
        looks.append(1)
        if len(looks) == 4:
            four.set()
        return False

    follower = Follower(
        Session.open(runner.graph, store, "t"), store, emit=lambda _: None, together=nullcontext(),
        resync=lambda: None, busy=busy, inside=lambda: False,
    )  # fmt: skip

    def fail(_: str) -> int:
        raise KeyError("changes")

    monkeypatch.setattr(store, "changes", fail)
    following = asyncio.create_task(follower.follow())
    async with asyncio.timeout(30):
        await four.wait()
    following.cancel()
    assert caplog.text.count("can't be looked at") == 1


@pytest.mark.slow
def test_a_thread_is_read_again_only_once_something_was_written(
    store: SQLiteCheckpointer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = ticker(store, lambda _: None)
    runner.invoke({}, thread_id="t")
    events: list[Event] = []
    session = Session.open(runner.graph, store, "t")
    look = Follower(
        session,
        store,
        emit=events.append,
        together=nullcontext(),
        resync=lambda: None,
        busy=lambda: False,
        inside=lambda: False,
    ).look
    look()
    read: list[str] = []
    summary = store.summary
    monkeypatch.setattr(store, "summary", lambda name: (read.append(name), summary(name))[1])
    look()
    assert (read, events) == ([], [])
    with closing(SQLiteCheckpointer(path)) as other:
        other.acquire("t", lease := replace(other.new_lease(0), user="ann"), 0)
        look()
        look()
        assert read == ["t", "t"], "a holder may die without writing anything"
        assert [type(event) for event in events] == [HolderChanged]
        other.release("t", lease.token)
    look()
    look()
    assert read == ["t"] * 3
    assert events[1:] == [HolderChanged("")]


@pytest.mark.integration
async def test_a_watcher_keeps_up_with_slow_steps(desk: Bench, path: Path) -> None:
    async with another("free", path) as other:
        await other.wait_for_line("running")
        watcher = await watch(desk)
        for _ in range(4):
            seen = watcher.view.progress.head + 1
            await watcher.until(lambda view, seen=seen: view.progress.head >= seen)
            cursor = desk.store.cursor("t")
            assert cursor is not None
            assert cursor.head < seen + 5


@pytest.mark.integration
async def test_a_watcher_knows_who_holds_the_thread_and_can_read_all_of_it(desk: Bench, path: Path) -> None:
    async with another("asked", path) as other:
        for number in (1, 2, 3):
            await other.wait_for_line(f"at {number}")
            other.send_line()
        await other.wait_for_line("at 4")
        watcher = await watch(desk)
        view = await watcher.until(lambda view: view.progress.head == 3)
        assert view.held_by == f"tester on host {socket.gethostname()}, process {other.pid}"
        assert view.running_node == "count"
        driver = watcher.driver
        assert [point.step for point in await driver.history()] == [3, 2, 1, 0]
        assert (await driver.state_at(1))["log"] == ["step 1"]
        assert [update.after for update in (await driver.updates(2, 2))[2]] == [["step 1", "step 2"], 2]
        assert (await driver.preview(UpdateState({"n": 7}))).problems == {}
        assert [relative.thread_id for relative in await driver.family()] in ([], ["t"])


@pytest.mark.integration
async def test_a_watcher_can_change_nothing_but_may_fork(desk: Bench, path: Path) -> None:
    async with another("asked", path) as other:
        await other.wait_for_line("at 1")
        watcher = await watch(desk)
        driver = watcher.driver
        for command in (
            driver.execute(Step()),
            driver.execute(Run()),
            driver.execute(UpdateState({"n": 5}, expected_step=0)),
            driver.execute(ExtendLimits({"max_iterations": 5})),
        ):
            with pytest.raises(ThreadBusy, match=f"process {other.pid}"):
                await command
        assert watcher.events_of(RunEnded) == []
        assert await driver.execute(Fork(0, "mine", changes={"n": 41})) == "mine"
        other.send_line()
        await watcher.until(lambda view: view.values["n"] == 1)
        await other.wait_for_line("at 2")
        await watcher.driver.snapshot()
        await watcher.check()


@pytest.mark.integration
async def test_when_the_holder_dies_the_watcher_takes_over(desk: Bench, path: Path) -> None:
    async with another("asked", path) as other:
        await other.wait_for_line("at 1")
        other.send_line()
        await other.wait_for_line("at 2")
        watcher = await watch(desk)
        assert watcher.view.held_by
        await other.kill()
        view = await watcher.until(lambda view: view.progress.status == "waiting" and not view.held_by)
        assert (view.progress.reason, view.progress.head, view.running_node) == ("paused", 1, None)
        assert [entry.kind for entry in view.ledger] == ["takeover"]
        assert f"process {other.pid}" in (view.ledger[0].note or "")
        view = await watcher.step()
        assert view.values["log"] == ["step 1", "step 2"]
        assert len(ledger_of(desk.store, "t", "takeover")) == 1
        await watcher.check()
        check_log(ticker(desk.store, lambda _: None), "t")


@pytest.mark.parametrize(("role", "refusal"), [("edit", "StaleWriter"), ("answer", "AnswerRefused")])
@pytest.mark.integration
async def test_one_of_two_processes_wins_and_the_other_is_refused(
    desk: Bench, path: Path, role: str, refusal: str
) -> None:
    runner = gated(desk.store)
    runner.invoke({}, thread_id="t")
    watcher = await desk.watch(runner)
    words = ("ours", "theirs") if role == "edit" else ("accept", "approve")
    async with another(role, path, "ann", words[0]) as ann, another(role, path, "bob", words[1]) as bob:
        await asyncio.gather(ann.wait_for_line("ready"), bob.wait_for_line("ready"))
        ann.send_line()
        bob.send_line()
        outcomes = await asyncio.gather(ann.wait_for_line("done"), bob.wait_for_line("done"))
    assert sorted(outcomes) == ["done 3", f"done {refusal}"]
    kind = "update_state" if role == "edit" else "refused"
    view = await watcher.until(lambda view: kind in [entry.kind for entry in view.ledger])
    winner = ("ann", "bob")[outcomes.index("done 3")]
    assert (view.head and view.head.actor, desk.store.checkpoint("t", 4)) == (winner, None)
    refused = [entry.actor for entry in ledger_of(desk.store, "t", "refused")]
    assert refused == ([] if role == "edit" else [{"ann": "bob", "bob": "ann"}[winner]])
    await watcher.driver.snapshot()  # by then all of it has been told
    await watcher.check()
    check_log(runner, "t")


async def test_an_idle_screen_wakes_once_for_the_store_and_the_file() -> None:
    for now in (1000.01, 1000.33, 1000.79):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "time", lambda now=now: now)
            looks_at_file = until_next(graph_file.EVERY)
            for every in (watching.EVERY, watching._EVERY_IN_QUIET):
                beats = (looks_at_file - until_next(every)) / every
                assert beats == pytest.approx(round(beats), abs=1e-6)


async def test_the_database_server_notifies_of_commits_without_polling(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EVERY", "_EVERY_IN_QUIET"):
        monkeypatch.setattr(watching, name, 3600.0)
    monkeypatch.setattr("hitl_tui.stores.postgres.listener._ANYWAY", 3600.0)
    with closing(open_store(postgres_url)) as here, closing(open_store(postgres_url)) as there:
        elsewhere = line(there, say("one"), say("two"), interrupt_after=["a"])
        elsewhere.invoke({}, thread_id="t")
        desk = Bench(here)
        try:
            watcher = await desk.watch(line(here, say("one"), say("two"), interrupt_after=["a"]))
            while here.changes("t") is None:  # noqa: ASYNC110  it listens on a thread of its own
                await asyncio.sleep(0.005)
            for number in range(3):
                values = {"log": [f"edit {number}"]}
                step = await asyncio.to_thread(elsewhere.update_state, "t", values)
                view = await watcher.until(lambda view, step=step: view.progress.head == step)
                assert view.values["log"] == [f"edit {number}"]
            assert [event.checkpoint.source for event in watcher.events_of(StepCommitted)] == ["human"] * 3
        finally:
            await desk.close()
