"""Terminal sizes at which the layout of the screens changes."""

from __future__ import annotations

WIDE_FROM = 100
"""Columns from which panes are side by side; below, they are tabs."""
HIGH_FROM = 50
"""Rows from which panes show more than the necessary."""
BREAKPOINTS: list[tuple[int, str]] = [(0, "-narrow"), (WIDE_FROM, "-wide")]
HEIGHTS: list[tuple[int, str]] = [(0, "-low"), (16, "-tall"), (HIGH_FROM, "-high")]
