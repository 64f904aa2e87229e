"""Agents of a thread: what each is and remembers, and other settings for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, ClassVar, Final, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.worker import Worker, WorkerState

from hitl_tui.engine.commands import ClearTurns, ConfigureAgents, Fork, Step
from hitl_tui.engine.thread.agent_settings import AgentInfo
from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.ui.guard import failure_words
from hitl_tui.ui.screens.dialogs import Dialog, DialogField, DialogResult
from hitl_tui.ui.screens.modal import Host, Modal, Severity
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.sizes import BREAKPOINTS
from hitl_tui.ui.widgets.choices import Choices
from hitl_tui.ui.widgets.form import AnswerForm
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import ROLE_CLASSES, LineView, Room
from hitl_tui.ui.work import start_work
from hitl_tui.view.agents import (
    Trial,
    agent_lines,
    agent_rows,
    change_words,
    changed_settings,
    memory_words,
    settings_form,
    trial_of,
    turn_lines,
)
from hitl_tui.view.format import capital, count
from hitl_tui.view.keymap import BACK, Option
from hitl_tui.view.repeats import repeat_lines
from hitl_tui.view.rows import wrap_line, wrap_spans, wrapped
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span, untrusted

_BREAKPOINTS: list[tuple[int, str]] = [(0, "-low"), (16, "-shorter"), (22, "-short"), (32, "-tall")]
_WORDS_ROWS = 3
_REPEATS_ROWS = 4
_PER_SECOND = 4


class SettingsChange(NamedTuple):
    """Chosen change: settings of an agent, for this thread or, if `fork` names one, for a fork."""

    agent: str
    settings: Mapping[str, Any]
    trial: Trial
    fork: str
    note: str | None


class TryDialog(Modal[SettingsChange | None]):
    """Asks for settings, checks what can be checked without running, and returns the change."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["agent_settings.tcss"]
    VERTICAL_BREAKPOINTS = _BREAKPOINTS
    COMPONENT_CLASSES: ClassVar[set[str]] = set(ROLE_CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = [bound("ask.back", "close")]
    AUTO_FOCUS = ""

    def __init__(self, session: ViewSession, agents: Sequence[AgentInfo], at: int) -> None:
        super().__init__()
        self._session = session
        self._agents = agents
        self._at = at
        # The step that was shown when it was opened: the thread may run meanwhile.
        self._place = (session.shown[0] if session.shown else session.thread_id, session.step_view.step)
        self._fork = session.free_name(self._place[0])
        self._trial = self._trial_of(agents[at])
        self._doubted: object = None

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as box:
            box.border_title = Content("Try other settings")
            yield LineView("try-words")
            yield AnswerForm()
            yield LineView("try-repeats")
            yield Choices(elsewhere=())

    def on_mount(self) -> None:
        """Focus the model first."""
        for name in ("#try-words", "#try-repeats"):
            self.query_one(name, LineView).can_focus = False
        self._show_agent()
        self.set_interval(1 / _PER_SECOND, self._follow)

    @property
    def _info(self) -> AgentInfo:
        return self._agents[self._at]

    @property
    def _can_change(self) -> bool:
        """Whether this thread itself may be changed now, as one that runs may not."""
        now = self._session.situation
        return not now.refusal(ConfigureAgents) and not now.running and not now.past

    def _trial_of(self, info: AgentInfo) -> Trial:
        thread_id, step = self._place
        return trial_of(self._session.points_of(thread_id), step, thread_id, info.name)

    def _show_agent(self) -> None:
        info = self._info
        self._trial = self._trial_of(info)
        name, model = sanitise_line(info.name, 40), sanitise_line(info.model, 40)
        more = f" Agent {self._at + 1} of {len(self._agents)}." if len(self._agents) > 1 else ""
        keymap = keymap_of(self.app)
        keys = f"{keymap.shown('form.next')} moves on, {keymap.shown('form.leave')} moves to the answers."
        self._say(f"{name} now speaks to {model}.{more} {capital(keys)}")
        form = self.query_one(AnswerForm)
        form.show_form(settings_form(info, self._fork))
        self.query_one(Choices).set_options(self._options())
        self.call_after_refresh(form.focus_first)
        start_work(self, self._show_repeats, group="repeats", exclusive=True)

    async def _show_repeats(self) -> None:
        """Show what a fork would run again, as in all dialogs that fork."""
        trial = self._trial
        driver = await self._session.driver_of(trial.thread_id)
        repeats = (await driver.preview(Fork(trial.base, self._fork))).repeats
        view = self.query_one("#try-repeats", LineView)
        words = " ".join(repeat_lines(repeats, in_fork=True)) if repeats is not None else ""
        rows = wrap_line(words, self._width)[:_REPEATS_ROWS] if words else []
        view.show([(Span(row, "dim"),) for row in rows])
        view.styles.height = len(rows)

    def _options(self) -> list[Option]:
        options = [Option("fork", "f", self._trial.words, "and compare both afterwards")]
        if self._can_change:
            options.append(Option("next", "n", "change this thread", "from its next step on"))
            options += [Option("back", "b", "back to the graph's settings")] if self._info.changed else []
        options += [Option("other", "a", "another agent")] if len(self._agents) > 1 else []
        return [*options, Option("leave", "ask.back", "go back")]

    def _follow(self) -> None:
        """Offer what can be done now: a run may have started or ended since; the cursor stays where it is."""
        choices, options = self.query_one(Choices), self._options()
        if tuple(options) != choices.options:
            at = choices.options[choices.cursor_row or 0].id
            ids = [option.id for option in options]
            choices.set_options(options, ids.index(at) if at in ids else 0)

    @property
    def _width(self) -> int:
        return max(min(self.size.width * 24 // 25 - 8, 76), 20)

    def _say(self, words: str, role: str = "plain") -> None:
        view = self.query_one("#try-words", LineView)
        rows = wrap_line(words, self._width)[:_WORDS_ROWS]
        view.show([(untrusted(row, "error") if role == "error" else Span(row),) for row in rows])

    @on(AnswerForm.Left)
    def _typed(self) -> None:
        self.query_one(Choices).focus()

    @on(Choices.Chosen)
    def _chosen(self, event: Choices.Chosen) -> None:
        option = event.option.id
        if option == "leave":
            self.dismiss(None)
        elif option == "other":
            self._at = (self._at + 1) % len(self._agents)
            self._show_agent()
        elif option == "back":
            self.dismiss(
                SettingsChange(self._info.name, dict.fromkeys(self._info.changed), self._trial, "", None)
            )
        else:
            self._decide(in_fork=option == "fork")

    def _decide(self, *, in_fork: bool) -> None:
        reading = self.query_one(AnswerForm).read()
        if reading.problems:
            return
        settings = changed_settings(self._info, reading.value)
        if not settings:
            self._say("Nothing is changed yet: give another model, temperature or instructions.", "error")
            self.query_one(AnswerForm).focus_first()
            return
        name = (reading.value.get("fork") or "").strip()
        if in_fork and not name:
            self._say("The fork needs a name.", "error")
            return
        note = (reading.value.get("why") or "").strip() or None
        change = SettingsChange(self._info.name, settings, self._trial, name if in_fork else "", note)
        self._say("Checking whether it can be called…")
        start_work(self, partial(self._check, change), group="check", exclusive=True)

    async def _check(self, change: SettingsChange) -> None:
        """Accept the change; if something is known to be missing, only when it is chosen again."""
        preview = await self._session.driver.preview(ConfigureAgents({change.agent: change.settings}))
        doubts = preview.problems.get(change.agent, "")
        if doubts and self._doubted != (change.agent, change.settings):
            self._doubted = (change.agent, change.settings)
            self._say(f"{doubts}. Choose it again to do it anyway.", "error")
        else:
            self.dismiss(change)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show why something was refused."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            self._say(failure_words(error), "error")

    def action_close(self) -> None:
        """Leave without a change."""
        self.dismiss(None)


async def ask_settings(screen: Host, session: ViewSession, agent: str = "") -> None:
    """Ask for other settings of an agent, and apply them.

    Args:
        agent: its name; "" for the author of the shown step.
    """
    agents = [agent for agent in await session.driver.agents() if agent.can_change]
    if not agents:
        screen.show_message("the graph has no agents that can be changed", "Try", "warning")
        return
    checkpoint = session.step_view.checkpoint
    wanted = agent or next((use.agent for use in reversed(checkpoint.uses if checkpoint else ())), "")
    at = next((place for place, agent in enumerate(agents) if agent.name == wanted), 0)

    def answered(change: SettingsChange | None) -> None:
        if change is not None and change.fork:
            screen.command(partial(_try_in_fork, screen, session, change))
        elif change is not None:
            screen.command(partial(_change, screen, session, change))

    screen.app.push_screen(TryDialog(session, agents, at), answered)


async def _change(screen: Host, session: ViewSession, change: SettingsChange) -> None:
    await session.driver.execute(
        ConfigureAgents({change.agent: change.settings}, actor=screen.actor, note=change.note)
    )
    screen.show_message(f"{change_words(change.settings)}, from the next step on", change.agent)


async def _try_in_fork(screen: Host, session: ViewSession, change: SettingsChange) -> None:
    trial = change.trial
    driver = await session.driver_of(trial.thread_id)
    await driver.execute(
        Fork(
            trial.base,
            change.fork,
            agents={change.agent: change.settings},
            actor=screen.actor,
            note=change.note,
        )
    )
    await screen.open_thread(change.fork)
    if screen.session is not None:
        await screen.session.driver.execute(Step())


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
            f"{info.name} forgets its {turns} and starts without them at the next step. The state does not "
            "change; the turns can't be restored. The log says who did it."
        ]
        options = [BACK, Option("forget", "f", "forget them")]

        def answered(answer: DialogResult | None) -> None:
            if answer is not None and answer.id == "forget":
                note = answer.fields["why"].strip() or None
                start_work(self, partial(self._forget, info.name, note), group="forget")

        self.app.push_screen(
            Dialog("Forget", text, options, [DialogField("why", "why (optional)")]), answered
        )

    async def _forget(self, name: str, note: str | None) -> None:
        forgotten = await self._session.driver.execute(ClearTurns(name, actor=self._actor, note=note))
        await self._load()
        self._say(f"{name} has forgotten {count(forgotten, 'turn')}", "information")

    def _say(self, words: str, severity: Severity = "warning") -> None:
        self.notify(untrusted(words).text, markup=False, severity=severity)
