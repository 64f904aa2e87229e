"""Output of the running node as it arrives; only the new part is wrapped and painted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual import events
from textual.geometry import Size

from hitl_tui.ui.widgets.lines import TextView
from hitl_tui.view.format import cost, duration, tokens
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.inside import EMPTY, InsideView
from hitl_tui.view.rows import GrowingText, wrap_line
from hitl_tui.view.run_view import StreamView
from hitl_tui.view.spans import Line, Span, untrusted

_TOLD: Final = 500
_SHORTEST: Final = 100_000
"""Microseconds below which a node's duration is not shown."""


class StreamPane(TextView):
    """The newest stream: a line about the writer, then the text; it follows the end unless scrolled away."""

    def __init__(self) -> None:
        super().__init__("stream", "Stream")
        self._stream = StreamView()
        self._text = GrowingText(0)
        self._following = True
        self._about: Line = ()
        self._logged: Sequence[str] = ()
        self._inside: tuple[InsideView, Size] | None = None
        self.below: tuple[Line, ...] = ()
        """Lines below the text; while the node still writes, as many as there are rows for."""

    @property
    def rows_left(self) -> int:
        """Return how many rows are free below the text if nothing more is logged; one is blank."""
        return self.scrollable_content_region.height - len(self._logged) - len(self._text.rows) - 2

    def show_below(self, lines: tuple[Line, ...]) -> None:
        """Show further lines in the rows below the text."""
        if lines != self.below:
            self.below = lines
            if self._inside is None:
                self._sync()

    def show_stream(
        self,
        stream: StreamView,
        inside: InsideView = EMPTY,
        logged: Sequence[str] = (),
        *,
        past: bool = False,
    ) -> None:
        """Show a stream, appending if it only grew; for a node with branches, show what those write.

        Args:
            logged: what breakpoints have logged.
            past: whether an older step wrote it.
        """
        self.set_titles("Stream of this step" if past else "Stream")
        if not past and inside.branches and stream.serial and inside.node == stream.node:
            self._show_branches(inside)
            self._stream = stream
            return
        if self._inside is not None:
            self._inside, self._stream, self._text = None, StreamView(), GrowingText(0)
        if stream is self._stream and logged == self._logged:
            return
        self._logged = logged
        known = self._stream
        self._stream = stream
        self._about = _about(stream)
        width = self.scrollable_content_region.width
        new = stream.length - known.length
        if stream.serial != known.serial or width != self._text.width or not 0 <= new <= len(stream.text):
            self._text = GrowingText(width)
            self._text.append(stream.text)
        elif new:
            self._text.append(stream.text[-new:])
        self._sync()

    def _show_branches(self, inside: InsideView) -> None:
        """Show the newest rows of each running branch, as many as there is room for."""
        size = self.scrollable_content_region.size
        if (inside, size) == self._inside:
            return
        from hitl_tui.view.branches import branch_stream

        self._inside = (inside, size)
        self.show(branch_stream(inside, size.width, self.size.height, wrap_line))

    @property
    def _gap(self) -> int:
        """Return how many rows separate the text from the lines below it: 0 if it ends with a blank row."""
        rows = self._text.rows
        return 1 if self.below and not (rows and not rows[-1].strip()) else 0

    @property
    def _rows_below(self) -> int:
        """Return how many rows are below the text, with the blank one; a growing text may need the others."""
        rows = self._gap + len(self.below)
        return min(rows, max(self.rows_left + 1, 0)) if self._stream.live else rows

    def _sync(self) -> None:
        below = self._rows_below
        count = len(self._logged) + 1 + len(self._text.rows) + below
        self.lines = range(count)  # type: ignore[assignment]
        self.set_extent(Size(0, count))
        if self._following and not below and self.max_scroll_y > round(self.scroll_y):
            # The first time there is no scroll bar yet, and without one nothing scrolls.
            self.scroll_end(animate=False, immediate=self.show_vertical_scrollbar)
        self.repaint()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the end while the view is there, and stop after scrolling away."""
        super().watch_scroll_y(old_value, new_value)
        self._following = round(new_value) >= self.max_scroll_y

    def line(self, row: int) -> Line:
        """Return the line about the stream, or a row of it."""
        if self._inside is not None:
            return self.lines[row]
        if row < len(self._logged):
            return (
                Span(f"{UNICODE.logpoint} ", "human"),
                untrusted(self._logged[row], limit=_TOLD),
            )
        row -= len(self._logged)
        if row == 0:
            return self._about
        if row > len(self._text.rows):
            below = row - 1 - len(self._text.rows) - self._gap
            return self.below[below] if below >= 0 else ()
        text = Span(self._text.rows[row - 1])
        if self._stream.live and self._stream.serial and row == len(self._text.rows):
            return (text, Span("▌", "name"))
        return (text,)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap again for the new width."""
        if self._inside is not None:
            self._show_branches(self._inside[0])
            return
        width = self.scrollable_content_region.width
        if width != self._text.width and self._stream.serial:
            self._text = GrowingText(width)
            self._text.append(self._stream.text)
        self._sync()


def _about(stream: StreamView) -> Line:
    if not stream.serial:
        return (Span("the node's output appears here", "dim"),)
    facts = [tokens(stream.tokens_in + stream.tokens_out)] if stream.calls else []
    if stream.cost:
        facts.append(cost(stream.cost))
    if stream.duration is not None and stream.duration >= _SHORTEST:
        facts.append(duration(stream.duration))
    if not stream.live and not stream.length:
        facts.append("no output")
    # Each name once: agents often have the names of their nodes, and scripted models those of their agents.
    who, *more = dict.fromkeys(name for name in (stream.node, stream.agent, stream.model) if name)
    return (untrusted(who, "node"), untrusted("".join(f" · {fact}" for fact in (*more, *facts)), "dim"))
