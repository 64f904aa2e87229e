"""Pictures of whole screens: the look is part of what is promised."""

from __future__ import annotations

import dataclasses
from contextvars import copy_context
from typing import Any

import pytest
from textual.pilot import Pilot

from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.theme import Look
from hitl_tui.view.review import GRACE
from tests.support import tape as tapes
from tests.support.replay_driver import ReplayDriver, ReplayHub
from tests.ui.harness import NOW, Clock, Desk
from tests.ui.test_painting import settled


def tape_app(theme: str) -> tuple[HitlApp, ReplayDriver]:
    tape = tapes.advisor_tape()
    tape = dataclasses.replace(tape, family=tapes.family(tapes.THREAD, 2))
    driver = tape.driver(at_end=True)

    async def open_driver() -> tuple[ReplayHub, ReplayDriver]:
        return ReplayHub([driver]), driver

    return HitlApp(AppStart(open_driver, "anna"), Look(theme)), driver


@pytest.mark.parametrize(
    ("theme", "size", "keys", "wanted"),
    [
        ("dark", (120, 40), [], "3 added"),
        ("light", (120, 40), ["d"], "undoes it"),
        ("dark", (80, 24), [], "‹State›"),
        ("dark", (120, 40), ["left_square_bracket"], "What step 3 changed"),
        ("dark", (120, 40), ["O"], "since"),
    ],
    ids=["run-dark", "decide-light", "narrow", "past", "reader"],
)
@pytest.mark.slow
def test_screens(snap_compare: Any, theme: str, size: tuple[int, int], keys: list[str], wanted: str):
    context = copy_context()  # Textual sets variables in it, which would stay in that of the tests
    app, driver = context.run(tape_app, theme)
    clock = Clock()

    async def before(pilot: Pilot[Any]) -> None:
        it = Desk(app, pilot, driver, clock)
        await it.until(lambda: app.run_screen is not None and app.run_screen.session is not None)
        it.run.clock = clock
        it.run.now = lambda: NOW
        it.run.show_all()
        await it.shows("closure-explainer-b" if size[0] > 100 else "ann")
        await it.press(*keys)
        if "d" in keys:
            await it.shows("half a second")
            clock.advance(GRACE + 0.1)
        await it.shows(wanted)
        await settled(pilot)

    assert context.run(snap_compare, app, terminal_size=size, run_before=before)
