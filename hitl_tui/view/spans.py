"""Text for a screen, as spans with a meaning, never with a colour.

The text of a span is always safe to show: our own words enter through `trusted`; everything written by a
model, a tool, a file or a user enters through `untrusted`, which sanitises it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from hitl_tui.view.sanitise import sanitise, sanitise_line

Role = Literal[
    "plain",
    "dim",
    "name",
    "value",
    "accent",
    "ok",
    "added",
    "removed",
    "human",
    "node",
    "warning",
    "error",
    "urgent",
    "title",
    "private",
    "badge",
    "badge-ok",
    "badge-error",
    "badge-dim",
    "removed-word",
    "added-word",
    "emphasis",
    "caption",
]


class Span(msgspec.Struct, frozen=True):
    """A piece of one line and what it means; build it with `trusted` or `untrusted`."""

    text: str
    role: Role = "plain"


Line = tuple[Span, ...]


def trusted(text: str, role: Role = "plain") -> Span:
    """Return a span of our own words."""
    return Span(text, role)


def untrusted(text: str, role: Role = "plain", limit: int | None = None) -> Span:
    """Return a span of foreign text on one line, sanitised; cut to about `limit` cells if given."""
    return Span(sanitise(text, multiline=False) if limit is None else sanitise_line(text, limit), role)


def plain_text(line: Line) -> str:
    """Return the text of a line."""
    return "".join([span.text for span in line])
