"""What a session knows of committed steps it does not ask for again."""

from __future__ import annotations

import pytest

from hitl_tui.view.session import Recent, RecentSteps, ViewSession, weight
from tests.support import tape as tapes
from tests.support.replay_driver import ReplayHub


async def opened(*, at_end: bool):
    driver = tapes.advisor_tape().driver(at_end=at_end)
    asked: list[int] = []
    known = driver.updates

    async def counted(first: int, last: int):
        asked.extend(range(first, last + 1))
        return await known(first, last)

    driver.updates = counted
    return await ViewSession.open(ReplayHub([driver], []), driver), driver, asked


async def test_versions_of_a_run_that_was_watched_ask_for_nothing():
    session, driver, asked = await opened(at_end=False)
    driver.advance_all()
    await session.drain()
    found = await session.versions("latest_draft", 4, 2)
    assert [point.step for point, _, _ in found.found] == [3, 1]
    assert asked == []


async def test_versions_of_a_thread_that_was_opened_are_asked_for_once():
    session, _, asked = await opened(at_end=True)
    first = await session.versions("latest_draft", 4, 50)
    assert first.found
    assert sorted(asked) == sorted(set(asked))
    count = len(asked)
    assert await session.versions("latest_draft", 4, 50) == first
    assert len(asked) == count


async def test_unchanged_values_are_not_requested_again():
    session, _, asked = await opened(at_end=True)
    found = await session.versions("latest_draft", 4, 2)
    assert asked == [point.step for point, _, _ in found.found]


async def test_what_was_watched_is_what_the_driver_says():
    watched, driver, _ = await opened(at_end=False)
    driver.advance_all()
    await watched.drain()
    fetched, _, _ = await opened(at_end=True)
    for channel in watched.view.values:
        assert await watched.versions(channel, 4, 50) == await fetched.versions(channel, 4, 50)


async def test_steps_that_left_a_channel_alone_are_passed_over_however_long_ago_they_were_seen():
    recent = RecentSteps()
    update = next(one for one in tapes.advisor_tape().end.updates if one.changed)
    for step in range(1_000):
        recent.note(("t", step), (update,))
    assert recent.left_alone(("t", 0), "another")
    assert not recent.left_alone(("t", 0), update.channel)
    assert recent.updates(("t", 0)) is None
    assert recent.updates(("t", 999)) == (update,)


def test_of_large_values_only_the_newest_are_kept():
    recent: Recent[int, str] = Recent(64)
    for number in range(64):
        recent.keep(number, "x", 1_000)
    assert recent.find(0) == "x"
    for number in (100, 101, 102):
        recent.keep(number, "x", 20_000_000)
    assert [recent.find(number) for number in (0, 100, 101, 102)] == [None, None, None, "x"]
    recent.keep(102, "y", 1_000)
    recent.keep(103, "z", 1_000)
    assert (recent.find(102), recent.find(103)) == ("y", "z")


def test_the_weight_of_a_value_is_about_its_bytes():
    assert weight("x" * 5_000_000) == pytest.approx(5_000_000, rel=0.01)
    assert weight([{"n": n, "name": "x" * 1_000} for n in range(5_000)]) == pytest.approx(5_500_000, rel=0.1)
    assert weight({}) == weight(None) < 100
