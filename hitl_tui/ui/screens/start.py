"""Starting a thread: choose one of the known graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from hitl_tui.drivers.protocol import Hub
from hitl_tui.loading.known import KnownGraph
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.gate import decides
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.ui.work import start_work
from hitl_tui.view.cells import cells, cut_start
from hitl_tui.view.format import count, inline
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span

_KEYS: Final = (("find.go", "Start"), ("find.up find.down", "Select"), ("find.back", "Back"))
_LONGEST: Final = 200
_OPTION: Final = 40


class StartScreen(OverlayScreen):
    """Returns the graph to start a thread of, or None; letters filter by name."""

    STAYS = True
    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "start.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("find.back", "close", priority=True),
        bound("find.go", "go", priority=True),
        bound("find.up", "select(-1)", priority=True),
        bound("find.down", "select(1)", priority=True),
        bound("find.page_up", "select(-10)", priority=True),
        bound("find.page_down", "select(10)", priority=True),
    ]
    AUTO_FOCUS = "#find"

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self._hub = hub
        self._known: Sequence[KnownGraph] = ()
        self._shown: Sequence[KnownGraph] = ()
        self._loaded = False

    def compose(self) -> ComposeResult:
        yield SafeInput(id="find", placeholder="search: part of a name")
        yield LineView("places", "Known graphs")
        yield KeysBar(_KEYS)

    def on_mount(self) -> None:
        """Find the graphs."""
        view = self.query_one("#places", LineView)
        view.can_focus = False
        view.heeds_keys = True
        self._show("")
        start_work(self, self._load)

    async def _load(self) -> None:
        self._known = await self._hub.known_graphs()
        self._loaded = True
        self._show(self.query_one(Input).value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._show(event.value)

    def _show(self, query: str) -> None:
        self._shown = [graph for graph in self._known if graph.matches(query)]
        view = self.query_one("#places", LineView)
        view.cursor_row = 0 if self._shown else None
        view.set_titles("Known graphs", count(len(self._shown), "graph"))
        none = "no graph matches" if self._known else "no graph is known here" if self._loaded else "looking…"
        view.show(self._lines() or [(Span(none, "dim"),)], home=True)

    def _lines(self) -> list[Line]:
        names = [sanitise_line(graph.name, _LONGEST) for graph in self._shown]
        width = min(max(map(cells, names), default=0), self.size.width // 2)
        lines: list[Line] = []
        for graph, name in zip(self._shown, names, strict=True):
            shown, spec = cut_start(name, width), sanitise_line(str(graph.source.get("graph")), _LONGEST)
            origin = sanitise_line(graph.origin, _LONGEST)
            options = graph.source.get("options")
            given = options.items() if isinstance(options, Mapping) else ()
            inputs = [f"{sanitise_line(str(key), _OPTION)}={inline(value, _OPTION)}" for key, value in given]
            where = "  ".join(["", *inputs, *([spec] if spec != name else [])])
            gap = " " * (width - cells(shown) + 2)
            lines.append((Span(shown + gap, "name"), Span(origin), Span(where, "dim")))
        return lines

    def on_resize(self, event: events.Resize) -> None:
        """Cut the names for the width."""
        self.call_after_refresh(lambda: self._show(self.query_one(Input).value))

    @on(LineView.RowChosen)
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        event.view.cursor_row = event.row
        self.action_go()

    def action_select(self, by: int) -> None:
        """Move the cursor."""
        view = self.query_one("#places", LineView)
        if self._shown:
            view.cursor_row = min(max((view.cursor_row or 0) + by, 0), len(self._shown) - 1)
            view.reveal(view.cursor_row)

    @decides
    def action_go(self) -> None:
        """Start a thread of the selected graph."""
        at = self.query_one("#places", LineView).cursor_row
        if at is not None and at < len(self._shown):
            self.dismiss(self._shown[at])
