"""How many terminal cells a sanitised text takes, and cutting it there."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from hitl_tui.view.sanitise import is_mark

_JOINER: Final = "\u200d"


def cells(text: str) -> int:
    """The cells that a sanitised text takes in a line."""
    return len(text) if text.isascii() else sum(map(_cell, text))


@lru_cache(4096)
def _cell(char: str) -> int:
    if is_mark(char) or char == _JOINER:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, limit: int, ellipsis: str = "…") -> str:
    """The text, or its beginning and an ellipsis, in at most `limit` cells."""
    if cells(text) <= limit:
        return text
    room = limit - 1
    used = 0
    for at, char in enumerate(text):
        used += _cell(char)
        if used > room:
            return text[:at].rstrip(_JOINER) + (ellipsis if limit > 0 else "")
    return text


def cut_start(text: str, limit: int, ellipsis: str = "…") -> str:
    """The text, or an ellipsis and its end, in at most `limit` cells."""
    if cells(text) <= limit:
        return text
    room = limit - 1
    used = 0
    for at in range(len(text) - 1, -1, -1):
        used += _cell(text[at])
        if used > room:
            return ellipsis + text[at + 1 :] if limit > 0 else ""
    return text
