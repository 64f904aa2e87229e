"""Compares two texts word by word, at a bounded cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from hitl_tui.view.spans import Line, Role, Span

PartKind = Literal["same", "removed", "added", "note"]

# A string: `re` compiles and caches it at the first use.
_WORD: Final = r"(?:\w[\w\u0300-\u036f\u200d\ufe0f]*|[^\w\s][\u0300-\u036f\u200d\ufe0f]*)\s*|\s+"
_MIDDLE: Final = 64 * 1024
"""Most characters, between the common beginning and the common end, that are compared word by word."""
_NEAR: Final = 200
"""Characters to step back from the first difference, at most, to reach the blank before the word."""
_MOST_EDITS: Final = 500
_SHORT: Final = 3
MIN_LIKENESS: Final = 0.4
"""Share of common words from which one text counts as a changed form of the other."""


class Fragment(msgspec.Struct, frozen=True, gc=False):
    """A piece of a sanitised text, and which of two versions contains it; a "note" is text that we add."""

    kind: PartKind
    text: str


Fragments = tuple[Fragment, ...]


class Piece(msgspec.Struct, frozen=True, gc=False):
    """A part of both texts; `same` means the same words, though blanks may differ."""

    same: bool
    old: str
    new: str


class WordDiff(msgspec.Struct, frozen=True):
    """Two texts in pieces; comparing them took `steps` steps of about a microsecond."""

    pieces: tuple[Piece, ...]
    steps: int

    @property
    def is_alike(self) -> bool:
        """Whether one text is a changed form of the other rather than a different text."""
        same = sum(_size(piece.new) for piece in self.pieces if piece.same)
        longest = max(sum(_size(text) for text in side) for side in self._sides)
        return same >= MIN_LIKENESS * longest

    @property
    def _sides(self) -> tuple[list[str], list[str]]:
        return [piece.old for piece in self.pieces], [piece.new for piece in self.pieces]

    @property
    def old(self) -> Fragments:
        """The old text."""
        return tuple(Fragment("same" if p.same else "removed", p.old) for p in self.pieces if p.old)

    @property
    def new(self) -> Fragments:
        """The new text."""
        return tuple(Fragment("same" if p.same else "added", p.new) for p in self.pieces if p.new)

    @property
    def merged(self) -> Fragments:
        """Both texts in one: removed words come before the words that replace them."""
        return tuple(self._merged())

    def _merged(self) -> Iterator[Fragment]:
        for piece in self.pieces:
            if piece.same:
                yield Fragment("same", piece.new)
                continue
            if piece.old:
                yield Fragment("removed", piece.old)
            if piece.new:
                yield Fragment("added", piece.new)

    @property
    def changed(self) -> int:
        """Number of words that were changed, added or removed."""
        return sum(max(_count(p.old), _count(p.new)) for p in self.pieces if not p.same)


def _size(text: str) -> int:
    """Return the number of characters, without blanks at the ends: those match by chance."""
    return len(text.strip())


def _count(text: str) -> int:
    """Return the number of words; a text of signs alone counts as one."""
    return len(re.findall(r"\w+", text)) or bool(text.strip())


def compare_words(old: str, new: str, most: int = _MOST_EDITS) -> WordDiff:
    """Compare two sanitised texts.

    The common beginning and end are skipped as a whole.  If the rest is too long, or differs in more than
    `most` words, it is shown as one change.
    """
    head = _shared_start(old, new)
    head = _after_blank(old, head) if head < max(len(old), len(new)) else head
    tail = _shared_end(old[head:], new[head:])
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    end = old[len(old) - tail :] if tail else ""
    pieces: list[Piece] = [Piece(True, old[:head], new[:head])] if head else []
    steps = 1 + len(middle_old) // 8 + len(middle_new) // 8
    if len(middle_old) + len(middle_new) > _MIDDLE:
        pieces.append(Piece(False, middle_old, middle_new))
    elif middle_old or middle_new:
        left, right = re.findall(_WORD, middle_old), re.findall(_WORD, middle_new)
        by_old, by_new = ([word.strip() for word in side] for side in (left, right))
        blanks = by_old == by_new
        edits, taken = _equal_pairs(left if blanks else by_old, right if blanks else by_new, most)
        steps += taken
        pieces += _pieces(left, right, edits)
    if end:
        pieces.append(Piece(True, end, end))
    return WordDiff(tuple(_merge_pieces(pieces)), steps)


def _shared_start(old: str, new: str) -> int:
    """Return the length of the common beginning."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _shared_end(old: str, new: str) -> int:
    """Return the length of the common end, counted from a blank."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[len(old) - middle : len(old) - low] == new[len(new) - middle : len(new) - low]:
            low = middle
        else:
            high = middle - 1
    if low == max(len(old), len(new)):
        return low
    start = len(old) - low
    blank = next((at for at in range(start, min(start + _NEAR, len(old))) if old[at].isspace()), None)
    # The blank itself stays with the word before it.
    return low if blank is None and low > _NEAR else 0 if blank is None else len(old) - blank - 1


def _after_blank(text: str, at: int) -> int:
    """Return the position after the last blank before a position."""
    start = max(at - _NEAR, 0)
    found = next((place for place in range(at, start, -1) if text[place - 1].isspace()), None)
    return found if found is not None else at if start else 0


def _pieces(old: Sequence[str], new: Sequence[str], edits: Iterable[tuple[int, int]]) -> list[Piece]:
    """Return the pieces of both texts, given the pairs of words that are the same."""
    pieces: list[Piece] = []
    i = j = 0
    for at, to in (*edits, (len(old), len(new))):
        if at > i or to > j:
            pieces.append(Piece(False, "".join(old[i:at]), "".join(new[j:to])))
        if at < len(old) and to < len(new):
            pieces.append(Piece(True, old[at], new[to]))
        i, j = at + 1, to + 1
    return pieces


def _merge_pieces(pieces: Iterable[Piece]) -> list[Piece]:
    """Merge neighbours; a short word between two changes, the same by chance, becomes part of the change."""
    runs: list[Piece] = []
    for piece in pieces:
        if runs and runs[-1].same == piece.same:
            runs[-1] = Piece(piece.same, runs[-1].old + piece.old, runs[-1].new + piece.new)
        else:
            runs.append(piece)
    joined: list[Piece] = []
    for at, piece in enumerate(runs):
        after = runs[at + 1] if at + 1 < len(runs) else None
        chance = piece.same and joined and after is not None and _size(piece.new) <= _SHORT
        if chance and after and all((joined[-1].old, joined[-1].new, after.old, after.new)):
            joined[-1] = Piece(False, joined[-1].old + piece.old, joined[-1].new + piece.new)
        elif joined and joined[-1].same == piece.same:
            joined[-1] = Piece(piece.same, joined[-1].old + piece.old, joined[-1].new + piece.new)
        else:
            joined.append(piece)
    return joined


def _equal_pairs(old: Sequence[str], new: Sequence[str], most: int) -> tuple[list[tuple[int, int]], int]:
    """Return the longest sequence of pairs of equal words (Myers 1986), and the steps it took.

    Returns no pairs if more than `most` words would have to be removed or added.
    """
    size, other = len(old), len(new)
    ends = {1: 0}
    trail: list[dict[int, int]] = []
    steps = 0
    for edits in range(min(size + other, most) + 1):
        trail.append(dict(ends))
        for k in range(-edits, edits + 1, 2):
            steps += 1
            down = k == -edits or (k != edits and ends[k - 1] < ends[k + 1])
            x = ends[k + 1] if down else ends[k - 1] + 1
            y = x - k
            while x < size and y < other and old[x] == new[y]:
                x, y = x + 1, y + 1
                steps += 1
            ends[k] = x
            if x >= size and y >= other:
                return _trace_back(trail, size, other), steps
    return [], steps


def _trace_back(trail: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """Follow the path back from its end and return the pairs on it, in order."""
    pairs: list[tuple[int, int]] = []
    for edits in range(len(trail) - 1, -1, -1):
        ends, k = trail[edits], x - y
        down = k == -edits or (k != edits and ends[k - 1] < ends[k + 1])
        before = k + 1 if down else k - 1
        start = ends[before] if edits else 0
        goal = (start, start - before) if edits else (0, 0)
        while x > goal[0] and y > goal[1]:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = goal
    return pairs[::-1]


def likeness(old: frozenset[str], new: frozenset[str]) -> float:
    """Return the share of words that two texts have in common, from 0 to 1."""
    return 2 * len(old & new) / (len(old) + len(new)) if old or new else 1.0


def word_set(text: str) -> frozenset[str]:
    """Return the set of words of a text."""
    return frozenset(re.findall(_WORD, f"{text} ")) if len(text) <= _MIDDLE else frozenset((text,))


def cut_unchanged(parts: Iterable[Fragment], around: int) -> Fragments:
    """Return the fragments, with text left out that is over `around` characters away from any change."""
    shown: list[Fragment] = []
    parts = tuple(parts)
    for at, part in enumerate(parts):
        text, last = part.text, at == len(parts) - 1
        if part.kind == "same" and len(text) > around * (1 + (0 < at < len(parts) - 1)) + 8:
            before = "" if at == 0 else text[: _after_blank(text, around)]
            after = "" if last else text[len(text) - around :].partition(" ")[2] or text[-around:]
            text = f"{before}… {after}" if after else f"{before}…"
        elif len(text) > 4 * around:
            text = f"{text[: 2 * around]}… {len(text) - 2 * around:,} more characters"
        shown.append(Fragment(part.kind, text))
    return tuple(shown)


_MARKS: Final = {"removed": ("[-", "-]"), "added": ("{+", "+}")}
_ROLES: Final[dict[PartKind, Role]] = {"removed": "removed-word", "added": "added-word"}
_WHOLE: Final[dict[PartKind, Role]] = {"removed": "removed", "added": "added", "note": "human"}


def fragment_spans(parts: Iterable[Fragment], *, marked: bool, role: Role = "plain") -> Line:
    """Return fragments as spans of one line; a text removed or added as a whole gets no marks.

    Args:
        marked: mark changes as `[-old-]{+new+}`, for people who see no colours.
        role: role of unchanged text.
    """
    parts = tuple(parts)
    if len(kinds := {part.kind for part in parts}) == 1 and (whole := _WHOLE.get(kinds.pop())):
        return tuple(Span(part.text, whole) for part in parts)
    spans: list[Span] = []
    before: Fragment | None = None
    for part in parts:
        if part.kind in ("same", "note"):
            spans.append(Span(part.text, role if part.kind == "same" else "human"))
        else:
            opening, closing = _MARKS[part.kind] if marked else ("", "")
            word = part.text.strip()
            lead = part.text[: len(part.text) - len(part.text.lstrip())]
            trail = part.text[len(lead) + len(word) :]
            follows = before is not None and before.kind == "removed" and not before.text[-1:].isspace()
            if follows and not marked and not lead:
                lead = " "
            if not word:  # blanks alone
                lead, word, trail = "", part.text, ""
            spans += [Span(lead, role)] if lead else []
            spans.append(Span(f"{opening}{word}{closing}", _ROLES[part.kind]))
            spans += [Span(trail, role)] if trail else []
        before = part
    return tuple(span for span in spans if span.text)
