"""A thread that another process runs: who holds it, what can't be done here, and that it ends."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import msgspec
import pytest

from hitl_tui.drivers.protocol import Stamped
from hitl_tui.engine.commands import Pause
from hitl_tui.engine.log.events import HolderChanged
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.screens.opening import OpeningScreen
from hitl_tui.ui.theme import Look
from hitl_tui.verbs.actions import BY_ID
from tests.support import tape as tapes
from tests.support.replay_driver import ReplayDriver, ReplayHub
from tests.support.spec import spec
from tests.ui.harness import Clock, Desk, booted, desk

pytestmark = spec("10")

HOLDER = "ben on build-7 (process 4711)"


def held_tape() -> tapes.Tape:
    """At its end, then held by somebody, then free again."""
    tape = tapes.advisor_tape()
    number = tape.end.last_event
    events = (Stamped(number + 1, HolderChanged(HOLDER)), Stamped(number + 2, HolderChanged("")))
    return dataclasses.replace(tape, begin=tape.end, events=events)


@pytest.mark.slow
async def test_the_header_says_who_runs_it_and_commands_wait_until_it_is_free():
    async with desk(held_tape(), at_end=False, size=(160, 40)) as it:
        await it.shows("your turn, press d")
        it.driver.advance()
        await it.shows(f"run by {HOLDER} — you can view, not step")
        now = it.run.situation
        for name in ("run.step", "run.continue", "change.edit", "change.decide", "run.cancel"):
            assert "ben on build-7" in BY_ID[name].disabled_reason(now), name
        for name in ("change.fork", "look.diff", "travel.back", "app.threads"):
            assert BY_ID[name].disabled_reason(now) == "", name
        for key in ("s", "c", "e", "d"):
            await it.press(key)
            await it.shows(f"{HOLDER} runs this thread; you can view, pause or fork it")
        assert "Your answer" not in it.text()
        await it.press("p")
        await it.until(lambda: it.commands("pause"))
        await it.press("left_square_bracket")
        await it.shows("Channels at step 3")
        await it.press("escape")
        it.driver.advance()
        await it.shows("your turn, press d")
        await it.press("d")
        await it.shows("Your answer")
        assert it.driver.commands == [Pause("anna", None, 10.0)]


@pytest.mark.slow
async def test_a_holder_with_a_hostile_name_is_harmless():
    tape = held_tape()
    event = Stamped(tape.events[0].number, HolderChanged("\x1b[2J\u202eeve [/]"))
    async with desk(dataclasses.replace(tape, events=(event,)), at_end=False, size=(160, 40)) as it:
        it.driver.advance()
        await it.shows("eve [/]", "you can view, not step")
        assert "\x1b" not in it.text()
        assert "\u202e" not in it.text()


async def test_a_thread_that_is_held_when_it_is_opened():
    tape = tapes.advisor_tape()
    tape = dataclasses.replace(tape, end=msgspec.structs.replace(tape.end, held_by=HOLDER))
    async with desk(tape, size=(160, 40)) as it:
        await it.shows(f"run by {HOLDER}")


@pytest.mark.parametrize("keys", [{}, {"run.step": "Z", "app.quit": "f8"}])
@pytest.mark.slow
async def test_keys_pressed_while_the_thread_is_being_opened_are_not_lost(keys: dict[str, str]):
    driver = tapes.advisor_tape().driver()
    opened = asyncio.Event()

    async def open_driver() -> tuple[ReplayHub, ReplayDriver]:
        await opened.wait()
        return ReplayHub([driver]), driver

    app = HitlApp(AppStart(open_driver, "anna", None, False), Look(keys=keys))
    async with booted(app) as pilot:
        it = Desk(app, pilot, driver, Clock())
        await it.shows("opening")
        await it.press(keys.get("run.step", "s"), *(["q"] if keys else []), "question_mark")
        assert isinstance(app.screen, OpeningScreen)
        opened.set()
        await it.until(lambda: it.commands("step"), "the step")
        await it.shows("Run one node; on a failed node, try it again", "esc Back")
        assert len(it.commands("step")) == 1


@pytest.mark.parametrize("key", ["ctrl+p", "ctrl+o"])
@pytest.mark.parametrize("late", [False, True], ids=["before the driver is there", "while it opens"])
@pytest.mark.slow
async def test_the_palette_s_key_is_kept_while_the_thread_is_being_opened(key: str, late: bool):
    reading, read = asyncio.Event(), asyncio.Event()

    class Slow(ReplayDriver):
        async def snapshot(self) -> Any:
            reading.set()
            await read.wait()
            return await super().snapshot()

    driver = Slow(tapes.advisor_tape().begin, ())
    opened = asyncio.Event()

    async def open_driver() -> tuple[ReplayHub, ReplayDriver]:
        await opened.wait()
        return ReplayHub([driver]), driver

    app = HitlApp(AppStart(open_driver, "anna", None, False), Look(keys={"app.palette": key}))
    async with booted(app) as pilot:
        it = Desk(app, pilot, driver, Clock())
        await it.shows("opening")
        if late:
            opened.set()
            await reading.wait()
        await it.press(key)
        opened.set()
        read.set()
        await it.shows("Step  (s)")


@pytest.mark.slow
async def test_q_leaves_while_the_thread_is_being_opened():
    async def never() -> tuple[ReplayHub, ReplayDriver]:
        await asyncio.Event().wait()
        raise AssertionError

    app = HitlApp(AppStart(never, "anna"))
    async with booted(app, size=(80, 24)) as pilot:
        await pilot.press("q")
        await pilot.pause()
        assert app.return_value is not None
