"""Loads the value that the value pane shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.ui.work import start_work
from hitl_tui.view.format import kind
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.value_source import MODES, Mode, ValueText, lines_text, value_text

if TYPE_CHECKING:
    from textual.geometry import Size

    from hitl_tui.engine.log.requests import Request

_ASKED: Final = "asked"
"""Kind of value that a payload counts as when a form is chosen for it."""


class ShownValue:
    """Value of the selected channel at the shown step, in the form that was chosen for its kind.

    Args:
        channels: the pane in which the channel is selected.
        pane: shows the value.
        key_hints: keys of the actions that it mentions.
        on_loaded: called whenever the pane shows what is wanted.

    Attributes:
        session: the shown thread.
    """

    def __init__(
        self,
        channels: ChannelsPane,
        pane: ValuePane,
        key_hints: Mapping[str, str],
        on_loaded: Callable[[], None],
    ) -> None:
        self._channels = channels
        self._pane = pane
        self._key_hints = key_hints
        self._on_loaded = on_loaded
        self.session: ViewSession | None = None
        self._modes: dict[str, Mode] = {"text": "diff"}
        # The value that is shown or being loaded: session, step, channel and mode.
        self._wanted: tuple[object, ...] = ()
        self.loading = False
        self._back = 0
        self._of = ""
        self._room: Size | None = None
        self.asked: tuple[Request, int] | None = None
        """Request whose payload is shown instead of a value, and the index of its current action."""
        self.at_failure = False
        """Whether it shows where a node failed or returned instead of a value, until one is selected."""

    @property
    def mode(self) -> Mode:
        """Form of the shown value."""
        return self._modes.get(self._kind, "text")

    def set_mode(self, mode: Mode) -> None:
        """Show values of this kind in another form."""
        self.at_failure = False
        self._modes[self._kind] = mode
        self.show()

    def ask_about(self, asked: tuple[Request, int] | None) -> None:
        """Show what a request asks about, while its card is open; None shows the channel again."""
        same = asked is not None and self.asked is not None and asked[0] is self.asked[0]
        if asked != self.asked if same or asked is None else True:
            self.asked = asked
            self._pane.scroll_home(animate=False)
            self.show()

    @property
    def shows_asked(self) -> bool:
        """Whether the pane shows what the request asks about."""
        return self.asked is not None and not self.loading

    def next_mode(self) -> None:
        """Show values of this kind in the next form."""
        if self.asked is not None:
            self.set_mode("text" if self.mode == "json" else "json")
            return
        self.set_mode(MODES[(MODES.index(self.mode) + 1) % len(MODES)])

    def show_failure(self) -> None:
        """Show where the node has failed, until a value is selected."""
        self.at_failure = True
        self.show()

    @property
    def shows_failure(self) -> bool:
        """Whether it shows where a node failed or returned, instead of a value."""
        return self.at_failure and self.session is not None and bool(self.session.frames[1])

    def compare_with(self, by: int) -> None:
        """Compare the value with an older or a newer version."""
        self._modes[self._kind], self.at_failure = "diff", False
        self._back = max(self._back + by, 0)
        self.show_again()

    @property
    def _kind(self) -> str:
        session = self.session
        if self.asked is not None:
            return _ASKED
        return kind(session.step_view.values.get(self._channels.selected)) if session else ""

    def show(self) -> None:
        """Update the pane for the session; do nothing if it is up to date."""
        if self._is_to_be_loaded():
            start_work(self._pane, self._load, group="value")

    async def show_first(self) -> None:
        """Update the pane for the session, so that everything else can be painted with it."""
        if self._is_to_be_loaded():
            try:
                await self._load()
            except asyncio.CancelledError:
                self.forget()
                raise

    def _is_to_be_loaded(self) -> bool:
        """Note the wanted value; return True if it differs from the shown one and nothing loads it yet."""
        session, channel = self.session, self._channels.selected
        if session is None or not channel:
            return False
        seen = session.revealed
        if seen is not None and (seen.channel, seen.step) != (channel, session.step_view.step):
            session.revealed = None
        if channel != self._of:
            self._of, self._back = channel, 0
        frames = session.frames[1] if self.at_failure else ()
        wanted = (session, session.step_view, channel, self.mode, frames, self.asked)
        # As many lines of code are shown as there are rows, and a payload is laid out for a width.
        room = self._pane.size if self.at_failure or self.asked else None
        same = self._wanted and all(new is old for new, old in zip(wanted, self._wanted, strict=True))
        if same and room == self._room:
            return False
        self._wanted, self._room = wanted, room
        begins, self.loading = not self.loading, True
        return begins

    def show_again(self) -> None:
        """Show it again though nothing else has changed, for example once it was revealed."""
        self.forget()
        self.show()

    def forget(self) -> None:
        """Mark the shown value as out of date."""
        self._wanted = ()

    async def _load(self) -> None:
        """Load the wanted value until it is the shown one: one load at a time, none if it is up to date."""
        try:
            done: tuple[object, ...] = ()
            while self._wanted is not done and (session := self.session) is not None:
                done = self._wanted
                title, frames = session.frames
                if self.asked is not None:
                    self._show_asked(*self.asked)
                    continue
                if self.at_failure and frames:
                    from hitl_tui.view.frames import frame_lines

                    room = self._pane.scrollable_content_region
                    text = lines_text(frame_lines(frames, room.width, height=room.height), self.mode)
                    below = f"{self._key_hints['look.editor']} opens it in your editor"
                    self._pane.show_text(text, title=sanitise_line(title, 60), below=below)
                    continue
                reveal = self._key_hints["look.reveal"]
                text = await value_text(session, self._channels.selected, self.mode, reveal, self._back)
                if self._wanted is done:
                    self._pane.show_text(text)
        finally:
            self.loading = False
        self._on_loaded()

    def _show_asked(self, request: Request, part: int) -> None:
        from hitl_tui.view.asked import asked_rows, asked_value
        from hitl_tui.view.value_lines import value_lines

        key = self._key_hints["look.view"]
        if self.mode == "json":
            text = ValueText("", "json", value_lines(asked_value(request, part), "json"))
            below = f"{key}: as rows"
        else:
            rows = asked_rows(request, part, self._pane.scrollable_content_region.width)
            text, below = lines_text(rows, "text"), f"{key}: as JSON"
        self._pane.show_text(text, title="What you decide about", below=below)
