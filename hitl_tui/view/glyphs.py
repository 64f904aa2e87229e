"""The glyphs of the screens, each with an ASCII replacement."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from hitl_tui.view.cells import cells


class Glyphs(msgspec.Struct, frozen=True):
    """One set of glyphs; each is one cell wide."""

    input: str = "○"
    node: str = "●"
    head: str = "◉"
    edit: str = "✎"
    done: str = "✔"
    waiting: str = "‖"
    failed: str = "✗"
    cancelled: str = "⊘"
    running: str = "▶"
    pending: str = "·"
    ellipsis: str = "…"
    arrow: str = "→"
    dot: str = "·"
    earlier: str = "‹"
    later: str = "›"
    across: str = "─"
    down: str = "│"
    tee: str = "├"
    corner: str = "╰"
    grew: str = "+"
    changed: str = "≠"
    same: str = "="
    tainted: str = "◆"
    breakpoint: str = "●"
    logpoint: str = "○"
    note: str = "¶"
    new: str = "•"


UNICODE = Glyphs()
ASCII = Glyphs(
    input="o",
    node="*",
    head="@",
    edit="e",
    done="v",
    waiting="|",
    failed="x",
    cancelled="/",
    running=">",
    pending=".",
    ellipsis="~",
    arrow=">",
    dot="-",
    earlier="<",
    later=">",
    across="-",
    down="|",
    tee="|",
    corner="`",
    grew="+",
    changed="#",
    same="=",
    tainted="!",
    breakpoint="*",
    logpoint="o",
    note='"',
    new="*",
)


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
    # Partial blocks are ends of scroll bars, which their colours show well enough.
    table |= dict.fromkeys(map(chr, range(0x2580, 0x25A0)), " ")
    table |= dict(zip("▁▂▃▄▅▆▇", "_.,-=+*", strict=True))  # the strips of values
    table |= _SIGNS
    twins = msgspec.structs.asdict(ASCII)
    table |= {glyph: twins[name] for name, glyph in msgspec.structs.asdict(UNICODE).items()}
    # The timeline's corner is also a border's corner, where all four look alike.
    table["╰"] = "+"
    return {ord(char): twin for char, twin in table.items()}


_TWINS: Final = _table()


def plain_chars(text: str, encoding: str = "utf-8") -> str:
    """Replace the glyphs in a text by ASCII ones of the same width.

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
