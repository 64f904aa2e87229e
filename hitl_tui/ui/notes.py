"""Speaker's notes: an app of its own on a second terminal, which follows a presentation by its state file."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from hitl_tui.errors import HitlError
from hitl_tui.loading.stage_file import Script
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.theme import Look, Themed
from hitl_tui.ui.widgets.lines import LineBar, LineView, RoleScreen, ours
from hitl_tui.view.show_state import ShowFile, ShowState
from hitl_tui.view.spans import Line, Span, untrusted
from hitl_tui.view.stage import notes_lines, standing_words

_LOOK_EVERY = 0.2


class _Standing(LineBar):
    """First row: where the presentation is, and for how long it has run."""

    line: Line = ()

    def bar(self, width: int) -> Line:
        """Return the spans."""
        return self.line


class NotesScreen(RoleScreen):
    """Notes for the current stop."""

    def compose(self) -> ComposeResult:
        yield _Standing(id="header")
        yield LineView("notes", "Notes")


class NotesApp(Themed[None]):
    """Follows one presentation until it is over, or the speaker leaves.

    Args:
        file: where the presentation writes its state.
        standing: returns the status of the presented thread in its store; "" if it is unknown.
    """

    BINDINGS: ClassVar[list[BindingType]] = [bound("page.close", "quit")]
    CSS = "#header { background: $panel; } #notes { height: 1fr; }"

    def __init__(
        self, script: Script, file: ShowFile, look: Look, standing: Callable[[ShowState], str]
    ) -> None:
        super().__init__(css_path=["screens/base.tcss"])
        self._script = script
        self._file = file
        self._thread_stands = standing
        self._state: ShowState | None = None
        self.apply_look(look)

    def show_error(self, error: HitlError) -> None:
        """Ignore a theme that can't be used: the presentation itself reports it."""

    def get_default_screen(self) -> NotesScreen:
        """Return the only screen."""
        return NotesScreen()

    def on_mount(self) -> None:
        """Read the state of the presentation a few times a second."""
        self.set_interval(_LOOK_EVERY, self.look_again)
        self.call_after_refresh(self.look_again)

    def look_again(self) -> None:
        """Show the state of the presentation; its last one stays."""
        state = self._file.read()
        notes, standing = self.screen.query_one(LineView), self.screen.query_one(_Standing)
        if state is None:
            standing.line = (ours(" the presentation is over ", "badge-dim"), Span(" q leaves", "dim"))
        else:
            self._state = state
            minutes, seconds = divmod(max(int(time.time() - state.began / 1e6), 0), 60)
            words = untrusted(standing_words(self._script, state), "name")
            stands = untrusted(f"   {self._thread_stands(state)}", "warning")
            standing.line = (Span(f" {minutes}:{seconds:02}  ", "accent"), words, stands)
        standing.refresh()
        if self._state is not None:
            width = max(notes.scrollable_content_region.width, 20)
            lines = notes_lines(self._script, self._state, width)
            if lines != tuple(notes.lines):
                notes.show(lines)
