"""Live queue of requests that wait for a person: sort, filter, preview, open, mark several."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec
from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Input

from hitl_tui.drivers.node_streams import in_browser
from hitl_tui.drivers.protocol import Hub, ThreadKey
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import LIST_MOVES, bound, keymap_of
from hitl_tui.ui.gate import decides
from hitl_tui.ui.guard import failure_words
from hitl_tui.ui.screens.page import KeysBar, LiveScreen
from hitl_tui.ui.widgets.lines import Column, LineBar, LineView, Room, ours, strip_of
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.ui.work import start_work
from hitl_tui.view.asked import danger_words
from hitl_tui.view.queue import (
    MOST,
    SOON,
    SORTS,
    Key,
    Marks,
    QueueChoice,
    QueueRow,
    QueueView,
    read_filter,
    rows_of,
    soon_words,
    source_problems,
    summary_words,
)
from hitl_tui.view.queue_kept import last_look, load_view, save_look, save_view
from hitl_tui.view.queue_lines import ROWS, Columns, columns_of, preview_lines, queue_line, second_line
from hitl_tui.view.spans import Line, Span, plain_text, trusted

if TYPE_CHECKING:
    from hitl_tui.ui.screens.decisions import DecisionChoice
    from hitl_tui.verbs.conversation import Verb

_PAINT_EVERY: Final = 10.0
_ATTENDED: Final = 2.0
"""Seconds until all is read again while somebody has a request open: a killed process writes nothing."""
_FIRST: Final = 50
"""Number of threads that are painted before the rest is read: those that have waited longest."""
_TITLE: Final = "Waiting for you"
_BRAND_FROM: Final = 100
_WIDTHS: list[tuple[int, str]] = [(0, "-narrow"), (140, "-huge")]
_REST: Final = 0.15
"""Seconds for which the cursor rests on a row before that is previewed."""
_EXAMPLE: Final = "words, graph:advisor, risk:high, due:today, handed:me, back:me, claimed:none"
_KEYS: Final = (
    ("queue.open", "Open"), ("queue.mark", "Mark"), ("queue.filter", "Filter"), ("queue.policy", "Policy"),
    ("queue.sort", "Sort"), ("queue.claim", "Claim"), ("queue.hand", "Hand over"),
    ("queue.all", "Mark all"), ("queue.threads", "All threads"), ("queue.new", "New"),
    ("queue.alike", "Mark alike"), ("queue.back", "Back"),
)  # fmt: skip
_KEYS_OF_FILTER: Final = (("enter queue.back", "To the list"),)


class QueueHeader(LineBar):
    """How many requests wait, the urgent ones, and the order."""

    def __init__(self) -> None:
        super().__init__(id="header")
        self._parts: tuple[str, str, str, str] = ("", "", "", "")

    def show(self, count: str, soon: str, presses: str, sorted_by: str) -> None:
        """Show these; paint only if something differs."""
        if (count, soon, presses, sorted_by) != self._parts:
            self._parts = count, soon, presses, sorted_by
            self.refresh()

    def bar(self, width: int) -> Line:
        """Return the spans; the order is left out first, then the last of the urgent ones."""
        waits, soon, presses, by = self._parts
        name = ours(" hitl-tui ", "brand") if width >= _BRAND_FROM else ours("", "brand")
        left: Line = (name, ours(" queue  ", "brand"), ours(f" {waits} ", "badge"))
        left = (*left, Span(f"   {soon}", "urgent")) if soon else left
        right: Line = (trusted(f"{by} ", "dim"),)
        room = width - sum(cell_len(plain_text(part)) for part in (left, right)) - 4
        while cell_len(presses) > room and presses:
            presses = presses.rpartition(" · ")[0]
        between = f"{' · ' if soon else '   '}{presses}" if presses else ""
        gap = " " * max(room + 4 - cell_len(between), 1)
        return (*left, trusted(f"{between}{gap}", "dim"), *right)


class SourcesBar(LineBar):
    """What is wrong with sources that can't be read now, a row each; without any it has no row."""

    def __init__(self) -> None:
        super().__init__(id="sources")
        self.display = False
        self._problems: Sequence[str] = ()

    def show(self, problems: Sequence[str]) -> None:
        """Show these; paint only if something differs."""
        if problems != self._problems:
            self._problems = problems
            self.display = bool(problems)
            self.styles.height = len(problems)
            self.refresh(layout=True)

    def bar(self, width: int) -> Line:
        """Return the first row at a width."""
        return self._line(0)

    def _line(self, y: int) -> Line:
        return (trusted(f" ! {self._problems[y]}", "warning"),) if y < len(self._problems) else ()

    def render_line(self, y: int) -> Strip:
        """Draw a row."""
        return strip_of(self, self._line(y), self.size.width, self.rich_style)


class QueueList(LineView):
    """Requests, two lines each."""

    class Moved(Message):
        """The cursor is on another row."""

    BINDINGS: ClassVar[list[BindingType]] = [*LIST_MOVES]

    def __init__(self, me: str, now: Callable[[], int], looked: int | None) -> None:
        super().__init__("queue", _TITLE)
        self._me = me
        self._now = now
        self._looked = looked
        self.read: set[Key] = set()
        """The requests that the person has seen meanwhile, by their keys."""
        self._dangers: dict[Key, tuple[str, ...]] = {}
        self.marks = Marks()
        self.rows: Sequence[QueueRow] = ()
        self.none = ""
        self._columns_for = 0
        self._columns = Columns(0, 0, 0, 0, 0)

    @property
    def selected(self) -> QueueRow | None:
        """Row of the cursor."""
        at = self.cursor_row
        return self.rows[at] if at is not None and at < len(self.rows) else None

    def show_rows(self, rows: Sequence[QueueRow], none: str) -> None:
        """Show these rows; the cursor stays on its row, or at its position if that has gone.

        Args:
            none: why there is none.
        """
        selected = self.selected
        self.rows, self.none = rows, none
        if not rows:
            self.cursor_row = None
            self.show([(Span(none, "dim"),)])
            return
        place = next((at for at, row in enumerate(rows) if selected and row.key == selected.key), None)
        self.cursor_row = min(self.cursor_row or 0, len(rows) - 1) if place is None else place
        self._columns_for = 0
        self.lines = range(len(rows) * ROWS)  # type: ignore[assignment]
        self.set_extent(Size(0, len(rows) * ROWS))
        self.repaint()

    def on_resize(self, event: events.Resize) -> None:
        """Keep the cursor visible in another height."""
        super().on_resize(event)
        if self.cursor_row is not None:
            self._reveal(self.cursor_row)
        self.repaint()

    def line(self, row: int) -> Line:
        """Return one of the two lines of a request."""
        if not self.rows:
            return self.lines[row]
        shown, width, now = self.rows[row // ROWS], self.scrollable_content_region.width, self._now()
        if width != self._columns_for:  # with or without a scroll bar
            self._columns_for, self._columns = width, columns_of(self.rows, width)
        if row % ROWS:
            refused = self.marks.reason(shown)
            return second_line(shown, width, now, self._me, refused=refused, dangers=self._dangers_in(shown))
        return queue_line(
            shown, self._columns, width, now, self._me, marked=shown in self.marks, new=self._is_new(shown)
        )

    def _dangers_in(self, row: QueueRow) -> tuple[str, ...]:
        """Return what to look at twice in a request; each is looked through once."""
        if row.request is None:
            return ()
        if row.key not in self._dangers:
            self._dangers[row.key] = danger_words(row.request)
        return self._dangers[row.key]

    def _is_new(self, row: QueueRow) -> bool:
        return row.key not in self.read and row.is_new(self._me, self._looked)

    def ground(self, row: int) -> str:
        """Return the role of the background of a line: both lines of the cursor's row have it."""
        return super().ground(row // ROWS) if self.rows else ""

    def row_at(self, event: events.MouseEvent) -> int | None:
        """Return the request under the mouse."""
        line = super().row_at(event)
        return line // ROWS if line is not None and self.rows else None

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        if self.rows:
            self.select(min(max((self.cursor_row or 0) + by, 0), len(self.rows) - 1))

    def select(self, row: int) -> None:
        """Put the cursor on a row."""
        self.cursor_row = row
        self._reveal(row)
        self.post_message(self.Moved())

    def _reveal(self, row: int) -> None:
        """Scroll until both lines of a row are visible."""
        self.reveal(row * ROWS + ROWS - 1)
        self.reveal(row * ROWS)

    def on_click(self, event: events.Click) -> None:
        """Select with one click, open with the second."""
        event.stop()
        row = self.row_at(event)
        if row is not None:
            if row == self.cursor_row or event.chain > 1:
                self.post_message(self.RowChosen(self, row))
            self.select(row)


class QueueScreen(LiveScreen):
    """Returns the row to open (see `QueueChoice`), or None.

    Args:
        file: where the filter and the order are kept.
        signs: whether a key signs the decisions made here.
        do: does an action of the run screen below.
        open_step: shows there the step of a decision.
        came_from: the source and the thread last opened from it: the cursor begins there while that waits.
        keys: the keys that opened it and close it again.
        looks_file: where it is kept when each person last looked; None keeps nothing.
        read: the keys of requests that the person has seen elsewhere since then.
    """

    SHOWS_DECISIONS = True
    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "queue.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("queue.open", "open"),
        bound("queue.mark", "mark"),
        bound("queue.alike", "mark_alike"),
        bound("queue.all", "mark_all"),
        bound("queue.decide", "decide"),
        bound("queue.policy", "policy"),
        bound("queue.claim", "claim"),
        bound("queue.hand", "hand_over"),
        bound("queue.filter", "filter"),
        bound("queue.sort", "sort"),
        bound("queue.reverse", "reverse"),
        bound("queue.threads", "threads"),
        bound("queue.new", "new"),
        bound("queue.decided", "decided"),
        bound("queue.back", "back"),
        bound("queue.close", "close"),
    ]
    AUTO_FOCUS = "#queue"
    HORIZONTAL_BREAKPOINTS = _WIDTHS

    def __init__(
        self,
        hub: Hub,
        me: str,
        now: Callable[[], int],
        file: Path,
        *,
        signs: bool,
        claim_minutes: float,
        do: Callable[[str], None],
        open_step: Callable[[DecisionChoice], None],
        came_from: ThreadKey = ("", ""),
        keys: Sequence[str] = (),
        looks_file: Path | None = None,
        read: Collection[Key] = (),
    ) -> None:
        super().__init__(hub.inbox, keys)
        self._hub = hub
        self._came_from = came_from
        self._claim_minutes = claim_minutes
        self._me = me
        self._now = now
        self._file = file
        self._signs = signs
        self._do = do
        self._open_step = open_step
        self._view = load_view(file)
        self._looks_file = looks_file
        self._list = QueueList(me, now, last_look(looks_file, me) if looks_file else None)
        self._list.read.update(read)
        self._next_soon = math.inf
        self._rows: tuple[QueueRow, ...] = ()
        self._read = False
        self._painted_at = 0.0
        self._previewed: tuple[Key, bytes, Size] | None = None

    def compose(self) -> ComposeResult:
        yield QueueHeader()
        with Room(id="queue-body"):
            with Column(id="queue-left"):
                yield self._list
                yield SourcesBar()
                yield SafeInput(self._view.filter, id="filter", placeholder=_EXAMPLE)
            yield LineView("preview")
        yield KeysBar(_KEYS)

    def on_mount(self) -> None:
        """Hide the empty filter, and give the preview no keys."""
        self._show_filter()
        self.query_one("#preview", LineView).can_focus = False

    def look(self) -> None:
        """Read the requests if somebody has written; show them again as minutes pass."""
        super().look()
        if self._now() >= self._next_soon:
            self._show()
        elif time.monotonic() >= self._painted_at + _PAINT_EVERY:
            self._painted_at = time.monotonic()
            self._show_header(self._now())
            self._list.repaint()

    async def read(self) -> None:
        """Read the requests, and show them; if that fails now, try again later."""
        try:
            if self._read or not await self._read_first():
                self._rows = rows_of(await self.inbox.waiting(MOST))
        except HitlError as error:
            self.notify(error.message, markup=False, severity="error")
            return
        attended = any(row.thread.attending for row in self._rows)
        self.read_every = _ATTENDED if attended else LiveScreen.read_every
        begins = not self._read and not self._list.cursor_row  # nobody has moved the cursor
        if begins:
            self._list.cursor_row = None
        self._read = True
        self._show()
        here = [at for at, row in enumerate(self._list.rows) if row.thread_key == self._came_from]
        if begins and here:  # else it is at the most urgent one
            self._list.select(here[0])

    async def _read_first(self) -> bool:
        """Read some of the requests, and paint them if there are more; return whether these are all."""
        first = await self.inbox.waiting(_FIRST)
        self._rows = rows_of(first)
        if len(first) < _FIRST:
            return True
        self._show()
        painted = asyncio.Event()
        self.call_after_refresh(painted.set)
        await painted.wait()
        return False

    @property
    def _is_whole(self) -> bool:
        """Whether all its parts are there: while it is being removed, they go one by one."""
        parts = ("QueueHeader", "SourcesBar", "#preview", "#filter", "KeysBar")
        return bool(self.display) and all(self.query(part) for part in parts)

    def _show(self) -> None:
        """Show the requests as they are filtered and sorted now."""
        if not self._is_whole:
            return
        now = self._now()
        shown = self._view.shown(self._rows, now, self._me)
        self._next_soon = min(
            (row.deadline - SOON for row in self._rows if row.deadline and row.deadline - SOON > now),
            default=math.inf,
        )
        self._list.show_rows(shown, self._none())
        self._show_header(now)
        marked = f"{len(self._list.marks)} marked, " if len(self._list.marks) else ""
        counted = f"{len(shown):,} of {len(self._rows):,}" if self._view.filter else f"{len(shown):,}"
        self._list.set_titles(_TITLE, f"{marked}{counted}, {'live' if self._read else 'reading on…'}")
        self._show_keys()
        self._preview()

    def _show_header(self, now: int) -> None:
        if not self._is_whole:
            return
        asks = sum(row.asks for row in self._rows)
        self.query_one(QueueHeader).show(
            f"{asks:,}{'' if self._read else '+'} WAIT{'S' if asks == 1 and self._read else ''} FOR YOU",
            soon_words(self._rows, now) if self._read else "",
            summary_words(self._rows, now, self._me) if self._read else "",
            self._view.sort_words,
        )
        self.query_one(SourcesBar).show(source_problems(self.inbox.sources(), retries=True))

    def _none(self) -> str:
        if not self._read:
            return "looking…"
        problems = read_filter(self._view.filter).problems
        if self._rows:
            way = keymap_of(self.app).key_hint("queue.filter")
            return "; ".join(problems) or f"no request matches the filter; {way} changes it"
        return "nothing waits for a human"

    def _show_keys(self) -> None:
        if not self._is_whole:
            return
        footer, marked = self.query_one(KeysBar), len(self._list.marks)
        searching = self.focused is self.query_one(Input)
        decide = (("queue.decide", f"Decide the {marked} marked"),) if marked else ()
        entries = _KEYS_OF_FILTER if searching else (*_KEYS[:2], *decide, *_KEYS[2:])
        if footer.entries != entries:
            footer.entries = entries
            footer.refresh()

    def _show_filter(self) -> None:
        """Show the field for the filter if it has a text."""
        if not self._is_whole:
            return
        field = self.query_one(Input)
        field.border_title = "filter"
        field.set_class(not (field.has_focus or field.value), "-empty")

    # The preview.

    @on(QueueList.Moved)
    def _moved(self) -> None:
        self._preview()

    @on(LineView.Widened)
    def _widened(self, event: LineView.Widened) -> None:
        if event.view.id == "preview":
            self._preview()

    def _preview(self) -> None:
        """Show the subject of the selected row once the cursor rests on it."""
        if not self._is_whole:
            return
        pane, row = self.query_one("#preview", LineView), self._list.selected
        if row is None:
            self._previewed = None
            pane.set_titles("", "")
            pane.show([])
            return
        wanted = (row.key, row.seen, pane.scrollable_content_region.size)
        if wanted != self._previewed:
            self._previewed = wanted
            start_work(self, partial(self._load, row), group="preview", exclusive=True)

    async def _load(self, row: QueueRow) -> None:
        await asyncio.sleep(_REST)
        if not self._is_whole:
            return
        pane = self.query_one("#preview", LineView)
        try:
            room = pane.scrollable_content_region
            lines = await preview_lines(
                self.inbox, row, self._now(), self._me,
                width=room.width - 1, height=room.height, marked=self.app.no_color,
            )  # fmt: skip
        except HitlError as error:
            lines = [(trusted("it can't be shown", "error"),), (Span(error.message),)]
        pane.set_titles(f"{row.source} · {row.name}" if row.source else row.name, "preview")
        pane.show(lines, home=True)
        if row.request is not None and row.key not in self._list.read:
            self._list.read.add(row.key)
            self._list.repaint()

    # Text input.

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._change(msgspec.structs.replace(self._view, filter=event.value))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._list.focus()

    def _change(self, view: QueueView) -> None:
        if view != self._view:
            self._view = view
            self._show()

    def on_descendant_focus(self) -> None:
        """Show the keys of the widget with the focus."""
        self._show_filter()
        self._show_keys()

    def on_descendant_blur(self) -> None:
        """Hide an empty filter."""
        self._show_filter()

    def on_unmount(self) -> None:
        """Save the filter and the order, and that the person has looked."""
        save_view(self._file, self._view)
        if self._read and self._looks_file is not None:
            save_look(self._looks_file, self._me, self._now())

    # The actions.

    @on(LineView.RowChosen)
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        self._list.cursor_row = event.row
        self.action_open()

    def action_open(self) -> None:
        """Open the selected row."""
        row = self._list.selected
        if row is not None:
            self.dismiss(QueueChoice(row, self._list.rows, self._view))

    def action_mark(self) -> None:
        """Mark the selected row, and go to the next one."""
        row = self._list.selected
        if row is None:
            return
        if row.asks:
            self._list.marks.turn(row)
        else:
            self.notify("it only stopped there; nothing is asked", markup=False)
        self._list.action_move(1)
        self._show()

    def action_mark_alike(self) -> None:
        """Mark the shown rows that ask the same as the selected one."""
        row = self._list.selected
        if row is not None:
            self._list.marks.turn_all([other for other in self._list.rows if other.is_like(row)])
            self._show()

    def action_mark_all(self) -> None:
        """Mark all shown rows."""
        self._list.marks.turn_all(self._list.rows)
        self._show()

    def action_decide(self) -> None:
        """Decide the marked rows, or else the selected one."""
        row, marks = self._list.selected, self._list.marks
        alone = row if not len(marks) and row is not None and row.asks else None
        if alone is not None:
            marks.turn(alone)
        if len(marks):
            start_work(self, partial(self._decide, marks.rows, {}, alone), group="decide")

    def action_policy(self) -> None:
        """Ask for a file of rules, then list their answers to the marked rows, or to all shown ones."""
        rows = self._list.marks.rows or [row for row in self._list.rows if row.asks]
        if not rows:
            self.notify("no listed request needs a decision", markup=False)
        elif in_browser():
            self.notify("in a browser you can't open files of the server", markup=False)
        else:
            start_work(self, partial(self._decide, rows, {"policy": ""}), group="decide")

    async def _decide(
        self, rows: Sequence[QueueRow], given: Mapping[str, str], alone: QueueRow | None = None
    ) -> None:
        """Let several requests be decided, and show the outcome.

        Args:
            given: see `At`.
            alone: a row that nobody had marked; it stays marked only if it was refused.
        """
        from hitl_tui.ui.conversations import play_in_list
        from hitl_tui.verbs import verbs
        from hitl_tui.verbs.conversation import At

        marks = self._list.marks
        at = At(None, self._hub, self._me, signs=self._signs, listed=rows, given=given)
        try:
            listing = await play_in_list(self, at, verbs()["decide"].load())
            for row in listing.rows if listing is not None else ():
                if row.state == "refused":
                    marks.refused(row.key, row.outcome)
                elif row.state == "done":
                    marks.forget(row.key)
        finally:
            if alone is not None and not marks.reason(alone):
                marks.forget(alone.key)
            self._show()
            self.read_again()

    @decides
    def action_claim(self) -> None:
        """Claim the selected row, or release it; from somebody else after asking."""
        self._play("claim")

    def action_hand_over(self) -> None:
        """Ask who the selected row is handed to."""
        self._play("hand-over")

    def _play(self, name: str) -> None:
        """Play the conversation of a verb about the request of the selected row."""
        from hitl_tui.verbs import verbs

        row = self._list.selected
        if row is not None and row.request is not None and row.asks:
            start_work(self, partial(self._converse, row, row.request.id, verbs()[name].load()), group="row")

    async def _converse(self, row: QueueRow, request: str, verb: Verb) -> None:
        """Play a conversation in the thread of a row, and show the outcome."""
        from hitl_tui.ui.conversations import play_in_list
        from hitl_tui.verbs.conversation import At

        try:
            hub = self.inbox.hub_of(row.source)
            async with hub.borrow(row.name) as driver:
                at = At(driver, hub, self._me, row.seen, request=request, claim_minutes=self._claim_minutes)
                await play_in_list(self, at, verb)
        except HitlError as error:
            self.notify(failure_words(error), severity="warning", markup=False)
        await self.read()

    def action_filter(self) -> None:
        """Edit the filter."""
        field = self.query_one(Input)
        field.remove_class("-empty")
        field.focus()
        field.select_all()

    def action_sort(self) -> None:
        """Ask for the column to sort by."""
        from hitl_tui.ui.screens.dialogs import Dialog, DialogResult
        from hitl_tui.view.keymap import BACK, Option

        def answered(answer: DialogResult | None) -> None:
            if answer is not None:
                self._change(msgspec.structs.replace(self._view, sort=answer.id))

        now = self._view.sort
        options = [
            Option(name, sort.key, sort.label, "as it is now" if name == now else "")
            for name, sort in SORTS.items()
        ]
        options.append(BACK)
        turn = keymap_of(self.app).key_hint("queue.reverse")
        self.app.push_screen(Dialog("Sort by", [f"{turn} reverses it."], options), answered)

    def action_reverse(self) -> None:
        """Reverse the order."""
        self._change(msgspec.structs.replace(self._view, reverse=not self._view.reverse))

    def action_threads(self) -> None:
        """Show all threads."""
        self.dismiss(None)
        self._do("app.threads")

    def action_new(self) -> None:
        """Start a thread."""
        self.dismiss(None)
        self._do("app.new")

    def action_decided(self) -> None:
        """Show all decisions; the step of a chosen one opens instead of this."""
        from hitl_tui.ui.screens.decisions import DecisionsScreen

        def chosen(choice: DecisionChoice | None) -> None:
            if choice is not None:
                self.dismiss(None)
                self._open_step(choice)

        keys = keymap_of(self.app).bindings["queue.decided"]
        self.app.push_screen(DecisionsScreen(self._hub, self._me, self._now, keys), chosen)

    def action_back(self) -> None:
        """Go from the filter to the list, or from the list to the run."""
        if self._list.has_focus:
            self.dismiss(None)
        else:
            self._list.focus()
