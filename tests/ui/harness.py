"""Running the app on a recorded tape, and waiting for what a test expects instead of sleeping."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from textual.pilot import Pilot
from textual.widgets import TextArea

from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import verb
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.screens.run import RunScreen
from hitl_tui.ui.screens.run_stage import PANES
from hitl_tui.ui.theme import Look
from hitl_tui.ui.widgets.review import ReviewPane
from hitl_tui.view.review import GRACE
from hitl_tui.view.session import ViewSession
from tests.support import tape as tapes
from tests.support.replay_driver import ReplayDriver, ReplayHub

PATIENCE = 40
"""Seconds; no test gets slower by it, and a busy machine may need them."""
NOW = tapes.T0 + 20 * tapes.SECOND


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Screen:
    """An app as a test sees and uses it."""

    def __init__(self, app: HitlApp, pilot: Pilot[Any]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def run(self) -> RunScreen:
        assert self.app.run_screen is not None
        return self.app.run_screen

    @property
    def session(self) -> ViewSession:
        """What the run screen shows, once it is open."""
        assert self.run.session is not None
        return self.run.session

    @property
    def card(self) -> ReviewPane:
        """The review card, once there is one."""
        assert self.run.review.card is not None
        return self.run.review.card

    def text(self) -> str:
        """The screen as text, row by row."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)

    def said(self, name: str) -> float:
        """The share of the rows inside a pane's border that say something, or in which one may write."""
        pane = self.app.screen.query_one(f"#{name}")
        rows, region = self.text().split("\n"), pane.content_region
        field = {y for area in pane.query(TextArea) for y in range(area.region.y, area.region.bottom)}
        used = [
            y in field or bool(rows[y][region.x : region.right].strip("▁▂▃▄▅▆▇█ "))
            for y in range(region.y, region.bottom)
        ]
        return sum(used) / max(len(used), 1)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def write(self, text: str) -> None:
        """Replace what stands in the focused field."""
        await self.press("end", "ctrl+u", *text)

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait for a condition; fails with the screen's text."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"{what or 'it'} did not come about; the screen:\n{self.text()}"
            await self.pilot.pause()
            await asyncio.sleep(0.005)

    async def shows(self, *words: str) -> None:
        """Wait until all these words are on screen."""
        for word in words:
            await self.until(lambda word=word: word in self.text(), repr(word))

    async def gone(self, word: str) -> None:
        """Wait until a word is no longer on screen."""
        await self.until(lambda: word not in self.text(), f"{word!r} going away")

    async def card_listens(self, *words: str) -> None:
        """Wait until the card is open and has all these words, and let the moment to read it pass."""
        await self.shows(*words, "keys listen in half")
        assert isinstance(self.run.clock, Clock)
        self.run.clock.advance(GRACE + 0.01)
        await self.gone("keys listen in half")


class Desk(Screen):
    """An app on a tape."""

    def __init__(self, app: HitlApp, pilot: Pilot[Any], driver: ReplayDriver, clock: Clock) -> None:
        super().__init__(app, pilot)
        self.driver = driver
        self.clock = clock

    def commands(self, name: str) -> list[dict[str, Any]]:
        """The driver's commands of a verb, in order, as dicts."""
        return [
            msgspec.structs.asdict(command) for command in self.driver.commands if verb(type(command)) == name
        ]


async def nothing_is_empty(it: Screen, *panes: str) -> None:
    """Wait until no pane, or none of these, has seven of ten rows blank."""
    for name in panes or PANES:
        await it.until(lambda name=name: it.said(name) > 0.3, f"{name} being filled")


@asynccontextmanager
async def live(
    runner: GraphRunner,
    *,
    inputs: Mapping[str, Any] | None = None,
    ready: str = "",
    size: tuple[int, int] = (120, 40),
) -> AsyncIterator[Screen]:
    """The app on the thread `t` of a real runner.

    Args:
        inputs: of a thread that does not exist yet; None for one that does.
        ready: what is on screen once it is open.
    """
    assert runner.store is not None
    hub = LocalHub(runner.store, lambda info: runner)

    async def open_driver() -> tuple[LocalHub, Driver]:
        return hub, await (hub.open("t") if inputs is None else hub.new("t", runner))

    app = HitlApp(AppStart(open_driver, "anna", inputs, False), Look(""))
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = Screen(app, pilot)
        await screen.shows("Timeline", *([ready] if ready else ()))
        yield screen
    await hub.close()


@asynccontextmanager
async def desk(
    tape: tapes.Tape | None = None,
    *,
    size: tuple[int, int] = (120, 40),
    at_end: bool = True,
    theme: str | None = None,
    look: Look | None = None,
    ready: str = "closure-explainer",
    ask_inputs: bool = False,
    **options: Any,
) -> AsyncIterator[Desk]:
    """The app on a tape, opened."""
    played = tape or tapes.advisor_tape()
    played = dataclasses.replace(played, family=tapes.family(played.begin.thread_id, 2))
    driver = played.driver(at_end=at_end, **options)
    rows = [
        tapes.summary(tapes.THREAD, None, 0, 4, status="waiting", reason="approval"),
        tapes.summary(tapes.FORK, tapes.THREAD, 2, 5, status="completed"),
    ]
    other = tapes.advisor_tape(thread_id=tapes.FORK).driver(at_end=True)
    hub = ReplayHub([driver, other], rows)

    async def open_driver() -> tuple[ReplayHub, ReplayDriver]:
        return hub, driver

    app = HitlApp(AppStart(open_driver, "anna", None, ask_inputs), look or Look(theme or ""))
    clock = Clock()
    async with app.run_test(size=size, notifications=True) as pilot:
        it = Desk(app, pilot, driver, clock)
        await it.until(lambda: app.run_screen is not None and app.run_screen.session is not None, "a session")
        it.run.clock = clock
        it.run.now = lambda: NOW
        await it.until(lambda: app.screen is it.run or ask_inputs, "the run screen")
        if ready:
            await it.shows(ready)
        yield it
