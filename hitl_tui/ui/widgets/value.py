"""Value of the selected channel, to be read: wrapped, with the changes marked."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.timer import Timer

from hitl_tui.ui.bindings import bound
from hitl_tui.ui.widgets.lines import TextView, ours
from hitl_tui.view.cells import cells, cut
from hitl_tui.view.rows import LongRows, continued, part_of, untabbed, wrap_rich
from hitl_tui.view.spans import Line, Role, Span, plain_text
from hitl_tui.view.value_lines import FoldedLines, JsonLines, ValuePart, json_spans
from hitl_tui.view.value_source import MODES, Mode, ValueText

if TYPE_CHECKING:
    from hitl_tui.engine.thread.comments import Comment

_WRAP_LINES: Final = 2_000
_WRAP_CHARS: Final = 64 * 1024
_FIRST: Final = 16 * 1024
"""Characters whose rows are laid out before the first paint: as many as the largest screens show."""
_AT_ONCE: Final = 64 * 1024
_PER_SECOND: Final = 30
_PROSE: Final = 78
"""Cells of a row of prose, however wide the pane is."""
_BESIDE: Final = 100
"""Cells from which two versions of a text are shown side by side."""
_SIGNS: Final = {"same": "  ", "added": "+ ", "removed": "- ", "changed": "~ ", "moved": "  "}
_ROLES: Final[dict[str, Role]] = {
    "added": "added", "removed": "removed", "changed": "accent", "moved": "human",
}  # fmt: skip
_CHANGED: Final = frozenset({"added", "removed", "added-word", "removed-word"})
_MARGIN: Final = 4
"""Cells beside a text for the numbers of comments."""
_BEFORE: Final = 3
"""Rows above the first change."""
_GROUNDS: Final = frozenset({"added", "removed"})


class ValuePane(TextView):
    """Value as `ValueText`; rows of a large value are made when they are drawn."""

    BINDINGS: ClassVar[list[BindingType]] = [bound("look.enter", "read")]

    class Read(Message):
        """The value is to be read by itself."""

    class Resized(Message):
        """Its rows have changed: what was laid out for the old ones must be laid out again."""

    class ModeChosen(Message):
        """Another way to show the value was clicked."""

        def __init__(self, mode: Mode) -> None:
            super().__init__()
            self.mode = mode

    def __init__(self, name: str = "value") -> None:
        super().__init__(name, "Value")
        self.text: ValueText | None = None
        self.mode: Mode = "diff"
        self._texts: Sequence[str] = ()
        self._rows: list[tuple[str, Line, str]] | None = None
        self._long: LongRows | None = None
        self._wrapped_for = 0
        self.seek: tuple[str, int] | None = None
        """Channel, and its line from 0, to scroll to when it is shown."""
        self._starts: list[int] = []
        self._marked = ""
        self._over = ""
        self._words_only = False
        self._finder: Timer | None = None
        self._folds: FoldedLines | None = None
        self._comments: tuple[Comment, ...] = ()
        self._destination = ""
        self._numbers: dict[int, str] = {}
        self._places: dict[int, list[tuple[int, int]]] = {}
        """For a large value: the lines in which comments begin, each with the characters and the numbers."""
        self._margin = 0
        self._foot: list[Line] = []
        self._below: tuple[Line, ...] = ()

    @property
    def path(self) -> str:
        """Path to what the cursor is on, as `plan[1].worker`; the channel if there is none."""
        if self.text is None:
            return ""
        return self.text.channel + (self.part.path if self.part is not None else "")

    @property
    def part(self) -> ValuePart | None:
        """Part under the cursor; None if the value isn't shown as JSON."""
        if self._folds is None or self.cursor_row is None:
            return None
        return self._folds.part(self._line_of(self.cursor_row))

    def mark(self, query: str) -> None:
        """Highlight a text that was searched for, until another channel is shown."""
        self._marked = query
        self.repaint()

    def show_text(self, text: ValueText, *, titled: bool = True, title: str = "", below: str = "") -> None:
        """Show a value; the scroll position is kept for the same channel.

        Args:
            titled: say in the border how else it can be shown.
            title: title in place of the channel.
            below: text in the border in place of how else it can be shown.
        """
        same = self.text is not None and self.text.channel == text.channel and self.text.mode == text.mode
        self._below = self._below if same else ()
        if (
            self.seek is not None
            and self.text is not None
            and text.channel not in (self.seek[0], self.text.channel)
        ):
            self._marked = ""
        self.text = text
        self.mode = text.mode
        self._fold_as_before(text, same=same)
        modes = "  ".join(f"‹{mode}›" if mode == text.mode else mode for mode in MODES)
        self._over = title
        self._lay_out()
        self._show_mode(below or (modes if titled else ""))
        if not same:
            self.show_first_change()
        self.show_sought()

    def action_read(self) -> None:
        """Open the reader."""
        self.post_message(self.Read())

    def show_first_change(self) -> None:
        """Scroll to the first change if it isn't visible."""
        self.scroll_to(0, self._first_change, animate=False)

    @property
    def rows_left(self) -> int:
        """Return how many rows are free below the value and its note, if nothing more is shown there."""
        if self._rows is None or not self.text:
            return 0
        foot = len(self._foot) - len(self._below)
        return self.scrollable_content_region.height - len(self._rows) - foot

    def show_below(self, lines: tuple[Line, ...]) -> None:
        """Show further lines in the rows below the value."""
        if lines != self._below:
            self._below = lines
            self._lay_out()

    def turn(self) -> None:
        """Switch between two versions side by side and words only."""
        self._words_only = not self._words_only
        self._lay_out()
        self._show_mode()

    def _show_mode(self, below: str | None = None) -> None:
        """Show in the title where the cursor is and how two versions are shown, and below a text."""
        if self.text is not None:
            way = "side by side" if self.is_beside else self.text.since
            over = self._over or self.path
            title = f"{over}, {way}" if way else over
            self.set_titles(title, self._titles[1] if below is None else below)

    @property
    def is_beside(self) -> bool:
        """Whether two versions are side by side: for prose, if there is room for both."""
        text, wide = self.text, self.scrollable_content_region.width >= _BESIDE
        revised = text is not None and text.prose and text.revision is not None and text.revision.changed
        return bool(wide and revised) and not self._words_only

    @property
    def _first_change(self) -> int:
        """Return the row to begin with: the first changed one, if it couldn't be seen."""
        changed = (
            at
            for at, (_, words, kind) in enumerate(self._rows or ())
            if kind in _GROUNDS or any(span.role in _CHANGED for span in words)
        )
        first = next(changed, 0)
        return 0 if first < self.size.height - _BEFORE else max(first - _BEFORE, 0)

    def show_sought(self) -> None:
        """Scroll to the requested line once it exists."""
        if self.seek is None or self.text is None or self.text.channel != self.seek[0]:
            return
        line = self.seek[1]
        if self._folds is not None and line < len(self._folds.whole):
            if self._folds.unfold(line):
                self._lay_out()
            line = self._folds.place(line)
        if line < len(self._texts):
            row = self._long.first_row(line) if self._long is not None else self._starts[line]
            self._fit()
            self.scroll_to(y=max(0, row - 1), animate=False)

    def _lay_out(self) -> None:
        text = self.text
        if text is None:
            return
        # After new rows the cursor stays on its line.
        cursor_line = None if self.cursor_row is None else self._line_of(self.cursor_row)
        width = self._wrapped_for = self.scrollable_content_region.width
        aside = self.is_beside
        comments = self._commented(text)
        width -= _MARGIN if comments else 0
        if text.prose and not aside:
            width = min(width, _PROSE)
        self._margin = width
        self._foot = [(), *wrap_rich(text.note, width)] if text.note else []
        if comments:
            from hitl_tui.view.comments import comment_lines

            below = (*comment_lines(self._comments), (Span(self._destination, "dim"),))
            self._foot += [(), *(row for line in below for row in wrap_rich(line, width))]
        if self._below:
            self._foot += self._below
        marked = self.app.no_color
        self._texts = self._folds or (
            text.lines if text.revision is None else text.revision.texts(marked=marked)
        )
        total = 0
        small = len(self._texts) <= _WRAP_LINES
        if small:
            for line in self._texts:
                total += len(line)
                if total > _WRAP_CHARS:
                    small = False
                    break
        self._rows = None
        if small:
            self._rows = self._side_by_side(text, width) if aside else self._wrapped(text, width)
        self._long = (
            None if small else LongRows(self._texts, lambda line: width - len(self._lead(text, line)))
        )
        self._place_numbers(text)
        if self._long is not None:
            self._long.find_more(_FIRST)
            if self._finder is not None:
                self._finder.resume()
        if cursor_line is not None:
            self.cursor_row = self._row_of(min(cursor_line, len(self._texts) - 1))
        self._fit()

    # Comments.

    def show_comments(self, comments: tuple[Comment, ...], destination: str = "") -> None:
        """Show comments beside their passages and below the value, and where they are sent."""
        if (comments, destination) != (self._comments, self._destination):
            anew = bool(comments or self._comments)
            self._comments, self._destination = comments, destination
            if anew:
                self._lay_out()

    def _commented(self, text: ValueText) -> list[tuple[int, Comment]]:
        """Return the comments on this value, each with its number."""
        return [
            (number, comment)
            for number, comment in enumerate(self._comments, 1)
            if comment.path.partition(".")[0].partition("[")[0] == text.channel
        ]

    def _place_numbers(self, text: ValueText | None) -> None:
        """Find the rows, of a large value the lines, at which comments begin in the shown version."""
        self._numbers, self._places = {}, {}
        comments = self._commented(text) if text is not None else []
        if text is None or not comments:
            return
        marked = self.app.no_color
        if self._folds is not None:
            for number, comment in comments:
                line = self._folds.whole.line_of(comment.path[len(text.channel) :])
                if line is not None:
                    self._places.setdefault(self._folds.place(line), []).append((0, number))
            if self._rows is not None:
                self._numbers = {self._starts[line]: _numbers(there) for line, there in self._places.items()}
            return
        from hitl_tui.view.comments import numbered_lines, numbered_rows, standing

        own = standing(text.whole, [pair for pair in comments if pair[1].path == text.channel])
        if self._rows is None:
            self._places = numbered_lines(text.whole, text.revision, own, marked=marked)
        else:
            shown = [_right_of(words) if self.is_beside else words for _, words, _ in self._rows]
            self._numbers = numbered_rows(shown, text.whole, own, marked=marked)

    def _number(self, row: int) -> str:
        """Return the numbers of the comments that begin at a row, "" for none."""
        if self._long is None or not self._places:
            return self._numbers.get(row, "")
        line, start, words = self._long.row(row)
        end = start + max(len(words), 1)
        return _numbers([place for place in self._places.get(line, ()) if start <= place[0] < end])

    def _fit(self) -> None:
        """Set the height to that of all rows known so far."""
        rows = self._rows if self._long is None else self._long
        count = len(rows) if rows is not None else 0
        extra = len(self._foot)
        self.lines = range(count + extra)  # type: ignore[assignment]
        if self.cursor_row is not None:
            self.cursor_row = max(min(self.cursor_row, count - 1), 0)
        self.set_extent(Size(0, count + extra))
        self.repaint()

    def on_mount(self) -> None:
        """Lay out the rows of a large value bit by bit."""
        self._finder = self.set_interval(1 / _PER_SECOND, self._find_more, pause=True)

    def _find_more(self) -> None:
        long = self._long
        if long is None or long.done:
            if self._finder is not None:
                self._finder.pause()
            return
        at_end = 0 < self.max_scroll_y <= round(self.scroll_y)
        line = None if self.cursor_row is None else self._line_of(self.cursor_row)
        top = round(self.scroll_y)
        in_view = self.cursor_row is not None and self._shows(self.cursor_row)
        kept = line if line is not None and in_view else self._line_of(top)
        place = long.known_row(kept)
        long.find_more(_AT_ONCE)
        if line is not None:
            self.cursor_row = long.known_row(line)
        self._fit()
        if at_end and not in_view:
            self.scroll_end(animate=False, immediate=True)
        elif shift := long.known_row(kept) - place:  # the visible text doesn't move
            self.scroll_to(y=top + shift, animate=False, immediate=True)

    def _shows(self, row: int) -> bool:
        return 0 <= row - round(self.scroll_y) < self.size.height

    # Folding.

    def _fold_as_before(self, text: ValueText, *, same: bool) -> None:
        """Fold JSON as before: folds last as long as the value."""
        whole = text.lines
        if not isinstance(whole, JsonLines) or not whole.starts or text.revision is not None:
            self._folds = self.cursor_row = None
        elif self._folds is None or self._folds.whole is not whole:
            self._folds = FoldedLines(whole)
            self.cursor_row = (self.cursor_row or 0) if same else 0

    def _line_of(self, row: int) -> int:
        """Return the line that a row belongs to."""
        if self._long is not None:
            return self._long.line_of(row)
        return max(bisect_right(self._starts, row) - 1, 0)

    def _row_of(self, line: int) -> int:
        """Return the row in which a line begins."""
        return self._long.known_row(line) if self._long is not None else self._starts[line]

    @property
    def folds(self) -> bool:
        """Whether it is JSON, whose parts can be folded."""
        return self._folds is not None

    def fold(self) -> None:
        """Fold what the cursor is on or in, or unfold it."""
        if self._folds is None or self.cursor_row is None:
            return
        self._show_folds(self._folds.turn(self._line_of(self.cursor_row)))

    def fold_all(self) -> None:
        """Fold all top-level parts, or unfold everything."""
        if self._folds is None or self.cursor_row is None:
            return
        number = self._folds.number(self._line_of(self.cursor_row))
        self._folds.turn_all()
        self._lay_out()
        self._move_to(self._row_of(self._folds.place(number)))

    def _show_folds(self, line: int) -> None:
        """Update the lines from one on, and move the cursor to it."""
        if self._long is not None and self._folds is not None:
            self._long.change(self._folds, line)
            self._place_numbers(self.text)
            self._long.find_more(_FIRST)
            self._fit()
            if self._finder is not None:
                self._finder.resume()
        else:
            self._lay_out()
        self._move_to(self._row_of(line))

    def _move_to(self, row: int) -> None:
        rows = len(self.lines) - len(self._foot)
        self.cursor_row = min(max(row, 0), max(rows - 1, 0))
        self.reveal(self.cursor_row)
        self._show_mode()

    def action_scroll_up(self) -> None:
        """Scroll up by a row, or move the cursor if there is one."""
        self._move_by(-1, super().action_scroll_up)

    def action_scroll_down(self) -> None:
        """Move the cursor down by one row."""
        self._move_by(1, super().action_scroll_down)

    def action_page_up(self) -> None:
        """Move the cursor up by one page."""
        self._move_by(1 - self.size.height, super().action_page_up)

    def action_page_down(self) -> None:
        """Move the cursor down by one page."""
        self._move_by(self.size.height - 1, super().action_page_down)

    def action_scroll_home(self) -> None:
        """Move to the first row."""
        self._move_by(-len(self.lines), super().action_scroll_home)

    def action_scroll_end(self) -> None:
        """Move to the last row."""
        self._move_by(len(self.lines), super().action_scroll_end)

    def _move_by(self, rows: int, scroll: Callable[[], None]) -> None:
        if self.cursor_row is None:
            scroll()
        else:
            self._move_to(self.cursor_row + rows)

    @staticmethod
    def _lead(text: ValueText, line: int) -> str:
        """Return what precedes a line of a large value."""
        if text.gutter:
            return text.gutter[line]
        return _SIGNS[text.revision.kinds[line]] if text.revision is not None else ""

    def _wrapped(self, text: ValueText, width: int) -> list[tuple[str, Line, str]]:
        """Return the rows: gutter, words and kind."""
        rows: list[tuple[str, Line, str]] = []
        self._starts = []
        revision = text.revision
        marked = revision is not None and any(kind != "same" for kind in revision.kinds)
        for index in range(len(self._texts)):
            kind = revision.kinds[index] if revision is not None else "same"
            lead = text.gutter[index] if text.gutter else _SIGNS[kind] if marked else ""
            self._starts.append(len(rows))
            for number, piece in enumerate(wrap_rich(self._spans(index), width - len(lead))):
                rows.append((lead if number == 0 else continued(lead), piece, kind))
        return rows

    def _side_by_side(self, text: ValueText, width: int) -> list[tuple[str, Line, str]]:
        """Return the rows of both versions, each no wider than is easy to read."""
        from hitl_tui.ui.widgets.side_by_side import beside

        assert text.revision is not None
        width = min(width, 2 * _PROSE + 7)
        half = (width - 7) // 2
        head = (Span(f"  {cut(text.heads[0], half):<{half}}   "), Span(f"  {cut(text.heads[1], half)}"))
        rows: list[Line] = [tuple(Span(span.text, "dim") for span in head), ()]
        self._starts = [0] * len(self._texts)
        for pair in text.revision.pairs:
            rows += beside(pair, width, marked=self.app.no_color)
        return [("", row, "same") for row in rows]

    def _spans(self, index: int) -> Line:
        """Return a line of the value; of a changed one both versions."""
        assert self.text is not None
        revision = self.text.revision
        if self.text.rich:
            return self.text.rich[index]
        if revision is None:
            text = self._texts[index]
            return json_spans(text) if self.text.mode == "json" else (Span(text),)
        return revision[index].spans(marked=self.app.no_color)

    def line(self, row: int) -> Line:
        """Return a row of the value, or the note below it."""
        text = self.text
        if text is None:
            return ()
        count = len(self.lines) - len(self._foot)
        if row >= count:
            return self._foot[row - count]
        gutter, words, kind = self._row(row)
        if count == 1 and not plain_text(words):
            return (Span("empty", "dim"),)
        role = _ROLES.get(kind, "plain")
        lead = Span(gutter, "dim" if role == "plain" else role)
        if self._marked:
            from hitl_tui.view.find import pieces

            words = tuple(
                ours(part, "badge-dim" if hit else span.role)
                for span in words
                for part, hit in pieces(span.text, self._marked)
            )
        number = self._number(row)
        if not number:
            return (lead, *words)
        room = self._margin - cells(gutter) - cells(plain_text(words))
        return (lead, *words, Span(f"{' ' * max(room, 0)} {number}", "human"))

    def _row(self, row: int) -> tuple[str, Line, str]:
        if self._rows is not None:
            return self._rows[row]
        assert self.text is not None
        assert self._long is not None
        line, start, words = self._long.row(row)
        lead = self._lead(self.text, line)
        kind = self.text.revision.kinds[line] if self.text.revision is not None else "same"
        spans: Line = (Span(words, _ROLES.get(kind, "plain")),)
        if kind == "changed" or self.text.mode == "json":
            spans = part_of(untabbed(self._spans(line)), start, start + len(words))
        return continued(lead) if start else lead, spans, kind

    def selected_text(self, row: int, start: int, end: int) -> str:
        """Return the selected text of a row, without its sign or number."""
        count = len(self.lines) - len(self._foot)
        if row >= count:
            return super().selected_text(row, start, end)
        gutter, words, _ = self._row(row)
        lead = len(gutter)
        text = plain_text(words)
        return text[max(start - lead, 0) : None if end < 0 else max(end - lead, 0)].rstrip()

    def ground(self, row: int) -> str:
        """Return the background: added and removed rows have their own, and so has the cursor's with keys."""
        text = self.text
        if row == self.cursor_row:
            return "cursor" if self.has_focus else ""
        if text is not None and text.revision and row < len(self.lines) - len(self._foot):
            kind = self._row(row)[2]
            if kind in _GROUNDS:
                return f"{kind}-back"
        return ""

    def on_resize(self, event: events.Resize) -> None:
        """Wrap again for the new width."""
        self.post_message(self.Resized())
        if self.scrollable_content_region.width != self._wrapped_for:
            shown = self.cursor_row is not None and self._shows(self.cursor_row)
            self._lay_out()
            if shown and self.cursor_row is not None:
                self.reveal(self.cursor_row)
            self._show_mode()

    def on_click(self, event: events.Click) -> None:
        """Switch how the value is shown, by the names on the lower border."""
        event.stop()
        if event.y != self.outer_size.height - 1:
            row = self.row_at(event)
            if row is not None and self.cursor_row is not None:
                self._move_to(row)
            return
        labels = [f"‹{mode}›" if mode == self.mode else mode for mode in MODES]
        x = self.outer_size.width - 2 - len("  ".join(labels)) - 1
        for mode, label in zip(MODES, labels, strict=True):
            if x - 1 <= event.x <= x + len(label):
                self.post_message(self.ModeChosen(mode))
                return
            x += len(label) + 2


def _numbers(places: Sequence[tuple[int, int]]) -> str:
    """Return the numbers of comments as shown beside a row."""
    return ",".join(str(number) for _, number in places)


def _right_of(row: Line) -> Line:
    """Return what a row of two versions shows of the newer one, without its sign."""
    rule = next((at for at, span in enumerate(row) if span.text.endswith(" │ ")), len(row))
    return row[rule + 2 :]
