"""Contents of the store: its threads by size, one of them by channel; pruning and vacuum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePath
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from hitl_tui.drivers.protocol import Hub
from hitl_tui.engine.log.threads import Space, ThreadSize
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import LIST_MOVES, bound
from hitl_tui.ui.guard import failure_words
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen, PageScreen
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.work import start_work
from hitl_tui.view.cells import cells, cut, thread_name
from hitl_tui.view.deletion import (
    MOST_DELETED,
    SIZE_HEADS,
    deleted_lines,
    part_rows,
    size_rows,
    space_words,
)
from hitl_tui.view.format import count
from hitl_tui.view.rows import wrapped
from hitl_tui.view.spans import Line, Span, untrusted

_LOOKS_EVERY: Final = 0.2
_GAP: Final = 2
_NARROWEST: Final = 50
_KEYS: Final = (
    ("store.channels", "By channel"), ("store.prune", "Prune"), ("store.vacuum", "Vacuum"),
    ("store.deleted", "Deleted"),
    ("list.up list.down", "Select"), ("page.close", "Back"),
)  # fmt: skip


class SizeList(LineView):
    """Threads by size, below the names of the columns."""

    BINDINGS: ClassVar[list[BindingType]] = [*LIST_MOVES]

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        if self.cursor_row is not None:
            self.cursor_row = min(max(self.cursor_row + by, 1), len(self.lines) - 1)
            self.reveal(self.cursor_row)


class StoreScreen(OverlayScreen):
    """Returns nothing.

    Args:
        actor: who prunes.
        now: the time, in microseconds since the epoch.
        current: the thread that is open here.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["help.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("page.close", "close"),
        bound("store.channels", "channels"),
        bound("store.prune", "prune"),
        bound("store.vacuum", "vacuum"),
        bound("store.deleted", "deleted"),
    ]
    AUTO_FOCUS = "#help"

    def __init__(
        self, hub: Hub, actor: str, now: Callable[[], int], current: str, keys: Sequence[str] = ()
    ) -> None:
        super().__init__(keys)
        self._hub = hub
        self._actor = actor
        self._now = now
        self._current = current
        self._sizes: tuple[ThreadSize, ...] | None = None
        self._space = Space(0, 0)
        self._left = self._vacuums = False
        self._looked = ""

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield SizeList("help", "What fills the store")
        yield KeysBar(_KEYS)

    def on_mount(self) -> None:
        """Measure every thread."""
        self._look()

    def on_unmount(self) -> None:
        """Stop measuring."""
        self._left = True

    @property
    def under_way(self) -> str:
        """Return what happens to a running vacuum if the user leaves; "" if none runs."""
        return "The store is freeing space: leaving waits for that." if self._vacuums else ""

    def _show_progress(self) -> None:
        if self.display:  # while it is being removed, its parts go one by one
            self.query_one(SizeList).set_titles("What fills the store", f"looking…{self._looked}")

    def _look(self) -> None:
        self._sizes = None
        self._show_progress()
        start_work(self, self._load, group="sizes", exclusive=True)

    async def _load(self) -> None:
        def watch(done: int, of: int) -> None:
            if self._left:
                raise HitlError("it was left")
            self._looked = f" {done:,} of {of:,}"

        view = self.query_one(SizeList)
        progress = self.set_interval(_LOOKS_EVERY, self._show_progress)
        try:
            self._sizes, self._space = await self._hub.sizes(watch)
        except HitlError as error:
            self._sizes = ()
            view.set_titles("What fills the store")
            view.show([(untrusted(failure_words(error), "error"),)])
            return
        finally:
            progress.stop()
        view.cursor_row = min(view.cursor_row or 1, len(self._sizes)) if self._sizes else None
        self._show()

    @on(LineView.Widened)
    def _show(self) -> None:
        """Show the sizes, with columns cut for the width."""
        if not self.display:
            return
        view = self.query_one(SizeList)
        if not self._sizes:
            if self._sizes is not None and not view.lines:
                view.show([(Span("the store holds no thread", "dim"),)])
            return
        rows = [SIZE_HEADS, *size_rows(self._sizes)]
        room = max(view.scrollable_content_region.width, _NARROWEST)
        name = min(max(cells(row[0]) for row in rows), room // 2)
        steps, size = (max(cells(row[at]) for row in rows) for at in (1, 2))
        rest = max(room - name - steps - size - 3 * _GAP, 0)
        lines: list[Line] = []
        for at, row in enumerate(rows):
            shown = cut(row[0], name)
            numbers = f"{row[1]:>{steps}}  {row[2]:>{size}}  "
            lines.append(
                (
                    Span(shown + " " * (name - cells(shown) + _GAP), "name" if at else "dim"),
                    Span(numbers, "plain" if at else "dim"),
                    Span(cut(row[3], rest), "dim"),
                )
            )
        view.set_titles(
            "What fills the store",
            f"{count(len(self._sizes), 'thread')}, {space_words(self._space)}".rstrip(", "),
        )
        view.show(lines)

    @property
    def _selected(self) -> ThreadSize | None:
        at = self.query_one(SizeList).cursor_row
        return self._sizes[at - 1] if self._sizes and at and at <= len(self._sizes) else None

    @on(LineView.RowChosen)
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        if self._sizes and event.row:
            event.view.cursor_row = event.row
            event.view.repaint()

    def action_channels(self) -> None:
        """Show what fills the selected thread, by channel."""
        chosen = self._selected
        if chosen is None:
            return
        rows = part_rows(chosen)
        width = max(cells(name) for name, _ in rows)

        async def lines() -> Sequence[Line]:
            return [
                (Span(name + " " * (width - cells(name) + _GAP)), Span(f"{size:>10}", "name"))
                for name, size in rows
            ]

        title = f"What fills {thread_name(chosen.thread_id, 40)}"
        self.app.push_screen(PageScreen(title, lines, ()))

    def action_prune(self) -> None:
        """Ask for a rule, then delete after a look at what goes."""
        self.converse(partial(self._play, "prune"))

    def action_deleted(self) -> None:
        """Show who deleted which threads, when and why."""

        async def lines() -> Sequence[Line]:
            lines = deleted_lines(await self._hub.deleted(MOST_DELETED), self._now())
            width = max(page.query_one("#help", LineView).scrollable_content_region.width, _NARROWEST)
            return [row for line in lines for row in wrapped(line, width)]

        page = PageScreen("What was deleted", lines, ())
        self.app.push_screen(page)

    def action_vacuum(self) -> None:
        """Ask, then free the space."""
        self.converse(partial(self._play, "vacuum"))

    async def _play(self, name: str) -> None:
        """Play the conversation of a verb about the store, and look what fills it afterwards."""
        from hitl_tui.ui.conversations import play_on_store
        from hitl_tui.verbs.conversation import At

        at = At(None, self._hub, self._actor, opened=self._current)
        if await play_on_store(self, at, name) or self._vacuums:
            self._vacuums = False
            self._look()

    def show_work(self, text: str) -> None:
        """Say that space is being freed."""
        self._vacuums = True
        self.query_one(SizeList).set_titles("What fills the store", text)
