"""The reader: a text alone at a readable width, its changes and comments, and the keys that answer."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import ClassVar, Final, Literal

import msgspec
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Input

from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.comments import LONGEST, Comment
from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.ui.gate import gate_of
from hitl_tui.ui.screens.help import HelpScreen
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.lines import LineBar, LineView, TextView, ours
from hitl_tui.ui.widgets.review import ReviewPane
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.ui.work import start_work
from hitl_tui.verbs.actions import SCREEN_ACTIONS
from hitl_tui.view.actions import Situation
from hitl_tui.view.cells import cells, cut
from hitl_tui.view.comments import in_order
from hitl_tui.view.document import Document, document
from hitl_tui.view.format import count
from hitl_tui.view.keymap import Option
from hitl_tui.view.reader import (
    MarginNote,
    Pages,
    TextChange,
    Unit,
    document_changes,
    matches,
    page_of,
    page_top,
)
from hitl_tui.view.reading import ReadValue, addressed_words, comment_notes, earlier_notes
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span, plain_text

Mode = Literal["", "search", "go", "comment"]
"""What is typed in the field, "" while there is none."""
_LABELS: Final[dict[Mode, str]] = {
    "": "", "search": "Search", "go": "Page, or words of a heading", "comment": "Your comment",
}  # fmt: skip
_LARGE: Final = 64 * 1024
"""Characters from which a text is laid out in a thread."""
_HEADINGS: Final = 12
_ABOVE: Final = 2
"""Rows to keep above the cursor, after a jump."""
_NAME: Final = 60
_SHORTEST: Final = 12
"""Cells to which a heading is cut, before other parts of the status are left out."""
_LABEL: Final = 24
_KEYS: Final = (
    ("reader.comment", "Comment"), ("reader.change", "Next change"), ("reader.search", "Search"),
    ("reader.go", "Go to"), ("reader.source", "Source"), ("reader.versions", "Versions"),
    ("reader.card", "Card"), ("app.help", "Keys"), ("reader.back", "Back"),
)  # fmt: skip
_TYPING: Final = (("reader.go_there", "Done"), ("reader.up reader.down", "Select"), ("reader.back", "Back"))


class ReaderResult(msgspec.Struct, frozen=True):
    """What to do after the reader was closed: take an option of the card, go to it, or edit the text."""

    action: Literal["choose", "card", "edit", "close"]
    option: str = ""


class ReaderHead(msgspec.Struct, frozen=True):
    """What the header says besides the title."""

    title: str
    where: str
    due: str = ""
    place: str = ""
    asks: bool = False


class ReaderHeader(LineBar):
    """Title, thread and version, whether an answer is wanted and until when, place in the queue."""

    DEFAULT_CSS = "ReaderHeader { dock: top; height: 1; }"

    def __init__(self, head: ReaderHead) -> None:
        super().__init__()
        self._head = head
        self._version = 0

    def show_version(self, number: int) -> None:
        """Show which version is read."""
        self._version = number
        self.refresh()

    def bar(self, width: int) -> Line:
        """Return the spans in `width` cells; names are cut first."""
        head = self._head
        badge = (ours(" YOUR ANSWER ", "badge"),) if head.asks else ()
        due = (Span(f" {head.due}", "accent"),) if head.due else ()
        right = f"{head.place} " if head.place else ""
        version = f" · version {self._version}" if self._version else ""
        taken = sum(cells(span.text) for span in (*badge, *due)) + cells(right) + 4
        title = cut(sanitise_line(head.title, _NAME), max(width - taken, 12))
        where = cut(f"{sanitise_line(head.where, _NAME)}{version}", max(width - taken - cells(title), 0))
        left: Line = (Span(f" {title}", "title"), Span(f"  {where}  ", "dim"), *badge, *due)
        gap = max(width - cells(plain_text(left)) - cells(right), 0)
        return (*left, Span(" " * gap), Span(right, "dim"))


class ReaderStatus(LineBar):
    """Where one is in the text, and how much of it is new."""

    DEFAULT_CSS = "ReaderStatus { height: 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._parts: tuple[str, ...] = ()
        self._problem = ""

    def show(self, parts: Sequence[str], problem: str = "") -> None:
        """Show these, or a problem in their place."""
        shown = tuple(part for part in parts if part)
        if (shown, problem) != (self._parts, self._problem):
            self._parts, self._problem = shown, problem
            self.refresh()

    def bar(self, width: int) -> Line:
        """Return the spans; parts without room are left out from the end."""
        if self._problem:
            return (Span(f" {self._problem}", "warning"),)
        parts = list(self._parts)
        over = cells(" · ".join(parts)) + 2 - width
        if over > 0 and parts:
            parts[0] = cut(parts[0], max(cells(parts[0]) - over, _SHORTEST))
        while len(parts) > 1 and cells(" · ".join(parts)) + 2 > width:
            parts.pop()
        return (Span(f" {' · '.join(parts)}", "dim"),)


class ReaderView(TextView):
    """Paints pages: the signs of changes, the text, and notes beside it."""

    def __init__(self) -> None:
        super().__init__("text")
        self.can_focus = False
        self.pages: Pages | None = None
        self.here: Unit | None = None
        """What the cursor is on."""
        self.hits: Sequence[Unit] = ()

    def show_pages(self, pages: Pages) -> None:
        """Show a document that was laid out."""
        self.pages = pages
        self.lines = range(len(pages.rows))  # type: ignore[assignment]
        self.set_extent(Size(0, len(pages.rows)))
        self.repaint()

    def line(self, row: int) -> Line:
        """Return the spans of a row."""
        pages = self.pages
        if pages is None or row >= len(pages.rows):
            return ()
        shown = pages.rows[row]
        here = self.here is not None and bool(pages.units) and row == pages.rows_of(self.here).start
        margin: Line = (
            Span(" " * (pages.left - 3)),
            Span("▌" if shown.changed else " ", "accent"),
            Span("›" if here else " ", "accent"),
            Span(" "),
        )
        if shown.note:
            return (*margin, Span("  "), *shown.note)
        words: list[Span] = []
        for piece in shown.pieces:
            words += self._painted_piece(shown.part, piece.text, piece.role, piece.at)
        if not shown.side:
            return (*margin, *words)
        gap = pages.measure - cells("".join(span.text for span in words)) + 3
        return (*margin, *words, Span(" " * max(gap, 1)), *shown.side)

    def _painted_piece(self, part: int, text: str, role: str, at: int) -> list[Span]:
        """Return a piece with what is searched for, and what the cursor is on, highlighted."""
        if at < 0:
            return [ours(text, role)]
        end = at + len(text)
        edges = {at, end}
        marks: list[tuple[int, int, str]] = []
        here = self.here
        if here is not None and here.part == part and role not in ("added-word", "removed-word"):
            marks.append((here.start, here.end, "reading"))
        marks += [
            (hit.start, hit.end, "badge-dim")
            for hit in self.hits
            if hit.part == part and hit.start < end and hit.end > at
        ]
        for start, stop, _ in marks:
            edges |= {edge for edge in (start, stop) if at < edge < end}
        spans = []
        places = sorted(edges)
        for start, stop in pairwise(places):
            shown = next((mark for begin, final, mark in reversed(marks) if begin <= start < final), role)
            spans.append(ours(text[start - at : stop - at], shown))
        return spans

    def selected(self) -> Unit | None:
        """Return what is selected with the mouse, None for nothing."""
        selection, pages = self.text_selection, self.pages
        if selection is None or pages is None:
            return None
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else len(pages.rows) - 1
        found: list[tuple[int, int]] = []
        for row in range(max(first, 0), min(last, len(pages.rows) - 1) + 1):
            span = selection.get_span(row)
            if span is None:
                continue
            start, end = span
            length = len(plain_text(self.line(row)))
            for column in (start, length if end < 0 else end):
                place = pages.offset_at(row, max(column - pages.left, 0))
                found += [place] if place is not None else []
        if not found or found[0][0] != found[-1][0] or found[0][1] >= found[-1][1]:
            return None
        return Unit(found[0][0], found[0][1], found[-1][1])


class ReaderScreen(OverlayScreen):
    """Shows a value to read; returns a `ReaderResult`.

    Args:
        channel: what is read, with its value.
        load: loads its versions and earlier comments.
        card: the review card whose request is about it; None if nothing waits for an answer about it.
        keys: the keys that opened it.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "reader.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("reader.down", "move(1)"),
        bound("reader.up", "move(-1)"),
        bound("reader.more", "stretch(1)"),
        bound("reader.less", "stretch(-1)"),
        bound("reader.page_down", "turn(1)"),
        bound("reader.page_up", "turn(-1)"),
        bound("reader.first", "ends(-1)"),
        bound("reader.last", "ends(1)"),
        bound("reader.heading", "heading(1)"),
        bound("reader.heading_back", "heading(-1)"),
        bound("reader.go", "type('go')"),
        bound("reader.change", "change(1)"),
        bound("reader.change_back", "change(-1)"),
        bound("reader.versions", "compare"),
        bound("reader.search", "type('search')"),
        bound("reader.match", "match(1)"),
        bound("reader.match_back", "match(-1)"),
        bound("reader.comment", "type('comment')"),
        bound("reader.uncomment", "uncomment"),
        bound("reader.source", "source"),
        bound("reader.edit", "leave('edit')"),
        bound("reader.card", "leave('card')"),
        bound("reader.go_there", "done", priority=True),
        bound("reader.back", "back"),
        bound("reader.close", "leave('close')"),
        bound("app.help", "help"),
    ]
    AUTO_FOCUS = ""

    def __init__(
        self,
        channel: str,
        value: object,
        head: ReaderHead,
        load: Callable[[], Awaitable[ReadValue]],
        *,
        card: ReviewPane | None = None,
        keys: Sequence[str] = (),
    ) -> None:
        super().__init__(keys)
        self._channel = channel
        self._value = value
        self._head = head
        self._read = load
        self._card = card
        self._request: Request | None = card.review.request if card is not None else None
        self._reading: ReadValue | None = None
        self._is_source = False
        self._baseline = 0
        self._documents: dict[bool, Document] = {}
        self._compared: dict[tuple[bool, int], dict[str, tuple[TextChange, ...]]] = {}
        self._cursor = 0
        self._extent = 0
        """How many sentences after the one under the cursor are selected with it."""
        self._mode: Mode = ""
        self._query = ""
        self._came_from = 0
        self._heading_choice = 0
        self._problem = ""
        self._selected: Unit | None = None
        self._change: tuple[int, int] | None = None
        """The number of the change that was gone to last, and where the cursor was then."""
        self._page_rows = 0

    def compose(self) -> ComposeResult:
        yield ReaderHeader(self._head)
        yield ReaderView()
        yield LineView("headings", "Headings")
        yield SafeInput("", id="field")
        yield ReaderStatus()
        yield KeysBar(self._entries)

    @property
    def _view(self) -> ReaderView:
        return self.query_one(ReaderView)

    @property
    def _pages(self) -> Pages | None:
        return self._view.pages

    def on_mount(self) -> None:
        """Show the text at once; versions and earlier comments follow."""
        self.watch(self._view, "scroll_y", self._show_status, init=False)
        self.query_one("#headings", LineView).can_focus = False
        if not _is_large(self._value):
            self._documents[False] = document(self._channel, self._value)
        start_work(self, self._load)

    async def _load(self) -> None:
        if not self._documents:
            made = await asyncio.to_thread(document, self._channel, self._value)
            self._documents[False] = made
            self._lay_out()
        reading = await self._read()
        if reading.baselines:
            await self._compare(reading, 0)
        self._reading = reading
        self.query_one(ReaderHeader).show_version(reading.version)
        self._lay_out()

    async def _compare(self, reading: ReadValue, number: int) -> None:
        """Find the changes since a version, in a thread if the text is long."""
        source = self._is_source
        if (source, number) in self._compared or number >= len(reading.baselines):
            return
        value = reading.baselines[number].value
        now = self._document

        def compare() -> dict[str, tuple[TextChange, ...]]:
            return document_changes(document(self._channel, value, source=source), now)

        large = sum(len(part.text) for part in now) > _LARGE
        self._compared[source, number] = await asyncio.to_thread(compare) if large else compare()

    @property
    def _document(self) -> Document:
        if self._is_source not in self._documents:
            self._documents[self._is_source] = document(self._channel, self._value, source=self._is_source)
        return self._documents[self._is_source]

    @property
    def _height(self) -> int:
        """Rows of a page; the field does not count, which is there only for a moment."""
        if not self._mode:
            self._page_rows = self._view.size.height
        return self._page_rows

    # Painting.

    @on(LineView.Widened, "#text")
    def _widened(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        """Lay the text out for the width; the cursor stays where it is in the text."""
        view = self._view
        width = view.scrollable_content_region.width
        if not width or not self._documents:
            return
        before = self._pages
        old = before.units[self._cursor] if before is not None and before.units else None
        shift = before.row_at(old.part, old.start) - round(view.scroll_y) if before and old else 0
        pages = Pages(
            self._document, width,
            changes=self._compared.get((self._is_source, self._baseline), {}),
            notes=tuple(self._notes()), marked=self.app.no_color,
        )  # fmt: skip
        if old is not None and before is not None:
            path = before.document[old.part].path
            part = next((at for at, part in enumerate(pages.document) if part.path == path), 0)
            self._cursor = pages.unit_at(part, old.start)
        view.here = self._here_in(pages)
        view.hits = matches(self._document, self._query) if self._query else ()
        view.show_pages(pages)
        if old is not None and pages.units:
            new = pages.units[self._cursor]
            self._scroll(pages.row_at(new.part, new.start) - shift)
        self._show_status()

    def _notes(self) -> list[MarginNote]:
        notes: list[MarginNote] = []
        if self._reading is not None:
            notes += earlier_notes(self._document, self._reading.earlier)
        notes += comment_notes(self._document, self._comments)
        return notes

    @property
    def _comments(self) -> tuple[Comment, ...]:
        """Comments that are sent with the answer."""
        return in_order(self._card.review.draft.comments) if self._card is not None else ()

    def _here_in(self, pages: Pages) -> Unit | None:
        """Return what the cursor is on in a document."""
        if not pages.units:
            return None
        first = pages.units[min(self._cursor, len(pages.units) - 1)]
        last = pages.units[min(self._cursor + self._extent, len(pages.units) - 1)]
        return Unit(first.part, first.start, last.end if last.part == first.part else first.end)

    def _show_status(self) -> None:
        pages, view = self._pages, self._view
        if pages is None:
            return
        top, height = round(view.scroll_y), self._height
        page, of = page_of(top, height, len(pages.rows))
        here = view.here
        row = pages.rows_of(here).start if here is not None else top
        parts = [pages.heading_at(row), f"page {page} of {of}", self._changes_words(pages, top, height)]
        if self._query:
            parts.append(f"{count(len(view.hits), 'match').replace('matchs', 'matches')}")
        if self._reading is not None:
            parts.append(addressed_words(self._reading.earlier))
        if self._is_source:
            parts.insert(1, "source")
        self.query_one(ReaderStatus).show(parts, self._problem)

    def _changes_words(self, pages: Pages, top: int, height: int) -> str:
        reading = self._reading
        if reading is None or not reading.baselines or self._baseline >= len(reading.baselines):
            return ""
        since = reading.baselines[self._baseline].since
        changes = pages.change_rows
        if not changes:
            return f"unchanged {since}"
        here = sum(top <= row < top + height for row in changes)
        return f"{count(len(changes), 'change')} {since} ({here} on this page)"

    @property
    def _entries(self) -> tuple[tuple[str, str], ...]:
        """Keys of the footer: first those that answer."""
        if self._mode:
            return _TYPING
        answers = [
            (option.keys(keymap_of(self.app))[-1], sanitise_line(option.label, _LABEL))
            for option in self._options
        ]
        keys = [(name, word) for name, word in _KEYS if self._card is not None or name not in _OF_CARD]
        return (*answers, *keys)

    @property
    def _options(self) -> tuple[Option, ...]:
        """Answers that can be given from here: those whose key does nothing else."""
        if self._card is None:
            return ()
        review, keymap = self._card.review, keymap_of(self.app)
        ids = {choice.id for choice in review.draft.choices}
        own = {key for name in _OWN for key in keymap.bindings[name]}
        options = []
        for option in review.options:
            keys = tuple(key for name in (option.key, *option.also) if len(name) == 1 for key in (name,))
            free = tuple(key for key in keys if key not in own)
            if option.id in ids and free:
                options.append(msgspec.structs.replace(option, key=free[0], also=()))
        return tuple(options)

    def _refresh_keys(self) -> None:
        bar = self.query_one(KeysBar)
        bar.entries = self._entries
        bar.refresh()

    def _say(self, problem: str) -> None:
        """Show a problem until the next key."""
        self._problem = problem
        self._show_status()

    # Moving.

    def _scroll(self, row: int) -> None:
        self._view.scroll_to(y=max(row, 0), animate=False, immediate=True)

    def _move_to(self, unit: int, *, jump: bool = False) -> None:
        """Move the cursor to a sentence and show it."""
        pages, view = self._pages, self._view
        if pages is None or not pages.units:
            return
        self._cursor, self._extent = min(max(unit, 0), len(pages.units) - 1), 0
        self._show_cursor()
        rows = pages.rows_of(pages.units[self._cursor])
        top, height = round(view.scroll_y), view.size.height
        if rows.start < top or rows.stop > top + height:
            above = rows.start < top or jump
            self._scroll(rows.start - _ABOVE if above else rows.stop - height)
        self._show_status()

    def _show_cursor(self) -> None:
        view = self._view
        if view.pages is not None:
            view.here = self._here_in(view.pages)
            view.repaint()

    def action_move(self, by: int) -> None:
        """Move to another sentence, or to another heading of the list."""
        if self._mode == "go":
            self._heading_choice += by
            self._show_headings()
        else:
            self._move_to(self._cursor + by)

    def action_stretch(self, by: int) -> None:
        """Select more sentences, or fewer."""
        pages = self._pages
        if pages is None or not pages.units:
            return
        last = min(max(self._cursor + self._extent + by, self._cursor), len(pages.units) - 1)
        if pages.units[last].part == pages.units[self._cursor].part:
            self._extent = last - self._cursor
            self._show_cursor()

    def action_turn(self, by: int) -> None:
        """Turn pages."""
        pages, view = self._pages, self._view
        if pages is None:
            return
        height = self._height
        page, _ = page_of(round(view.scroll_y), height, len(pages.rows))
        self._scroll(page_top(page + by, height))
        self._cursor, self._extent = pages.unit_at_row(round(view.scroll_y)), 0
        self._show_cursor()
        self._show_status()

    def action_ends(self, by: int) -> None:
        """Go to the beginning or to the end."""
        self._scroll(0 if by < 0 else 1 << 30)
        self._move_to(0 if by < 0 else 1 << 30)

    def action_heading(self, by: int) -> None:
        """Go to the next heading, or to the one before."""
        pages = self._pages
        if pages is None or not pages.headings:
            self._say("no headings here")
            return
        rows = [heading.row for heading in pages.headings]
        places = [(pages.unit_at_row(row), row) for row in rows]
        if by > 0:
            others = [row for unit, row in places if unit > self._cursor]
        else:
            others = [row for unit, row in reversed(places) if unit < self._cursor]
        if others:
            self._go_to_row(others[0])
        else:
            self._say("no more headings")

    def _go_to_row(self, row: int) -> None:
        pages = self._pages
        if pages is None:
            return
        self._scroll(row - 1)
        self._move_to(pages.unit_at_row(row), jump=True)

    def action_change(self, by: int) -> None:
        """Go to the next change, or to the one before."""
        pages = self._pages
        if pages is None or not pages.change_rows:
            reading = self._reading
            since = reading.baselines[self._baseline].since if self._is_comparing and reading else ""
            self._say(f"nothing changed {since}" if since else "no version to compare with")
            return
        rows, here = pages.change_rows, self._change
        if here is not None and here[1] == self._cursor:
            number = here[0] + by
        else:  # from the top of the page
            top = round(self._view.scroll_y)
            number = bisect_left(rows, top) if by > 0 else bisect_left(rows, top) - 1
        if not 0 <= number < len(rows):
            self._say("no more changes")
            return
        self._move_to(pages.change_units[number], jump=True)
        height, top = self._view.size.height, round(self._view.scroll_y)
        if not top <= rows[number] < top + height:
            self._scroll(rows[number] - _ABOVE)
        self._change = (number, self._cursor)

    @property
    def _is_comparing(self) -> bool:
        return self._reading is not None and self._baseline < len(self._reading.baselines)

    def action_compare(self) -> None:
        """Compare with the next version of the list, or with none."""
        reading = self._reading
        if reading is None or not reading.baselines:
            self._say("no older version")
            return
        self._baseline = (self._baseline + 1) % (len(reading.baselines) + 1)
        start_work(self, self._compare_again, exclusive=True)

    async def _compare_again(self) -> None:
        if self._reading is not None:
            await self._compare(self._reading, self._baseline)
        self._change = None
        self._lay_out()
        if not self._is_comparing:
            self._say("compared with no version")

    def action_source(self) -> None:
        """Show the text as it is, or rendered."""
        self._is_source = not self._is_source
        self._extent = 0
        start_work(self, self._compare_again, exclusive=True)

    def action_match(self, by: int) -> None:
        """Go to the next match, or to the one before."""
        pages, hits = self._pages, self._view.hits
        if pages is None or not hits:
            self._say("no match" if self._query else "no search yet")
            return
        here = pages.units[self._cursor] if pages.units else Unit(0, 0, 0)
        after = [hit for hit in hits if (hit.part, hit.start) >= (here.part, here.end)]
        before = [hit for hit in hits if (hit.part, hit.start) < (here.part, here.start)]
        hit = (after[0] if after else hits[0]) if by > 0 else (before[-1] if before else hits[-1])
        self._move_to(pages.unit_at(hit.part, hit.start), jump=True)

    # The field.

    def action_type(self, mode: Mode) -> None:
        """Open the field: to search, to go to a place, to comment."""
        if self._mode:
            return
        self._selected = self._view.selected() if mode == "comment" else None
        if mode == "comment" and (why := self._no_comment()):
            self._say(why)
            return
        self._page_rows = self._height
        self._mode, self._came_from, self._heading_choice = mode, self._cursor, 0
        field = self.query_one("#field", SafeInput)
        field.value = ""
        field.border_title = Content(_LABELS[mode])
        self.add_class("-typing")
        self.set_class(mode == "go", "-going")
        field.focus()
        if mode == "go":
            self._show_headings()
        self._refresh_keys()
        self.call_after_refresh(self._reveal_cursor)

    def _reveal_cursor(self) -> None:
        """Keep what the cursor is on above the field."""
        here, pages, view = self._view.here, self._pages, self._view
        if here is not None and pages is not None:
            rows = pages.rows_of(here)
            if rows.stop > round(view.scroll_y) + view.size.height:
                self._scroll(rows.stop - view.size.height)

    def _no_comment(self) -> str:
        """Return why nothing can be commented on, "" if it can."""
        if self._card is None:
            return "comments are sent with an answer, and nothing asks for one about this"
        pages = self._pages
        target = self._target
        if pages is None or target is None or not pages.document[target.part].raw:
            return "there is no text here to comment on"
        if self._request is not None and self._request.subject is None:
            return "this text is no channel's; write it as your reason"
        return ""

    @property
    def _target(self) -> Unit | None:
        """What a comment is about: what the mouse has selected, else what the cursor is on."""
        return self._selected or self._view.here

    def _close_field(self) -> None:
        self._mode = ""
        self.remove_class("-typing", "-going")
        self.set_focus(None)
        self._refresh_keys()

    @on(Input.Changed, "#field")
    def _typed(self, event: Input.Changed) -> None:
        pages = self._pages
        if self._mode == "go":
            self._heading_choice = 0
            self._show_headings()
        elif self._mode == "search" and pages is not None:
            self._query = event.value
            self._view.hits = matches(self._document, self._query)
            self._view.repaint()
            start = pages.units[self._came_from] if pages.units else Unit(0, 0, 0)
            after = [hit for hit in self._view.hits if (hit.part, hit.start) >= (start.part, start.start)]
            if hit := next(iter((*after, *self._view.hits)), None):
                self._move_to(pages.unit_at(hit.part, hit.start), jump=True)
            self._show_status()

    def _found_headings(self) -> list[tuple[str, int]]:
        """Return the headings that contain what was typed, each with its row."""
        pages = self._pages
        words = self.query_one("#field", SafeInput).value.casefold().split()
        return [
            ("  " * (heading.level - 1) + heading.text, heading.row)
            for heading in (pages.headings if pages is not None else ())
            if all(word in heading.text.casefold() for word in words)
        ]

    def _show_headings(self) -> None:
        found, view = self._found_headings(), self.query_one("#headings", LineView)
        self._heading_choice = min(max(self._heading_choice, 0), max(len(found) - 1, 0))
        nothing: Line = (Span("no heading; a number goes to a page", "dim"),)
        view.show([(Span(text),) for text, _ in found] or [nothing])
        view.cursor_row = self._heading_choice if found else None
        view.heeds_keys = True
        if found:
            view.reveal(self._heading_choice, _HEADINGS)
        view.repaint()

    def action_done(self) -> None:
        """Take what was typed in the field."""
        typed, mode = self.query_one("#field", SafeInput).value.strip(), self._mode
        if mode == "go":
            self._go(typed)
        elif mode == "search" and typed and not self._view.hits:
            self._say(f"“{sanitise_line(typed, _NAME)}” is not in the text")
        elif mode == "comment" and typed:
            self._comment(typed)
        self._close_field()

    def _go(self, typed: str) -> None:
        found = self._found_headings()
        if typed.isdecimal():
            self._scroll(page_top(int(typed), self._height))
            if self._pages is not None:
                self._move_to(self._pages.unit_at_row(round(self._view.scroll_y)))
        elif found:
            self._go_to_row(found[self._heading_choice][1])
        else:
            self._say("no such heading")

    def _comment(self, words: str) -> None:
        target, pages = self._target, self._pages
        if target is None or pages is None or self._card is None:
            return
        part = pages.document[target.part]
        start, end = part.raw_offset(target.start), part.raw_offset(target.end)
        quote = part.raw[start:end]
        start += len(quote) - len(quote.lstrip())
        self._card.add_comment(Comment(quote.strip()[:LONGEST], words, part.path, start))
        self.clear_selection()
        self._lay_out()

    def action_uncomment(self) -> None:
        """Undo the last comment."""
        if not self._comments:
            self._say("there is no comment to undo")
        elif self._card is not None:
            self._card.uncomment()
            self._lay_out()

    # Leaving.

    def action_back(self) -> None:
        """Close the field, else the reader."""
        if not self._mode:
            self.action_leave("close")
            return
        if self._mode == "search":
            self._query, self._view.hits = "", ()
            self._move_to(self._came_from)
        self._close_field()

    def action_leave(self, action: Literal["card", "edit", "close"]) -> None:
        """Close, then show the card or the editor."""
        if self._mode:
            return
        if action == "card" and self._card is None:
            self._say("nothing asks for an answer about this")
            return
        self.dismiss(ReaderResult(action))

    def action_help(self) -> None:
        """Show the keys of the reader first."""
        keymap = keymap_of(self.app)
        names = [action.id for action in SCREEN_ACTIONS if action.group == "Reader"]
        self.app.push_screen(HelpScreen(Situation(), keymap, "Reader", names))

    def on_key(self, event: events.Key) -> None:
        """Take an answer by its key."""
        self._problem = ""
        if self._mode:
            return
        option = next((each for each in self._options if event.character == each.key), None)
        if option is None:
            super().on_key(event)
            return
        event.stop()
        event.prevent_default()
        if refusal := gate_of(self.app).refusal:
            self._say(refusal)
        elif self._card is not None and not self._card.is_open:
            self._say("this no longer waits for an answer")
        elif self._card is not None and self._has_moved(self._card):
            self._say("the text has changed meanwhile; close the reader and open it again")
        else:
            self.dismiss(ReaderResult("choose", option.id))

    def _has_moved(self, card: ReviewPane) -> bool:
        """Whether the card asks about another text than the one shown here."""
        now, then = card.review.request, self._request
        return then is None or (now.id, now.step) != (then.id, then.step)


def _is_large(value: object) -> bool:
    """Whether it may take long to lay a value out."""
    return not isinstance(value, str) or len(value) > _LARGE


_OWN: Final = ("app.help", *(action.id for action in SCREEN_ACTIONS if action.group == "Reader"))
_OF_CARD: Final = frozenset({"reader.comment", "reader.card"})
