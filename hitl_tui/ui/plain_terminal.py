"""Replacement characters for terminals that can't show our glyphs."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from hitl_tui.view.glyphs import plain_chars


class PlainChars(LineFilter):
    """Filter between all widgets and the terminal, so that no border or toast is forgotten."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments with other characters, none wider or narrower."""
        return [
            segment
            if segment.control or segment.text.isascii()
            else Segment(plain_chars(segment.text, self._encoding), segment.style)
            for segment in segments
        ]
