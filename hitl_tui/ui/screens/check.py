"""Check of a thread: its log against itself, every update reduced again, or its graph replayed.

The check runs in a thread of its own; its findings are listed, explained, and one key away from their steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from hitl_tui.drivers.protocol import Check, Checked, Driver
from hitl_tui.engine.audit.findings import Mismatch
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineView, ours
from hitl_tui.ui.work import start_work
from hitl_tui.view.findings import MEANING, changed_words, checked_words, finding_row, values_of
from hitl_tui.view.rows import wrapped
from hitl_tui.view.spans import Line, Span, untrusted

CHECKS: Final[tuple[tuple[Check, str, str], ...]] = (
    ("log", "Log", "checks hashes and chains of the log; runs none of your code"),
    ("strict", "Strict", "the same, and reduces every update again with the current reducers"),
    ("replay", "Replay", "runs the graph again on recorded results, calling no node"),
)
_PER_SECOND = 10
_HEIGHTS: list[tuple[int, str]] = [(0, "-low"), (30, "-high")]


class _Left(Exception):
    """The check was cancelled."""


class _Watch:
    """Progress of a check; written by its thread, read by the screen."""

    def __init__(self) -> None:
        self.done = self.all = 0
        self.left = False

    def __call__(self, done: int, of: int) -> None:
        if self.left:
            raise _Left
        self.done, self.all = done, of


_KEYS = (
    *((f"check.{kind}", name) for kind, name, _ in CHECKS),
    ("check.go", "Go to step"), ("list.up list.down", "Select"), ("page.close", "Back"),
)  # fmt: skip


class CheckScreen(OverlayScreen):
    """Returns the thread and the step of the chosen finding, or None; "" is the checked thread."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["check.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("page.close", "close"),
        bound("check.go", "jump"),
        bound("list.up", "move(-1)"),
        bound("list.down", "move(1)"),
        bound("list.page_up", "move(-10)"),
        bound("list.page_down", "move(10)"),
        *(bound(f"check.{kind}", f"check('{kind}')") for kind, _, _ in CHECKS),
    ]
    AUTO_FOCUS = "#findings"
    VERTICAL_BREAKPOINTS = _HEIGHTS
    leads_to_steps: ClassVar[bool] = True

    def __init__(self, driver: Driver, keys: Sequence[str] = ()) -> None:
        """`keys` are those that opened it and close it again."""
        super().__init__(keys)
        self._driver = driver
        self._kind: Check = "log"
        self._watch: _Watch | None = None
        self._checked: Checked | None = None

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield LineView("checks", "Verify")
        yield LineView("findings", "Findings")
        yield LineView("finding", "What it means")
        yield KeysBar(_KEYS)

    def on_mount(self) -> None:
        """Start the quickest check."""
        for name in ("checks", "finding"):
            self.query_one(f"#{name}", LineView).can_focus = False
        self.set_interval(1 / _PER_SECOND, self._tick)
        self.action_check("log")

    def action_check(self, kind: Check) -> None:
        """Start a check; one that still runs is cancelled."""
        self._leave()
        self._kind, self._checked = kind, None
        watch = self._watch = _Watch()
        self._show()
        start_work(self, partial(self._check, kind, watch), group="check")

    async def _check(self, kind: Check, watch: _Watch) -> None:
        try:
            checked = await self._driver.check(kind, watch)
        except _Left:
            return
        except HitlError as error:
            if watch is self._watch:
                self._fail(error.message)
            return
        if watch is self._watch and self.is_attached:
            self._watch, self._checked = None, checked
            self._show()

    def _leave(self) -> None:
        if self._watch:
            self._watch.left = True
            self._watch = None

    def on_unmount(self) -> None:
        """Cancel the check: nobody waits for it any more."""
        self._leave()

    def _fail(self, message: str) -> None:
        self._watch = None
        self.query_one("#findings", LineView).show([(untrusted(message, "error"),)])
        self._show_checks()

    def _tick(self) -> None:
        if self._watch:
            self._show_checks()

    def _show(self) -> None:
        self._show_checks()
        view = self.query_one("#findings", LineView)
        mismatches = self._checked.mismatches if self._checked else ()
        view.cursor_row = 0 if mismatches else None
        if self._checked is None:
            rows: list[Line] = [(Span("checking…", "dim"),)]
        else:
            well = Span(f"✔ {checked_words(self._checked)}", "ok")
            rows = [finding_row(finding) for finding in mismatches] or [(well,)]
        changes = changed_words(self._checked.changes) if self._checked else ()
        titles = ("Findings", *((f"{len(mismatches):,}",) if mismatches else ()), *changes)
        view.set_titles(" · ".join(titles))
        view.show(rows, home=True)
        self._show_meaning()

    def _show_checks(self) -> None:
        rows: list[Line] = []
        keymap = keymap_of(self.app)
        for kind, name, words in CHECKS:
            chosen = kind == self._kind
            mark = Span("▸ " if chosen else "  ", "accent")
            how = Span(f"  {self._how_far()}", "accent") if chosen else Span("")
            key = ours(f"{keymap.shown(f'check.{kind}')} ", "key")
            rows.append((mark, key, Span(f"{name:<8}", "name"), Span(words, "dim"), how))
        self.query_one("#checks", LineView).show(rows)

    def _how_far(self) -> str:
        watch = self._watch
        if watch is None:
            return ""
        part = f"{100 * watch.done // watch.all} %" if watch.all else "…"
        return f"{part} of {watch.all:,} steps" if watch.all else part

    def _show_meaning(self) -> None:
        view = self.query_one("#finding", LineView)
        row = self.query_one("#findings", LineView).cursor_row
        if self._checked is None or row is None:
            nothing = "" if self._checked is None else "what a finding means is explained here"
            view.show([(Span(nothing, "dim"),)])
            return
        mismatch = self._checked.mismatches[row]
        expected, actual = values_of(mismatch)
        width = max(20, self.size.width - 6)
        rows = wrapped(MEANING[mismatch.kind], width)
        rows += [
            (Span("field     ", "dim"), untrusted(mismatch.field, "name")),
            (Span("expected  ", "dim"), Span(expected, "added")),
            (Span("found     ", "dim"), Span(actual, "removed")),
        ]
        if where := self._leads_to(mismatch):
            key = keymap_of(self.app).shown("check.go")
            rows.append((untrusted(f"{key} goes to {where}", "dim", limit=120),))
        view.show(rows)

    def _leads_to(self, finding: Mismatch) -> str:
        """Return where enter goes at a finding, in words; "" for nowhere."""
        if not self.leads_to_steps:
            return ""
        step = f"step {finding.step}" if finding.step is not None else ""
        if not finding.thread:
            return step
        return f"{step} of {finding.thread}" if step else finding.thread

    def action_move(self, by: int) -> None:
        """Select another finding."""
        view = self.query_one("#findings", LineView)
        if self._checked is None or view.cursor_row is None:
            return
        row = view.cursor_row = min(max(view.cursor_row + by, 0), len(self._checked.mismatches) - 1)
        view.reveal(row)
        self._show_meaning()

    @on(LineView.RowChosen, "#findings")
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        if self._checked and event.row < len(self._checked.mismatches):
            event.view.cursor_row = event.row
            event.view.repaint()
            self._show_meaning()

    def action_jump(self) -> None:
        """Go to the step of the selected finding."""
        row = self.query_one("#findings", LineView).cursor_row
        if self._checked and row is not None and self.leads_to_steps:
            finding = self._checked.mismatches[row]
            if self._leads_to(finding):
                self.dismiss((finding.thread, finding.step))
