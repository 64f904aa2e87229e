"""Family of a thread as a tree, to go to one of its threads, or to choose one to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType

from hitl_tui.drivers.protocol import Relative
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.work import start_work
from hitl_tui.view.family import FamilyMember, family_line, family_tree, tree_width
from hitl_tui.view.format import count
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Span
from hitl_tui.view.timeline import Place

_OTHERS: Final = 50
"""Number of threads of the store that are listed below the family, to compare with."""


class FamilyScreen(OverlayScreen):
    """Returns a thread and its newest step, or None.

    Args:
        others: whether other threads of the store are listed, too.
        word: what enter does, in a word.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["help.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("page.close", "close"),
        bound("family.take", "take"),
        bound("list.up", "select(-1)"),
        bound("list.down", "select(1)"),
        bound("list.page_up", "select(-10)"),
        bound("list.page_down", "select(10)"),
        bound("list.first", "select(-1_000)"),
        bound("list.last", "select(1_000)"),
    ]

    def __init__(
        self,
        session: ViewSession,
        now: Callable[[], int],
        keys: Sequence[str] = (),
        *,
        others: bool = False,
        word: str = "Open",
    ) -> None:
        super().__init__(keys)
        self._session = session
        self._now = now
        self._others = others
        self._word = word
        self._members: tuple[FamilyMember, ...] = ()

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield LineView("help", "Family")
        yield KeysBar((("family.take", self._word), ("list.up list.down", "Select"), ("page.close", "Back")))

    def on_mount(self) -> None:
        """Load the family."""
        page = self.query_one("#help", LineView)
        page.can_focus, page.heeds_keys = False, True
        page.show([(Span("looking…", "dim"),)])
        start_work(self, self._load)

    async def _load(self) -> None:
        session = self._session
        family = await session.driver.family()
        known = {relative.thread_id for relative in family}
        others = await session.hub.threads(limit=_OTHERS) if self._others else ()
        members = family_tree(family)
        self._members = (
            *members,
            *(
                FamilyMember(Relative(summary.info.thread_id, None, -1, summary, ()), "", None)
                for summary in others
                if summary.info.thread_id not in known
            ),
        )
        page = self.query_one("#help", LineView)
        shown = [member.relative.thread_id for member in self._members]
        page.cursor_row = shown.index(session.thread_id) if session.thread_id in shown else 0
        page.set_titles("Family", f"{count(len(members), 'thread')} of the family")
        self._write()

    def _write(self) -> None:
        page = self.query_one("#help", LineView)
        width, now = tree_width(self._members), self._now()
        current = self._session.thread_id
        page.show(
            [
                family_line(member, width, shown=member.relative.thread_id == current, now=now)
                for member in self._members
            ]
        )

    def on_resize(self, event: events.Resize) -> None:
        """Cut the rows for the width."""
        if self._members:
            self.call_after_refresh(self._write)

    def action_select(self, by: int) -> None:
        """Move the cursor."""
        page = self.query_one("#help", LineView)
        if self._members:
            page.cursor_row = min(max((page.cursor_row or 0) + by, 0), len(self._members) - 1)
            page.reveal(page.cursor_row)

    @on(LineView.RowChosen)
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        event.view.cursor_row = event.row
        self.action_take()

    def action_take(self) -> None:
        """Return the selected thread."""
        row = self.query_one("#help", LineView).cursor_row
        if row is not None and row < len(self._members):
            relative = self._members[row].relative
            place: Place = (relative.thread_id, relative.summary.head)
            self.dismiss(place)
