"""Channels in a few lines of plain text, as `print` shows a state or a result."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from hitl_tui.engine.log.events import PRIVATE

_MOST = 40
"""Channels."""
_LONGEST = 100
"""Characters of a value."""


def channel_lines(values: Mapping[str, Any], private: Collection[str] = ()) -> Iterator[str]:
    """Return a line per channel: its name and its value as JSON, shortened.

    Args:
        private: channels whose values are not shown.
    """
    shown = list(values)[:_MOST]
    width = max(map(len, shown), default=0)
    for name in shown:
        value = repr(PRIVATE) if name in private else _value(values[name])
        yield f"  {name:{width}}  {value}"
    if left := len(values) - len(shown):
        yield f"  … and {left} more"


def printable(text: str) -> str:
    """Escape what a terminal would interpret."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _cut(msgspec.json.encode(value[:_LONGEST]).decode(), more=len(value) > _LONGEST)
    if isinstance(value, (list, tuple)):
        inside = f": {_cut(_begin(value))}" if value else ""
        return f"list of {len(value)}{inside}"
    return _cut(msgspec.json.encode(value).decode())


def _begin(value: Any) -> str:
    """Write the beginning of a list as JSON, up to what is shown."""
    return msgspec.json.encode(list(value[:_LONGEST])).decode()


def _cut(text: str, *, more: bool = False) -> str:
    text = printable(text)
    return f"{text[: _LONGEST - 1]}…" if more or len(text) > _LONGEST else text
