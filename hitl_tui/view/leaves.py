"""Finds the leaves in which two values differ, with their paths: `rows[2].price: 2.25 → null`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from hitl_tui.engine.state.canonical import equal
from hitl_tui.view.format import inline, kind
from hitl_tui.view.glyphs import UNICODE, Glyphs
from hitl_tui.view.rows import part_of
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Line, Span, trusted

_LOOKED_AT: Final = 20_000
"""Most parts of a value that are compared, so that a large value costs little."""
_DEEPEST: Final = 100
_VALUE: Final = 60
_PATH: Final = 60
_KEY: Final = 24
_COMPARED: Final = 20_000
_FEW: Final = 12
"""Most words that may differ in a text that counts as changed, not replaced."""
_NEAR: Final = 30
"""Characters that are shown on each side of them."""


class _Absent:
    """The type of ABSENT."""


ABSENT: Final = _Absent()
"""Stands for a value that one of the two does not have."""


class Leaf(msgspec.Struct, frozen=True):
    """A differing part, as small as possible; ABSENT if one of the values lacks it."""

    path: str
    before: Any
    after: Any


class Leaves(msgspec.Struct, frozen=True):
    """The first differing parts, and whether there are, or may be, more."""

    first: tuple[Leaf, ...]
    more: bool


class _TooLarge(Exception):
    """The limit of compared parts is reached."""


def changed_leaves(before: Any, after: Any, most: int) -> Leaves:
    """Return the first `most` parts in which two values differ, in the order of the newer one."""
    first: list[Leaf] = []
    try:
        for leaf in _Comparison().walk(before, after, "", 0):
            if len(first) == most:
                return Leaves(tuple(first), more=True)
            first.append(leaf)
    except _TooLarge:
        return Leaves(tuple(first), more=True)
    return Leaves(tuple(first), more=False)


def has_leaves(before: Any, after: Any) -> bool:
    """Whether two values are both lists or both objects, neither of them empty."""
    return kind(before) == kind(after) in ("list", "object") and bool(before) and bool(after)


class _Comparison:
    """Compares two values part by part, up to a number of parts."""

    def __init__(self) -> None:
        self._left = _LOOKED_AT

    def walk(self, before: Any, after: Any, path: str, depth: int) -> Iterator[Leaf]:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise _TooLarge
        if before is after:
            return
        if isinstance(before, dict) and isinstance(after, dict):
            yield from self._objects(before, after, path, depth)
        elif isinstance(before, list) and isinstance(after, list):
            yield from self._lists(before, after, path, depth)
        elif isinstance(before, (dict, list)) or isinstance(after, (dict, list)) or not equal(before, after):
            yield Leaf(path, before, after)

    def _objects(
        self, before: dict[str, Any], after: dict[str, Any], path: str, depth: int
    ) -> Iterator[Leaf]:
        for key, value in after.items():
            inner = _member(path, str(key))
            if key in before:
                yield from self.walk(before[key], value, inner, depth + 1)
            else:
                yield Leaf(inner, ABSENT, value)
        for key, value in before.items():
            if key not in after:
                yield Leaf(_member(path, str(key)), value, ABSENT)

    def _lists(self, before: list[Any], after: list[Any], path: str, depth: int) -> Iterator[Leaf]:
        """Compare the common start and end of both lists in place, and the items between them in order."""
        shorter = min(len(before), len(after))
        start, ends = 0, 0
        if len(before) != len(after):
            while start < shorter and self._is_same(before[start], after[start], depth):
                start += 1
            while ends < shorter - start and self._is_same(before[-1 - ends], after[-1 - ends], depth):
                ends += 1
        both = shorter - ends
        for at in range(start, both):
            yield from self.walk(before[at], after[at], f"{path}[{at}]", depth + 1)
        for at in range(both, len(after) - ends):
            yield Leaf(f"{path}[{at}]", ABSENT, after[at])
        for at in range(both, len(before) - ends):
            yield Leaf(f"{path}[{at}]", before[at], ABSENT)

    def _is_same(self, before: Any, after: Any, depth: int) -> bool:
        return next(self.walk(before, after, "", depth + 1), None) is None


def _member(path: str, key: str) -> str:
    if key.isidentifier():
        return f"{path}.{key}" if path else key
    return f"{path}[{sanitise_line(repr(key), _KEY)}]"


def leaf_lines(before: Any, after: Any, most: int, glyphs: Glyphs = UNICODE, name: str = "") -> list[Line]:
    """Return a line for each of the first `most` parts in which two values differ.

    Args:
        before: the older value.
        after: the newer value.
        most: how many lines; one more says that there are more.
        glyphs: what arrows are drawn with.
        name: the name that the paths begin with, as that of the channel.
    """
    leaves = changed_leaves(before, after, most)
    lines = [leaf_line(leaf, glyphs, name) for leaf in leaves.first]
    if leaves.more:
        lines.append((trusted(f"{glyphs.ellipsis} more differences", "dim"),))
    return lines


def leaf_line(leaf: Leaf, glyphs: Glyphs = UNICODE, name: str = "", *, signed: bool = True) -> Line:
    """Return `path: old → new`.

    Args:
        leaf: the part that differs.
        glyphs: what arrows are drawn with.
        name: the name that the path begins with, as that of the channel.
        signed: mark parts that only one of the two has with + or -, if the line has no sign of its own.
    """
    dot = "." if name and leaf.path and not leaf.path.startswith("[") else ""
    path = sanitise_line(name + dot + leaf.path, _PATH)
    title = (trusted(f"{path}: ", "name"),) if path else ()
    if leaf.before is ABSENT:
        return (*title, trusted(f"{'+ ' if signed else ''}{inline(leaf.after, _VALUE)}", "added"))
    if leaf.after is ABSENT:
        return (*title, trusted(f"{'- ' if signed else ''}{inline(leaf.before, _VALUE)}", "removed"))
    texts = kind(leaf.before) == kind(leaf.after) == "text"
    if texts and len(leaf.after) > _VALUE // 2 and (reworded := changed_words(leaf.before, leaf.after)):
        return (*title, *reworded)
    return (
        *title,
        trusted(inline(leaf.before, _VALUE), "removed"),
        Span(f" {glyphs.arrow} ", "dim"),
        trusted(inline(leaf.after, _VALUE), "added"),
    )


def changed_words(before: str, after: str, most: int = 320) -> Line:
    """Return the few words of a text that changed, between those near them; () for what is another text."""
    from hitl_tui.view.word_diff import compare_words, cut_unchanged, fragment_spans

    if max(len(before), len(after)) > _COMPARED:
        return ()
    old, new = (sanitise(text.strip().replace("\n", "⏎"), multiline=False) for text in (before, after))
    both = compare_words(old, new)
    if not both.is_alike or both.changed > _FEW:
        return ()
    return part_of(fragment_spans(cut_unchanged(both.merged, _NEAR), marked=True), 0, most)
