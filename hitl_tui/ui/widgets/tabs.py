"""Tabs for a narrow screen: which pane is shown."""

from __future__ import annotations

from typing import Final

from textual import events
from textual.message import Message

from hitl_tui.ui.widgets.lines import LineBar, ours
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.spans import Line, Span

TABS: Final = (("state", "State"), ("changed", "Changed"), ("stream", "Stream"), ("graph", "Graph"))

_OF_DEVELOPERS: Final = ("changed", "graph")


class TabsBar(LineBar):
    """One row of pane names; the screen's class `-tab-NAME` shows the pane.

    Attributes:
        reviewing: whether the panes of developers are left out.
    """

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, key: str, *, reviewing: bool = False) -> None:
        super().__init__(id="tabs")
        self._key = key
        self.reviewing = reviewing
        self.active = TABS[0][0]
        self._live = False

    def show_live(self, live: bool) -> None:
        """Show whether a pane that is hidden is being written to."""
        if live != self._live:
            self._live = live
            self.refresh()

    def show(self, name: str) -> None:
        """Mark a tab as the shown one."""
        self.active = name
        self.refresh()

    @property
    def names(self) -> list[str]:
        """The tabs to choose from."""
        return [name for name, _ in TABS if not (self.reviewing and name in _OF_DEVELOPERS)]

    def next(self) -> str:
        """Return the tab after the active one."""
        names = self.names
        return names[(names.index(self.active) + 1) % len(names)]

    def _labels(self) -> list[tuple[str, str]]:
        live = self._live and self.active != "stream"
        return [
            (name, f"{label} {UNICODE.running}" if live and name == "stream" else label)
            for name, label in TABS
            if name in self.names
        ]

    def bar(self, width: int) -> Line:
        """Return the names with the active one marked."""
        spans: list[Span] = [Span(" ")]
        for name, label in self._labels():
            text = f"‹{label}›" if name == self.active else f" {label} "
            spans.append(Span(text + " ", "title" if name == self.active else "dim"))
        return (*spans, ours(f"  {self._key} next pane", "key-off")) if self._key else tuple(spans)

    def on_click(self, event: events.Click) -> None:
        """Show the pane whose name was clicked."""
        x = 1
        for name, label in self._labels():
            if x <= event.x < x + len(label) + 3:
                self.post_message(self.Chosen(name))
                return
            x += len(label) + 3
