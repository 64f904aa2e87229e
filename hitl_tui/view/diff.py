"""Compares two values line by line, at a bounded cost."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, Literal, TypeVar, overload

import msgspec

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.value_lines import JsonLines, laid_out, value_lines

_EXACT_LINES: Final = 1_000
_EXACT_PAIRS: Final = 50_000
_JSON_LINES: Final = 5_000
_DEPTH: Final = 8

T = TypeVar("T")

Opcode = tuple[bool, int, int, int, int]
"""Whether the items are equal, and their ranges in the old and in the new sequence."""


Kind = Literal["same", "added", "removed"]


class DiffLine(msgspec.Struct, frozen=True, gc=False):
    """A line of a diff, sanitised."""

    kind: Kind
    text: str


class Diff(Sequence[DiffLine]):
    """The lines of two sequences, in order, each made when it is asked for.

    Args:
        old, new: the lines.
        ranges: their equal and changed ranges, in order.
        prose: whether they are lines of a text, not of JSON.
    """

    def __init__(
        self, old: Sequence[str], new: Sequence[str], ranges: Iterable[Opcode], *, prose: bool = False
    ) -> None:
        self.prose = prose
        self._runs: list[tuple[Kind, Sequence[str], int]] = []
        self._starts = [0]
        for same, old_start, old_end, new_start, new_end in ranges:
            if same:
                self._add("same", old, old_start, old_end)
            else:
                self._add("removed", old, old_start, old_end)
                self._add("added", new, new_start, new_end)

    def _add(self, kind: Kind, lines: Sequence[str], start: int, end: int) -> None:
        if end <= start:
            return
        at = self._starts[-1]
        if self._runs and kind == "same":
            before, _, first = self._runs[-1]
            if before == kind and first + at - self._starts[-2] == start:
                self._starts[-1] += end - start
                return
        self._runs.append((kind, lines, start))
        self._starts.append(at + end - start)

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, at: int) -> DiffLine: ...
    @overload
    def __getitem__(self, at: slice) -> list[DiffLine]: ...
    def __getitem__(self, at: int | slice) -> DiffLine | list[DiffLine]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        number = at + len(self) if at < 0 else at
        kind, lines, place = self._place(number)
        return DiffLine(kind, sanitise(lines[place]))

    def _place(self, at: int) -> tuple[Kind, Sequence[str], int]:
        if not 0 <= at < len(self):
            raise IndexError(at)
        run = bisect_right(self._starts, at) - 1
        kind, lines, start = self._runs[run]
        return kind, lines, start + at - self._starts[run]

    @property
    def kinds(self) -> Sequence[Kind]:
        """The kind of each line, without computing texts."""
        return Each(self, lambda at: self._place(at)[0])

    @property
    def changed(self) -> list[int]:
        """The numbers of the changed lines."""
        runs = zip(self._runs, pairwise(self._starts), strict=True)
        return [at for (kind, _, _), ends in runs if kind != "same" for at in range(*ends)]

    @property
    def runs(self) -> Iterator[tuple[Kind, int, int]]:
        """Return runs of lines of one kind: the number of the first line, and of the one after the run."""
        for (kind, _, _), (start, end) in zip(self._runs, pairwise(self._starts), strict=True):
            yield kind, start, end


class Each(Sequence[T]):
    """A sequence with an item for each line, computed on access."""

    def __init__(self, lines: Sequence[object], make: Callable[[int], T]) -> None:
        self._lines = lines
        self._make = make

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            return [self._make(number) for number in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return self._make(at % len(self))


def text_diff(before: str, after: str) -> Diff:
    """Compare two texts."""
    old, new = _split(before), _split(after)
    return Diff(old, new, opcodes(old, new), prose=True)


def changed_lines(before: str, after: str) -> int:
    """Count the lines that were added or removed."""
    changes = opcodes(_split(before), _split(after))
    return sum(old_end - old + new_end - new for same, old, old_end, new, new_end in changes if not same)


def value_diff(before: Any, after: Any) -> Diff:
    """Compare two values: texts by `text_diff`, others by the lines of their laid-out JSON.

    Parts that both share are skipped as a whole.
    """
    if isinstance(before, str) and isinstance(after, str):
        return text_diff(before, after)
    if before is PRIVATE or after is PRIVATE:
        old, new = value_lines(before, "text"), value_lines(after, "text")
        return Diff(old, new, opcodes(old, new))
    left = laid_out(before)
    right = laid_out(after, left)
    return Diff(left, right, _Values(left, right).ranges(left, right))


class _Values:
    """Two values laid out as lines, compared part by part."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old = old
        self._new = new

    def ranges(self, old: JsonLines, new: JsonLines, i: int = 0, j: int = 0) -> Iterator[Opcode]:
        """Return the equal and changed ranges of two parts, which begin at these lines."""
        i_end, j_end = i + len(old), j + len(new)
        if not old.starts or not new.starts or not _is_alike(old.value, new.value):
            yield from self._lines(i, i_end, j, j_end)
            return
        yield True, i, i + 1, j, j + 1
        keyed = isinstance(old.value, dict)
        befores, afters = (list(value.values()) if keyed else value for value in (old.value, new.value))
        by = list if keyed else _by_value
        for same, first, end, to, to_end in opcodes(by(old.value), by(new.value)):
            if not same and (keyed or end - first != to_end - to):
                yield from self._lines(
                    i + old.starts[first], i + old.starts[end], j + new.starts[to], j + new.starts[to_end]
                )
                continue
            for at, place in zip(range(first, end), range(to, to_end), strict=True):
                begins, ends = i + old.starts[at], i + old.starts[at + 1]
                starts, stops = j + new.starts[place], j + new.starts[place + 1]
                # The last item has no comma.
                as_last = (at == len(befores) - 1) == (place == len(afters) - 1)
                if as_last and _is_same(befores[at], afters[place]):
                    yield True, begins, ends, starts, stops
                elif as_last and _is_alike(befores[at], afters[place]):
                    yield from self.ranges(old.child(at), new.child(place), begins, starts)
                else:
                    yield from self._lines(begins, ends, starts, stops)
        yield True, i_end - 1, i_end, j_end - 1, j_end

    def _lines(self, i: int, i_end: int, j: int, j_end: int) -> Iterator[Opcode]:
        """Do the same for any lines, by their texts."""
        if max(i_end - i, j_end - j) > _JSON_LINES:
            yield False, i, i_end, j, j_end
            return
        for same, first, end, to, to_end in opcodes(self._old[i:i_end], self._new[j:j_end]):
            yield same, i + first, i + end, j + to, j + to_end


def _is_same(old: Any, new: Any) -> bool:
    """Whether two parts are the same object, or scalars with equal text."""
    return old is new or (type(old) is type(new) and isinstance(old, (str, int)) and bool(old == new))


def _is_alike(old: Any, new: Any) -> bool:
    """Whether both are objects, or both are lists."""
    return any(isinstance(old, kind) and isinstance(new, kind) for kind in (dict, list))


def _by_value(value: list[Any]) -> list[Hashable]:
    """Return a key to compare by: scalars by value, lists and objects by identity, as versions share them."""
    return [id(item) if isinstance(item, (list, dict)) else (type(item), item) for item in value]


def _split(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n") if text else []


def opcodes(old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[Opcode]:
    """Return the equal and changed ranges of two sequences, in order.

    A shared beginning and end are skipped.  The rest is compared exactly if it is small, else between the
    lines that occur once in both.
    """
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    if head:
        yield True, 0, head, 0, head
    for same, i1, i2, j1, j2 in _middle(old[head:old_end], new[head:new_end]):
        yield same, head + i1, head + i2, head + j1, head + j2
    if tail:
        yield True, old_end, len(old), new_end, len(new)


def _common(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    shorter = min(len(old), len(new))
    return next((at for at in range(shorter) if old[at] != new[at]), shorter)


def _middle(old: Sequence[Hashable], new: Sequence[Hashable], depth: int = 0) -> Iterator[Opcode]:
    from difflib import SequenceMatcher

    if not old or not new:
        if old or new:
            yield False, 0, len(old), 0, len(new)
    elif _is_cheap(old, new):
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        yield from ((tag == "equal", i1, i2, j1, j2) for tag, i1, i2, j1, j2 in matcher.get_opcodes())
    else:
        anchors = _anchors(old, new) if depth < _DEPTH else ()
        yield from _between(old, new, anchors, depth + 1) if anchors else ((False, 0, len(old), 0, len(new)),)


def _is_cheap(old: Sequence[Hashable], new: Sequence[Hashable]) -> bool:
    if max(len(old), len(new)) > _EXACT_LINES:
        return False
    counts = Counter(new)
    return sum(counts[item] for item in old) <= _EXACT_PAIRS


def _between(
    old: Sequence[Hashable], new: Sequence[Hashable], anchors: Sequence[tuple[int, int]], depth: int
) -> Iterator[Opcode]:
    """Compare the ranges between anchors one by one; each is smaller than the whole."""
    i, j = 0, 0
    for at, to in (*anchors, (len(old), len(new))):
        for same, i1, i2, j1, j2 in _middle(old[i:at], new[j:to], depth):
            yield same, i + i1, i + i2, j + j1, j + j2
        if at < len(old):
            yield True, at, at + 1, to, to + 1
        i, j = at + 1, to + 1


def _anchors(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the items that occur once in both sequences, in the same order (patience diff)."""
    once_old, once_new = Counter(old), Counter(new)
    place = {item: at for at, item in enumerate(new) if once_new[item] == 1}
    pairs = [(at, place[item]) for at, item in enumerate(old) if once_old[item] == 1 and item in place]
    return rising(pairs)


def rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs whose second numbers increase."""
    ends: list[int] = []
    tops: list[int] = []
    before: list[int | None] = []
    for at, (_, value) in enumerate(pairs):
        place = bisect_left(ends, value)
        before.append(tops[place - 1] if place else None)
        ends[place : place + 1] = [value]
        tops[place : place + 1] = [at]
    run: list[tuple[int, int]] = []
    at_: int | None = tops[-1] if tops else None
    while at_ is not None:
        run.append(pairs[at_])
        at_ = before[at_]
    return run[::-1]
