"""The driver of a LangGraph thread keeps to what every driver does, and says beforehand what it can't do."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from hitl_tui.engine.commands import (
    COMMANDS,
    Answer,
    Cancel,
    Fork,
    Pause,
    Run,
    Start,
    Step,
    UpdateState,
    decode_command,
    encode_command,
    verb,
)
from hitl_tui.engine.log.events import (
    BranchEnded,
    BranchStarted,
    LedgerWritten,
    NodeStarted,
    RunEnded,
    RunStarted,
    StepCommitted,
    ThreadForked,
)
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.errors import AnswerRefused, StaleWriter, UsageError
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.flows import asking
from tests.support.every_command import with_every_field_set

CANT = {
    "rollback", "rerun", "reload_graph", "configure_agents", "clear_turns", "declassify", "allow", "revoke",
}  # fmt: skip


async def test_the_view_equals_a_fresh_one_after_every_command(saver: Any, hubs: Hubs) -> None:
    watcher = await hubs.watch(asking(saver))
    driver = watcher.driver
    assert await driver.execute(Start({"items": ["in"]}, actor="ann")) == 0
    await watcher.check()
    await watcher.step()
    assert (await watcher.check()).progress.reason == "paused"
    await driver.execute(UpdateState({"n": 5}, expected_step=1, actor="ann", note="why"))
    assert (await watcher.check()).values["n"] == 5
    with pytest.raises(StaleWriter):
        await driver.execute(UpdateState({"n": 6}, expected_step=1, actor="ann"))
    await watcher.run()
    view = await watcher.check()
    request = view.progress.pending[0]
    with pytest.raises(AnswerRefused):
        await driver.execute(Answer("another", "yes", request.step, "bob"))
    assert (await watcher.check()).ledger[-1].kind == "refused"
    assert await driver.execute(Fork(2, "f", actor="ann")) == "f"
    assert (await watcher.check()).forks == (("f", 2),)
    await driver.execute(Answer(request.id, "yes", request.step, "bob"))
    await watcher.check()
    await watcher.run()
    assert (await watcher.check()).progress.status == "completed"
    with pytest.raises(UsageError):
        await driver.execute(Cancel(actor="ann"))
    await watcher.check()


async def test_events_tell_the_story_in_order(saver: Any, hubs: Hubs) -> None:
    watcher = await hubs.watch(asking(saver))
    await watcher.driver.execute(Start({"items": []}))
    await watcher.run()
    branches = [BranchStarted, BranchEnded]
    wanted = [StepCommitted, RunStarted, NodeStarted, StepCommitted, NodeStarted, *branches, StepCommitted]
    wanted += [NodeStarted, LedgerWritten, RunEnded]
    kinds = [kind for kind, _ in groupby(type(stamped.event) for stamped in watcher.seen)]
    assert [kind for kind in kinds if kind in {*wanted, ThreadForked}] == wanted
    numbers = [stamped.number for stamped in watcher.seen]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


async def test_what_can_not_be_done_is_said_beforehand_and_refused_in_the_same_words(hubs: Hubs) -> None:
    watcher = await hubs.watch(asking(InMemorySaver()))
    driver = watcher.driver
    await driver.execute(Start({"items": []}))
    refusals = (await driver.snapshot()).refusals
    assert set(refusals) == CANT
    for kind in (kind for kind in COMMANDS if verb(kind) in CANT):
        with pytest.raises(UsageError) as refused:
            await driver.execute(with_every_field_set(kind))
        assert refused.value.hint == driver.can(kind) == refusals[verb(kind)] != ""
    assert (await watcher.check()).progress.head == 0


async def test_a_breakpoint_stops_a_run_and_the_next_one_goes_on(saver: Any, hubs: Hubs) -> None:
    watcher = await hubs.watch(asking(saver))
    await watcher.driver.execute(Start({"items": []}))
    await watcher.run(breakpoints=(Breakpoint("before", "work"),))
    assert (await watcher.check()).progress.next_node == "work"
    await watcher.run()
    assert (await watcher.check()).progress.pending


async def test_a_run_is_paused_behind_the_superstep_in_flight(saver: Any, hubs: Hubs) -> None:
    watcher = await hubs.watch(asking(saver))
    await watcher.driver.execute(Start({"items": []}))
    await watcher.driver.execute(Run())
    await watcher.driver.execute(Pause("ann"))
    view = await watcher.until(lambda view: view.progress.status == "waiting")
    assert view.progress.reason in ("paused", "interrupt")
    await watcher.check()


async def test_a_command_that_came_as_json_does_what_it_does_as_an_object(saver: Any, hubs: Hubs) -> None:
    watcher = await hubs.watch(asking(saver))
    await watcher.driver.execute(decode_command(encode_command(Start({"items": ["in"]}, "ann"))))
    ended = len(watcher.told(RunEnded))
    await watcher.driver.execute(decode_command(encode_command(Step())))
    await watcher.until(lambda _: len(watcher.told(RunEnded)) > ended)
    assert (await watcher.check()).progress.head == 1


async def test_history_state_and_updates_of_any_step(saver: Any, hubs: Hubs) -> None:
    watcher = await hubs.watch(asking(saver))
    await watcher.driver.execute(Start({"items": ["in"]}))
    await watcher.run()
    driver = watcher.driver
    assert [point.step for point in await driver.history(before=2, limit=5)] == [1, 0]
    assert [dict(await driver.state_at(step)) for step in range(3)] == [
        {"items": ["in"], "n": None},
        {"items": ["in", "plan"], "n": 1},
        {"items": ["in", "plan", "work 0", "work 1"], "n": 1},
    ]
    updates = await driver.updates(0, 2, "n")
    assert [len(updates[step]) for step in range(3)] == [0, 1, 0]
    assert await driver.written(1, 2) == {1: {"items": True, "n": True}, 2: {"items": True}}
