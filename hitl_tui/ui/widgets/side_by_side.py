"""Two values in two columns that scroll together; differences are marked by sign and colour."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from hitl_tui.ui.widgets.lines import TextView
from hitl_tui.view.cells import cells
from hitl_tui.view.revision import Pair
from hitl_tui.view.rows import wrap_rich
from hitl_tui.view.spans import Line, Span, plain_text, untrusted
from hitl_tui.view.word_diff import Fragments, fragment_spans

_MOST = 5_000
"""Number of lines that are laid out; the value pane shows longer values."""
_BEFORE = 3
"""Lines above the first difference."""


class SideBySide(TextView):
    """Pairs of lines; on a narrow screen one below the other."""

    def __init__(self) -> None:
        super().__init__("values", "Values")
        self._pairs: Sequence[Pair] = ()
        self._others: Sequence[tuple[str, Sequence[Pair]]] = ()
        self._seeking = False

    def show_pairs(
        self, pairs: Sequence[Pair], others: Sequence[tuple[str, Sequence[Pair]]] = (), *, home: bool
    ) -> None:
        """Show these pairs; with `home`, for new ones, scroll to their first difference.

        Args:
            others: pairs of other values, with their names, for the rows below.
        """
        self._pairs, self._others = pairs, others
        self._seeking = self._seeking or home
        self._lay_out()

    def _lay_out(self) -> None:
        width, height = self.scrollable_content_region.size
        if not width:
            return
        laid_out = beside if width >= 60 else _below
        lines: list[Line] = []
        first = -1
        for pair in self._pairs[:_MOST]:
            if first < 0 and not pair.same:
                first = len(lines)
            lines += laid_out(pair, width, marked=self.app.no_color)
        if len(self._pairs) > _MOST:
            lines.append((Span(f"… {len(self._pairs) - _MOST:,} more lines", "dim"),))
        lines = lines or [(Span("empty on both sides", "dim"),)]
        for name, others in self._others:
            lines += [(), (Span("── ", "dim"), untrusted(name, "name"))]
            lines += [row for pair in others for row in laid_out(pair, width, marked=self.app.no_color)]
        self.show(lines, home=self._seeking)
        if self._seeking and first >= height - _BEFORE:
            self.scroll_to(y=first - _BEFORE, animate=False, force=True)
        self._seeking = False

    def on_resize(self, event: events.Resize) -> None:
        """Wrap again."""
        self._lay_out()


def beside(pair: Pair, width: int, *, marked: bool) -> list[Line]:
    """Return the rows of a pair in two columns, each wrapped on its own."""
    half = (width - 7) // 2
    left, right = (_rows(parts, half, marked=marked) for parts in (pair.left, pair.right))
    signs = _sign(pair.left), _sign(pair.right)
    rows: list[Line] = []
    for at in range(max(len(left), len(right))):
        old, new = (side[at] if at < len(side) else () for side in (left, right))
        rows.append(
            (
                *_signed(signs[0], at, old),
                Span(" " * (half - cells(plain_text(old))) + " │ ", "dim"),
                *_signed(signs[1], at, new),
            )
        )
    return rows


def _below(pair: Pair, width: int, *, marked: bool) -> list[Line]:
    sides = (pair.right,) if pair.same else (pair.left, pair.right)
    return [
        _signed(_sign(parts), at, row)
        for parts in sides
        for at, row in enumerate(_rows(parts, width - 2, marked=marked))
    ]


def _rows(parts: Fragments | None, width: int, *, marked: bool) -> list[Line]:
    return [] if parts is None else wrap_rich(fragment_spans(parts, marked=marked), max(width, 8))


def _sign(parts: Fragments | None) -> Span:
    """Return the sign of a line: removed, added, or changed in part."""
    kinds = {part.kind for part in parts or ()}
    if not kinds & {"removed", "added"}:
        return Span("  ")
    if len(kinds) > 1:
        return Span("~ ", "accent")
    return Span("- ", "removed") if "removed" in kinds else Span("+ ", "added")


def _signed(sign: Span, at: int, row: Line) -> Line:
    """Return a row after two cells; in the first row of a line these hold its sign."""
    return (Span("  ") if at else sign, *row)
