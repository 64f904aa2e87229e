"""Page of the agents of a thread: what each is and remembers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from hitl_tui.engine.thread.agent_settings import AgentInfo
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.sizes import BREAKPOINTS
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineView, Room
from hitl_tui.ui.work import start_work
from hitl_tui.view.agents import (
    agent_lines,
    agent_rows,
    memory_words,
    turn_lines,
)
from hitl_tui.view.format import count
from hitl_tui.view.rows import wrap_spans, wrapped
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span

_LOOK_EVERY: Final = 0.25


_KEYS = (
    ("list.up list.down", "Agent"), ("agents.change", "Another model"),
    ("agents.forget", "Forget turns"), ("agents.whole", "Whole"), ("page.close", "Back"),
    ("list.page_down", "Scroll"),
)  # fmt: skip


class AgentsScreen(OverlayScreen):
    """Follows the thread while it is open; returns the name of an agent to change, or None."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "agents.tcss"]
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("page.close", "close"),
        bound("list.up", "select(-1)", priority=True),
        bound("list.down", "select(1)", priority=True),
        bound("agents.change", "change"),
        bound("agents.forget", "forget"),
        bound("agents.whole", "whole"),
    ]
    AUTO_FOCUS = "#turns"

    def __init__(self, session: ViewSession, actor: str, keys: Sequence[str] = ()) -> None:
        """`keys` are those that opened it and close it again."""
        super().__init__(keys)
        self._session = session
        self._actor = actor
        self._agents: tuple[AgentInfo, ...] | None = None
        self._whole = False
        self._known: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield LineView("agents", "Agents")
        with Room(id="memory"):
            yield LineView("turns", "Turns")
            yield LineView("beside", "State")
        yield KeysBar(_KEYS)

    def on_mount(self) -> None:
        """Load the agents now, and again whenever the thread has moved."""
        agents = self.query_one("#agents", LineView)
        agents.can_focus, agents.heeds_keys = False, True
        agents.show([(Span("looking…", "dim"),)])
        self.set_interval(_LOOK_EVERY, self._look)
        self._look()

    def _look(self) -> None:
        view = self._session.view
        moved = (view.progress.head, len(view.ledger), view.progress.status, view.stream.calls)
        if moved != self._known:
            self._known = moved
            start_work(self, self._load, group="agents", exclusive=True)

    async def _load(self) -> None:
        self._agents = await self._session.driver.agents()
        self._show()

    @property
    def selected(self) -> AgentInfo | None:
        """Agent under the cursor."""
        row = self.query_one("#agents", LineView).cursor_row
        return self._agents[row] if self._agents and row is not None else None

    def _show(self) -> None:
        agents = self.query_one("#agents", LineView)
        infos = self._agents or ()
        if infos and agents.cursor_row is None:
            agents.cursor_row = 0
        agents.show(agent_rows(infos) or [(Span("the graph has no agents", "dim"),)])
        agents.styles.height = max(len(infos), 1) + 2
        self._show_memory()
        self._show_state()

    def _show_memory(self) -> None:
        pane, info = self.query_one("#turns", LineView), self.selected
        if info is None:
            pane.show(())
            return
        width = max(pane.scrollable_content_region.width, 20)
        words = wrapped(memory_words(info), width, "accent")
        lines = (*agent_lines(info), (), *words, (), *turn_lines(info.turns, whole=self._whole))
        pane.show([row for line in lines for row in wrap_spans(line, width)])
        where = "in a channel" if info.history else "its own"
        pane.set_titles(info.name, f"{count(len(info.turns), 'turn')}, {where}")

    def _show_state(self) -> None:
        step = self._session.step_view
        pane = self.query_one("#beside", LineView)
        rows: list[Line] = []
        for row in step.rows:
            rows += [(Span(row.name, "name"),), (Span("  "), *row.value)]
        pane.show(rows)
        pane.set_titles(f"State at step {step.step}" if step.checkpoint else "State")

    def on_resize(self) -> None:
        """Wrap for the new width."""
        self.call_after_refresh(self._show_memory)

    def action_select(self, by: int) -> None:
        """Select another agent."""
        if self._agents:
            row = (self.query_one("#agents", LineView).cursor_row or 0) + by
            self._choose(min(max(row, 0), len(self._agents) - 1))

    @on(LineView.RowChosen, "#agents")
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        self._choose(event.row)

    def _choose(self, row: int) -> None:
        agents = self.query_one("#agents", LineView)
        if row != agents.cursor_row:
            agents.cursor_row = row
            agents.scroll_to(y=max(0, row - agents.size.height + 1), animate=False)
            agents.repaint()
            self.query_one("#turns", LineView).scroll_home(animate=False)
            self._show_memory()

    def action_whole(self) -> None:
        """Show long texts completely, or only their beginning."""
        self._whole = not self._whole
        self._show_memory()

    def action_change(self) -> None:
        """Choose other settings for this agent."""
        if self.selected is not None:
            self.dismiss(self.selected.name)

    def action_forget(self) -> None:
        """Ask whether the agent should forget its turns."""
        if self.selected is not None:
            self.command(partial(self._converse, self.selected.name), group="forget")

    async def _converse(self, agent: str) -> None:
        from hitl_tui.ui.conversations import play_in_list
        from hitl_tui.verbs import verbs
        from hitl_tui.verbs.conversation import At

        session = self._session
        at = At(session.driver, session.hub, self._actor, session.view.state_hash, agent=agent)
        await play_in_list(self, at, verbs()["clear-turns"].load())
        await self._load()
