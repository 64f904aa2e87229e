"""Shows how a text or a value changed from one version to the next, in the order a person reads it.

A line in which some words differ is one line with both versions. A paragraph that is elsewhere has moved;
all else was removed or added. The work has a limit: past it, changes are shown as `Diff` has them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, zip_longest
from typing import Any, Final, Literal, overload

import msgspec
from msgspec.structs import replace

from hitl_tui.view.diff import Diff, DiffLine, Each, rising, value_diff
from hitl_tui.view.format import count
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, plain_text
from hitl_tui.view.word_diff import (
    MIN_LIKENESS,
    Fragment,
    Fragments,
    PartKind,
    WordDiff,
    compare_words,
    fragment_spans,
    likeness,
    word_set,
)

RevisedKind = Literal["same", "added", "removed", "changed", "moved"]

_CHARS: Final = 128 * 1024
"""Most characters of differing lines that are compared word by word."""
_LONG: Final = 1 << 23
"""Most characters of a single changed line; its common beginning and end cost little to compare."""
_STEPS: Final = 400_000
_PAIRS: Final = 900
"""Most pairs of paragraphs that are compared to find which one became which."""
_UNITS: Final = 2_000
_FEW_WORDS: Final = 4
_QUOTED: Final = 40


class RevisedLine(msgspec.Struct, frozen=True, gc=False):
    """A sanitised line; "changed" has the words of both versions, "moved" a note that says where to."""

    kind: RevisedKind
    parts: Fragments

    @property
    def text(self) -> str:
        """The line as shown without colours: `[-old-]{+new+}`."""
        return plain_text(self.spans(marked=True))

    def spans(self, *, marked: bool) -> Line:
        """Return the line as spans; `marked` as for `fragment_spans`."""
        return fragment_spans(self.parts, marked=marked)


class Pair(msgspec.Struct, frozen=True):
    """A line of each version side by side, sanitised; None if a version has none."""

    left: Fragments | None
    right: Fragments | None
    kind: RevisedKind

    @property
    def same(self) -> bool:
        """Whether both sides are equal."""
        return self.kind == "same"


class _Entry(msgspec.Struct, frozen=True):
    """A part of a region: its lines in each version, and both versions merged."""

    kind: RevisedKind
    left: tuple[Fragments, ...]
    right: tuple[Fragments, ...]
    lines: tuple[RevisedLine, ...]
    words: int = 0


class _Unit(msgspec.Struct, frozen=True):
    """A paragraph, or a line of JSON, and the number of its first line in the diff."""

    start: int
    text: str

    @property
    def blank(self) -> bool:
        return not self.text.strip()


class _Region(msgspec.Struct, frozen=True):
    """Consecutive lines of a diff that differ."""

    start: int
    middle: int
    """The index of the first added line; removed lines come before it."""
    end: int
    old: tuple[_Unit, ...] = ()
    new: tuple[_Unit, ...] = ()


class _Range(msgspec.Struct, frozen=True):
    """Lines of the diff that are shown unchanged."""

    start: int
    end: int


_Block = _Range | list[_Entry]
"""Unchanged lines, or the entries of a region."""


class Revision(Sequence[RevisedLine]):
    """The lines of a diff in reading order, each computed on access."""

    def __init__(self, diff: Diff) -> None:
        self._diff = diff
        self._steps = _STEPS
        self._chars = _CHARS
        regions = [self._read(region) for region in _regions(diff)]
        self._moved = self._find_moved(regions)
        self._blocks: list[_Block] = []
        self._starts = [0]
        self._as_lines = {"removed": 0, "added": 0}
        at = 0
        for region in regions:
            self._add(_Range(at, region.start))
            close = region.old or region.new
            self._add([*self._entries(region)] if close else _Range(region.start, region.end))
            if not close:
                self._as_lines["removed"] += region.middle - region.start
                self._as_lines["added"] += region.end - region.middle
            at = region.end
        self._add(_Range(at, len(diff)))

    def _add(self, block: _Block) -> None:
        size = _block_size(block)
        if size:
            self._blocks.append(block)
            self._starts.append(self._starts[-1] + size)

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, at: int) -> RevisedLine: ...
    @overload
    def __getitem__(self, at: slice) -> list[RevisedLine]: ...
    def __getitem__(self, at: int | slice) -> RevisedLine | list[RevisedLine]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        place = self._place(at + len(self) if at < 0 else at)
        return place if isinstance(place, RevisedLine) else _as_it_is(self._diff[place])

    @property
    def kinds(self) -> Sequence[RevisedKind]:
        """The kind of each line, without computing its text."""
        return Each(self, self._kind)

    def _kind(self, at: int) -> RevisedKind:
        place = self._place(at)
        return place.kind if isinstance(place, RevisedLine) else self._diff.kinds[place]

    def texts(self, *, marked: bool) -> Sequence[str]:
        """Return the text of each line; `marked` as for `fragment_spans`."""
        return Each(self, lambda at: plain_text(self[at].spans(marked=marked)))

    def _place(self, at: int) -> RevisedLine | int:
        """Return the line, or its number in the diff."""
        if not 0 <= at < len(self):
            raise IndexError(at)
        block = bisect_right(self._starts, at) - 1
        lines, offset = self._blocks[block], at - self._starts[block]
        if isinstance(lines, _Range):
            return lines.start + offset
        for entry in lines:
            if offset < len(entry.lines):
                return entry.lines[offset]
            offset -= len(entry.lines)
        raise IndexError(at)

    @property
    def changed(self) -> list[int]:
        """The numbers of the lines that differ."""
        changed: list[int] = []
        for block, start in zip(self._blocks, self._starts, strict=False):
            if isinstance(block, _Range):
                shift = start - block.start
                if self._diff.kinds[block.start] != "same":
                    changed += range(block.start + shift, block.end + shift)
            else:
                lines = [line for entry in block for line in entry.lines]
                changed += [start + at for at, line in enumerate(lines) if line.kind != "same"]
        return changed

    @property
    def pairs(self) -> Iterator[Pair]:
        """Return both versions side by side, with matching lines at the same height."""
        left: list[tuple[Fragments, RevisedKind]] = []
        right: list[tuple[Fragments, RevisedKind]] = []
        for entry in self._all_entries():
            if entry.kind in ("same", "changed"):
                yield from _flushed(left, right)
                for old, new in zip_longest(entry.left, entry.right):
                    yield Pair(old, new, entry.kind)
            else:
                left += [(parts, entry.kind) for parts in entry.left]
                right += [(parts, entry.kind) for parts in entry.right]
        yield from _flushed(left, right)

    def _all_entries(self) -> Iterator[_Entry]:
        for block in self._blocks:
            if not isinstance(block, _Range):
                yield from block
                continue
            for at in range(block.start, block.end):
                line = _as_it_is(self._diff[at])
                left = () if line.kind == "added" else (line.parts,)
                right = () if line.kind == "removed" else (line.parts,)
                yield _Entry(line.kind, left, right, (line,))

    def summary(self) -> str:
        """The changes in words, such as "2 words changed, 1 line added"; "" if there are none."""
        words = 0
        lines = dict(self._as_lines)
        moved: dict[str, int] = {}
        for block in self._blocks:
            if isinstance(block, _Range):
                continue
            for entry in block:
                words += entry.words
                if entry.kind == "moved" and entry.right:
                    way = "up" if entry.lines[0].text.startswith("↑") else "down"
                    moved[way] = moved.get(way, 0) + 1
                elif entry.kind in lines:
                    lines[entry.kind] += len(entry.lines)
        parts = [f"{count(words, 'word')} changed"] if words else []
        rest = {kind: number for kind, number in lines.items() if number}
        parts += [f"{count(number, 'line')} {kind}" for kind, number in rest.items()]
        if len(rest) > 1:
            parts[-1] = f"{lines['added']:,} added"
        parts += [f"{count(number, self._unit)} moved {way}" for way, number in moved.items()]
        return ", ".join(parts)

    @property
    def _unit(self) -> str:
        return "paragraph" if self._diff.prose else "part"

    # The next methods turn differing lines into entries.

    def _read(self, region: _Region) -> _Region:
        """Split a region into paragraphs if it is small enough."""
        lines = region.end - region.start
        if lines > _UNITS or self._chars <= 0:
            return region
        texts = [line.text for line in self._diff[region.start : region.end]]
        size = sum(map(len, texts))
        alone = lines == 2 and region.middle == region.start + 1 and size <= _LONG
        if size > self._chars and not alone:
            return region
        self._chars -= min(size, _CHARS // 16) if alone else size
        middle = region.middle - region.start
        old = _units(texts[:middle], region.start, prose=self._diff.prose)
        new = _units(texts[middle:], region.middle, prose=self._diff.prose)
        if all(unit.blank for unit in (*old, *new)):
            return region
        return replace(region, old=old, new=new)

    def _find_moved(self, regions: Iterable[_Region]) -> dict[int, bool]:
        """Find paragraphs that moved: by their first line, whether they moved down."""
        gone: dict[tuple[str, ...], list[tuple[int, int]]] = {}
        came: dict[tuple[str, ...], list[tuple[int, int]]] = {}
        for number, region in enumerate(regions):
            for units, places in ((region.old, gone), (region.new, came)):
                for unit in units:
                    if len(key := _key(unit)) >= _FEW_WORDS:
                        places.setdefault(key, []).append((unit.start, number))
        moved: dict[int, bool] = {}
        within: dict[int, list[tuple[int, int]]] = {}
        for key, starts in gone.items():
            for (old, region_of), (new, another) in zip(starts, came.get(key, ()), strict=False):
                moved[old] = moved[new] = old < new
                if region_of == another:
                    within.setdefault(another, []).append((old, new))
        for pairs in within.values():
            # Paragraphs of one region that differ only by a comma or by line breaks have mostly not moved.
            for start in chain.from_iterable(rising(sorted(pairs))):
                del moved[start]
        return moved

    def _entries(self, region: _Region) -> Iterator[_Entry]:
        """Yield the entries of a region in the order of the new version."""
        i = j = 0
        for at, to, both in self._aligned(region.old, region.new):
            yield from self._alone("removed", region.old[i:at])
            yield from self._alone("added", region.new[j:to])
            yield _changed(region.old[at], region.new[to], both)
            i, j = at + 1, to + 1
        yield from self._alone("removed", region.old[i:])
        yield from self._alone("added", region.new[j:])

    def _aligned(self, old: Sequence[_Unit], new: Sequence[_Unit]) -> list[tuple[int, int, WordDiff | None]]:
        """Pair old units with new ones in order, with their word differences (None: only a comma differs)."""
        left, right = (
            [
                at
                for at, unit in enumerate(units)
                if not self._is_blank(unit) and unit.start not in self._moved
            ]
            for units in (old, new)
        )
        if len(left) * len(right) <= _PAIRS:
            places = _best([old[at].text for at in left], [new[at].text for at in right])
        else:
            places = [(at, at) for at in range(len(left))] if len(left) == len(right) else []
        aligned: list[tuple[int, int, WordDiff | None]] = []
        for i, j in places:
            before, after = old[left[i]].text, new[right[j]].text
            if not self._diff.prose and before.rstrip(",") == after.rstrip(","):
                # In JSON, only the comma after an item changes when another item is added after it.
                aligned.append((left[i], right[j], None))
            elif self._steps > 0:
                both = compare_words(before, after)
                self._steps -= both.steps
                if both.is_alike:
                    aligned.append((left[i], right[j], both))
        return aligned

    def _is_blank(self, unit: _Unit) -> bool:
        return self._diff.prose and unit.blank

    def _alone(self, kind: Literal["removed", "added"], units: Sequence[_Unit]) -> Iterator[_Entry]:
        """Yield entries of units that only one version has, or that have moved."""
        for place, unit in enumerate(units):
            texts = unit.text.split("\n")
            if self._is_blank(unit):
                # An empty line has no content, but it separates paragraphs.
                if kind == "added" or 0 < place < len(units) - 1:
                    rows = tuple(_parts(text) for text in texts)
                    blank = tuple(RevisedLine("same", parts) for parts in rows)
                    yield _one_sided("same", kind, rows, blank)
                continue
            if unit.start in self._moved:
                yield _moved_entry(kind, texts, down=self._moved[unit.start])
                continue
            parts = tuple((Fragment(kind, text),) for text in texts)
            yield _one_sided(kind, kind, parts, tuple(RevisedLine(kind, row) for row in parts))


def revision(before: Any, after: Any) -> Revision:
    """Compare two versions of a value."""
    return Revision(value_diff(before, after))


def _block_size(block: _Block) -> int:
    return block.end - block.start if isinstance(block, _Range) else sum(len(entry.lines) for entry in block)


def _as_it_is(line: DiffLine) -> RevisedLine:
    return RevisedLine(line.kind, _parts(line.text, line.kind))


def _parts(text: str, kind: PartKind = "same") -> Fragments:
    return (Fragment(kind, text),)


def _regions(diff: Diff) -> Iterator[_Region]:
    """Return neighbouring runs of differing lines; in each, removed lines come first."""
    start: int | None = None
    middle = 0
    for kind, at, end in diff.runs:
        if kind == "same":
            if start is not None:
                yield _Region(start, middle, at)
            start = None
        elif kind == "removed":
            if start is not None and middle < at:  # the added lines come first: a region of its own
                yield _Region(start, middle, at)
                start = None
            start, middle = at if start is None else start, end
        elif start is None:
            start, middle = at, at
    if start is not None:
        yield _Region(start, middle, len(diff))


def _units(texts: Sequence[str], start: int, *, prose: bool) -> tuple[_Unit, ...]:
    """Split lines into paragraphs and the empty lines between them; each line of JSON is a unit."""
    if not prose:
        return tuple(_Unit(start + at, text) for at, text in enumerate(texts))
    units: list[_Unit] = []
    for _, run in groupby(enumerate(texts), key=lambda line: not line[1].strip()):
        lines = list(run)
        units.append(_Unit(start + lines[0][0], "\n".join(text for _, text in lines)))
    return tuple(units)


def _key(unit: _Unit) -> tuple[str, ...]:
    """Return the words of a unit, whatever its line breaks."""
    return tuple(unit.text.rstrip(",").split())


def _best(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pair texts, in order, so that the pairs have the most words in common."""
    if len(old) == len(new) == 1:
        return [(0, 0)]
    bags = [[word_set(text) for text in side] for side in (old, new)]
    scores = [[likeness(left, right) for right in bags[1]] for left in bags[0]]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            score = scores[i][j] + best[i + 1][j + 1] if scores[i][j] >= MIN_LIKENESS / 2 else 0.0
            best[i][j] = max(score, best[i + 1][j], best[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if scores[i][j] >= MIN_LIKENESS / 2 and best[i][j] == scores[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _one_sided(
    kind: RevisedKind, side: str, rows: tuple[Fragments, ...], lines: tuple[RevisedLine, ...]
) -> _Entry:
    return _Entry(kind, rows, (), lines) if side == "removed" else _Entry(kind, (), rows, lines)


def _changed(old: _Unit, new: _Unit, both: WordDiff | None) -> _Entry:
    if both is None:
        left, right = _parts(old.text), _parts(new.text)
        return _Entry("same", (left,), (right,), (RevisedLine("same", right),))
    return _Entry("changed", _in_lines(both.old), _in_lines(both.new), _merged(both.merged), both.changed)


def _in_lines(parts: Fragments) -> tuple[Fragments, ...]:
    """Split the fragments of a text into its lines."""
    lines: list[list[Fragment]] = [[]]
    for part in parts:
        first, *rest = part.text.split("\n")
        lines[-1].append(Fragment(part.kind, first))
        lines += [[Fragment(part.kind, text)] for text in rest]
    return tuple(tuple(part for part in line if part.text) for line in lines)


def _merged(parts: Fragments) -> tuple[RevisedLine, ...]:
    """Merge both versions by the lines of the new one; lines that were removed as a whole stay lines."""
    lines: list[RevisedLine] = []
    row: list[Fragment] = []
    for part in parts:
        texts = part.text.split("\n")
        if part.kind == "removed":
            while len(texts) > 1 and not "".join(before.text for before in row).strip():
                indent = "".join(before.text for before in row)
                lines.append(RevisedLine("removed", _parts(indent + texts.pop(0), "removed")))
                row = []
            rest = " ".join(texts)
            row.append(Fragment("removed" if row or rest.strip() else "same", rest))
            continue
        for at, text in enumerate(texts):
            if at:
                lines.append(_line(row))
                row = []
            if text:
                row.append(Fragment(part.kind, text))
    return (*lines, _line(row)) if row else tuple(lines)


def _line(row: Sequence[Fragment]) -> RevisedLine:
    kinds: set[RevisedKind] = {part.kind for part in row if part.kind != "note"}
    parts = tuple(part for part in row if part.text)
    return RevisedLine(kinds.pop() if len(kinds) == 1 else "changed" if kinds else "same", parts)


def _moved_entry(kind: str, texts: Sequence[str], *, down: bool) -> _Entry:
    way = "↓ moved down" if down else "↑ moved up"
    rows = tuple(_parts(text) for text in texts)
    if kind == "removed":
        quoted = f"{way}: “{sanitise_line(' '.join(texts).strip().rstrip(','), _QUOTED)}”"
        line = RevisedLine("moved", _parts(quoted, "note"))
        return _Entry("moved", (_parts(way, "note"), *rows), (), (line,))
    here = RevisedLine("moved", _parts(f"{way} to here", "note"))
    return _Entry("moved", (), (here.parts, *rows), (here, *(RevisedLine("same", row) for row in rows)))


_Side = list[tuple[Fragments, RevisedKind]]


def _flushed(left: _Side, right: _Side) -> Iterator[Pair]:
    """Pair lines that only one version has with lines that only the other has."""
    nothing: tuple[None, RevisedKind] = (None, "same")
    for (old, was), (new, became) in zip_longest(left, right, fillvalue=nothing):
        kind = was if became == "same" else became if was == "same" else "changed"
        yield Pair(old, new, kind)
    left.clear()
    right.clear()
