"""Rows above the panes: what is open, its status, whose turn it is, and what is special about it."""

from __future__ import annotations

from msgspec.structs import replace
from rich.cells import cell_len
from textual.strip import Strip

from hitl_tui.ui.widgets.lines import LineBar, ours, strip_of
from hitl_tui.view.cells import thread_name
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span, plain_text, trusted, untrusted
from hitl_tui.view.status import StatusLine

_CRUMB = " › "
_LEAST = 8
_BRAND_FROM = 72
"""Cells from which the app's name fits: whose turn it is comes first."""
_BADGES = {"accent": "badge", "ok": "badge-ok", "error": "badge-error", "removed": "badge-error"}


class HeaderBar(LineBar):
    """One line: app · graph · thread, badge, whose turn, figures."""

    def __init__(self) -> None:
        super().__init__(id="header")
        self._where: tuple[str, str] = ("", "")
        self._names_safe: tuple[str, str] = ("", "")
        self._status: StatusLine | None = None
        self.opened = True
        """Whether the person has opened the thread; it may only lie below the queue."""

    def show(self, graph: str, thread: str, status: StatusLine | None) -> None:
        """Show these; paint only if something differs."""
        if ((graph, thread), status) != (self._where, self._status):
            self._where, self._status = (graph, thread), status
            self._names_safe = (sanitise_line(graph, 60), sanitise_line(thread, 120))
            self.refresh()
            for bar in self.app.screen.query(PageHeader):
                bar.refresh()

    def bar(self, width: int) -> Line:
        """Return the spans in `width` cells; names are cut first, then the key hint."""
        return self._bar_of(self._status, width)

    def bar_elsewhere(self, width: int) -> Line:
        """Return the same over a page, without key hints: the keys of the run don't work there."""
        status = self._status
        if not self.opened:
            return (ours(" hitl-tui ", "brand"),)
        if status is not None:
            turn = status.turn.partition(" — ")[0]
            status = replace(status, turn=turn, brief=turn)
        return self._bar_of(status, width)

    def _bar_of(self, status: StatusLine | None, width: int) -> Line:
        name, nothing = ours(" hitl-tui ", "brand"), ours("", "brand")
        if status is None:
            return (name, trusted(" opening…", "dim"))
        badge = ours(f" {status.glyph} {status.word} ", _BADGES.get(status.role, "badge-dim"))
        usual = name if width >= _BRAND_FROM else nothing
        # Whose turn it is matters more than our own name.
        for brand, turn, figures in (
            (usual, status.turn, status.figures),
            (usual, status.turn, " · ".join(part for part in (status.step, status.cost) if part)),
            (usual, status.turn, status.step),
            (usual, status.brief, status.step),
            (nothing, status.turn, status.step),
            (nothing, status.brief, status.step),
            (usual, status.turn.partition(" — ")[0], status.step),
            (usual, "", status.step),
        ):
            middle: Line = (badge, untrusted(f" {turn}" if turn else "", status.role))
            right: Line = (untrusted(figures, "dim"), trusted(" "))
            taken = sum(cell_len(plain_text(part)) for part in ((brand,), middle, right))
            room = width - taken - 5
            if room >= min(18, max(cell_len(self._names_safe[1]), _LEAST)) or not turn:
                break
        left = self._names(max(room, 0))
        gap = max(1, width - taken - cell_len(plain_text(left)) - 3)
        return (brand, trusted(" "), *left, trusted("  "), *middle, trusted(" " * gap), *right)

    def _names(self, room: int) -> Line:
        graph, thread = self._names_safe
        if room < 6:
            return ()
        if not thread:
            return (untrusted(graph, "name", limit=room),)
        full = cell_len(graph) + cell_len(thread) + 3
        if full + 7 <= room:
            return (untrusted(graph, "name"), trusted(" · thread ", "dim"), untrusted(thread, "name"))
        if full <= room:
            return (untrusted(graph, "name"), trusted(" · ", "dim"), untrusted(thread, "name"))
        if cell_len(thread) > room and _CRUMB in thread:
            # Of nested threads the innermost names say most.
            return (trusted("… "), untrusted(thread.rpartition(_CRUMB)[2], "name", limit=room - 2))
        return (Span(thread_name(thread, room), "name"),)


class BannerBar(LineBar):
    """Rows below the header: what is special about the shown step, with its keys; hidden if nothing is."""

    def __init__(self) -> None:
        super().__init__(id="banner")
        self._rows: tuple[Line, ...] = ()
        self.display = False

    def show(self, rows: tuple[Line, ...], kind: str = "") -> None:
        """Show rows, or hide if there are none; `kind` "error" or "waiting" sets the colours."""
        if rows != self._rows:
            if len(rows) != len(self._rows):
                self.styles.height = max(1, len(rows))
            self._rows = rows
            self.display = bool(rows)
            self.set_class(kind == "error", "-error")
            self.set_class(kind == "waiting", "-waiting")
            self.refresh()

    def bar(self, width: int) -> Line:
        """Return the spans of the first row."""
        return self._bar(0)

    def _bar(self, y: int) -> Line:
        return (Span(" "), *self._rows[y]) if y < len(self._rows) else ()

    def render_line(self, y: int) -> Strip:
        """Draw a row."""
        return strip_of(self, self._bar(y), self.size.width, self.rich_style)


class PageHeader(LineBar):
    """Header of the run over a page that covers it: its status and whose turn it is."""

    DEFAULT_CSS = "PageHeader { background: $panel; height: 1; dock: top; }"

    def bar(self, width: int) -> Line:
        """Return the text of the covered header."""
        headers = (bar for screen in reversed(self.app.screen_stack) for bar in screen.query(HeaderBar))
        below = next(headers, None)
        return below.bar_elsewhere(width) if below is not None else (ours(" hitl-tui ", "brand"),)
