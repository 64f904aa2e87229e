"""A thread that another process changed: stale commands are refused and nothing is overwritten."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hitl_tui import AnswerRefused, Gate, GateChoice, StaleWriter, ThreadBusy
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.engine.commands import Answer, Run, Start, UpdateState, execute
from hitl_tui.engine.log.events import LimitNear, RunEnded
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.log.threads import Lease
from hitl_tui.stores import Checkpointer
from tests.drivers.conftest import Bench
from tests.support.flows import Desk, check_log, line, review_loop, say
from tests.support.spec import spec
from tests.support.watching import PATIENCE, Blocker, Watcher

pytestmark = spec("11")

GATE = Gate(
    "check",
    title="verdict",
    choices=[GateChoice("accept", "ok"), GateChoice("approve", "ok", values={"verdict": "approved"})],
)


async def waiting(bench: Bench) -> Watcher:
    watcher = await bench.watch(review_loop(bench.store, interrupt_after=[GATE]))
    await watcher.driver.execute(Start({}))
    await watcher.run()
    await watcher.check()
    return watcher


@pytest.fixture
async def refused(store: Checkpointer, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set as soon as somebody wants to write a thread that somebody else writes."""
    seen, loop, acquire = asyncio.Event(), asyncio.get_running_loop(), store.acquire

    def noted(*given: Any) -> Lease | None:
        try:
            return acquire(*given)
        except ThreadBusy:
            loop.call_soon_threadsafe(seen.set)
            raise

    monkeypatch.setattr(store, "acquire", noted)
    return seen


async def test_an_edit_on_an_old_head_is_refused_and_the_watcher_sees_why(bench: Bench) -> None:
    watcher = await waiting(bench)
    other = review_loop(bench.store, interrupt_after=[GATE])
    other.update_state("t", {"draft": "theirs"}, expected_step=2, actor="bob")
    with pytest.raises(StaleWriter):
        await watcher.driver.execute(UpdateState({"draft": "mine"}, expected_step=2, actor="ann"))
    view = await watcher.look()
    assert (view.progress.head, view.values["draft"]) == (3, "theirs")
    await watcher.check()
    assert await watcher.driver.execute(UpdateState({"draft": "mine"}, expected_step=3, actor="ann")) == 4
    await watcher.check()
    check_log(other, "t")


async def test_an_answer_about_what_is_gone_is_refused(bench: Bench) -> None:
    watcher = await waiting(bench)
    request = watcher.view.progress.pending[0]
    other = review_loop(bench.store, interrupt_after=[GATE])
    other.answer("t", request.id, "approve", step=2, actor="bob")
    other.invoke(thread_id="t")
    with pytest.raises(AnswerRefused, match="answered already"):
        await watcher.driver.execute(Answer(request.id, "accept", step=2, actor="ann"))
    view = await watcher.look()
    assert view.progress.status == "completed"
    await watcher.check()


async def test_a_run_continues_where_another_process_left_it(bench: Bench) -> None:
    watcher = await bench.watch(line(bench.store, say("one"), say("two"), say("three")))
    await watcher.driver.execute(Start({}))
    line(bench.store, say("one"), say("two"), say("three")).step(thread_id="t")
    await watcher.driver.execute(Run())
    view = await watcher.until(lambda view: view.progress.status == "completed")
    assert view.values["log"] == ["one", "two", "three"]
    await watcher.check()


async def test_limits_used_by_another_process_are_reported(bench: Bench) -> None:
    limits = Limits(max_iterations=2)
    watcher = await bench.watch(line(bench.store, say("one"), say("two"), say("three"), limits=limits))
    await watcher.driver.execute(Start({}))
    await watcher.look()
    line(bench.store, say("one"), say("two"), say("three"), limits=limits).step(thread_id="t")
    await watcher.until(lambda _: watcher.events_of(LimitNear))
    assert watcher.events_of(LimitNear) == [LimitNear("max_iterations", 50, 1, 2)]


async def test_a_fresh_snapshot_is_of_the_thread_as_it_is(bench: Bench) -> None:
    watcher = await waiting(bench)
    review_loop(bench.store, interrupt_after=[GATE]).update_state("t", {"draft": "theirs"}, actor="bob")
    snapshot = await watcher.driver.snapshot()
    assert snapshot.progress.head == snapshot.checkpoints[-1].step == 3
    assert snapshot.values["draft"] == "theirs"
    assert [update.after for update in snapshot.updates] == ["theirs"]
    view = await watcher.look()
    assert (view.progress.head, view.values["draft"]) == (3, "theirs")
    await watcher.check()


async def test_two_drivers_of_one_thread_take_turns(bench: Bench) -> None:
    first = await waiting(bench)
    second = await bench.watch(review_loop(bench.store, interrupt_after=[GATE]))
    request = second.view.progress.pending[0]
    assert await second.driver.execute(Answer(request.id, "accept", step=2, actor="bob")) == 3
    await first.driver.execute(Run())
    await first.until(lambda view: view.progress.head == 5)
    await second.driver.snapshot()
    await second.look()
    for watcher in (first, second):
        await watcher.check()


async def test_a_thread_that_another_driver_runs_is_read_only(bench: Bench) -> None:
    blocker = Blocker()

    def busy(state: object) -> dict[str, str]:
        blocker.sleep()
        return {"log": "busy"}

    runner = line(bench.store, say("one"), busy)
    first = await bench.watch(runner)
    await first.driver.execute(Start({}))
    await first.driver.execute(Run())
    await blocker.entered()
    second = await bench.watch(runner)
    assert (second.view.progress.status, second.view.progress.head) == ("running", 1)
    with pytest.raises(ThreadBusy):
        await second.driver.execute(UpdateState({"draft": "x"}, expected_step=1))
    with pytest.raises(ThreadBusy):
        await second.driver.execute(Run())
    assert second.events_of(RunEnded) == []
    blocker.release()
    await first.until(lambda view: view.progress.status == "completed")
    snapshot = await second.driver.snapshot()
    assert snapshot.progress.status == "completed"
    check_log(runner, "t")


async def test_a_deadline_fires_while_the_thread_is_open(bench: Bench) -> None:
    gate = Gate("check", title="verdict", choices=GATE.choices, deadline=0.05)
    watcher = await bench.watch(review_loop(bench.store, interrupt_after=[gate]))
    await watcher.driver.execute(Start({}))
    await watcher.run()
    view = await watcher.until(lambda view: view.progress.status == "failed")
    assert (view.progress.reason, view.progress.pending) == ("deadline", ())
    assert view.ledger[-1].kind == "timeout"
    await watcher.check()


async def test_a_deadline_fires_for_a_thread_that_is_only_viewed(bench: Bench) -> None:
    gate = Gate("check", title="verdict", choices=GATE.choices, deadline=0.05, on_timeout="approve")
    runner = review_loop(bench.store, interrupt_after=[gate])
    runner.invoke({}, thread_id="t")
    watcher = await bench.watch(runner)
    view = await watcher.until(lambda view: not view.progress.pending)
    assert (view.values["verdict"], view.progress.reason) == ("approved", "end")
    await watcher.check()


async def test_a_deadline_that_passed_while_nobody_had_it_open_is_applied_by_opening_it(bench: Bench) -> None:
    gate = Gate("check", title="verdict", choices=GATE.choices, deadline=60, on_timeout="approve")
    runner = review_loop(bench.store, interrupt_after=[gate])
    long_ago = Desk(runner, "t")
    long_ago.do(Start({}))
    await asyncio.to_thread(long_ago.run)
    watcher = await bench.watch(runner)
    view = await watcher.until(lambda view: not view.progress.pending)
    assert (view.values["verdict"], view.ledger[-1].kind) == ("approved", "timeout")
    check_log(runner, "t")


async def test_a_deadline_waits_for_the_current_writer(bench: Bench, refused: asyncio.Event) -> None:
    gate = Gate("check", title="verdict", choices=GATE.choices, deadline=0.05, on_timeout="approve")
    runner = review_loop(bench.store, interrupt_after=[gate])
    runner.invoke({}, thread_id="t")
    other = runner.open("t")
    with other.writing():
        watcher = await bench.watch(runner)
        async with asyncio.timeout(PATIENCE):
            await refused.wait()
        assert (await watcher.look()).progress.pending
    view = await watcher.until(lambda view: not view.progress.pending)
    assert view.values["verdict"] == "approved"


async def test_a_driver_that_closes_while_a_deadline_is_applied_leaves_nothing_behind(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, given_up = asyncio.Event(), []
    loop = asyncio.get_running_loop()

    async def never(_driver: LocalDriver) -> None:
        loop.call_soon_threadsafe(started.set)
        try:
            await asyncio.Event().wait()
        finally:
            given_up.append(True)

    monkeypatch.setattr(LocalDriver, "_expire", never)
    gate = Gate("check", title="verdict", choices=GATE.choices, deadline=0.05, on_timeout="approve")
    runner = review_loop(bench.store, interrupt_after=[gate])
    runner.invoke({}, thread_id="t")
    watcher = await bench.watch(runner)
    async with asyncio.timeout(PATIENCE):
        await started.wait()
    await watcher.driver.close()
    assert given_up == [True]
    assert runner.open("t").cursor.pending


async def test_a_deadline_that_was_met_elsewhere_does_nothing(bench: Bench, refused: asyncio.Event) -> None:
    gate = Gate("check", title="verdict", choices=GATE.choices, deadline=0.05)
    runner = review_loop(bench.store, interrupt_after=[gate])
    runner.invoke({}, thread_id="t")
    other = runner.open("t")
    request = other.cursor.pending[0]
    in_time = (request.deadline or 0) - 1
    with other.writing():
        watcher = await bench.watch(runner)
        async with asyncio.timeout(PATIENCE):
            await refused.wait()
        other.clock = lambda: in_time
        execute(other, Answer(request.id, "approve", step=2, actor="bob"))
    view = await watcher.until(lambda view: not view.progress.pending)
    assert (view.values["verdict"], view.progress.status) == ("approved", "completed")
    await watcher.check()
