"""Hides private values in what is recorded or displayed about a run: errors, calls, arguments."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, quote_plus

_SHORT: Final = 4
"""A text of fewer characters is hidden only as a whole word: it may be part of another by chance."""
_FRAGMENT: Final = 12
"""Fragments of a private text from this length on are hidden, too: libraries quote its beginning or end."""
_LONGEST: Final = 200_000
"""Characters of a private text in which fragments are looked for."""
_LONGEST_PATTERN: Final = 2_000


def hiding(private: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return a function that hides private values in any JSON, text or not, however they are written there.

    Args:
        private: the values, by the name that replaces each.
    """
    hiders: list[Callable[[str], str]] | None = None

    def hidden(text: str) -> str:
        nonlocal hiders
        if hiders is None:  # built when first needed: most never are
            hiders = [
                hider for name, value in private.items() for hider in _hiders(value, f"[private: {name}]")
            ]
        for hider in hiders:
            text = hider(text)
        return text

    def hide(value: Any) -> Any:
        if isinstance(value, str):
            return hidden(value)
        if isinstance(value, Mapping):
            return {hide(key): hide(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [hide(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = json.dumps(value)
            return value if hidden(number) == number else hidden(number)
        return value

    return hide if private else lambda value: value


def _hiders(value: Any, mask: str) -> Iterator[Callable[[str], str]]:
    """Return functions that hide a value or its parts in a text, the longest first."""
    leaves = sorted(set(_leaves(value)), key=len, reverse=True)
    texts = {text for leaf in leaves for text in written_forms(leaf) if text.strip()}
    for text in sorted(texts, key=len, reverse=True):
        yield _replacing(text, mask)
    for leaf in leaves:
        if len(leaf) > _FRAGMENT:
            yield lambda text, leaf=leaf: _without_fragments(text, leaf[:_LONGEST], mask)  # type: ignore[misc]


def _replacing(text: str, mask: str) -> Callable[[str], str]:
    if len(text) >= _SHORT:
        return lambda value: value.replace(text, mask)
    own = re.escape(text)
    # The s of "node's" is no word of its own.
    alone = re.compile(rf"""(?<![\w'"]){own}(?![\w'"])|(?<='){own}(?=')|(?<="){own}(?=")""")
    return lambda value: alone.sub(mask, value)


def _without_fragments(text: str, private: str, mask: str) -> str:
    """Return a text without fragments that it shares with a long private text."""
    places: dict[str, list[int]] = {}
    for at in range(len(text) - _FRAGMENT + 1):
        places.setdefault(text[at : at + _FRAGMENT], []).append(at)
    found = {
        at
        for start in range(len(private) - _FRAGMENT + 1)
        for at in places.get(private[start : start + _FRAGMENT], ())
    }
    if not found:
        return text
    pieces, end = [], 0
    for at in sorted(found):
        if at >= end:
            pieces += [text[end:at], mask]
        end = max(end, at + _FRAGMENT)
    return "".join((*pieces, text[end:]))


@lru_cache(maxsize=256)
def written_forms(text: str) -> frozenset[str]:
    """Return the ways a text may be quoted: plain, in JSON, in JSON inside JSON, in Python, in a URL."""
    forms = {text, repr(text)[1:-1]}
    for once in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        # JSON inside JSON is quoted once more.
        forms |= {once[1:-1], json.dumps(once)[3:-3], json.dumps(once, ensure_ascii=False)[3:-3]}
    with contextlib.suppress(UnicodeEncodeError):
        forms |= {repr(text.encode())[2:-1], quote(text), quote(text, safe=""), quote_plus(text)}
    return frozenset(forms)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        yield from (line for line in value.splitlines() if line != value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str) and len(key) >= _SHORT:
                yield key
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield json.dumps(value)
