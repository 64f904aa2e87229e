"""The agents of a thread: what each is and remembers, beside the state that it does not remember in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.worker import Worker, WorkerState

from hitl_tui.drivers.protocol import AgentInfo
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.dialogs import Answer, Dialog, Field
from hitl_tui.ui.screens.keys_bar import KeysBar
from hitl_tui.ui.screens.opening import BREAKPOINTS
from hitl_tui.ui.screens.run_base import Severity
from hitl_tui.ui.session import Session
from hitl_tui.ui.widgets.choices import Option
from hitl_tui.ui.widgets.lines import LineView, RoleScreen, Room
from hitl_tui.ui.wrap import wrap_line, wrap_spans
from hitl_tui.view.agents import agent_lines, agent_rows, memory_words, turn_lines
from hitl_tui.view.format import count
from hitl_tui.view.spans import Line, Span, untrusted

_LOOK_EVERY: Final = 0.25


class AgentsFooter(KeysBar):
    """The keys of this screen."""

    entries = (
        ("list.up list.down", "Agent"), ("agents.change", "Another model"),
        ("agents.forget", "Forget turns"), ("agents.whole", "Whole"), ("page.close", "Back"),
        ("list.page_down", "Scroll"),
    )  # fmt: skip


class AgentsScreen(RoleScreen):
    """Follows the thread while it is open; comes back with the name of an agent to change, or None."""

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

    def __init__(self, session: Session, actor: str, keys: Sequence[str] = ()) -> None:
        """`keys` are those that opened it and close it again."""
        super().__init__()
        self._session = session
        self._actor = actor
        self._keys = keys
        self._agents: tuple[AgentInfo, ...] | None = None
        self._whole = False
        self._known: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """Agents, what the selected one remembers, the state."""
        yield LineView("agents", "Agents")
        with Room(id="memory"):
            yield LineView("turns", "Turns")
            yield LineView("beside", "State")
        yield AgentsFooter()

    def on_mount(self) -> None:
        """Look now, and again whenever the thread has moved."""
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
            self.run_worker(self._load(), group="agents", exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        self._agents = await self._session.driver.agents()
        self._show()

    @property
    def selected(self) -> AgentInfo | None:
        """The agent under the cursor."""
        row = self.query_one("#agents", LineView).cursor_row
        return self._agents[row] if self._agents and row is not None else None

    def _show(self) -> None:
        agents = self.query_one("#agents", LineView)
        found = self._agents or ()
        if found and agents.cursor_row is None:
            agents.cursor_row = 0
        agents.show(agent_rows(found) or [(Span("the graph has no agents", "dim"),)])
        agents.styles.height = max(len(found), 1) + 2
        self._show_memory()
        self._show_state()

    def _show_memory(self) -> None:
        pane, info = self.query_one("#turns", LineView), self.selected
        if info is None:
            pane.show(())
            return
        width = max(pane.scrollable_content_region.width, 20)
        words = [(Span(row, "accent"),) for row in wrap_line(memory_words(info), width)]
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
        """Another agent."""
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
        """Show long texts whole, or their beginning."""
        self._whole = not self._whole
        self._show_memory()

    def action_change(self) -> None:
        """Other settings for this agent."""
        if self.selected is not None:
            self.dismiss(self.selected.name)

    def action_forget(self) -> None:
        """Ask whether the agent is to forget its turns."""
        info = self.selected
        if info is None:
            return
        if info.history:
            self._say(f"its turns are the channel {info.history!r}: edit that channel, it is state")
            return
        if not info.turns:
            self._say(f"{info.name} remembers nothing in this process")
            return
        turns = count(len(info.turns), "turn")
        text = [
            f"{info.name} forgets its {turns} and begins anew with the next step. The state stays as it is; "
            "the turns can't be brought back. The log says who did it."
        ]
        options = [Option("back", "ask.back", "go back"), Option("forget", "f", "forget them")]

        def answered(answer: Answer | None) -> None:
            if answer is not None and answer.id == "forget":
                note = answer.fields["why"].strip() or None
                self.run_worker(self._forget(info.name, note), group="forget", exit_on_error=False)

        self.app.push_screen(Dialog("Forget", text, options, [Field("why", "why (optional)")]), answered)

    async def _forget(self, name: str, note: str | None) -> None:
        forgotten = await self._session.driver.clear_turns(name, actor=self._actor, note=note)
        await self._load()
        self._say(f"{name} has forgotten {count(forgotten, 'turn')}", "information")

    def _say(self, words: str, severity: Severity = "warning") -> None:
        self.notify(untrusted(words).text, markup=False, severity=severity)

    def action_close(self) -> None:
        """Back to the run."""
        self.dismiss(None)

    def on_key(self, event: events.Key) -> None:
        """The key that opened it closes it."""
        if event.key in self._keys:
            event.stop()
            self.dismiss(None)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What is refused says why."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            words = f"{error.message} — {error.hint}" if isinstance(error, HitlError) else str(error)
            self._say(words)
