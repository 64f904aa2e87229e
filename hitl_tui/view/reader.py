"""Pages of a document: its rows at a width, the cursor, changes since another version, headings and notes.

It has no screen: the screen of the reader paints the rows and says where they are scrolled to.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from hitl_tui.view.cells import cells
from hitl_tui.view.comments import sentences
from hitl_tui.view.diff import opcodes
from hitl_tui.view.document import Block, Document, Pieces, TextPiece
from hitl_tui.view.rows import TAB, wrap_line, wrap_rich
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import Line
from hitl_tui.view.word_diff import compare_words

MEASURE: Final = 66
"""Cells of a row of text: as many as are easy to read."""
_SIDE_FROM: Final = 104
"""Cells from which notes are beside the text, not below their paragraph."""
_SIDE: Final = 32
_GAP: Final = 3
_MARGIN: Final = 3
"""Cells before the text: the sign of a change, the cursor, and a blank."""
_LEAST: Final = 20
_SHORT_REMOVED: Final = 400
"""Most characters of removed text that are shown."""
_COLUMN: Final = 6
"""Fewest cells of a column of a table."""


class TextChange(msgspec.Struct, frozen=True, gc=False):
    """A changed range of the newer text, and the range and text of the older one that it replaces."""

    start: int
    end: int
    old_start: int
    old_end: int
    removed: str


class _Pair(msgspec.Struct, frozen=True):
    """Text of both versions, and where it is in each; `same` means the same words."""

    same: bool
    old: str
    new: str
    old_start: int
    new_start: int


def _pairs(old: str, new: str) -> Iterator[_Pair]:
    """Compare two texts by lines, and the lines that differ by words."""
    left, right = ([f"{line}\n" for line in text.split("\n")] for text in (old, new))
    i = j = 0
    for same, old_from, old_to, new_from, new_to in opcodes(left, right):
        before, after = "".join(left[old_from:old_to]), "".join(right[new_from:new_to])
        both = None if same or not before or not after else compare_words(before, after)
        if both is None or not both.is_alike:
            yield _Pair(same, before, after, i, j)
            i, j = i + len(before), j + len(after)
            continue
        for piece in both.pieces:
            yield _Pair(piece.same, piece.old, piece.new, i, j)
            i, j = i + len(piece.old), j + len(piece.new)


def text_changes(old: str, new: str) -> tuple[TextChange, ...]:
    """Return how a sanitised text became another one."""
    changes = (change for pair in _pairs(old, new) if not pair.same for change in _change(pair))
    return tuple(_at_its_line(change, old, new) for change in changes)


def place_in_newer(old: str, new: str, at: int) -> int:
    """Return where a character that is in both texts is in the newer one."""
    for pair in _pairs(old, new):
        if at < pair.old_start + len(pair.old):
            return pair.new_start + (min(at - pair.old_start, len(pair.new)) if pair.same else 0)
    return len(new)


def _at_its_line(change: TextChange, old: str, new: str) -> TextChange:
    """Return a change whose removed words, if they ended a line, stand at the end of that line."""
    begins_line = old[change.old_start - 1 : change.old_start] in ("", "\n")
    ends_line = old[change.old_end : change.old_end + 1] in ("", "\n")
    if change.end > change.start or begins_line or not ends_line:
        return change
    at = len(new[: change.start].rstrip())
    return replace(change, start=at, end=at)


def _change(pair: _Pair) -> Iterator[TextChange]:
    """Yield a change without the blanks around it; none if only blanks differ."""
    old, new = pair.old.strip(), pair.new.strip()
    if old or new:
        i = pair.old_start + (len(pair.old) - len(pair.old.lstrip()) if old else 0)
        j = pair.new_start + (len(pair.new) - len(pair.new.lstrip()) if new else 0)
        yield TextChange(j, j + len(new), i, i + len(old), old)


def document_changes(old: Document, new: Document) -> dict[str, tuple[TextChange, ...]]:
    """Return the changes of each text of a document, by its path; a new text is one change."""
    before = {part.path: part.text for part in old}
    return {
        part.path: text_changes(before[part.path], part.text)
        if part.path in before
        else ((TextChange(0, len(part.text), 0, 0, ""),) if part.text else ())
        for part in new
    }


class Unit(msgspec.Struct, frozen=True, order=True, gc=False):
    """What the cursor is on: a sentence, a heading, a row of a table, a line of code."""

    part: int
    start: int
    end: int


class MarginNote(msgspec.Struct, frozen=True):
    """A comment at a place of the document, in lines."""

    part: int
    at: int
    lines: tuple[Line, ...]


class PageRow(msgspec.Struct, frozen=True, gc=False):
    """A row of the document; `changed` says whether its paragraph has a change."""

    pieces: Pieces
    part: int
    changed: bool = False
    marks: tuple[int, ...] = ()
    """The numbers of the changes that are on it."""
    side: Line = ()
    """A row of a note beside it."""
    note: Line = ()
    """A row of a note in place of text."""
    last: bool = False
    """Whether it is the last row of its paragraph."""


class Heading(msgspec.Struct, frozen=True):
    """A heading, and where it is."""

    level: int
    text: str
    row: int


class Pages:
    """A document laid out for a width.

    Args:
        changes: of each text, by its path.
        notes: comments at their places.
        marked: mark changes as `[-old-]{+new+}`, for people who see no colours.

    Attributes:
        rows: all rows, in order.
        units: where the cursor can be, in order.
        headings: in order.
        change_rows: the first row of each change, in order.
        change_units: the number of the sentence that each change is in.
        left: cells before the text.
    """

    def __init__(
        self,
        document: Document,
        width: int,
        *,
        changes: Mapping[str, Sequence[TextChange]] | None = None,
        notes: Sequence[MarginNote] = (),
        marked: bool = False,
    ) -> None:
        self.document = document
        self._changes = changes or {}
        self._marked = marked
        beside = width >= _SIDE_FROM
        self._side = min(_SIDE, width - MEASURE - _MARGIN - _GAP) if beside else 0
        self.measure = max(min(MEASURE, width - _MARGIN - 1), _LEAST)
        free = width - self.measure - _MARGIN - (self._side + _GAP if notes and beside else 0)
        self.left = max(free // 2, 0) + _MARGIN
        self.rows: list[PageRow] = []
        self.units: list[Unit] = []
        self.headings: list[Heading] = []
        self._number = 0
        for at in range(len(document)):
            self._lay_out(at)
        self._place_notes(notes)
        self._index()

    def _index(self) -> None:
        keys: list[tuple[int, int]] = []
        self._row_of_key: list[int] = []
        firsts: dict[int, int] = {}
        for number, row in enumerate(self.rows):
            for mark in row.marks:
                firsts.setdefault(mark, number)
            begins = min((piece.at for piece in row.pieces if piece.at >= 0), default=-1)
            if begins >= 0:
                keys.append((row.part, begins))
                self._row_of_key.append(number)
        self._keys = keys
        changes = sorted((row, mark) for mark, row in firsts.items())
        self.change_rows = [row for row, _ in changes]
        self.change_units = [self._unit_of(*change) for change in changes]

    def _unit_of(self, row: int, mark: int) -> int:
        """Return the number of the sentence with a change that begins on a row."""
        pieces = self.rows[row].pieces
        first = next(at for at, piece in enumerate(pieces) if piece.mark == mark)
        place = next((piece.at for piece in pieces[first:] if piece.at >= 0), -1)
        return self.unit_at(self.rows[row].part, place) if place >= 0 else self.unit_at_row(row)

    # Rows.

    def _lay_out(self, at: int) -> None:
        part = self.document[at]
        changes = list(self._changes.get(part.path, ()))
        removed = [change for change in changes if _is_paragraph(change)]
        first = self._number
        self._number += len(changes)
        numbers = {change: first + place for place, change in enumerate(changes)}
        for block in part.blocks:
            while removed and (removed[0].start <= block.start or removed[0].start < block.end):
                self._add_removed(removed.pop(0), at, numbers)
            self._add_block(block, at, changes, numbers)
        for change in removed:
            self._add_removed(change, at, numbers)

    def _add(self, pieces: Pieces, part: int, *, changed: bool = False, last: bool = False) -> None:
        marks = tuple(dict.fromkeys(piece.mark for piece in pieces if piece.mark >= 0))
        self.rows.append(PageRow(pieces, part, changed, marks, last=last))

    def _add_gap(self, part: int) -> None:
        if self.rows:
            self._add((), part)

    def _add_removed(self, change: TextChange, part: int, numbers: Mapping[TextChange, int]) -> None:
        self._add_gap(part)
        text = change.removed
        if len(text) > _SHORT_REMOVED:
            text = f"{text[:_SHORT_REMOVED].rstrip()} … {len(text) - _SHORT_REMOVED:,} more characters"
        sign = "- " if self._marked else ""
        for line in text.split("\n"):
            piece = TextPiece(f"{sign}{line}", "removed", -1, numbers[change])
            for row in _wrapped((piece,), self.measure):
                self._add(row, part, changed=True)

    def _add_block(
        self, block: Block, part: int, changes: Sequence[TextChange], numbers: Mapping[TextChange, int]
    ) -> None:
        if block.gap:
            self._add_gap(part)
        here = [change for change in changes if change.start <= block.end and change.end >= block.start]
        here = [change for change in here if change.start < block.end or change.start == block.end > 0]
        if block.kind == "heading":
            text = "".join(piece.text for line in block.lines for piece in line)
            self.headings.append(Heading(block.level, text, len(self.rows)))
        if block.kind == "rule":
            self._add((TextPiece("─" * self.measure, "dim"),), part)
        elif block.kind == "table":
            self._add_table(block, part, here, numbers)
        lead = block.first
        ends_of_block = max(
            (piece.at + len(piece.text) for line in block.lines for piece in line if piece.at >= 0),
            default=-1,
        )
        for number, line in enumerate(block.lines):
            final = number == len(block.lines) - 1
            ends = max((piece.at + len(piece.text) for piece in line if piece.at >= 0), default=-1)
            own = [change for change in here if change.start <= ends or final] if ends >= 0 or final else []
            here = [change for change in here if change not in own or change.end > ends]
            self._add_units(line, part, by_sentence=block.kind == "text")
            pieces = self._with_changes(line, own, numbers, final=final or ends == ends_of_block)
            changed = any(piece.mark >= 0 for piece in pieces)
            rows = _wrapped(pieces, max(self.measure - cells(lead), _LEAST // 2))
            for place, row in enumerate(rows):
                shown = (TextPiece(lead, "dim"), *row) if lead else row
                self._add(shown, part, changed=changed, last=place == len(rows) - 1)
                lead = block.rest

    def _add_units(self, line: Pieces, part: int, *, by_sentence: bool) -> None:
        """Note the sentences of a line; of a heading, a field or code the whole line is one."""
        sourced = [piece for piece in line if piece.at >= 0]
        if not any(piece.text.strip() for piece in sourced):
            return
        if not by_sentence:
            last = sourced[-1]
            self.units.append(Unit(part, sourced[0].at, last.at + len(last.text)))
            return
        text = "".join(piece.text for piece in sourced)
        ends = [0]
        for piece in sourced:
            ends.append(ends[-1] + len(piece.text))
        for start, end in sentences(text):
            begin, final = bisect_right(ends, start) - 1, bisect_left(ends, end) - 1
            self.units.append(
                Unit(
                    part,
                    sourced[begin].at + start - ends[begin],
                    sourced[final].at + end - ends[final],
                )
            )

    def _with_changes(
        self,
        line: Pieces,
        changes: Sequence[TextChange],
        numbers: Mapping[TextChange, int],
        *,
        final: bool = True,
    ) -> Pieces:
        """Return a line with the changes in it: removed words before the words that replace them."""
        if not changes:
            return line
        shown: list[TextPiece] = []
        waiting = list(changes)
        done: set[TextChange] = set()

        def begin(change: TextChange) -> None:
            if change not in done and not _is_paragraph(change) and change.removed:
                old = " ".join(change.removed.split())
                old = f"[-{old}-]" if self._marked else old
                shown.append(TextPiece(old, "removed-word", -1, numbers[change]))
                if change.end == change.start or not self._marked:
                    shown.append(TextPiece(" "))
            done.add(change)

        for piece in line:
            at, end = piece.at, piece.at + len(piece.text)
            if at < 0:
                shown.append(piece)
                continue
            while waiting and waiting[0].start < end:
                change = waiting[0]
                if change.start > at:
                    shown.append(_part(piece, at, change.start))
                    at = change.start
                begin(change)
                stop = min(max(change.end, at), end)
                if stop > at:
                    added = replace(_part(piece, at, stop), role="added-word", mark=numbers[change])
                    shown += self._as_added(added, opens=at == change.start, closes=stop == change.end)
                at = stop
                if change.end > end:
                    break
                waiting.pop(0)
            if at < end:
                shown.append(_part(piece, at, end))
        for change in waiting if final else ():
            if change not in done:
                shown.append(TextPiece(" "))
                begin(change)
        return tuple(piece for piece in shown if piece.text)

    def _as_added(self, piece: TextPiece, *, opens: bool, closes: bool) -> Iterator[TextPiece]:
        if self._marked and opens:
            yield TextPiece("{+", "added-word", -1, piece.mark)
        yield piece
        if self._marked and closes:
            yield TextPiece("+}", "added-word", -1, piece.mark)

    # Tables.

    def _add_table(
        self, block: Block, part: int, changes: Sequence[TextChange], numbers: Mapping[TextChange, int]
    ) -> None:
        rows: list[list[Pieces]] = []
        for row in block.cells:
            line = tuple(piece for cell in row for piece in cell)
            self._add_units(line, part, by_sentence=False)
            rows.append([])
            for cell in row:
                ends = max((piece.at + len(piece.text) for piece in cell), default=-1)
                starts = min((piece.at for piece in cell if piece.at >= 0), default=-1)
                own = [each for each in changes if each.start < ends and each.end > starts >= 0]
                rows[-1].append(self._with_changes(cell, own, numbers))
        widths = _widths(rows, self.measure)
        edge = TextPiece("│", "dim")
        self._add((_rule(widths, "╭┬╮"),), part)
        for number, columns in enumerate(rows):
            wrapped = [_wrapped(each, width) for each, width in zip(columns, widths, strict=False)]
            wrapped += [[] for _ in range(len(widths) - len(wrapped))]
            changed = any(piece.mark >= 0 for each in columns for piece in each)
            for at in range(max(map(len, wrapped), default=0)):
                shown: list[TextPiece] = [edge]
                for column, (parts, width) in enumerate(zip(wrapped, widths, strict=True)):
                    words: Pieces = parts[at] if at < len(parts) else ()
                    right = column < len(block.aligned) and block.aligned[column] == "right"
                    blank = " " * (width - sum(cells(piece.text) for piece in words))
                    lead, trail = (f" {blank}", " ") if right else (" ", f"{blank} ")
                    shown += [TextPiece(lead), *words, TextPiece(trail), edge]
                self._add(tuple(shown), part, changed=changed)
            if number == 0:
                self._add((_rule(widths, "├┼┤"),), part)
        self._add((_rule(widths, "╰┴╯"),), part, last=True)

    # Notes.

    def _place_notes(self, notes: Sequence[MarginNote]) -> None:
        self._index()
        if not self._side:
            below: dict[int, list[Line]] = {}
            for note in notes:
                row = self.row_at(note.part, note.at)
                while row < len(self.rows) - 1 and not self.rows[row].last:
                    row += 1
                below.setdefault(row, []).extend(
                    shown for line in note.lines for shown in wrap_rich(line, self.measure - 2)
                )
            if below:
                self._insert(below)
            return
        free = 0
        for note in sorted(notes, key=lambda note: self.row_at(note.part, note.at)):
            row = max(self.row_at(note.part, note.at), free)
            for line in note.lines:
                for shown in wrap_rich(line, self._side):
                    while row >= len(self.rows):
                        self._add((), note.part)
                    self.rows[row] = replace(self.rows[row], side=shown)
                    row += 1
            free = row + 1

    def _insert(self, below: Mapping[int, Sequence[Line]]) -> None:
        """Insert notes below the rows of their paragraphs; headings move down with their rows."""
        rows: list[PageRow] = []
        moved: list[int] = []
        for number, row in enumerate(self.rows):
            moved.append(len(rows))
            rows.append(row)
            rows += [PageRow((), row.part, note=line) for line in below.get(number, ())]
        self.rows = rows
        self.headings = [replace(heading, row=moved[heading.row]) for heading in self.headings]

    # Places.

    def row_at(self, part: int, at: int) -> int:
        """Return the row that shows a character of a text."""
        place = bisect_right(self._keys, (part, at)) - 1
        return self._row_of_key[max(place, 0)] if self._keys else 0

    def rows_of(self, unit: Unit) -> range:
        """Return the rows that a sentence is on."""
        return range(self.row_at(unit.part, unit.start), self.row_at(unit.part, max(unit.end - 1, 0)) + 1)

    def unit_at(self, part: int, at: int) -> int:
        """Return the number of the sentence with a character, or of the next one."""
        place = bisect_right(self.units, (part, at), key=lambda unit: (unit.part, unit.start)) - 1
        if place >= 0 and self.units[place].part == part and at < self.units[place].end:
            return place
        return min(place + 1, max(len(self.units) - 1, 0))

    def unit_at_row(self, row: int) -> int:
        """Return the number of the first sentence that begins on a row or below it."""
        place = bisect_left(self._row_of_key, row)
        if place >= len(self._keys):
            return max(len(self.units) - 1, 0)
        part, at = self._keys[place]
        found = self.unit_at(part, at)
        begins_above = self.row_at(self.units[found].part, self.units[found].start) < row if self.units else 0
        return min(found + bool(begins_above), max(len(self.units) - 1, 0))

    def offset_at(self, row: int, column: int) -> tuple[int, int] | None:
        """Return the text and the character at a column of a row's text; None if it shows none."""
        if not 0 <= row < len(self.rows):
            return None
        found = None
        used = 0
        for piece in self.rows[row].pieces:
            if piece.at >= 0:
                found = self.rows[row].part, piece.at + min(max(column - used, 0), len(piece.text))
            used += len(piece.text)
            if used > column and found is not None:
                break
        return found

    def heading_at(self, row: int) -> str:
        """Return the heading that a row is below, "" for none."""
        place = bisect_right(self.headings, row, key=lambda heading: heading.row) - 1
        return self.headings[place].text if place >= 0 else ""


def page_of(top: int, height: int, rows: int) -> tuple[int, int]:
    """Return the number of the page that begins at a row, and how many pages there are."""
    size = max(height - 1, 1)
    pages = max(-(-(rows - 1) // size), 1)
    at_end = top + height >= rows
    return (pages if at_end else min(top // size + 1, pages)), pages


def page_top(page: int, height: int) -> int:
    """Return the first row of a page."""
    return max(page - 1, 0) * max(height - 1, 1)


def matches(document: Document, query: str) -> list[Unit]:
    """Return where a text occurs, in order; case does not matter."""
    found: list[Unit] = []
    wanted = sanitise(query).casefold()
    for number, part in enumerate(document):
        text = part.text.casefold()
        if len(text) != len(part.text):  # a letter that folds into two
            text = part.text.lower()
        at = text.find(wanted) if wanted else -1
        while at >= 0:
            found.append(Unit(number, at, at + len(wanted)))
            at = text.find(wanted, at + len(wanted))
    return found


def _is_paragraph(change: TextChange) -> bool:
    """Whether whole lines were removed, which are shown above what replaces them."""
    return "\n" in change.removed


def _part(piece: TextPiece, start: int, end: int) -> TextPiece:
    """Return a part of a piece, given by its range in the source."""
    return replace(piece, text=piece.text[start - piece.at : end - piece.at], at=start)


def _wrapped(pieces: Pieces, width: int) -> list[Pieces]:
    """Wrap pieces into rows of a width; each keeps its role and its place in the source."""
    pieces = tuple(_untabbed(pieces))
    text = "".join(piece.text for piece in pieces)
    rows: list[Pieces] = []
    at = 0
    for words in wrap_line(text, max(width, 4)):
        start = text.find(words, at)
        at = start + len(words)
        rows.append(tuple(_cut(pieces, start, at)))
    return rows


def _untabbed(pieces: Pieces) -> Iterator[TextPiece]:
    for piece in pieces:
        if "\t" not in piece.text:
            yield piece
            continue
        at = piece.at
        for number, part in enumerate(piece.text.split("\t")):
            if number:
                yield replace(piece, text=TAB, at=at)
                at += at >= 0
            if part:
                yield replace(piece, text=part, at=at)
                at += len(part) if at >= 0 else 0


def _cut(pieces: Pieces, start: int, end: int) -> Iterator[TextPiece]:
    used = 0
    for piece in pieces:
        begin, stop = max(start - used, 0), min(end - used, len(piece.text))
        if begin < stop:
            at = piece.at + begin if piece.at >= 0 else -1
            yield (
                replace(piece, text=piece.text[begin:stop], at=at)
                if stop - begin < len(piece.text)
                else piece
            )
        used += len(piece.text)


def _widths(rows: Sequence[Sequence[Pieces]], measure: int) -> list[int]:
    """Return the width of each column; the widest are narrowed until the table fits."""
    count = max(map(len, rows), default=0)
    widths = [
        max((sum(cells(piece.text) for piece in row[column]) for row in rows if column < len(row)), default=0)
        for column in range(count)
    ]
    while sum(widths) + 3 * count + 1 > measure and max(widths, default=0) > _COLUMN:
        widths[widths.index(max(widths))] -= 1
    return widths


def _rule(widths: Sequence[int], signs: str) -> TextPiece:
    left, middle, right = signs[0], signs[1], signs[2]
    return TextPiece(left + middle.join("─" * (width + 2) for width in widths) + right, "dim")
