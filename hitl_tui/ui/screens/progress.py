"""Dialogs of what takes its time, as it happens: a run, then what came of it, and work in a store."""

from __future__ import annotations

import asyncio
from pathlib import PurePath
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.log.events import RunEnded
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.modal import Modal
from hitl_tui.ui.widgets.choices import Choices
from hitl_tui.ui.widgets.lines import ROLE_CLASSES, LineView
from hitl_tui.ui.work import Work, start_work
from hitl_tui.verbs.conversation import Follow
from hitl_tui.verbs.conversation import Work as StoreWork
from hitl_tui.view.format import capital
from hitl_tui.view.keymap import Option
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import untrusted

_LOOKS_EVERY: Final = 0.1
_MOST_ROWS: Final = 14
_AROUND: Final = 14
"""Rows of the screen that the dialog's rows leave free."""


class ProgressDialog(Modal[None]):
    """Shows the rows of a run until it has ended, and stays open to say what came of it.

    Args:
        shown: what runs.
        seen: the newest event before it began.
        pause: pauses it.

    Attributes:
        ended: True once the run has ended, False if the dialog was closed before that.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["progress.tcss"]
    COMPONENT_CLASSES: ClassVar[set[str]] = set(ROLE_CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = [bound("ask.back", "close")]

    def __init__(self, shown: Follow, driver: Driver, seen: int, pause: Work) -> None:
        super().__init__()
        self._shown = shown
        self._driver = driver
        self._seen = seen
        self._pause = pause
        self.ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as box:
            box.border_title = Content(sanitise(self._shown.title, multiline=False))
            yield LineView("progress-words")
            yield LineView("progress-rows")
            yield Choices(
                [
                    Option("pause", "p", "pause", "after what runs now"),
                    Option("back", "ask.back", "leave it running"),
                ]
            )

    def on_mount(self) -> None:
        """Follow the run."""
        self.query_one("#progress-words", LineView).can_focus = False
        self._say(self._shown.text)
        self.query_one(Choices).focus()
        start_work(self, self._follow)

    def finish(self, text: str, *, failed: bool) -> None:
        """Say what came of it; only closing is left to do."""
        self._say(text, failed=failed)
        for choices in self.query(Choices):
            choices.set_options([Option("back", "ask.back", "close")])
            choices.focus()

    def _say(self, words: str, *, failed: bool = False) -> None:
        line = (untrusted(words, "error" if failed else "plain"),)
        for view in self.query("#progress-words").results(LineView):  # there is none while the dialog closes
            view.show([line, ()])

    async def _follow(self) -> None:
        ended = False
        await self._show_rows()
        while not ended:
            await self._driver.changed(self._seen)
            for stamped in self._driver.events(self._seen):
                self._seen = stamped.number
                ended = ended or isinstance(stamped.event, RunEnded)
            await self._show_rows()
        self._end(watched=True)

    async def _show_rows(self) -> None:
        rows = await self._shown.progress() if self._shown.progress is not None else ()
        view = self.query_one("#progress-rows", LineView)
        view.styles.height = max(1, min(len(rows), _MOST_ROWS, self.size.height - _AROUND))
        view.show(rows, width=max((sum(len(span.text) for span in row) for row in rows), default=0))

    def _end(self, *, watched: bool) -> None:
        if not self.ended.done():
            self.ended.set_result(watched)

    def on_unmount(self) -> None:
        """Stop watching; the run continues."""
        self._end(watched=False)

    def action_close(self) -> None:
        """Close; what runs continues."""
        self.dismiss(None)

    @on(Choices.Chosen)
    def _chosen(self, event: Choices.Chosen) -> None:
        if event.option.id == "pause":
            start_work(self, self._pause)
        else:
            self.dismiss(None)


class WorkDialog(Modal[None]):
    """Shows how far some work is until it has ended, and can stop it.

    Args:
        shown: the work.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["progress.tcss"]
    COMPONENT_CLASSES: ClassVar[set[str]] = set(ROLE_CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = [bound("ask.back", "stop")]

    def __init__(self, shown: StoreWork) -> None:
        super().__init__()
        self._shown = shown
        self._done = self._of = 0
        self._stops = self._ended = False

    def report(self, done: int, of: int) -> bool:
        """Take from any thread how far it is; return whether it is to continue."""
        self._done, self._of = done, of
        return not self._stops

    @property
    def under_way(self) -> str:
        """Return what happens to the work if the user leaves; "" if it has ended."""
        if self._ended:
            return ""
        return f"{capital(self._shown.text).rstrip('…')}: {self._so_far}; {self._shown.stopping}."

    @property
    def _so_far(self) -> str:
        return f"{self._done:,} of {self._of:,}" if self._of else "it has just begun"

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as box:
            box.border_title = Content(sanitise(capital(self._shown.text), multiline=False))
            yield LineView("progress-words")
            yield Choices([Option("stop", "ask.back", "stop")])

    def on_mount(self) -> None:
        """Follow the work."""
        self.query_one("#progress-words", LineView).can_focus = False
        self.query_one(Choices).focus()
        self._show()
        self.set_interval(_LOOKS_EVERY, self._show)

    def _show(self) -> None:
        words = f"{self._so_far}; {self._shown.stopping}" if self._stops else self._so_far
        for view in self.query("#progress-words").results(LineView):  # there is none while it closes
            view.show([(untrusted(words, "plain"),), ()])

    def end(self) -> None:
        """Close, but not before a screen that was opened over this."""
        self._stops = self._ended = True
        if self.app.screen is self:
            self.dismiss(None)

    def on_screen_resume(self) -> None:
        """Close if it has ended meanwhile."""
        if self._ended:
            self.dismiss(None)

    def on_unmount(self) -> None:
        """Stop it."""
        self._stops = True

    def action_stop(self) -> None:
        """Stop it; that it ends closes this."""
        self._stops = True
        self._show()

    @on(Choices.Chosen)
    def _chosen(self) -> None:
        self.action_stop()
