"""The pane of watches above the channels: there only while there are some."""

from __future__ import annotations

from collections.abc import Sequence

from hitl_tui.drivers.history import Sample
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.view.watches import WatchedValue, watch_columns, watch_line


class WatchesPane(LineView):
    """Expressions, their values at the shown step, and how they went over the run."""

    def __init__(self) -> None:
        super().__init__("watches", "Watches")
        self.can_focus = False

    @property
    def room(self) -> int:
        """Cells of a row."""
        return self.scrollable_content_region.width

    def show_watches(
        self, watches: Sequence[WatchedValue], samples: Sequence[Sequence[Sample]], step: int
    ) -> None:
        """Show them at a step; samples as far as they are there."""
        columns = watch_columns(watches)
        lines = [
            watch_line(shown, samples[at] if at < len(samples) else (), columns, self.room)
            for at, shown in enumerate(watches)
        ]
        if lines != list(self.lines):
            self.show(lines)
        self.set_titles(f"Watches at step {step}")
