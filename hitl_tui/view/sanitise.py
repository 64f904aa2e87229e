"""The one sanitiser."""

from __future__ import annotations


def sanitise(text: str, *, multiline: bool = True) -> str:
    """`text` with every code point that could deceive or steer a terminal made visible."""
    raise NotImplementedError


def sanitise_line(text: str, limit: int) -> str:
    """`text` on one line, newlines as "⏎", cut to about `limit` cells; costs no more for a huge text."""
    raise NotImplementedError
