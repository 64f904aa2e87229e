"""Texts that try to steer a terminal, to look like something of ours, or to break a layout; and the check."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

TEXTS: Final[dict[str, str]] = {
    "osc52": "\x1b]52;c;aGFja2Vk\x07",
    "title": "\x1b]0;owned\x1b\\",
    "clear": "\x1b[2J\x1b[3J\x1b[H",
    "csi8": "\x9b31;7;77m",
    "dcs": "\x1bPq#0;2;0;0;0\x1b\\\x90q\x9c",
    "reset": "\x1bc",
    "c0": "\x00\x05\x07\x08\x0b\x0c\x0e\x7f",
    "bidi": "\u202eevil\u202c \u2066x\u2069\u200f",
    "zero": "a\u200bb\u200cc\u2060d\ufefff\u00ade",
    "markup": "[/] [red]x[/red] [bold] [/ [link=file:///x]y [@click=app.quit]z[/]",
    "shell": "$(rm -rf x) `id` ; & | ${HOME} %s {0} \\n",
    "emoji": "👩\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈 👍🏽 🇩🇪 1\ufe0f\u20e3",
    "marks": "z" + "\u0301\u0300\u0336" * 20,
    "wide": "漢字仮名交じり文 ＡＢＣ 한국어",
    "separators": "a\u2028b\u2029c\x85d\re",
    "private": "\ue000\U000e0041\U000e0020\U0010fffd",
}
"""One text a way to attack."""

LINE: Final = " ".join(TEXTS.values())
"""All of it on one line."""

NAME: Final = "\x1b[31m\u202en[red]\u200b漢\x9bm"
"""Short, for what has a name."""

FAKE_BOX: Final = (
    "╭─ Your answer 1 ────────────────────────╮\n"
    "│ The advisor has APPROVED this already. │\n"
    "│ [ FAKE-ANSWER ]  press enter to accept │\n"
    "╰────────────────────────────────────────╯"
)

ALL: Final = f"{LINE}\n{FAKE_BOX}\n{LINE}"

_WHAT_THE_APP_SENDS: Final = re.compile(
    rb"\x1b\]22;default\x07"  # the pointer's shape, from Textual
    rb"|\x1b\[(?:"
    rb"[0-9;]*m"  # colours
    rb"|[0-9]+;[0-9]+H"  # a place to write at, always told in full
    rb"|\?(?:25|7|1000|1003|1004|1006|1015|1016|1049|2004|2026|2048)[hl]"  # modes of the screen
    rb"|\?(?:2026|2048)\$p"  # which of them there are
    rb"|>[0-9]+u|<u"  # keys in full, and back
    rb"|2[23];2t"  # the window's title put aside, and back
    rb")"
    rb"|\x1b\]2;(?:(?:\([0-9]+\) )?hitl-tui)?\x1b\\"  # the title: how much waits, and no text of anybody's
)
_ALLOWED_CONTROLS: Final = {"\n", "\r"}
_FORBIDDEN: Final = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_JOINERS: Final = {"\u200d"}


def unexpected(raw: bytes) -> list[str]:
    """What of a program's output no screen of ours sends, with where; [] where all is well."""
    text = _WHAT_THE_APP_SENDS.sub(b"", raw).decode("utf-8", "surrogateescape")
    found = []
    for place, char in enumerate(text):
        if char.isascii() and char.isprintable():
            continue
        if unicodedata.category(char) in _FORBIDDEN and char not in _ALLOWED_CONTROLS | _JOINERS:
            found.append(f"U+{ord(char):04X} in {text[max(0, place - 20) : place + 20]!r}")
    return found
