"""What a driver of a LangGraph thread keeps to; ../test_every_driver.py has what it shares with ours."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest

from hitl_tui.engine.commands import (
    COMMANDS,
    Answer,
    Cancel,
    Fork,
    Pause,
    Run,
    Start,
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
from hitl_tui.errors import AnswerRefused, HitlError, StaleWriter, UnknownThread, UsageError
from tests.drivers.langgraph.conftest import Hubs
from tests.drivers.langgraph.flows import asking
from tests.support.every_command import with_every_field_set

CANT = {
    "rollback", "rerun", "reload_graph", "configure_agents", "clear_turns", "declassify", "allow", "revoke",
    "extend_limits", "write_test",
}  # fmt: skip


pytestmark = pytest.mark.parametrize(
    "saver", ["memory", pytest.param("server", marks=pytest.mark.integration)], indirect=True
)


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


async def test_commands_that_are_refused_change_nothing(saver: Any, hubs: Hubs) -> None:
    watcher = await hubs.watch(asking(saver))
    driver = watcher.driver
    await driver.execute(Start({"items": ["in"]}))
    await watcher.run()
    before = await watcher.check()
    count = len(list(saver.list(None)))
    refused: list[tuple[Any, type[HitlError]]] = [
        (driver.execute(UpdateState({"n": 9}, expected_step=1)), StaleWriter),
        (driver.execute(UpdateState({"nonesuch": 1}, expected_step=2)), UsageError),
        (driver.execute(Fork(99, "f")), UnknownThread),
        (driver.execute(Fork(1, "t")), UsageError),
        (driver.execute(Start({"items": []}, context={"configurable": {"thread_id": "u"}})), UsageError),
    ]
    for command, error in refused:
        with pytest.raises(error):
            await command
    assert (await watcher.check()).progress == before.progress
    assert len(list(saver.list(None))) == count


async def test_a_preview_says_what_would_be_and_does_nothing(saver: Any, hubs: Hubs) -> None:
    watcher = await hubs.watch(asking(saver))
    await watcher.driver.execute(Start({"items": ["in"]}))
    await watcher.run()
    before, count = await watcher.check(), len(list(saver.list(None)))
    edit = await watcher.driver.preview(UpdateState({"n": 9}, as_node="work"))
    assert (edit.next_node, dict(edit.problems), edit.forks) == ("ask", {}, False)
    assert edit.withdraws == ("is it good?",)
    past = await watcher.driver.preview(UpdateState({"n": 9}, expected_step=1, as_node="work"))
    assert past.forks
    assert (await watcher.driver.preview(Fork(1, "f"))).repeats is not None
    assert (await watcher.check()).progress == before.progress
    assert len(list(saver.list(None))) == count


async def test_an_answer_on_a_state_that_was_not_seen_is_refused(saver: Any, hubs: Hubs) -> None:
    watcher = await hubs.watch(asking(saver))
    await watcher.driver.execute(Start({"items": []}))
    view = await watcher.run()
    request, seen = view.progress.pending[0], view.checkpoints[-1].state_hash
    unseen = Answer(request.id, "yes", request.step, "bob", "fine", b"x" * 32)
    with pytest.raises(AnswerRefused, match="another state"):
        await watcher.driver.execute(decode_command(encode_command(unseen)))
    await watcher.driver.execute(Answer(request.id, "yes", request.step, "bob", "fine", seen))
    assert (await watcher.run()).progress.status == "completed"


async def test_a_disabled_action_is_refused_with_the_reason_shown_beforehand(saver: Any, hubs: Hubs) -> None:
    watcher = await hubs.watch(asking(saver))
    driver = watcher.driver
    await driver.execute(Start({"items": []}))
    refusals = (await driver.snapshot()).refusals
    assert set(refusals) == CANT
    for kind in (kind for kind in COMMANDS if verb(kind) in CANT):
        with pytest.raises(UsageError) as refused:
            await driver.execute(with_every_field_set(kind))
        assert refused.value.hint == driver.refusal(kind) == refusals[verb(kind)] != ""
    assert (await watcher.check()).progress.head == 0


async def test_a_run_pauses_after_the_superstep_in_flight(saver: Any, hubs: Hubs) -> None:
    watcher = await hubs.watch(asking(saver))
    await watcher.driver.execute(Start({"items": []}))
    await watcher.driver.execute(Run())
    await watcher.driver.execute(Pause("ann"))
    view = await watcher.until(lambda view: view.progress.status == "waiting")
    assert view.progress.reason in ("paused", "interrupt")
    await watcher.check()


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
