"""Runners of a team's threads: the workers, what they run, what is queued, what nobody can run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from hitl_tui.drivers.protocol import Hub
from hitl_tui.engine.log.jobs import AtWork
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.guard import failure_words
from hitl_tui.ui.screens.page import KeysBar, LiveScreen
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.view.jobs import job_lines, summary_words, worker_lines
from hitl_tui.view.spans import Span, untrusted

_MOST: Final = 500
"""Number of listed jobs: first those that run, then those that come next."""
_KEYS: Final = (("workers.open", "Open"), ("list.up list.down", "Select"), ("page.close", "Back"))


class WorkersScreen(LiveScreen):
    """Returns the thread of a job, or None."""

    # A worker that comes, goes or falls silent writes no thread.
    READ_APART = 1.0
    read_every = 2.0
    CSS_PATH: ClassVar[list[str | PurePath]] = ["workers.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("page.close", "close"),
        bound("workers.open", "open"),
        bound("list.up", "select(-1)"),
        bound("list.down", "select(1)"),
        bound("list.page_up", "select(-10)"),
        bound("list.page_down", "select(10)"),
        bound("list.first", "select(-1_000)"),
        bound("list.last", "select(1_000)"),
    ]

    def __init__(self, hub: Hub, keys: Sequence[str] = ()) -> None:
        super().__init__(hub, keys)
        self._hub = hub
        self._work: AtWork | None = None
        self._at = 0

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield LineView("workers", "Workers")
        yield LineView("jobs", "What runs and what comes next")
        yield KeysBar(_KEYS)

    def on_mount(self) -> None:
        """Let the screen move the cursor."""
        workers, jobs = self._panes
        workers.can_focus = jobs.can_focus = False
        jobs.heeds_keys = True
        workers.show([(Span("looking…", "dim"),)])

    @property
    def _panes(self) -> tuple[LineView, LineView]:
        return self.query_one("#workers", LineView), self.query_one("#jobs", LineView)

    async def read(self) -> None:
        """Load the workers and jobs; if that fails now, try again later."""
        try:
            work = await self._hub.at_work(_MOST)
        except HitlError as error:
            if self.display:  # while it is removed, its parts go one by one
                self._panes[0].show([(untrusted(failure_words(error), "error"),)])
            return
        before, self._work = self._work, work
        if before is not None and self._at < len(before.jobs):
            # The cursor stays at its thread, wherever that is now.
            thread = before.jobs[self._at].thread
            self._at = next((at for at, job in enumerate(work.jobs) if job.thread == thread), self._at)
        self._write()

    @on(LineView.Widened)
    def _write(self) -> None:
        work = self._work
        if work is None or not self.display:
            return
        workers, jobs = self._panes
        workers.show(worker_lines(work, workers.scrollable_content_region.width))
        workers.set_titles("Workers", summary_words(work))
        total = work.running + work.queued + work.later
        listed = f"the first {len(work.jobs):,} of {total:,}, live" if len(work.jobs) < total else "live"
        jobs.set_titles("What runs and what comes next", listed)
        jobs.show(job_lines(work, jobs.scrollable_content_region.width))
        self.action_select(0)

    def action_select(self, by: int) -> None:
        """Move the cursor."""
        count, jobs = len(self._work.jobs) if self._work else 0, self._panes[1]
        self._at = min(max(self._at + by, 0), max(count - 1, 0))
        jobs.cursor_row = self._at + 1 if count else None  # the first row has the column names
        jobs.reveal(self._at + 1 if self._at else 0)

    @on(LineView.RowChosen, "#jobs")
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        self.action_select(event.row - 1 - self._at)
        if event.row:
            self.action_open()

    def action_open(self) -> None:
        """Open the thread of the selected job."""
        if self._work is not None and self._at < len(self._work.jobs):
            self.dismiss(self._work.jobs[self._at].thread)
