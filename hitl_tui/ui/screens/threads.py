"""All threads of the store, or those that wait for a person: authors, forks, search, open."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Input

from hitl_tui.drivers.protocol import Hub
from hitl_tui.engine.log.threads import ThreadSummary
from hitl_tui.ui.bindings import LIST_MOVES, bound, keymap_of
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineView, Row
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.ui.work import Work, start_work
from hitl_tui.view.cells import cut, thread_name
from hitl_tui.view.format import ago, count
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.jobs import job_words
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span, untrusted
from hitl_tui.view.status import next_words
from hitl_tui.view.threads import ThreadRow, ThreadRows

if TYPE_CHECKING:
    from hitl_tui.ui.screens.decisions import DecisionChoice

_PAGE = 100
_NEAR = 20
_SHORTEST = 8
_WRITER = 14
_SAID_FROM = 72
_WORDS: dict[str, tuple[str, str, Role]] = {
    "pending": (UNICODE.pending, "ready", "dim"),
    "running": (UNICODE.running, "running", "node"),
    "waiting": (UNICODE.waiting, "waiting", "accent"),
    "completed": (UNICODE.done, "done", "ok"),
    "failed": (UNICODE.failed, "failed", "error"),
    "cancelled": (UNICODE.cancelled, "cancelled", "dim"),
}


_KEYS: Final = (
    ("threads.open", "Open"), ("threads.waiting", "Waiting"), ("threads.search", "Search"),
    ("threads.new", "New"), ("threads.mark", "Mark"), ("threads.delete", "Delete"),
    ("threads.inside", "Inside"), ("threads.workers", "Workers"), ("threads.store", "Store"),
    ("list.up list.down", "Select"),
    ("threads.back", "Back"),
)  # fmt: skip
_KEYS_OF_SEARCH = (("enter threads.back", "To the list"),)


class ThreadList(LineView):
    """Threads in rows below fixed column names; the next page is loaded near the end."""

    class Moved(Message):
        """The cursor is on another row."""

    BINDINGS: ClassVar[list[BindingType]] = [*LIST_MOVES]

    def __init__(self, current: str, now: Callable[[], int]) -> None:
        super().__init__("threads", "Threads")
        self.current = current
        self._now = now
        self.query_text = ""
        self.found = ThreadRows()
        self.marks: list[str] = []
        """Marked threads, in the order in which they were marked."""
        self._names = _SHORTEST

    @property
    def selected(self) -> ThreadRow | None:
        """Row of the cursor."""
        at, rows = self.cursor_row, self.found.rows
        return rows[at] if at is not None and at < len(rows) else None

    def show_threads(self, threads: ThreadRows) -> None:
        """Show these threads, or their new states, as the results for `query_text`."""
        self.found = threads
        rows = threads.rows
        self.cursor_row = min(self.cursor_row or 0, len(rows) - 1) if rows else None
        at_top = len(threads.top)
        counted = count(at_top, "thread") if threads.whole else f"the newest {at_top:,}"
        marked = f"{len(self.marks)} marked, " if self.marks else ""
        self.set_titles("Threads", marked + ("found: " if self.query_text else "") + counted if rows else "")
        if rows:
            self._measure()
            self.lines = range(len(rows))  # type: ignore[assignment]
            self.set_extent(Size(0, len(rows) + 1))
            self.repaint()
        else:
            self.show([(Span(self._none(), "dim"),)])

    def _none(self) -> str:
        """Return why there is no row."""
        if self.query_text:
            return "no thread matches"
        return "no thread yet: start one with `hitl-tui demo`, or `hitl-tui run GRAPH`"

    def _measure(self) -> None:
        """Make the name column as wide as the longest name."""
        rows = (row for row in self.found.rows if not row.left)
        self._names = max((cell_len("".join(self._named(row))) for row in rows), default=_SHORTEST)

    def on_resize(self, event: events.Resize) -> None:
        """Lay out the columns for another width."""
        super().on_resize(event)
        self._measure()
        self.repaint()

    def _named(self, row: ThreadRow) -> tuple[str, str, str]:
        """Return the prefix of a name, the name cut to the room, and the note after it."""
        thread, depth, opened, _ = row
        inside = f" · {thread.inside:,} inside" if thread.inside else ""
        mark = f"{UNICODE.done} " if row.name in self.marks else ""
        ahead = "  " * depth + (mark or ("- " if opened else "+ " if inside else "  "))
        inside += " · open now" if row.name == self.current and self._width >= _SAID_FROM else ""
        room = min(36 if self._wide else 28, self._width // 2 - 8) - cell_len(ahead + inside)
        return ahead, thread_name(row.name, max(room, _SHORTEST)), inside

    @property
    def _width(self) -> int:
        """Return the width of a row; before the layout, that of a list as wide as the terminal."""
        return self.size.width or self.app.size.width - 4

    @property
    def _wide(self) -> bool:
        return self._width >= 100

    def visible_row(self, y: int) -> Row:
        """Return the row of column names, or a thread."""
        if not self.found.rows:
            return super().visible_row(y)
        if y == 0:
            last = f"{'changed':<10}{'last writer':<{_WRITER + 1}}" if self._wide else ""
            names = "  " + "thread".ljust(max(self._names - 1, 7))
            return Row((Span(f"{names}{'status':<12}{'step':>4}  {last}waits for, or how it ended", "dim"),))
        index = self._at[1] + y - 1
        if index >= len(self.lines):
            return Row(())
        return self.grounded(self.line(index), self.ground(index))

    def row_at(self, event: events.MouseEvent) -> int | None:
        """Return the thread under the mouse."""
        offset = event.get_content_offset(self)
        row = round(self.scroll_y) + offset.y - 1 if offset is not None and offset.y else -1
        return row if 0 <= row < len(self.found.rows) else None

    def line(self, row: int) -> Line:
        """Return a thread as one row."""
        if not self.found.rows:
            return self.lines[row]
        shown = self.found.rows[row]
        thread, depth = shown.thread, shown.depth
        if shown.left:
            return (Span(f"{'  ' * depth}  … {shown.left:,} more", "dim"),)
        glyph, word, role = _WORDS[thread.status]
        word = "paused" if _is_paused(thread) else word
        ahead, name, inside = self._named(shown)
        spans = [
            Span(ahead, "accent"),
            Span(name, "name"),
            Span(inside + " " * max(self._names + 1 - cell_len(ahead + name + inside), 1), "dim"),
            Span(f"{glyph} {word:<10}", role),
            Span(f"{thread.head if thread.head >= 0 else '-':>4}  ", "dim"),
            *self._last(thread),
            untrusted(self._stands(thread), role if thread.status == "waiting" else "dim", limit=70),
        ]
        info = thread.info
        if info.parent:
            spans.append(untrusted(f"  ╰ from step {info.fork_step} of {info.parent}", "dim", limit=50))
        if info.owner and not depth:
            spans.append(untrusted(f"  inside {info.owner.thread_id}", "dim", limit=50))
        if thread.job and thread.job.state != "running":
            spans.append(untrusted(f"  {job_words(thread.job, self._now())}", "dim", limit=80))
        if thread.held_by:
            spans.append(untrusted(f"  run by {thread.held_by}", "warning", limit=40))
        return tuple(spans)

    def _stands(self, thread: ThreadSummary) -> str:
        """Return what it waits for and since when, its next node, or how it ended."""
        on = thread.next_node if thread.status != "completed" else None
        waits = "" if _is_paused(thread) else thread.waiting_for
        what = waits or (next_words(on) if on else thread.reason)
        since = ago(thread.waiting_since, self._now()) if thread.waiting_since else ""
        if not since or (self._wide and since == ago(thread.updated_at, self._now())):
            return what
        asked = thread.reason in ("interrupt", "approval")
        return f"{what} · {'asked ' if asked else ''}{since}"

    def _last(self, thread: ThreadSummary) -> Line:
        """Return when it changed and who wrote last, if there is room."""
        if not self._wide:
            return ()
        who = cut(sanitise_line(thread.last_writer, 40), _WRITER)
        return (
            Span(f"{ago(thread.updated_at, self._now()):<10}", "dim"),
            Span(who + " " * (_WRITER + 1 - cell_len(who))),
        )

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        if self.found.rows:
            self.select(min(max((self.cursor_row or 0) + by, 0), len(self.found.rows) - 1))
            self.post_message(self.Moved())

    def select(self, row: int) -> None:
        """Put the cursor on a row."""
        self.cursor_row = row
        self.reveal(row, self.size.height - 1)

    def on_click(self, event: events.Click) -> None:
        """Select with one click, open with the second."""
        event.stop()
        row = self.row_at(event)
        if row is not None and self.found.rows:
            if row == self.cursor_row or event.chain > 1:
                self.post_message(self.RowChosen(self, row))
            self.cursor_row = row
            self.repaint()


async def first_page(hub: Hub) -> ThreadRows:
    """First page of the list."""
    page = await hub.threads("", _PAGE, None, "")
    return ThreadRows(page, whole=len(page) < _PAGE)


def _is_paused(thread: ThreadSummary) -> bool:
    """Whether a person or a breakpoint stopped it between two nodes, without a request."""
    return thread.status == "waiting" and thread.reason == "paused"


class ThreadsScreen(OverlayScreen):
    """Returns the id of the thread to open, or None.

    Args:
        keys: the keys that opened it and close it again.
        do: does an action of the run screen below; None if the list can only open a thread.
        open_step: shows there the step of a decision; None if there is no `do`.
        actor: who deletes.
        first: its first page, None to load it.
        leave: called with the result instead of closing, if it is the first screen and stays.
    """

    SHOWS_DECISIONS = True
    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "threads.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("threads.back", "back"),
        bound("threads.open", "open"),
        bound("threads.inside", "inside"),
        bound("threads.waiting", "waiting"),
        bound("threads.new", "new"),
        bound("threads.search", "search"),
        bound("threads.mark", "mark"),
        bound("threads.delete", "delete"),
        bound("threads.workers", "workers"),
        bound("threads.decided", "decided"),
        bound("threads.store", "store"),
        bound("threads.close", "close"),
    ]
    AUTO_FOCUS = "#threads"

    def __init__(
        self,
        hub: Hub,
        current: str,
        now: Callable[[], int],
        keys: Sequence[str] = (),
        *,
        do: Callable[[str], None] | None = None,
        open_step: Callable[[DecisionChoice], None] | None = None,
        actor: str | None = None,
        first: ThreadRows | None = None,
        leave: Callable[[str | None], None] | None = None,
    ) -> None:
        super().__init__(keys)
        self._first = first
        self._stale = self._loading = False
        self._leave = leave
        self._hub = hub
        self._now = now
        self._do = do
        self._open_step = open_step
        self._actor = actor
        self._list = ThreadList(current, now)

    def compose(self) -> ComposeResult:
        if self._do is not None:
            yield PageHeader()
        yield SafeInput(id="search", placeholder="search: part of a name")
        yield self._list
        yield KeysBar(self._keys_shown)

    @property
    def _keys_shown(self) -> Sequence[tuple[str, str]]:
        leads = () if self._do is not None else ("threads.waiting", "threads.new")
        without = (*leads, "threads.workers") if self._hub.no_workers else leads
        return [entry for entry in _KEYS if entry[0] not in without]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable destinations that don't exist here."""
        if action == "workers":
            return not self._hub.no_workers
        return self._do is not None or action not in ("waiting", "new", "decided")

    def on_mount(self) -> None:
        """Show the first page."""
        if self._first is None:
            self._load()
        else:
            self._list.show_threads(self._first)

    def dismiss(self, result: str | None = None) -> AwaitComplete:
        """Return a thread, or stay and let it be shown over this."""
        if self._leave is None:
            return super().dismiss(result)
        self._leave(result)
        return AwaitComplete()

    def _load(self) -> None:
        self._stale = True
        if not self._loading:
            self._loading = True
            start_work(self, self._fetch, group="threads")

    async def _fetch(self) -> None:
        """Load the first page for the newest search text: one load at a time, none if it is up to date."""
        try:
            while self._stale:
                self._stale = False
                page = await self._page(None)
                if not self._stale:
                    self._list.show_threads(ThreadRows(page, whole=len(page) < _PAGE))
        finally:
            self._loading = False

    async def _page(self, after: ThreadSummary | None) -> tuple[ThreadSummary, ...]:
        """Return a page of threads: with a search text of all threads, else of those at the top."""
        query = self._list.query_text
        return await self._hub.threads(query, _PAGE, after, None if query else "")

    async def _fetch_more(self) -> None:
        threads, known = self._list.found, len(self._list.found.top)
        more = await self._page(threads.top[-1])
        if self._list.found is threads and len(threads.top) == known:
            threads.add(more, whole=len(more) < _PAGE)
            self._list.show_threads(threads)

    async def _fetch_inside(self, row: ThreadRow) -> None:
        """Load the threads inside a thread, or show more of them."""
        threads = self._list.found
        known = threads.inside(row.name)
        more = await self._hub.threads("", _PAGE, known[-1] if known else None, row.name)
        if self._list.found is threads and threads.inside(row.name) == known:
            threads.open(row.name, more)
            self._list.show_threads(threads)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._list.query_text = event.value.strip()
        self._load()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._list.focus()

    @on(LineView.RowChosen)
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        self._list.cursor_row = event.row
        self.action_open()

    @on(ThreadList.Moved)
    def _moved(self) -> None:
        """Load the next page near the end of what is loaded, or if more is to be loaded."""
        row, threads = self._list.cursor_row or 0, self._list.found
        selected = self._list.selected
        if selected is not None and selected.left:
            self._work(partial(self._fetch_inside, selected))
        elif row + _NEAR > len(threads.rows) and not threads.whole:
            self._work(self._fetch_more)

    def _work(self, fetching: Work) -> None:
        start_work(self, fetching, group="more", exclusive=True)

    def action_open(self) -> None:
        """Open the selected thread."""
        row = self._list.selected
        if row is not None and row.left:
            self._work(partial(self._fetch_inside, row))
        elif row is not None:
            self.dismiss(row.name)

    def action_inside(self) -> None:
        """Show what ran inside the selected thread, or hide it; from an inner thread, hide its level."""
        row, at, threads = self._list.selected, self._list.cursor_row, self._list.found
        if row is None or at is None:
            return
        if row.thread.inside and not row.opened and not row.left:
            self._work(partial(self._fetch_inside, row))
            return
        outer = at if row.opened else threads.outer(at)
        if outer is not None:
            threads.close(threads.rows[outer].name)
            self._list.show_threads(threads)
            self._list.select(outer)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Show the keys of the widget with the focus."""
        if self.display:  # while it is being removed, its parts go one by one
            self._show_keys(searching=event.widget is self.query_one(Input))

    def _show_keys(self, *, searching: bool) -> None:
        footer = self.query_one(KeysBar)
        footer.entries = _KEYS_OF_SEARCH if searching else self._keys_shown
        footer.refresh()

    def action_waiting(self) -> None:
        """Show the queue."""
        if self._do is not None:
            self.dismiss(None)
            self._do("app.queue")

    def action_new(self) -> None:
        """Start a thread."""
        if self._do is not None:
            self.dismiss(None)
            self._do("app.new")

    def action_mark(self) -> None:
        """Mark the selected thread, or unmark it, and go to the next one."""
        row, marks = self._list.selected, self._list.marks
        if row is not None and not row.left:
            marks.remove(row.name) if row.name in marks else marks.append(row.name)
            self._list.action_move(1)
            self._list.show_threads(self._list.found)

    def action_delete(self) -> None:
        """Delete the marked threads, or else the selected one, after a look at what goes with them."""
        row = self._list.selected
        names = [*self._list.marks] or ([row.name] if row is not None and not row.left else [])
        if names:
            self.converse(partial(self._delete, names))

    async def _delete(self, names: Sequence[str]) -> None:
        from hitl_tui.ui.conversations import play_on_store
        from hitl_tui.verbs.conversation import At

        given = {"threads": shlex.join(names)}
        at = At(None, self._hub, self._actor or "", opened=self._list.current, given=given)
        if await play_on_store(self, at, "delete"):
            self._list.marks.clear()
        self._load()

    def action_store(self) -> None:
        """Show what fills the store."""
        from hitl_tui.ui.screens.store import StoreScreen

        screen = StoreScreen(self._hub, self._actor or "", self._now, self._list.current)
        self.app.push_screen(screen, lambda _: self._load())

    def action_workers(self) -> None:
        """Show who runs what; open a thread that is chosen there."""
        from hitl_tui.ui.screens.workers import WorkersScreen

        def chosen(thread_id: str | None) -> None:
            if thread_id:
                self.dismiss(thread_id)

        keys = keymap_of(self.app).bindings["threads.workers"]
        self.app.push_screen(WorkersScreen(self._hub, keys), chosen)

    def action_decided(self) -> None:
        """Show all decisions; the step of a chosen one opens instead of this."""
        from hitl_tui.ui.screens.decisions import DecisionsScreen

        open_step = self._open_step
        if open_step is None:
            return

        def chosen(choice: DecisionChoice | None) -> None:
            if choice is not None:
                self.dismiss(None)
                open_step(choice)

        keys = keymap_of(self.app).bindings["threads.decided"]
        self.app.push_screen(DecisionsScreen(self._hub, self._actor or "", self._now, keys), chosen)

    def action_search(self) -> None:
        """Type in the search field."""
        self.query_one(Input).focus()

    def action_back(self) -> None:
        """Go from the search to the list, or from the list to the run."""
        if self._list.has_focus:
            self.dismiss(None)
        else:
            self._list.focus()
