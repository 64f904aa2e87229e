"""A reviewer's view: no graph, no reducers and no debugger, until they are asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hitl_tui import MemoryCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.theme import Look
from hitl_tui.verbs.actions import ACTIONS, ALL_ACTIONS, BY_ID
from hitl_tui.view.actions import Situation
from tests.support.flows import review_loop
from tests.ui.harness import Screen, booted


@asynccontextmanager
async def opened(size: tuple[int, int] = (120, 40), *, reviewing: bool = True) -> AsyncIterator[Screen]:
    """The app on a thread that is paused after its first node."""
    store = MemoryCheckpointer()
    runner = review_loop(store, interrupt_after=["write"])
    runner.invoke(thread_id="t")
    hub = LocalHub(store, lambda info: runner)

    async def open_driver() -> Any:
        return hub, await hub.open("t")

    app = HitlApp(AppStart(open_driver, "ann"), Look(reviewing=reviewing))
    try:
        async with booted(app, size=size) as pilot:
            it = Screen(app, pilot)
            await it.until(
                lambda: app.run_screen is not None and app.screen is app.run_screen, "the run screen"
            )
            await it.shows("Channels at step 1")
            yield it
    finally:
        await hub.close()


async def test_a_reviewer_sees_no_graph_reducers_or_debugger() -> None:
    async with opened() as it:
        text = it.text()
        assert "draft 1" in text
        for words in ("Graph", "reducer", "overwrite", "What step 1 changed", "Step ", "Break", "to step or"):
            assert words not in text
        assert "c Continue" in text
        assert "press c to continue" in text


async def test_the_key_shows_all_of_it_and_hides_it_again() -> None:
    async with opened() as it:
        await it.press("f2")
        await it.shows("Graph", "reducer", "What step 1 changed", "s Step", "b Break")
        await it.press("f2")
        await it.gone("What step 1 changed")
        assert "reducer" not in it.text()


async def test_a_developer_sees_what_was_always_shown() -> None:
    async with opened(reviewing=False) as it:
        await it.shows("Graph", "reducer", "What step 1 changed", "s Step", "b Break")


async def test_a_key_of_the_debugger_says_how_to_get_it() -> None:
    async with opened() as it:
        await it.press("b")
        await it.shows("for developers; F2 shows their view")
        await it.press("s")
        assert it.session.view.progress.head == 1


async def test_help_and_palette_leave_them_out_and_say_how_to_see_them() -> None:
    async with opened(size=(120, 320)) as it:
        await it.press("question_mark")
        await it.shows(
            "The keys of developers are not listed; F2 shows their view.", "Developer view", "Queue"
        )
        for words in ("Breakpoint", "makes a channel's new value", "Verify", "Run one node"):
            assert words not in it.text()
        await it.press(*"breakpoint")
        await it.shows("nothing matches")
        await it.press("escape")
        offered = [command.title for command in it.app.get_system_commands(it.app.screen)]
        assert "Developer view  (F2)" in offered
        assert not any(title.startswith(("Breakpoints", "Step  (", "Verify")) for title in offered)


@pytest.mark.slow
async def test_the_tabs_of_a_narrow_screen_are_those_of_the_view() -> None:
    async with opened(size=(80, 24)) as it:
        await it.shows("‹State›  Stream")
        await it.press("w")
        await it.shows("State  ‹Stream›", "─ Stream")
        await it.press("w", "f2")
        await it.shows("‹State›  Changed   Stream   Graph")
        await it.press("w", "f2")
        await it.shows("‹State›  Stream")


def test_what_decides_and_looks_stays() -> None:
    now = Situation(reviewing=True)
    shown = {action.id for action in ACTIONS if action.is_shown(now)}
    assert {"change.decide", "change.edit", "look.diff", "look.followed", "app.queue", "app.decided"} <= shown
    assert shown < {action.id for action in ACTIONS}
    assert all(action.is_shown(Situation()) for action in ALL_ACTIONS)
    assert BY_ID["run.break"].debugs
