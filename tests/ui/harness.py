"""Running the app on a recorded tape, and waiting for what a test expects instead of sleeping."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
import pytest
import textual.app
import textual.pilot
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.events import Paste
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.widgets import TextArea
from textual.worker import Worker

from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import verb
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.screens.run import RunScreen
from hitl_tui.ui.screens.run_panes import PANES
from hitl_tui.ui.theme import Look
from hitl_tui.ui.widgets.review import ReviewPane
from hitl_tui.view.review import GRACE
from hitl_tui.view.session import ViewSession
from tests.support import tape as tapes
from tests.support.replay_driver import ReplayDriver, ReplayHub

PATIENCE = 100
"""Seconds; no test gets slower by it, and a busy machine may need them."""
NOW = tapes.T0 + 20 * tapes.SECOND


_QUIET = 3
"""Rounds of the event loop without a message: what a handler has scheduled is sent in the next ones."""
_SOON = 0.25
"""Seconds for which a key press waits for workers."""
_LONGEST = 1.0
"""Seconds of processor time for which it waits for messages: a clock or an animation always sends some."""
_FRAME = 0.002
"""Seconds after which it looks again whether a frame has been drawn."""


_parsed: dict[object, list[RuleSet]] = {}
"""The style sheets parsed in this process: each app would parse the same texts again."""
_parse_rules = Stylesheet._parse_rules
_render_update = Compositor.render_update
_frames: WeakKeyDictionary[Compositor, int] = WeakKeyDictionary()
"""How many frames each compositor has drawn."""


def _parsed_once(sheet: Stylesheet, *arguments: Any, **options: Any) -> list[RuleSet]:
    key = (frozenset(sheet._variables.items()), arguments, frozenset(options.items()))
    if key not in _parsed:
        _parsed[key] = _parse_rules(sheet, *arguments, **options)
    return _parsed[key]


def _unpainted(
    compositor: Compositor, full: bool = False, screen_stack: list[Any] | None = None, simplify: bool = False
) -> Any:
    if full:
        return _counted(compositor, full, screen_stack, simplify)
    _frames[compositor] = _frames.get(compositor, 0) + 1
    visible_screen_stack.set([] if screen_stack is None else screen_stack)
    compositor._dirty_regions.clear()
    return None


def _counted(compositor: Compositor, *arguments: Any, **options: Any) -> Any:
    _frames[compositor] = _frames.get(compositor, 0) + 1
    return _render_update(compositor, *arguments, **options)


async def _handled(app: App[Any], lasting: set[Worker[Any]]) -> None:
    """Wait until no widget has a message or a call left to handle, and workers that they started have ended.

    A worker that does not end soon is added to `lasting`: it watches something, and is not waited for again.
    """
    begin, used = time.monotonic(), time.thread_time()
    quiet = 0
    while quiet < _QUIET and time.thread_time() < used + _LONGEST and app._exception is None:
        await asyncio.sleep(0)
        is_drawing = app.screen._callbacks and not app._batch_count  # as it is while the app ends
        if is_drawing and time.monotonic() < begin + PATIENCE:
            quiet = 0
            await asyncio.sleep(_FRAME)  # they are called after the next frame
            continue
        if any(_is_busy(pump) for pump in (app, *app.screen.walk_children(with_self=True))):
            quiet = 0
            continue
        quiet += 1
        working = {worker for worker in app.workers if worker.is_running} - lasting
        if working and time.monotonic() < begin + _SOON:
            quiet = 0
            await asyncio.sleep(_FRAME)
        lasting |= working if quiet else set()


def _is_busy(pump: MessagePump) -> bool:
    return not pump._message_queue.empty() or bool(pump._next_callbacks)


@asynccontextmanager
async def booted(
    app: App[Any], *, size: tuple[int, int] = (120, 40), paints: bool = False
) -> AsyncIterator[Pilot[Any]]:
    """Run an app without a terminal.

    Textual throws away each frame that it renders without a terminal, which took a third of a test's time.
    `Screen.text` renders what a test looks at.

    Args:
        paints: whether each frame is rendered all the same, for tests of painting.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", _parsed_once)
        patch.setattr(Compositor, "render_update", _counted if paints else _unpainted)

        lasting: set[Worker[Any]] = set()

        async def idle(*_: object) -> None:
            await _handled(app, lasting)

        # Textual looks at the process's CPU time every 20 ms, three times a key, for up to a second each.
        patch.setattr(textual.app, "wait_for_idle", idle)
        patch.setattr(textual.pilot, "wait_for_idle", idle)
        async with app.run_test(size=size, notifications=True) as pilot:
            yield pilot
        for error in app.caught_errors if isinstance(app, HitlApp) else ():
            raise error  # a test that expects one clears them


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
        self._frame: tuple[Compositor, int] | None = None
        self._text = ""

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
        assert self.run.card is not None
        return self.run.card

    def text(self) -> str:
        """The screen as text, row by row."""
        compositor = self.app.screen._compositor
        frame = (compositor, _frames.get(compositor, 0))
        if frame != self._frame or frame[1] == 0 or compositor._dirty_regions:
            self._frame = frame
            strips = compositor.render_strips()
            self._text = "\n".join("".join(segment.text for segment in strip) for strip in strips)
        return self._text

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
        """Press keys, after what the shown screen has still to do, such as moving the focus."""
        await self.pilot.pause()
        await self.pilot.press(*keys)

    async def paste(self, text: str) -> None:
        """Paste a text into the focused field; each key that is pressed costs a frame."""
        self.app.post_message(Paste(text))
        await self.pilot.pause()

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
        await self.shows(*words, "keys work in half")
        clock = self.run.clock
        assert isinstance(clock, Clock)

        def listens() -> bool:
            clock.advance(GRACE + 0.01)  # again, since a key that comes late begins the moment anew
            return "keys work in half" not in self.text()

        await self.until(listens, "the card listening to keys")


class Desk(Screen):
    """An app on a tape."""

    def __init__(self, app: HitlApp, pilot: Pilot[Any], driver: ReplayDriver, clock: Clock) -> None:
        super().__init__(app, pilot)
        self.driver = driver
        self.clock = clock

    async def let_pass(self, seconds: float) -> None:
        """Let seconds pass, and let the card see that they did."""
        self.clock.advance(seconds)
        self.card._tick()
        await self.pilot.pause()

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
    paints: bool = False,
) -> AsyncIterator[Screen]:
    """The app on the thread `t` of a real runner.

    Args:
        inputs: of a thread that does not exist yet; None for one that does.
        ready: what is on screen once it is open.
        paints: whether each frame is rendered, for tests of painting.
    """
    assert runner.store is not None
    hub = LocalHub(runner.store, lambda info: runner)

    async def open_driver() -> tuple[LocalHub, Driver]:
        return hub, await (hub.open("t") if inputs is None else hub.new("t", runner))

    app = HitlApp(AppStart(open_driver, "anna", inputs, False), Look(""))
    async with booted(app, size=size, paints=paints) as pilot:
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
    paints: bool = False,
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
    async with booted(app, size=size, paints=paints) as pilot:
        it = Desk(app, pilot, driver, clock)
        await it.until(lambda: app.run_screen is not None and app.run_screen.session is not None, "a session")
        it.run.clock = clock
        it.run.now = lambda: NOW
        await it.until(lambda: app.screen is it.run or ask_inputs, "the run screen")
        if ready:
            await it.shows(ready)
        yield it
