"""Branches of a map or a parallel as a nested view: a list, and the selected branch in full.

While the node runs the view follows it; of a thousand branches only the visible rows cost time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, ClassVar, Final

from rich.cells import set_cell_size
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from hitl_tui.engine.log.events import AppliedUpdate
from hitl_tui.ui.bindings import LIST_MOVES, bound
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.work import start_work
from hitl_tui.view.branches import (
    BranchRow,
    branch_detail,
    branch_rows,
    branches_of_step,
    counted,
    items_of,
    slowest_first,
)
from hitl_tui.view.inside import BranchView, InsideView
from hitl_tui.view.rows import wrap_line
from hitl_tui.view.run_view import InsidePlace
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span, plain_text, trusted

_REMARKABLE = ("failed", "waiting")
_PER_SECOND: Final = 10
_LABEL: Final = 28
_WORD: Final = 11


class BranchList(LineView):
    """Branches in rows, in the order of their places."""

    def __init__(self) -> None:
        super().__init__("branches", "Branches")
        self.rows: list[BranchRow] = []
        self._label = 1

    def show_rows(self, rows: list[BranchRow]) -> None:
        """Show these rows."""
        self.rows = rows
        self._label = min(max((len(row.label) for row in rows), default=1), _LABEL)
        if rows:
            self.cursor_row = min(self.cursor_row or 0, len(rows) - 1)
            self.show(range(len(rows)))  # type: ignore[arg-type]
        else:
            self.cursor_row = None
            self.show([(Span("no branch has started yet", "dim"),)])

    def line(self, row: int) -> Line:
        """Return a branch as one row."""
        if not self.rows:
            return self.lines[row]
        branch = self.rows[row]
        spans = [
            trusted(f"{branch.glyph} ", branch.role),
            trusted(set_cell_size(branch.label, self._label) + "  ", "node"),
            trusted(f"{branch.word:<{_WORD}}", branch.role),
            trusted(f"{branch.took:>7}  ", "dim"),
            trusted(f"×{branch.attempts} " if branch.attempts > 1 else "   ", "warning"),
        ]
        if branch.item:
            spans.append(trusted(branch.item + "  ", "value"))
        if branch.wrote:
            spans += [trusted("wrote ", "dim"), trusted(branch.wrote + "  ", "name")]
        if branch.remark:
            spans.append(
                trusted(branch.remark, branch.role if branch.role in ("error", "accent") else "warning")
            )
        return tuple(spans)

    def move_to(self, row: int) -> None:
        """Put the cursor on a row, and scroll to it."""
        if not self.rows:
            return
        row = self.cursor_row = min(max(row, 0), len(self.rows) - 1)
        self.reveal(row)


class BranchesScreen(OverlayScreen):
    """Returns the path of the branch to decide about, or None."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["branches.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("page.close", "close"),
        bound("branches.decide", "decide"),
        *LIST_MOVES,
        bound("branches.next", "remarkable"),
        bound("branches.sort", "sort"),
    ]
    AUTO_FOCUS = "#branches"

    def __init__(
        self, session: ViewSession, place: InsidePlace, now: Callable[[], int], keys: Sequence[str] = ()
    ) -> None:
        """`keys` close it, too: those that opened it, and those that lead to the outer thread."""
        super().__init__(keys)
        self._session = session
        self._place = place
        self._now = now
        self._inside: InsideView | None = None
        self._branches: list[BranchView] = []
        self._by_time = False
        self._step_updates: tuple[AppliedUpdate, ...] = ()
        self._items: Sequence[Any] = ()
        self._detail: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield BranchList()
        yield LineView("branch", "Branch")
        yield KeysBar()

    def on_mount(self) -> None:
        """Load the branches of a committed step, or follow those of a running node."""
        self.set_interval(1 / _PER_SECOND, self._follow)
        if self._place.point is None:
            self._items = self._items_in(self._session.view.values)
            self._follow()
        else:
            start_work(self, self._fetch)

    def _items_in(self, values: Mapping[str, Any]) -> Sequence[Any]:
        node = self._session.view.graph.node(self._place.node)
        return items_of(values, node.over) if node else ()

    async def _fetch(self) -> None:
        """Load the committed step: its updates, and the items as they were before it."""
        session, place = self._session, self._place
        assert place.point is not None
        driver = session.driver
        if session.shown and session.shown[0] != session.thread_id:
            driver = await session.hub.open(session.shown[0])
        self._step_updates = (await driver.updates(place.step, place.step))[place.step]
        if place.step > 0:
            self._items = self._items_in(await driver.state_at(place.step - 1))
        self._branches = branches_of_step(place.point, session.view.inside)
        self._show()

    def _follow(self) -> None:
        """Show the news of a node that runs or waits; once it is committed, the step."""
        view, place = self._session.view, self._place
        if place.point is not None:
            return
        head = view.checkpoint(place.step)
        if head is not None and head.branches:
            self._place = InsidePlace(place.node, place.step, point=head)
            start_work(self, self._fetch)
            return
        running = any(branch.phase == "running" for branch in self._branches)
        if view.inside is not self._inside or running:
            self._inside = view.inside
            self._branches = view.inside.in_order()
            self._show()

    def _show(self) -> None:
        pane = self.query_one(BranchList)
        if self._by_time:
            self._branches = slowest_first(self._branches, self._now())
        pane.show_rows(branch_rows(self._branches, self._step_updates, self._items, self._now()))
        place, inside = self._place, self._session.view.inside
        if place.point is not None:
            known = {branch.path: branch for branch in self._branches}
            inside = InsideView(place.node, place.step, len(known), known)
        words = counted(inside)
        where = sanitise_line(place.node, 40)
        order = "slowest first" if self._by_time else ""
        pane.set_titles(f"{where}, step {place.step}: {words}" if words else where, order)
        self._show_branch()

    def _show_branch(self) -> None:
        pane = self.query_one("#branch", LineView)
        row = self.query_one(BranchList).cursor_row
        branch = self._branches[row] if row is not None and row < len(self._branches) else None
        self._show_keys(branch)
        if branch is None:
            pane.show([])
            return
        width = max(pane.content_size.width - 1, 12)
        key = (branch, self._step_updates, width)
        if key == self._detail:
            return
        home = not self._detail or getattr(self._detail[0], "path", "") != branch.path
        self._detail = key
        node = self._session.view.graph.node(self._place.node)
        detail = branch_detail(branch, self._step_updates, self._items, node=node)
        lines = [piece for line in detail for piece in _fit(line, width)]
        pane.set_titles(branch.path)
        pane.show(lines, home=home)
        if branch.phase == "running":
            pane.scroll_end(animate=False)

    def action_move(self, by: int) -> None:
        """Select another branch."""
        pane = self.query_one(BranchList)
        pane.move_to((pane.cursor_row or 0) + by)
        self._show_branch()

    def action_remarkable(self) -> None:
        """Select the next branch that failed or asks a person."""
        pane = self.query_one(BranchList)
        at, count = pane.cursor_row or 0, len(self._branches)
        for step in range(1, count + 1):
            row = (at + step) % count
            if self._branches[row].phase in _REMARKABLE:
                pane.move_to(row)
                self._show_branch()
                return

    def action_sort(self) -> None:
        """Sort by time, or by place again; the selected branch stays selected."""
        pane = self.query_one(BranchList)
        path = pane.rows[pane.cursor_row].path if pane.rows and pane.cursor_row is not None else ""
        self._by_time = not self._by_time
        if not self._by_time:
            self._branches = sorted(self._branches, key=lambda branch: branch.index)
        self._show()
        paths = [row.path for row in pane.rows]
        if path in paths:
            pane.move_to(paths.index(path))
            self._show_branch()

    def _show_keys(self, selected: BranchView | None) -> None:
        """Show only the keys that do something."""
        footer = self.query_one(KeysBar)
        remarkable = any(branch.phase in _REMARKABLE for branch in self._branches)
        asks = selected is not None and selected.phase == "waiting"
        footer.entries = (
            ("list.up list.down", "Select"),
            *([("branches.next", "Next problem")] if remarkable else []),
            *([("branches.decide", "Decide")] if asks else []),
            ("branches.sort", "By place" if self._by_time else "By time"),
            ("page.close", "Back"),
        )
        footer.refresh()

    def action_decide(self) -> None:
        """Decide the request of the selected branch."""
        row = self.query_one(BranchList).cursor_row
        if row is not None and row < len(self._branches) and self._branches[row].phase == "waiting":
            self.dismiss(self._branches[row].path)

    @on(LineView.RowChosen, "#branches")
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        self.query_one(BranchList).move_to(event.row)
        self._show_branch()

    def on_resize(self) -> None:
        """Wrap for the new width."""
        self.call_after_refresh(self._show_branch)


def _fit(line: Line, width: int) -> list[Line]:
    """Return a line in rows of a width; one of several spans that is wider gets the role of its last span."""
    text = plain_text(line)
    rows = wrap_line(text, width, "  ")
    return [line] if len(rows) == 1 else [(trusted(row, line[-1].role),) for row in rows]
