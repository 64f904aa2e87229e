"""The ways to show a value."""

from __future__ import annotations

from typing import Final, Literal, get_args

Mode = Literal["text", "diff", "json", "blame"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
