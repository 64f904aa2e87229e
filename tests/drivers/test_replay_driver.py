"""The replay driver: events come when they are released, commands are noted."""

from __future__ import annotations

import asyncio

import pytest

from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.engine.commands import Answer, Step, UpdateState
from hitl_tui.errors import StaleWriter, UnknownThread
from tests.support import tape as tapes
from tests.support.replay_driver import ReplayHub


async def test_events_come_as_they_are_released() -> None:
    driver = tapes.advisor_tape().driver()
    seam: Driver = driver
    assert seam.events(0) == ()
    waiting = asyncio.create_task(seam.changed(0))
    await asyncio.sleep(0)
    driver.advance(2)
    await asyncio.wait_for(waiting, 1)
    assert [stamped.number for stamped in seam.events(0)] == [1, 2]
    driver.advance_all()
    assert driver.left == 0
    assert seam.events(3)[0].number == 4


async def test_commands_are_noted_and_answered() -> None:
    driver = tapes.advisor_tape().driver(at_end=True, results={"update_state": StaleWriter("moved")})
    assert await driver.execute(Answer("req-1", "accept", step=4, actor="ann")) == 5
    with pytest.raises(StaleWriter):
        await driver.execute(UpdateState({"latest_draft": "x"}, expected_step=3))
    assert driver.commands == [
        Answer("req-1", "accept", step=4, actor="ann"),
        UpdateState({"latest_draft": "x"}, expected_step=3),
    ]


async def test_a_driver_that_follows_plays_the_next_run() -> None:
    driver = tapes.advisor_tape().driver(follow=True)
    await driver.execute(Step())
    assert driver.left == 0


async def test_past_steps_come_from_the_tape() -> None:
    tape = tapes.advisor_tape()
    driver = tape.driver()
    assert [point.step for point in await driver.history(before=3, limit=2)] == [2, 1]
    assert (await driver.state_at(1))["latest_draft"] == tapes.DRAFT_1
    assert len((await driver.updates(2, 2))[2]) == 3
    with pytest.raises(UnknownThread):
        await driver.state_at(9)


async def test_a_hub_opens_its_tapes() -> None:
    driver = tapes.advisor_tape().driver()
    hub: Hub = ReplayHub([driver], [tapes.summary(tapes.THREAD, None, -1, 4, status="waiting")])
    assert await hub.open(tapes.THREAD) is driver
    assert len(await hub.threads("closure")) == 1
    assert not await hub.threads("other")
    with pytest.raises(UnknownThread):
        await hub.open("other")
    assert await hub.close() == ()
    assert driver.closed
