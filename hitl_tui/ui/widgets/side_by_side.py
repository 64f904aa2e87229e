"""Two values in two columns that scroll as one, what differs marked by sign and colour."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.view.cells import cells
from hitl_tui.view.diff import Pair
from hitl_tui.view.rows import wrap_line
from hitl_tui.view.spans import Line, Role, Span

_MOST = 5_000
"""Lines that are laid out; what is longer is for the value pane."""
_BEFORE = 3
"""Lines above the first difference."""


class SideBySide(LineView):
    """Pairs of lines; on a narrow screen one below the other."""

    def __init__(self) -> None:
        super().__init__("values", "Values")
        self._pairs: Sequence[Pair] = ()
        self._seeking = False

    def show_pairs(self, pairs: Sequence[Pair], *, home: bool) -> None:
        """Show these; `home` for other ones than before, which begin at their first difference."""
        self._pairs = pairs
        self._seeking = self._seeking or home
        self._lay_out()

    def _lay_out(self) -> None:
        width, height = self.scrollable_content_region.size
        if not width:
            return
        lines: list[Line] = []
        first = -1
        for pair in self._pairs[:_MOST]:
            if first < 0 and not pair.same:
                first = len(lines)
            lines += _beside(pair, width) if width >= 60 else _below(pair, width)
        if len(self._pairs) > _MOST:
            lines.append((Span(f"… {len(self._pairs) - _MOST:,} more lines", "dim"),))
        self.show(lines or [(Span("empty on both sides", "dim"),)], home=self._seeking)
        if self._seeking and first >= height - _BEFORE:
            self.scroll_to(y=first - _BEFORE, animate=False, force=True)
        self._seeking = False

    def on_resize(self, event: events.Resize) -> None:
        """Wrap anew."""
        self._lay_out()


def _beside(pair: Pair, width: int) -> list[Line]:
    half = (width - 7) // 2
    left = _rows(pair.left, half)
    right = _rows(pair.right, half)
    rows: list[Line] = []
    for at in range(max(len(left), len(right))):
        old, new = (side[at] if at < len(side) else "" for side in (left, right))
        first = at == 0
        rows.append(
            (
                *_marked("-", first and pair.left is not None, old, _role(pair, "removed"), pair.same),
                Span(" " * (half - cells(old)) + " │ ", "dim"),
                *_marked("+", first and pair.right is not None, new, _role(pair, "added"), pair.same),
            )
        )
    return rows


def _below(pair: Pair, width: int) -> list[Line]:
    if pair.same:
        return [(Span("  " + row),) for row in _rows(pair.left, width - 2)]
    rows: list[Line] = []
    for sign, text, role in (("-", pair.left, "removed"), ("+", pair.right, "added")):
        for at, row in enumerate(_rows(text, width - 2) if text is not None else ()):
            rows.append(_marked(sign, at == 0, row, _role(pair, role), False))
    return rows


def _rows(text: str | None, width: int) -> list[str]:
    return [] if text is None else list(wrap_line(text, max(width, 8)))


def _role(pair: Pair, role: str) -> Role:
    return "plain" if pair.same else "removed" if role == "removed" else "added"


def _marked(sign: str, first: bool, text: str, role: Role, same: bool) -> Line:
    """Two cells for the sign, then the text."""
    return (Span(f"{sign if first and not same else ' '} ", role), Span(text, role))
