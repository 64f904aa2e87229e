"""Which value the run screen shows, and how: fetched one at a time, and only when it is another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.view.format import kind
from hitl_tui.view.value_source import Mode, value_text

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run_base import RunBase


class ShownValue:
    """The value of the selected channel at the shown step, in the way that was chosen for its kind."""

    def __init__(self, screen: RunBase) -> None:
        self._screen = screen
        self._modes: dict[str, Mode] = {"text": "diff"}
        # What is shown or on its way: session, step, channel and mode.
        self._wanted: tuple[object, ...] = ()
        self.loading = False

    @property
    def mode(self) -> Mode:
        """How it is shown."""
        return self._modes.get(self._kind, "text")

    def set_mode(self, mode: Mode) -> None:
        """Show values of this kind in another way."""
        self._modes[self._kind] = mode
        self.show()

    @property
    def _kind(self) -> str:
        session = self._screen.session
        return kind(session.step_view.values.get(self._channel)) if session else ""

    @property
    def _channel(self) -> str:
        return self._screen.query_one(ChannelsPane).selected

    def show(self) -> None:
        """Bring the pane up to the session; does nothing where that shows it already."""
        session, channel = self._screen.session, self._channel
        if session is None or not channel:
            return
        seen = session.revealed
        if seen is not None and (seen.channel, seen.step) != (channel, session.step_view.step):
            session.revealed = None
        wanted = (session, session.step_view, channel, self.mode)
        if self._wanted and all(new is old for new, old in zip(wanted, self._wanted, strict=True)):
            return
        self._wanted = wanted
        if not self.loading:
            self.loading = True
            self._screen.run_worker(self._load(), group="value", exit_on_error=False)

    def show_again(self) -> None:
        """Show it anew though nothing else has changed, as once it was revealed."""
        self.forget()
        self.show()

    def forget(self) -> None:
        """Whatever is shown is out of date."""
        self._wanted = ()

    async def _load(self) -> None:
        """Fetch what is wanted until that is what is shown: one load at a time, none for nothing."""
        try:
            done: tuple[object, ...] = ()
            while self._wanted is not done and (session := self._screen.session) is not None:
                done = self._wanted
                text = await value_text(session, self._channel, self.mode, self._screen.ways["look.reveal"])
                if self._wanted is done:
                    self._screen.query_one(ValuePane).show_text(text)
        finally:
            self.loading = False
