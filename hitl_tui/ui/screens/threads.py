"""All threads of the store: what each waits for, who wrote last, where it was forked from; search, open."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from pathlib import PurePath
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from hitl_tui.drivers.protocol import Hub
from hitl_tui.engine.threads import ThreadSummary
from hitl_tui.ui.bound import bound
from hitl_tui.ui.screens.keys_bar import KeysBar
from hitl_tui.ui.widgets.lines import LineView, RoleScreen
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.view.format import ago
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span, untrusted
from hitl_tui.view.thread_rows import ThreadRow, ThreadRows

_PAGE = 100
_NEAR = 20
_SHORTEST = 8
_WORDS: dict[str, tuple[str, str, Role]] = {
    "pending": (UNICODE.pending, "ready", "dim"),
    "running": (UNICODE.running, "running", "node"),
    "waiting": (UNICODE.waiting, "waiting", "accent"),
    "completed": (UNICODE.done, "done", "ok"),
    "failed": (UNICODE.failed, "failed", "error"),
    "cancelled": (UNICODE.cancelled, "cancelled", "dim"),
}


class ThreadsFooter(KeysBar):
    """The keys of this screen."""

    entries = (
        ("threads.open", "Open"), ("threads.inside", "Inside"), ("threads.search", "Search"),
        ("list.up list.down", "Select"), ("threads.back", "Back"),
    )  # fmt: skip


class ThreadList(LineView):
    """Threads in rows; the next page is fetched when the cursor comes near the end."""

    class Moved(Message):
        """The cursor is on another row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("list.up", "move(-1)"),
        bound("list.down", "move(1)"),
        bound("list.page_up", "move(-10)"),
        bound("list.page_down", "move(10)"),
        bound("list.first", "move(-1_000_000)"),
        bound("list.last", "move(1_000_000)"),
    ]

    def __init__(self, current: str, now: Callable[[], int]) -> None:
        super().__init__("threads", "Threads")
        self._current = current
        self._now = now
        self.found = ThreadRows()

    @property
    def selected(self) -> ThreadRow | None:
        """The row of the cursor."""
        at, rows = self.cursor_row, self.found.rows
        return rows[at] if at is not None and at < len(rows) else None

    def show_threads(self, found: ThreadRows, *, searched: bool = False) -> None:
        """Show these, or what has become of them; `searched` if they are those that a search has found."""
        self.found = found
        if rows := found.rows:
            self.cursor_row = min(self.cursor_row or 0, len(rows) - 1)
            self.show(range(len(rows)))  # type: ignore[arg-type]
        else:
            self.cursor_row = None
            empty = "there is no thread yet: hitl-tui demo makes one, hitl-tui run GRAPH one of yours"
            self.show([(Span("no thread matches" if searched else empty, "dim"),)])

    def line(self, row: int) -> Line:
        """A thread on one row."""
        if not self.found.rows:
            return self.lines[row]
        thread, depth, opened, left = found = self.found.rows[row]
        if left:
            return (Span(f"{'  ' * (depth + 1)}  … {left:,} more", "dim"),)
        glyph, word, role = _WORDS[thread.status]
        info = thread.info
        now = self._now()
        wide = self.size.width >= 100
        room = 34 if wide else 24
        inside = f" · {thread.inside:,} inside" if thread.inside else ""
        ahead = "  " * depth + ("- " if opened else "+ " if inside else "  ")
        room -= cell_len(ahead + inside) - 2
        name = sanitise_line(found.name, max(room, _SHORTEST))
        where = f"step {thread.head}" if thread.head >= 0 else "no step"
        on = thread.next_node if thread.status != "completed" else None
        what = thread.waiting_for or (f"{on} is next" if on else thread.reason)
        asked = " · asked" if thread.waiting_for else " ·"
        since = f"{asked} {ago(thread.waiting_since, now)}" if thread.waiting_since else ""
        spans = [
            Span("▸ " if info.thread_id == self._current else "  ", "accent"),
            Span(ahead, "accent"),
            Span(name, "name"),
            Span(inside + " " * max(room + 1 - cell_len(name), 1), "dim"),
            Span(f"{glyph} {word:<10}", role),
            Span(f"{where:<9}", "dim"),
            *self._last(thread, now, wide),
            untrusted(what + since, role if thread.status == "waiting" else "dim", limit=60),
        ]
        if info.parent:
            spans.append(untrusted(f"  ╰ step {info.fork_step} of {info.parent}", "dim", limit=50))
        if info.owner and not depth:
            spans.append(untrusted(f"  inside {info.owner.thread_id}", "dim", limit=50))
        if thread.held_by:
            spans.append(untrusted(f"  held by {thread.held_by}", "warning", limit=40))
        return tuple(spans)

    @staticmethod
    def _last(thread: ThreadSummary, now: int, wide: bool) -> Line:
        """When it changed and who wrote last, where there is room."""
        if not wide:
            return ()
        when = Span(f"{ago(thread.updated_at, now):<10}", "dim")
        return (when, untrusted(f"{thread.last_writer:<14}"[:18] + " "))

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        if self.found.rows:
            self.select(min(max((self.cursor_row or 0) + by, 0), len(self.found.rows) - 1))
            self.post_message(self.Moved())

    def select(self, row: int) -> None:
        """Put the cursor on a row."""
        self.cursor_row = row
        top, height = round(self.scroll_y), self.size.height
        if not top <= row < top + height:
            self.scroll_to(y=row if row < top else row - height + 1, animate=False)
        self.repaint()

    def on_click(self, event: events.Click) -> None:
        """Select with one click, open with the second."""
        event.stop()
        row = self.row_at(event)
        if row is not None and self.found.rows:
            if row == self.cursor_row or event.chain > 1:
                self.post_message(self.RowChosen(self, row))
            self.cursor_row = row
            self.repaint()


class ThreadsScreen(RoleScreen):
    """Comes back with the id of the thread to open, or None."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "threads.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("threads.back", "back"),
        bound("threads.open", "open"),
        bound("threads.inside", "inside"),
        bound("threads.search", "search"),
        bound("threads.close", "close"),
    ]
    AUTO_FOCUS = "#threads"

    def __init__(self, hub: Hub, current: str, now: Callable[[], int], keys: Sequence[str] = ()) -> None:
        """`keys` are those that opened it and close it again."""
        super().__init__()
        self._hub = hub
        self._keys = keys
        self._list = ThreadList(current, now)
        self._query = ""

    def compose(self) -> ComposeResult:
        """Search, list, keys."""
        yield SafeInput(id="search", placeholder="search: part of a name")
        yield self._list
        yield ThreadsFooter()

    def on_mount(self) -> None:
        """Fetch the first page."""
        self._load()

    def _load(self) -> None:
        self.run_worker(self._fetch(self._query), group="threads", exclusive=True, exit_on_error=False)

    async def _fetch(self, query: str) -> None:
        self._list.show_threads(ThreadRows(await self._page(query, 0)), searched=bool(query))

    async def _page(self, query: str, offset: int) -> tuple[ThreadSummary, ...]:
        """A page of threads: where a name is sought wherever they ran, else those at the top."""
        return await self._hub.threads(query, _PAGE, offset, None if query else "")

    async def _fetch_more(self) -> None:
        found, known = self._list.found, len(self._list.found.top)
        more = await self._page(self._query, known)
        if more and self._list.found is found and len(found.top) == known:
            found.add(more)
            self._list.show_threads(found)

    async def _fetch_inside(self, row: ThreadRow) -> None:
        """Open a thread's row, or show more of what is inside it."""
        found, known = self._list.found, self._list.found.known_inside(row.name)
        more = await self._hub.threads("", _PAGE, known, row.name)
        if self._list.found is found and found.known_inside(row.name) == known:
            found.open(row.name, more)
            self._list.show_threads(found)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._query = event.value.strip()
        self._load()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._list.focus()

    @on(LineView.RowChosen)
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        self._list.cursor_row = event.row
        self.action_open()

    def on_key(self, event: events.Key) -> None:
        """Close with the key that opened it."""
        if event.key in self._keys:
            event.stop()
            self.dismiss(None)

    @on(ThreadList.Moved)
    def _moved(self) -> None:
        """Near the end of what is loaded, or where more is yet to be fetched, fetch the next page."""
        row, found = self._list.cursor_row or 0, self._list.found
        selected = self._list.selected
        if selected is not None and selected.left:
            self._work(self._fetch_inside(selected))
        elif row + _NEAR > len(found.rows) and len(found.top) >= _PAGE:
            self._work(self._fetch_more())

    def _work(self, fetching: Coroutine[Any, Any, None]) -> None:
        self.run_worker(fetching, group="more", exclusive=True, exit_on_error=False)

    def action_open(self) -> None:
        """Open the selected thread."""
        row = self._list.selected
        if row is not None and row.left:
            self._work(self._fetch_inside(row))
        elif row is not None:
            self.dismiss(row.name)

    def action_inside(self) -> None:
        """Show what ran inside the selected thread, or hide it again; inside one, hide that one's."""
        row, at, found = self._list.selected, self._list.cursor_row, self._list.found
        if row is None or at is None:
            return
        if row.thread.inside and not row.opened and not row.left:
            self._work(self._fetch_inside(row))
            return
        outer = at if row.opened else found.outer(at)
        if outer is not None:
            found.close(found.rows[outer].name)
            self._list.show_threads(found)
            self._list.select(outer)

    def action_search(self) -> None:
        """Type in the search field."""
        self.query_one(Input).focus()

    def action_back(self) -> None:
        """From the search to the list, from the list to the run."""
        if self._list.has_focus:
            self.dismiss(None)
        else:
            self._list.focus()

    def action_close(self) -> None:
        """Back to the run."""
        self.dismiss(None)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A store that can't be read says why."""
        if event.state is WorkerState.ERROR:
            self.notify(str(event.worker.error), markup=False, severity="error")
