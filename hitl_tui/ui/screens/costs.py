"""What the thread has cost, by agent, by node and by step."""

from __future__ import annotations

from pathlib import PurePath
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key

from hitl_tui.engine.costs import CostReport
from hitl_tui.ui.session import Session
from hitl_tui.ui.widgets.lines import LineView, RoleScreen
from hitl_tui.view.costs import cost_lines
from hitl_tui.view.spans import Span

_ALL = 1 << 31


class CostsScreen(RoleScreen):
    """One scrolled page; the keys that opened it close it."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["help.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Back", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
    ]

    def __init__(self, session: Session, keys: tuple[str, ...]) -> None:
        super().__init__()
        self._session = session
        self._keys = keys

    def compose(self) -> ComposeResult:
        """The page."""
        yield LineView("help", "Costs")

    def on_mount(self) -> None:
        """Fetch all steps, then write the page."""
        page = self.query_one("#help", LineView)
        page.set_titles(f"What {self._session.thread_id} has cost", "esc back")
        page.show([(Span("adding up…", "dim"),)])
        page.focus()
        self.run_worker(self._load(), exit_on_error=False)

    async def _load(self) -> None:
        points = await self._session.driver.history(limit=_ALL)
        report = CostReport(reversed(points), self._session.view.progress.uses)
        self.query_one("#help", LineView).show(list(cost_lines(report)))

    def on_key(self, event: Key) -> None:
        """The key that opened it closes it."""
        if event.key in self._keys:
            event.stop()
            self.dismiss(None)

    def action_close(self) -> None:
        """Back to the run."""
        self.dismiss(None)

    def action_scroll(self, by: int) -> None:
        """Scroll the page."""
        self.query_one("#help", LineView).scroll_relative(y=by, animate=False)
