"""Finds what a person may overlook in a text that they approve: look-alike letters, downloads that are run,
deletions.

The patterns are hints: no warning does not mean that a call is harmless.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span

_LONGEST: Final = 200_000
"""Most characters that are looked at."""
_MOST: Final = 4
"""Most warnings about one value."""
_SHOWN: Final = 40

_ALIKE: Final = dict(
    zip(
        "аеорсухіјѕԁһӏԛԝвкмнтАВЕКМНОРСТУХІЈЅԌԚԜαικνορτυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսցհАӀ",
        "aeopcyxijsdhlqwbkmhtABEKMHOPCTYXIJSGQWaikvoptuxyABEZHIKMNOPTYXonughAI",
        strict=True,
    )
)
"""Letters of Cyrillic, Greek and Armenian, with the Latin letters that they look like."""
_ADDRESS: Final = re.compile(r"\w://|\w@\w")
_WORD: Final = re.compile(r"[^\W_]+")
_FETCHED: Final = r"\b(?:curl|wget|fetch|iwr|irm|Invoke-WebRequest)\b"
_SHELL: Final = r"(?:sudo\s+)?(?:\S*/)?(?:ba|z|da|k|fi)?sh\b|python[\d.]*\b|perl\b|ruby\b|node\b|iex\b"
_COMMANDS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (rf"{_FETCHED}[^\n;]*\|\s*(?:{_SHELL})", "runs what it downloads"),
        (rf"(?:{_SHELL})[^\n;]*(?:<\(|\$\(|`)\s*{_FETCHED}", "runs what it downloads"),
        (r"\brm\s+(?:-\S+\s+)*-\S*[rf]|\brm\s+\S|\bunlink\s+/|\brmdir\s|\bshutil\.rmtree\b", "deletes files"),
        (r"\bfind\b[^\n|;]*\s-delete\b|\bxargs\s+rm\b|\bgit\s+clean\s+-\S*f", "deletes files"),
        (r"\bmkfs\b|\bdd\b[^\n|;]*\bof=/dev/|>\s*/dev/sd", "overwrites a disk"),
        (r"\bdrop\s+(?:table|database|schema|index|view|user|role)\b", "deletes from a database"),
        (r"\btruncate\s+(?:table\s+)?\w|\bdelete\s+from\b", "deletes from a database"),
        (r"\bgit\s+push\b[^\n;]*(?:\s--force\b|\s-f\b)|\bgit\s+reset\s+--hard\b", "overwrites commits"),
        (
            r"\b(?:kubectl|docker|podman|helm|aws|gcloud|az)\b[^\n;]*\s(?:delete|rm|prune|uninstall)\b",
            "deletes",
        ),
        (r"\bterraform\s+destroy\b", "deletes"),
    )
)
_DELETING: Final = re.compile(r"^(?:delete|remove|drop|destroy|purge|erase|wipe|truncate|unlink|rm)(?![a-z])")


def dangers(value: Any, *, commands: bool = True) -> tuple[str, ...]:
    """Return what to look at twice in a value, a few words each; () for nothing.

    Args:
        commands: whether texts may be commands, as in the arguments of a call.
    """
    found: dict[str, None] = {}
    for text in _texts(value):
        found |= dict.fromkeys(_in_letters(text))
        if commands:
            found |= dict.fromkeys(words for pattern, words in _COMMANDS if pattern.search(text))
    return tuple(found)[:_MOST]


def call_dangers(name: str, args: Any) -> tuple[str, ...]:
    """Return what to look at twice in a call of a tool: its name says what it does, too."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    deletes = ("deletes",) if _DELETING.match(snake) else ()
    return (*deletes, *(words for words in dangers((name, args)) if not (deletes and words == "deletes")))


def marked(text: str, role: Role) -> Line:
    """Return a sanitised text with its look-alike letters marked."""
    if text.isascii():
        return (Span(text, role),) if text else ()
    at = {place for start, word in _mixed(text) for place in _foreign(word, start)}
    if not at:
        return (Span(text, role),)
    spans: list[Span] = []
    start = 0
    for place in sorted(at):
        spans += [Span(text[start:place], role)] if place > start else []
        spans.append(Span(text[place], "error"))
        start = place + 1
    return (*spans, *([Span(text[start:], role)] if start < len(text) else []))


def _in_letters(text: str) -> Iterator[str]:
    if text.isascii():
        return
    for _, word in _mixed(text):
        letters = list(dict.fromkeys(word[at] for at in _foreign(word, 0)))
        names = ", ".join(f"{letter} is {_script(letter)}" for letter in letters[:2])
        yield f"look-alike letters in “{sanitise_line(word, _SHOWN)}”: {names}"


def _mixed(text: str) -> Iterator[tuple[int, str]]:
    """Yield words that mix Latin letters with others that look like them, and addresses of the others."""
    for match in _WORD.finditer(text):
        word, start, end = match[0], match.start(), match.end()
        if word.isascii() or not (alike := _foreign(word, 0)):
            continue
        mixes = any(letter.isascii() and letter.isalpha() for letter in word)
        in_address = text[max(start - 1, 0) : start] in ("/", "@", ".") or text[end : end + 1] == "."
        if mixes or (in_address and len(alike) == len(word) and _ADDRESS.search(text)):
            yield start, word


def _foreign(word: str, start: int) -> list[int]:
    return [start + at for at, letter in enumerate(word) if _looks_latin(letter)]


@cache
def _looks_latin(letter: str) -> bool:
    if letter.isascii():
        return False
    plain = unicodedata.normalize("NFKC", letter)
    styled = unicodedata.category(letter) in ("Lu", "Ll") and len(plain) == 1 and plain.isascii()
    return letter in _ALIKE or styled


def _script(letter: str) -> str:
    """Return the alphabet of a letter, such as "Cyrillic"."""
    return unicodedata.name(letter, "another letter").partition(" ")[0].capitalize()


def _texts(value: Any) -> Iterator[str]:
    left, seen = [value], 0
    while left and seen < _LONGEST:
        item = left.pop()
        if isinstance(item, str):
            seen += len(item)
            yield item[:_LONGEST]
        elif isinstance(item, Mapping):
            left += [*item.keys(), *item.values()]
        elif isinstance(item, Sequence):
            left += item
        seen += 1
