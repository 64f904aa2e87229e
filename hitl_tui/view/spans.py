"""Text for a screen: spans with a meaning, never a colour.

Every text in a span is harmless already: our own words come in through `trusted`, everything that a
model, a tool, a file or a user wrote through `untrusted`.
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
    "title",
    "private",
    "badge",
    "badge-ok",
    "badge-error",
    "badge-dim",
    "removed-word",
    "added-word",
]


class Span(msgspec.Struct, frozen=True):
    """A piece of one line and what it means; build it with `trusted` or `untrusted`."""

    text: str
    role: Role = "plain"


Line = tuple[Span, ...]


def trusted(text: str, role: Role = "plain") -> Span:
    """A span of our own words."""
    return Span(text, role)


def untrusted(text: str, role: Role = "plain", limit: int | None = None) -> Span:
    """A span of somebody else's words on one line; with `limit` cut to about so many cells."""
    return Span(sanitise(text, multiline=False) if limit is None else sanitise_line(text, limit), role)


def plain_text(line: Line) -> str:
    """The words of a line."""
    return "".join([span.text for span in line])
