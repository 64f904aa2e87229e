"""The real screen without a terminal: a picture of a thread, and a recording of a tape."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hitl_tui.agents.tempo import Tempo
from hitl_tui.errors import HitlError
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.pictures import Frames, Recording, screen_svg
from hitl_tui.ui.textual_private import painted_strips
from hitl_tui.ui.theme import Look

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from hitl_tui.drivers.played import PlayedThread
    from hitl_tui.drivers.protocol import Driver, Hub
    from hitl_tui.ui.screens.run import RunScreen
    from hitl_tui.view.stage import Performance

_FRAME: Final = 1 / 15
"""Least number of seconds between two pictures."""
_AT_END: Final = 2.0
_LOOK: Final = 0.01


class TapeTempo(Tempo):
    """Clock of a recording: time passes as soon as the screen is painted.

    Attributes:
        now: seconds since the beginning.
    """

    def __init__(self, pace: float) -> None:
        super().__init__()
        self.pace = pace
        self.now = 0.0
        self.paint: Callable[[], Awaitable[None]] | None = None
        self._painted = 0.0

    async def wait(self, seconds: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Let this many seconds pass, once the first picture was taken."""
        while self.held:  # noqa: ASYNC110  it is changed from anywhere
            await asyncio.sleep(_LOOK)
        self.now += max(seconds, 0.0) / self.pace
        if self.paint is not None and self.now - self._painted >= _FRAME:
            self._painted = self.now
            await self.paint()


async def picture(
    open_driver: Callable[[], Awaitable[tuple[Hub, Driver]]], look: Look, size: tuple[int, int]
) -> str:
    """Return a thread's screen as SVG."""
    app = HitlApp(AppStart(open_driver, ""), look)
    async with app.run_test(size=size) as pilot:
        screen = await _ready(app, pilot)
        return screen_svg(app, screen.session.thread_id if screen.session else "")


async def _ready(app: HitlApp, pilot: Pilot[Any]) -> RunScreen:
    """Return the run screen, once it is painted with its values."""
    while app.run_screen is None or app.run_screen.session is None or not app.run_screen.is_mounted:
        await pilot.pause(0.01)
        if app.return_value is not None and app.return_value.error is not None:
            raise app.return_value.error
        if not app.is_running:
            raise HitlError("the screen could not be made", "the log file has the details")
    await _settled(app.run_screen, pilot)
    return app.run_screen


async def _settled(screen: RunScreen, pilot: Pilot[Any]) -> None:
    if screen.session is not None:
        await screen.session.drain()
        screen.show_news(screen.session)
    await screen.shown_value.show_first()
    await pilot.pause()


async def record_tape(
    tape: PlayedThread,
    open_driver: Callable[[], Awaitable[tuple[Hub, Driver]]],
    show: Performance,
    look: Look,
    *,
    path: Path,
    size: tuple[int, int],
) -> float:
    """Play a tape on the real screen and record it; return its duration in seconds.

    It runs without waiting: the recording has the times of the tape.

    Raises:
        UsageError: the file can't be written.
    """
    tempo = tape.tempo
    assert isinstance(tempo, TapeTempo)
    tempo.held = True
    recording = Recording(path, size, show.title, lambda: tempo.now)
    frames = Frames()
    app = HitlApp(AppStart(open_driver, "", perform=lambda: show), look)
    try:
        async with app.run_test(size=size) as pilot:

            async def paint() -> None:
                if app.run_screen is not None and app.run_screen.session is not None:
                    await _settled(app.run_screen, pilot)
                    recording.write(frames.changes(painted_strips(app.screen)))

            screen = await _ready(app, pilot)
            start = tape.now()
            screen.now = lambda: start + int(tempo.now * 1e6)
            tape.now = screen.now
            await paint()
            tempo.paint, tempo.held = paint, False
            await tape.played()
            await paint()
            await tempo.wait(_AT_END * tempo.pace)
    finally:
        recording.close()
    return tempo.now
