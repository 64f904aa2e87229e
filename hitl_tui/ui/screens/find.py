"""Search in the open thread and its history on a screen of its own, if the panes leave no room for it."""

from __future__ import annotations

from pathlib import PurePath
from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.search import SearchPane
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span


class FindFooter(KeysBar):
    """Keys of this screen, and those for the next and the previous match afterwards."""

    def __init__(self, key_hints: tuple[str, str]) -> None:
        super().__init__((("find.go", "Go there"), ("find.up find.down", "Select"), ("find.back", "Back")))
        self.key_hints = key_hints

    def bar(self, width: int) -> Line:
        walk = Span(f"  then {self.key_hints[0]} next, {self.key_hints[1]} the one before", "dim")
        return (*super().bar(width), walk)


class FindScreen(OverlayScreen):
    """Returns a `Finding`, or None."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "find.tcss", "search.tcss"]

    def __init__(self, session: ViewSession, query: str, key_hints: tuple[str, str]) -> None:
        """`key_hints` are the keys for the next match and the previous one."""
        super().__init__()
        self._search = SearchPane(session, query)
        self._key_hints = key_hints

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield self._search
        yield FindFooter(self._key_hints)

    @on(SearchPane.Chosen)
    def _chosen(self, event: SearchPane.Chosen) -> None:
        self.dismiss(event.finding)

    @on(SearchPane.Left)
    def _left(self) -> None:
        self.dismiss(None)
