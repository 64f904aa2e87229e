"""A page over the run screen: lines that are fetched once and read, scrolled, closed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePath
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Key

from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.keys_bar import KeysBar
from hitl_tui.ui.widgets.lines import LineView, RoleScreen
from hitl_tui.view.spans import Line, Span


class PageFooter(KeysBar):
    """The keys of a page."""

    entries = (("page.close", "Back"), ("list.up list.down", "Scroll"), ("list.page_down", "Page"))


class PageScreen(RoleScreen):
    """One scrolled page; the keys that opened it close it.

    Args:
        load: fetches the lines.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["help.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [bound("page.close", "close")]

    def __init__(
        self, title: str, load: Callable[[], Awaitable[Sequence[Line]]], keys: tuple[str, ...]
    ) -> None:
        super().__init__()
        self._title = title
        self._load = load
        self._keys = keys

    def compose(self) -> ComposeResult:
        """The page."""
        yield LineView("help", self._title)
        yield PageFooter()

    def on_mount(self) -> None:
        """Fetch the lines."""
        page = self.query_one("#help", LineView)
        page.show([(Span("looking…", "dim"),)])
        page.focus()
        self.run_worker(self._fill(), exit_on_error=False)

    async def _fill(self) -> None:
        lines = await self._load()
        self.query_one("#help", LineView).show(list(lines))

    def on_key(self, event: Key) -> None:
        """The key that opened it closes it."""
        if event.key in self._keys:
            event.stop()
            self.dismiss(None)

    def action_close(self) -> None:
        """Back to the run."""
        self.dismiss(None)
