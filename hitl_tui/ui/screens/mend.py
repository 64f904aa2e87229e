"""The editor that opens by itself where a node failed before the user's eyes by what a channel holds."""

from __future__ import annotations

from textual import events
from textual.timer import Timer

from hitl_tui.ui.screens.edit import EditScreen
from hitl_tui.ui.widgets.sending import GRACE


class MendScreen(EditScreen):
    """The editor, opened by itself: it takes no keys until those meant for the run have stopped coming."""

    AUTO_FOCUS = ""

    quiet = GRACE
    """Seconds without a key after which the editor takes them."""
    _timer_of_keys: Timer | None = None

    def on_mount(self) -> None:
        """Wait until no key comes."""
        self.then = "Applied, the run goes on."
        self._wait()

    def on_key(self, event: events.Key) -> None:
        """A letter that nothing had the focus to take."""
        if self.focused is None and event.is_printable:
            event.stop()
            self._wait()

    def _wait(self) -> None:
        if self._timer_of_keys is not None:
            self._timer_of_keys.stop()
        self._timer_of_keys = self.set_timer(self.quiet, self._listen)

    def _listen(self) -> None:
        if self.focused is None and self.is_current:
            self.query_one("#editor").focus()
