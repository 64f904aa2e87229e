"""Names of keys: as people write them, as Textual calls them, and as a screen shows them."""

from __future__ import annotations

import string
import unicodedata
from functools import cache
from typing import Final

from hitl_tui.suggest import did_you_mean

_RENAMED: Final = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
_NAMED: Final = frozenset(
    {
        "up", "down", "left", "right", "home", "end", "pageup", "pagedown", "insert", "delete",
        "backspace", "enter", "escape", "tab", "space", *(f"f{number}" for number in range(1, 25)),
    }
)  # fmt: skip
_MODIFIERS: Final = ("ctrl", "alt", "shift")
_SAME_AS: Final = {
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+h": "backspace",
    "ctrl+left_square_bracket": "escape",
}
_SHORT: Final = {
    "escape": "esc", "pageup": "pgup", "pagedown": "pgdn", "delete": "del", "insert": "ins",
    "up": "↑", "down": "↓", "left": "←", "right": "→",
}  # fmt: skip
_LONG: Final = {short: name for name, short in _SHORT.items()}


class NoKey(ValueError):
    """The text names no key; the message says why."""


def _name(char: str) -> str:
    """Return Textual's name of the key that types a character."""
    if char.isalnum():
        return char
    name = unicodedata.name(char, char).lower().replace("-", "_").replace(" ", "_")
    return _RENAMED.get(name, name)


_MARKS: Final = {_name(char): char for char in string.punctuation}


def parse_key(text: str) -> str:
    """Return Textual's name of the key that a text names: "?" is `question_mark`; "esc" and "↑" work too.

    Raises:
        NoKey: there is no such key, or terminals can't distinguish it from another one.
    """
    *modifiers, base = [text] if len(text) == 1 else text.split("+")
    for modifier in modifiers:
        if modifier not in _MODIFIERS:
            raise NoKey(_unknown(text, modifier, _MODIFIERS))
    base = _LONG.get(base, base)
    if len(modifiers) != len(set(modifiers)):
        raise NoKey(f"{text!r} names a modifier twice")
    if len(base) == 1 and base.isprintable() and not base.isspace():
        base = _name(base)
    elif base not in _NAMED and base not in _MARKS:
        raise NoKey(_unknown(text, base, (*_NAMED, *_MARKS)))
    if "shift" in modifiers and len(base) == 1 and base.isalpha():
        modifiers.remove("shift")
        base = base.upper()
    key = "+".join([*sorted(modifiers, key=_MODIFIERS.index), base])
    if same := _SAME_AS.get(key.lower()):
        raise NoKey(f"{text!r} is the same as {same} to a terminal")
    return key


@cache
def parsed_keys(keys: str) -> tuple[str, ...]:
    """Return Textual's names of default keys; cached for bindings, keymap and footer."""
    return tuple(parse_key(key) for key in keys.split(","))


def written(key: str) -> str:
    """Return a key as a screen shows it: `question_mark` as "?", `ctrl+p` as "^p"."""
    *modifiers, base = key.split("+")
    shown = _MARKS.get(base) or _SHORT.get(base) or (base.upper() if base[1:].isdigit() else base)
    if modifiers == ["ctrl"]:
        return f"^{shown}"
    return "+".join([*modifiers, shown])


def spelled(key: str) -> str:
    """Return a key as the settings write it and `parse_key` reads it: "ctrl+p", "?", "comma"."""
    *modifiers, base = key.split("+")
    return key if modifiers or base == "comma" else _MARKS.get(base, base)


def types_text(key: str) -> bool:
    """Whether a key writes a character into a text field."""
    return len(key) == 1 or key in _MARKS or key == "space" or ("+" not in key and key not in _NAMED)


def _unknown(text: str, part: str, known: tuple[str, ...]) -> str:
    hint = did_you_mean(part, known)
    return f"there is no key {text!r}" + (f"; {hint}" if hint else "")
