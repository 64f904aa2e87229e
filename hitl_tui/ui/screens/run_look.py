"""The shown value and the shown step of the run screen."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Literal

from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.tabs import TabsBar
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.ui.work import start_work
from hitl_tui.view.format import kind
from hitl_tui.view.keymap import BACK, Option
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.timeline import Direction, Place, neighbours
from hitl_tui.view.value_source import (
    MODES,
    Mode,
    lines_text,
    value_text,
)

if TYPE_CHECKING:
    from textual.geometry import Size

    from hitl_tui.ui.screens.run import RunScreen


class ShownValue:
    """Value of the selected channel at the shown step, in the form that was chosen for its kind."""

    def __init__(self, screen: RunScreen) -> None:
        self._screen = screen
        self._modes: dict[str, Mode] = {"text": "diff"}
        # The value that is shown or being loaded: session, step, channel and mode.
        self._wanted: tuple[object, ...] = ()
        self.loading = False
        self._back = 0
        self._of = ""
        self._room: Size | None = None
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

    def show_failure(self) -> None:
        """Show where the node has failed, until a value is selected."""
        self.at_failure = True
        self.show()

    def shows_failure(self, session: ViewSession) -> bool:
        """Whether it shows where a node failed or returned, instead of a value."""
        return self.at_failure and bool(session.frames[1])

    def compare_with(self, by: int) -> None:
        """Compare the value with an older or a newer version."""
        self._modes[self._kind], self.at_failure = "diff", False
        self._back = max(self._back + by, 0)
        self.show_again()

    @property
    def _kind(self) -> str:
        session = self._screen.session
        return kind(session.step_view.values.get(self._channel)) if session else ""

    @property
    def _channel(self) -> str:
        return self._screen.query_one(ChannelsPane).selected

    def show(self) -> None:
        """Update the pane for the session; do nothing if it is up to date."""
        if self._is_to_be_loaded():
            start_work(self._screen, self._load, group="value")

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
        session, channel = self._screen.session, self._channel
        if session is None or not channel:
            return False
        seen = session.revealed
        if seen is not None and (seen.channel, seen.step) != (channel, session.step_view.step):
            session.revealed = None
        if channel != self._of:
            self._of, self._back = channel, 0
        wanted = (
            session,
            session.step_view,
            channel,
            self.mode,
            session.frames[1] if self.at_failure else (),
        )
        # As many lines of code are shown as there are rows.
        room = self._screen.query_one(ValuePane).size if self.at_failure else None
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
            while self._wanted is not done and (session := self._screen.session) is not None:
                done = self._wanted
                reveal = self._screen.key_hints["look.reveal"]
                pane = self._screen.query_one(ValuePane)
                title, frames = session.frames
                if self.at_failure and frames:
                    from hitl_tui.view.frames import frame_lines

                    room = pane.scrollable_content_region
                    text = lines_text(frame_lines(frames, room.width, height=room.height), self.mode)
                    below = f"{self._screen.key_hints['look.editor']} opens it in your editor"
                    pane.show_text(text, title=sanitise_line(title, 60), below=below)
                    continue
                text = await value_text(session, self._channel, self.mode, reveal, self._back)
                if self._wanted is done:
                    pane.show_text(text)
        finally:
            self.loading = False
        if self._screen.session is not None:
            self._screen.filler.show(self._screen.session)


def next_pane(screen: RunScreen) -> None:
    """On a narrow screen show the next pane; on a wide one both versions side by side, or words only."""
    if screen.is_narrow:
        screen.show_tab(screen.query_one(TabsBar).next())
    else:
        screen.query_one(ValuePane).turn()


def next_mode(screen: RunScreen) -> None:
    """Switch to the next form of showing a value."""
    value = screen.shown_value
    value.set_mode(MODES[(MODES.index(value.mode) + 1) % len(MODES)])


def fold(screen: RunScreen, *, everything: bool) -> None:
    """Fold the part under the cursor of the value, or unfold it; keys move that cursor from then on."""
    pane = screen.query_one(ValuePane)
    if not pane.folds:
        screen.show_message("only a value with parts folds, as text or JSON", severity="warning")
        return
    focused = pane.has_focus
    pane.focus()
    if everything:
        pane.fold_all()
    elif focused:
        pane.fold()


def go(screen: RunScreen, direction: Direction) -> None:
    """Show the step next to the shown one."""
    session = screen.session
    head = session.view.head if session else None
    if session is None or head is None:
        return
    place = session.shown or (session.thread_id, head.step)
    oldest = session.view.checkpoints[0].step
    if direction == "left" and place == (session.thread_id, oldest) and oldest > 0:
        screen.command(partial(_older, screen, session, place), group="older")
        return
    screen.travel(neighbours(session.view, session.family, place, direction))


async def _older(screen: RunScreen, session: ViewSession, place: Place) -> None:
    if await session.load_older():
        screen.travel(neighbours(session.view, session.family, place, "left"))


def go_to_change(screen: RunScreen, by: Literal[-1, 1]) -> None:
    """Show the step that changed the selected channel before the shown one, or next.

    A person who decides stays at the step of the request, and sees the version before or after.
    """
    channel = screen.query_one(ChannelsPane).selected
    if screen.review.state:
        screen.shown_value.compare_with(-by)
    elif screen.session is not None and channel:
        screen.command(partial(_go_to_change, screen, screen.session, channel, by), group="change")


async def _go_to_change(screen: RunScreen, session: ViewSession, channel: str, by: Literal[-1, 1]) -> None:
    place = await session.change_beside(channel, by)
    if place is None:
        screen.show_message(f"nothing changed it {'before' if by < 0 else 'afterwards'}", channel)
    elif session is screen.session:
        screen.query_one(ChannelsPane).picked = True
        screen.travel(place)


def ask_step(screen: RunScreen, session: ViewSession) -> None:
    """Ask for a number, and show that step of the shown thread."""
    from hitl_tui.ui.screens.dialogs import Dialog, DialogField, DialogResult

    thread_id, step = session.shown or (session.thread_id, session.view.progress.head)

    async def show(typed: str) -> None:
        head = (await (await session.driver_of(thread_id)).snapshot()).progress.head
        if not typed.isdecimal() or int(typed) > head:
            screen.show_message(
                f"there is no step {sanitise_line(typed, 20)}; the newest is {head}", "Go to step", "warning"
            )
            return
        newest = thread_id == session.thread_id and int(typed) == head
        screen.travel(None if newest else (thread_id, int(typed)))

    def answered(answer: DialogResult | None) -> None:
        if answer is not None and (typed := answer.fields["step"].strip()):
            screen.command(partial(show, typed), group="change")

    options = [Option("go", "g", "show it"), BACK]
    fields = [DialogField("step", f"number, now {step}")]
    screen.app.push_screen(Dialog("Go to step", [], options, fields), answered)


def filter_channels(screen: RunScreen) -> None:
    """Ask which channels to show: by a word, or only the changed ones."""
    from hitl_tui.ui.screens.dialogs import Dialog, DialogField, DialogResult

    pane = screen.query_one(ChannelsPane)

    def answered(answer: DialogResult | None) -> None:
        if answer is not None:
            word = "" if answer.id == "all" else answer.fields["word"].strip()
            pane.filter_rows(word, only_changed=answer.id == "changed")

    options = [
        Option("word", "s", "show those"),
        Option("changed", "c", "only those that the step changed"),
        Option("all", "a", "show all"),
        BACK,
    ]
    fields = [DialogField("word", "part of the name", pane.word)]
    screen.app.push_screen(Dialog("Filter channels", [], options, fields), answered)


def go_first(screen: RunScreen) -> None:
    """Show the oldest loaded step."""
    session = screen.session
    if session and session.view.checkpoints:
        screen.travel((session.thread_id, session.view.checkpoints[0].step))
