"""The screens, a module and a style sheet each, and the sizes from which they are laid out otherwise."""

from __future__ import annotations

BREAKPOINTS: list[tuple[int, str]] = [(0, "-narrow"), (100, "-wide")]
HEIGHTS: list[tuple[int, str]] = [(0, "-low"), (16, "-tall"), (50, "-high")]
