"""All threads of the store: what each waits for, who wrote last, where it was forked from; search, open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import ClassVar

from rich.cells import set_cell_size
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from hitl_tui.drivers.protocol import Hub
from hitl_tui.engine.records import ThreadSummary
from hitl_tui.ui.bound import bound
from hitl_tui.ui.screens.keys_bar import KeysBar
from hitl_tui.ui.widgets.lines import LineView, RoleScreen
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.view.format import ago
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span, untrusted

_PAGE = 100
_NEAR = 20
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
        ("threads.open", "Open"), ("threads.search", "Search"), ("list.up list.down", "Select"),
        ("threads.back", "Back"),
    )  # fmt: skip


class ThreadList(LineView):
    """Threads in rows; the next page is fetched when the cursor comes near the end."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("list.up", "move(-1)"),
        bound("list.down", "move(1)"),
        bound("list.page_up", "move(-10)"),
        bound("list.page_down", "move(10)"),
        bound("list.first", "move(-1_000_000)"),
        bound("list.last", "move(1_000_000)"),
    ]

    class NearEnd(Message):
        """The cursor is near the end of what is loaded."""

    def __init__(self, current: str, now: Callable[[], int]) -> None:
        super().__init__("threads", "Threads")
        self._current = current
        self._now = now
        self.threads: tuple[ThreadSummary, ...] = ()

    def show_threads(self, threads: tuple[ThreadSummary, ...], *, searched: bool = False) -> None:
        """Show these; `searched` if they are those that a search has found."""
        self.threads = threads
        if threads:
            self.cursor_row = min(self.cursor_row or 0, len(threads) - 1)
            self.show(range(len(threads)))  # type: ignore[arg-type]
        else:
            self.cursor_row = None
            empty = "there is no thread yet: hitl-tui demo makes one, hitl-tui run GRAPH one of yours"
            self.show([(Span("no thread matches" if searched else empty, "dim"),)])

    def line(self, row: int) -> Line:
        """A thread on one row."""
        if not self.threads:
            return self.lines[row]
        thread = self.threads[row]
        glyph, word, role = _WORDS[thread.status]
        info = thread.info
        now = self._now()
        wide = self.size.width >= 100
        room = 34 if wide else 24
        name = set_cell_size(sanitise_line(info.thread_id, room), room + 1)
        where = f"step {thread.head}" if thread.head >= 0 else "no step"
        what = thread.waiting_for or (f"{thread.next_node} is next" if thread.next_node else thread.reason)
        asked = " · asked" if thread.waiting_for else " ·"
        since = f"{asked} {ago(thread.waiting_since, now)}" if thread.waiting_since else ""
        spans = [
            Span("▸ " if info.thread_id == self._current else "  ", "accent"),
            Span(name, "name"),
            Span(f"{glyph} {word:<10}", role),
            Span(f"{where:<9}", "dim"),
            *self._last(thread, now, wide),
            untrusted(what + since, role if thread.status == "waiting" else "dim", limit=60),
        ]
        if info.parent:
            spans.append(untrusted(f"  ╰ step {info.fork_step} of {info.parent}", "dim", limit=50))
        if info.owner:
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
        if not self.threads:
            return
        row = self.cursor_row = min(max((self.cursor_row or 0) + by, 0), len(self.threads) - 1)
        top, height = round(self.scroll_y), self.size.height
        if not top <= row < top + height:
            self.scroll_to(y=row if row < top else row - height + 1, animate=False)
        self.repaint()
        if row + _NEAR > len(self.threads) >= _PAGE:
            self.post_message(self.NearEnd())

    def on_click(self, event: events.Click) -> None:
        """Select with one click, open with the second."""
        event.stop()
        row = self.row_at(event)
        if row is not None and self.threads:
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
        self._list.show_threads(await self._hub.threads(query, _PAGE), searched=bool(query))

    async def _fetch_more(self) -> None:
        known = self._list.threads
        more = await self._hub.threads(self._query, _PAGE, len(known))
        if more and self._list.threads is known:
            self._list.show_threads(known + more)

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

    @on(ThreadList.NearEnd)
    def _near_end(self) -> None:
        self.run_worker(self._fetch_more(), group="more", exclusive=True, exit_on_error=False)

    def action_open(self) -> None:
        """Open the selected thread."""
        row = self._list.cursor_row
        if row is not None and row < len(self._list.threads):
            self.dismiss(self._list.threads[row].info.thread_id)

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
