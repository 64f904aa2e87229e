"""Pages over the run screen: lines to read, with the keys of the page; the costs of a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from pathlib import PurePath
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Key
from textual.worker import Worker, WorkerState

from hitl_tui.drivers.protocol import Inbox
from hitl_tui.engine.audit.costs import CostReport
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.ui.guard import failure_words
from hitl_tui.ui.screens.modal import Severity
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineBar, LineView, RoleScreen, ours
from hitl_tui.ui.work import Work, start_work
from hitl_tui.view.costs import cost_lines
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span

_WAY_BACK = "Back"
_VERB = "verb"


class KeysBar(LineBar):
    """Keys of a page: ids of actions (several with blanks between), or Textual's keys, each with a word."""

    DEFAULT_CSS = "KeysBar { background: $panel; dock: bottom; }"

    def __init__(self, entries: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__()
        self.entries = entries

    def bar(self, width: int) -> Line:
        """Return the spans; entries without room are left out completely, the key to close last of all."""
        keymap = keymap_of(self.app)
        shown = [
            (
                " ".join(keymap.shown(name) if name in keymap.bindings else name for name in names.split()),
                word,
            )
            for names, word in self.entries
        ]
        while sum(cell_len(key) + cell_len(word) + 3 for key, word in shown) > width and len(shown) > 1:
            shown.pop(next(at for at in reversed(range(len(shown))) if shown[at][1] != _WAY_BACK))
        return tuple(span for key, word in shown for span in (ours(f" {key}", "key"), Span(f" {word} ")))


KEYS_OF_PAGE = (("page.close", "Back"), ("list.up list.down", "Scroll"), ("list.page_down", "Page"))


_FROM_ANYWHERE = ("app.queue", "app.decided")
"""Actions whose keys work on every page."""


class OverlayScreen(RoleScreen):
    """Screen over the run that the keys that opened it close; it shows errors of its background work.

    Args:
        keys: the keys that opened it.

    Attributes:
        STAYS: whether it asks something, so that only its own keys close it.
        SHOWS_DECISIONS: whether it opens the decisions over itself.
    """

    STAYS: ClassVar[bool] = False
    SHOWS_DECISIONS: ClassVar[bool] = False

    def __init__(self, keys: Sequence[str] = ()) -> None:
        super().__init__()
        self._keys = keys

    def on_key(self, event: Key) -> None:
        """Close with the keys that opened it; go to the queue or the decisions with theirs."""
        if event.key in self._keys:
            event.stop()
            self.dismiss(None)
            return
        leave: Callable[[str], None] | None = getattr(self.app, "go_from_page", None)
        keys = keymap_of(self.app).bindings
        action = next((name for name in _FROM_ANYWHERE if event.key in keys[name]), "")
        if leave is not None and action and not (self.SHOWS_DECISIONS and action == "app.decided"):
            event.stop()
            leave(action)

    def action_close(self) -> None:
        """Close, back to the run."""
        self.dismiss(None)

    def converse(self, work: Work) -> None:
        """Start the conversation of a verb, unless one is under way."""
        workers = (worker for worker in self.workers if worker.node is self and worker.group == _VERB)
        if all(worker.is_finished for worker in workers):
            start_work(self, work, group=_VERB)

    def command(self, work: Work, group: str = "command") -> None:
        """Do some work beside the page."""
        start_work(self, work, group=group)

    def show_work(self, text: str) -> None:
        """Say what is being done."""
        self.show_message(text)

    def show_message(self, text: str, title: str = "", severity: Severity = "information") -> None:
        """Show a note for a while."""
        self.notify(sanitise_line(text, 400), title=title, severity=severity, markup=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show why something is refused, or can't be read; the content stays."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and isinstance(error, HitlError):
            self.notify(failure_words(error), markup=False, severity="error")


_IDLE = 4
"""Factor: after reading takes some time, the next reading waits this much longer, for other users."""


class LiveScreen(OverlayScreen):
    """Screen of the store's current state: read again whenever somebody has written.

    It also checks once a second.
    """

    READ_APART: ClassVar[float] = 0.3
    """Least number of seconds between two readings, however many write."""
    read_every: float = 20.0
    """Seconds after which everything is read again: claims end, and runners die, without a write."""

    def __init__(self, inbox: Inbox, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        self.inbox = inbox
        self._changes: object = None
        self._read_at = 0.0
        self._not_before = 0.0
        self._reads = self._looks_soon = False
        self._unsubscribe: Callable[[], None] | None = None

    async def read(self) -> None:
        """Read the store, and show it."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Read, and subscribe to writes from now on."""
        self.look()
        # The caller knows nothing of the app, which timers and workers of Textual take from the context.
        loop, context = asyncio.get_running_loop(), copy_context()
        self._unsubscribe = self.inbox.subscribe(
            lambda: loop.call_soon_threadsafe(self.look, context=context)
        )

    def on_unmount(self) -> None:
        """Unsubscribe from the store."""
        if self._unsubscribe is not None:
            self._unsubscribe()

    def look(self) -> None:
        """Read if somebody has written, and now and then anyway, but not too often."""
        now = time.monotonic()
        if self._reads or now < self._not_before:
            if not self._looks_soon:
                self._looks_soon = True
                if not self._reads:  # otherwise after that
                    self.set_timer(self._not_before - now, self._look_late)
            return
        try:
            changes = self.inbox.changes()
        except HitlError:
            changes = None  # reading reports what is wrong
        if changes is None or changes != self._changes or now >= self._read_at + self.read_every:
            self._changes = changes
            self.read_again()

    def _look_late(self) -> None:
        self._looks_soon = False
        self.look()

    def read_again(self) -> None:
        """Read at once."""
        self._reads = True
        start_work(self, self._reading, group="read", exclusive=True)

    async def _reading(self) -> None:
        began = time.monotonic()
        try:
            await self.read()
        finally:
            self._reads = False
            self._read_at = ended = time.monotonic()
            wait = max(self.READ_APART, _IDLE * (ended - began))
            self._not_before = ended + wait
            if self._looks_soon and self.is_running:
                self.set_timer(wait, self._look_late)


class PageScreen(OverlayScreen):
    """One scrolled page.

    Args:
        load: returns the lines.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["help.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [bound("page.close", "close")]

    def __init__(
        self, title: str, load: Callable[[], Awaitable[Sequence[Line]]], keys: tuple[str, ...]
    ) -> None:
        super().__init__(keys)
        self._title = title
        self._load = load

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield LineView("help", self._title)
        yield KeysBar(KEYS_OF_PAGE)

    def on_mount(self) -> None:
        """Load the lines."""
        page = self.query_one("#help", LineView)
        page.show([(Span("looking…", "dim"),)])
        page.focus()
        start_work(self, self._fill)

    async def _fill(self) -> None:
        lines = await self._load()
        self.query_one("#help", LineView).show(list(lines))


_ALL = 1 << 31


class CostsScreen(PageScreen):
    """Page of costs; it loads all steps."""

    def __init__(self, session: ViewSession, keys: tuple[str, ...]) -> None:
        async def load() -> Sequence[Line]:
            points = await session.driver.history(limit=_ALL)
            return list(cost_lines(CostReport(reversed(points), session.view.progress.uses)))

        super().__init__(f"What {session.thread_id} has cost", load, keys)
