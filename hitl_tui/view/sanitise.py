"""The one sanitiser: every string of a model, a tool, a file or a user goes through it before it is shown.

| code points                                                        | become                            |
|--------------------------------------------------------------------|-----------------------------------|
| C0 controls and DEL, ESC among them                                | their pictures, as `␛`, `␀`, `␡`  |
| newline, tab                                                       | kept; on one line `⏎` and `␉`     |
| carriage return before a newline                                   | dropped                           |
| C1 controls (the 8-bit CSI, OSC, ...)                              | `⟨U+009B⟩`                        |
| bidi controls, isolates and marks; line and paragraph separators   | `⟨U+202E⟩`                        |
| invisible characters: ZWSP, ZWNJ, BOM, soft hyphen, fillers, tags  | `⟨U+200B⟩`                        |
| variation selectors 15 and 16, zero-width joiner                   | kept inside an emoji, else marked |
| other variation selectors                                          | `⟨U+FE01⟩`                        |
| private use, unassigned, lone surrogates                           | `⟨U+E000⟩`                        |
| combining marks: at the start of a line; more than four in a row   | put on `◌`; cut with `⟨+9 marks⟩` |

Square brackets, ampersands and the like are kept: code that draws must not parse markup at all.
Sanitising twice changes nothing.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

_MARKS_KEPT: Final = 4

# Ranges of harmless characters; a text of only these is returned unchanged.
_CLEAN: Final = (
    "\\n\\t\\x20-\\x7e\u00a0-\u00ac\u00ae-\u02ff\u0384-\u038a\u038e-\u03a1\u03a3-\u0482\u048a-\u052f"
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2100-\u218b\u2190-\u2426\u2460-\u27ff\u2801-\u2b73"
    "\u3001-\u3029\u3041-\u3096\u30a0-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9d"
    "\U0001f300-\U0001f64f\U0001f680-\U0001f6c5"
)


_SHORT: Final = 200
_COMMON_RANGES: Final = (
    "\n\n",
    "\t\t",
    " ~",
    "\u00a1\u00ac",
    "\u00ae\u017f",
    "\u2010\u2027",
    "\u2030\u205e",
    "\u2190\u22ff",
    "\u2460\u27ff",
)
_COMMON: Final = frozenset(
    chr(code) for first, last in _COMMON_RANGES for code in range(ord(first), ord(last) + 1)
)
"""Harmless characters of most short texts; checking these needs no slowly compiled expression."""


@cache
def _suspect() -> re.Pattern[str]:
    """Return the expression that finds suspect characters; compiled for the first text that needs it."""
    return re.compile(f"[^{_CLEAN}]")


# Unicode calls them letters and marks, but they are invisible.
_INVISIBLE_LETTERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_FORBIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARK_CATEGORIES: Final = frozenset({"Mn", "Me"})
_JOINERS: Final = frozenset("\u200d\ufe0e\ufe0f")

_EMOJI: Final = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2440-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_STRAY_SELECTOR: Final = f"(?<!{_EMOJI})(?!(?<=[0-9#*])\ufe0f\u20e3)[\ufe0e\ufe0f]"
_STRAY_JOINER: Final = f"(?<!{_EMOJI})(?<![\ufe0e\ufe0f])\u200d|\u200d(?!{_EMOJI})"
_ANY_MARK: Final = "\u0301"
_FEW: Final = 32


def sanitise(text: str, *, multiline: bool = True) -> str:
    """Make every code point visible that could deceive a reader or control a terminal.

    Without `multiline`, newlines and tabs are made visible too. Never raises.
    """
    if text.isascii() and text.isprintable():
        return text
    common = len(text) <= _SHORT and _COMMON.issuperset(text)
    if not common and _suspect().search(text):
        text = _clean(text.replace("\r\n", "\n"))
    return text if multiline else text.replace("\n", "⏎").replace("\t", "␉")


def sanitise_line(text: str, limit: int) -> str:
    """Return a sanitised text on one line, newlines as "⏎", cut to about `limit` cells; cheap if huge."""
    if len(text) <= limit and text.isascii() and text.isprintable():  # true for most names and values
        return text
    # Sanitising shortens a text only where it drops a CR or cuts a run of marks.
    clean = sanitise(text[: 2 * max(limit, 0) + 16], multiline=False)
    if len(clean) <= limit and len(text) <= 2 * limit + 16:
        return clean
    cut = clean[: max(limit - 1, 0)]
    return cut.rstrip("\u200d") + "…" if limit > 0 else ""


def is_mark(char: str) -> bool:
    """Whether a character is a combining mark, which takes no cell of its own."""
    return unicodedata.category(char) in _MARK_CATEGORIES


def _clean(text: str) -> str:
    """Sanitise slowly: check each distinct character once, not each occurrence."""
    distinct = set(text)
    forbidden = {char for char in distinct if _forbidden(char)}
    text = _replace(text, forbidden - _JOINERS)
    if forbidden & _JOINERS:
        text = re.sub(_STRAY_SELECTOR, lambda match: _marker(match[0]), text)
        text = re.sub(_STRAY_JOINER, lambda match: _marker(match[0]), text)
    marks = {char for char in distinct - forbidden if is_mark(char)}
    return _tame_marks(text, marks) if marks else text


def _forbidden(char: str) -> bool:
    if char in "\n\t":
        return False
    if unicodedata.category(char) in _FORBIDDEN_CATEGORIES or char in _INVISIBLE_LETTERS:
        return True
    return (
        "\ufe00" <= char <= "\ufe0f" or "\u180b" <= char <= "\u180f" or "\U000e0100" <= char <= "\U000e01ef"
    )


def _marker(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def _replace(text: str, chars: set[str]) -> str:
    if len(chars) > _FEW:
        return text.translate({ord(char): _marker(char) for char in chars})
    for char in chars:
        text = text.replace(char, _marker(char))
    return text


def _tame_marks(text: str, marks: set[str]) -> str:
    """Cut long runs of marks, and keep a mark from combining with the character before it on screen."""
    # A class of many characters makes a slow expression, so all marks are replaced by one first.
    many = len(marks) > _FEW
    shadow = text.translate(dict.fromkeys(map(ord, marks), _ANY_MARK)) if many else text
    mark = _ANY_MARK if many else f"[{''.join(marks)}]"
    pieces: list[str] = []
    done = 0
    for match in re.finditer(f"(?m)^(?={mark})|(?<={mark}{{{_MARKS_KEPT}}}){mark}+", shadow):
        pieces += text[done : match.start()], f"⟨+{len(match[0])} marks⟩" if match[0] else "◌"
        done = match.end()
    return "".join((*pieces, text[done:]))
