"""Text for terminals that can't show all of Unicode: our glyphs by their twins, the rest by "?"."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Final

from hitl_tui.view.cells import cells
from hitl_tui.view.glyphs import ASCII, UNICODE

_SIGNS: Final = {
    "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "×": "x", "•": "*",
    "▲": "^", "▼": "v", "◀": "<", "◂": "<", "▸": ">", "←": "<", "↑": "^", "↓": "v", "⟨": "<", "⟩": ">",
    "▌": "|", "▎": "|", "▊": "|", "▐": "|", "█": "#", "\u00a0": " ", "❭": ">", "❯": ">",
}  # fmt: skip
_ACROSS: Final = frozenset("─━═╌╍┄┅┈┉╴╶╸╺")
_DOWN: Final = frozenset("│┃║╎╏┆┇┊┋╵╷╹╻")


def _table() -> dict[int, str]:
    table = {
        char: "-" if char in _ACROSS else "|" if char in _DOWN else "+"
        for char in map(chr, range(0x2500, 0x2580))
    }
    # Parts of blocks are the ends of scroll bars, whose colours tell enough.
    table |= dict.fromkeys(map(chr, range(0x2580, 0x25A0)), " ")
    table |= _SIGNS
    table |= {getattr(UNICODE, glyph.name): getattr(ASCII, glyph.name) for glyph in fields(UNICODE)}
    # The timeline's corner is a border's too, where all four look alike.
    table["╰"] = "+"
    return {ord(char): twin for char, twin in table.items()}


_TWINS: Final = _table()


def plain_chars(text: str, encoding: str = "utf-8") -> str:
    """The text with a twin for each glyph of the screens, as wide as before.

    Args:
        encoding: what the terminal can show; any other character becomes "?".
    """
    if text.isascii():
        return text
    text = text.translate(_TWINS)
    return text if text.isascii() else "".join([_char(char, encoding) for char in text])


@lru_cache(2048)
def _char(char: str, encoding: str) -> str:
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return "?" * cells(char)
    return char
