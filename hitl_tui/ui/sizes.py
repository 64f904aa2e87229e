"""The sizes of the terminal from which screens are laid out in another way."""

from __future__ import annotations

WIDE_FROM = 100
"""Columns from which panes stand side by side; below, they are tabs."""
HIGH_FROM = 50
"""Rows from which panes say more than they must."""
BREAKPOINTS: list[tuple[int, str]] = [(0, "-narrow"), (WIDE_FROM, "-wide")]
HEIGHTS: list[tuple[int, str]] = [(0, "-low"), (16, "-tall"), (HIGH_FROM, "-high")]
