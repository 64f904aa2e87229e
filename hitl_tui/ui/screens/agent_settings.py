"""Other settings for an agent: from the next step on, or in a fork that makes a step again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.worker import Worker, WorkerState

from hitl_tui.drivers.protocol import AgentInfo
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.closing import Modal
from hitl_tui.ui.keys_in_use import keymap_of
from hitl_tui.ui.screens.dialogs import fork_name
from hitl_tui.ui.session import Session
from hitl_tui.ui.widgets.choices import Choices, Option
from hitl_tui.ui.widgets.form import AnswerForm
from hitl_tui.ui.widgets.lines import ROLE_CLASSES, LineView
from hitl_tui.ui.wrap import wrap_line
from hitl_tui.view.agent_settings import Trial, change_words, changed_settings, settings_form, trial_of
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Span, untrusted

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen

_BREAKPOINTS: list[tuple[int, str]] = [(0, "-low"), (16, "-shorter"), (22, "-short"), (32, "-tall")]
_WORDS_ROWS = 3
_PER_SECOND = 4


class Change(NamedTuple):
    """What was decided: settings of an agent, for this thread or, where `fork` names one, for a fork."""

    agent: str
    settings: Mapping[str, Any]
    trial: Trial
    fork: str
    note: str | None


class TryDialog(Modal[Change | None]):
    """Asks for settings, checks what can be checked without running, and comes back with the change."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["agent_settings.tcss"]
    VERTICAL_BREAKPOINTS = _BREAKPOINTS
    COMPONENT_CLASSES: ClassVar[set[str]] = set(ROLE_CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = [bound("ask.back", "close")]
    AUTO_FOCUS = ""

    def __init__(self, session: Session, agents: Sequence[AgentInfo], at: int) -> None:
        super().__init__()
        self._session = session
        self._agents = agents
        self._at = at
        # The step that was shown when it was opened: a thread that runs on does not change what is asked.
        self._place = (session.shown[0] if session.shown else session.thread_id, session.step_view.step)
        self._fork = fork_name(session, self._place[0])
        self._trial = self._trial_of(agents[at])
        self._doubted: object = None

    def compose(self) -> ComposeResult:
        """A sentence, the fields, the answers."""
        with Vertical(id="dialog") as box:
            box.border_title = Content("Try otherwise")
            yield LineView("try-words")
            yield AnswerForm()
            yield Choices(elsewhere=())

    def on_mount(self) -> None:
        """Begin with the model."""
        self.query_one("#try-words", LineView).can_focus = False
        self._show_agent()
        self.set_interval(1 / _PER_SECOND, self._follow)

    @property
    def _info(self) -> AgentInfo:
        return self._agents[self._at]

    @property
    def _can_change(self) -> bool:
        """Whether this thread itself may be changed now, as one that runs may not."""
        now = self._session.situation
        return now.can.can_edit and not now.running and not now.past

    def _trial_of(self, info: AgentInfo) -> Trial:
        thread_id, step = self._place
        return trial_of(self._session.points_of(thread_id), step, thread_id, info.name)

    def _show_agent(self) -> None:
        info = self._info
        self._trial = self._trial_of(info)
        name, model = sanitise_line(info.name, 40), sanitise_line(info.model, 40)
        more = f" Agent {self._at + 1} of {len(self._agents)}." if len(self._agents) > 1 else ""
        keymap = keymap_of(self.app)
        keys = f"{keymap.shown('form.next')} goes on, {keymap.shown('form.leave')} goes to the answers."
        self._say(f"{name} now speaks to {model}.{more} {keys[0].upper()}{keys[1:]}")
        form = self.query_one(AnswerForm)
        form.show_form(settings_form(info, self._fork))
        self.query_one(Choices).set_options(self._options())
        self.call_after_refresh(form.focus_first)

    def _options(self) -> list[Option]:
        options = [Option("fork", "f", self._trial.words, "and compare both afterwards")]
        if self._can_change:
            options.append(Option("next", "n", "change this thread", "from its next step on"))
            options += [Option("back", "b", "back to the graph's settings")] if self._info.changed else []
        options += [Option("other", "a", "another agent")] if len(self._agents) > 1 else []
        return [*options, Option("leave", "ask.back", "go back")]

    def _follow(self) -> None:
        """Offer what can be done now: a run may have begun or ended since; the cursor stays where it is."""
        choices, options = self.query_one(Choices), self._options()
        if tuple(options) != choices.options:
            at = choices.options[choices.cursor_row or 0].id
            ids = [option.id for option in options]
            choices.set_options(options, ids.index(at) if at in ids else 0)

    def _say(self, words: str, role: str = "plain") -> None:
        view = self.query_one("#try-words", LineView)
        rows = wrap_line(words, max(min(self.size.width * 24 // 25 - 8, 76), 20))[:_WORDS_ROWS]
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
            self.dismiss(Change(self._info.name, dict.fromkeys(self._info.changed), self._trial, "", None))
        else:
            self._decide(in_fork=option == "fork")

    def _decide(self, *, in_fork: bool) -> None:
        reading = self.query_one(AnswerForm).read()
        if reading.problems:
            return
        settings = changed_settings(self._info, reading.value)
        if not settings:
            self._say("Nothing is changed yet: another model, temperature or instructions?", "error")
            self.query_one(AnswerForm).focus_first()
            return
        name = (reading.value.get("fork") or "").strip()
        if in_fork and not name:
            self._say("The fork needs a name.", "error")
            return
        note = (reading.value.get("why") or "").strip() or None
        change = Change(self._info.name, settings, self._trial, name if in_fork else "", note)
        self._say("Looking whether it can be called…")
        self.run_worker(self._check(change), group="check", exclusive=True, exit_on_error=False)

    async def _check(self, change: Change) -> None:
        """Take the change; where something is known to be missing, only when it is chosen once more."""
        doubts = await self._session.driver.doubts(change.agent, change.settings)
        if doubts and self._doubted != (change.agent, change.settings):
            self._doubted = (change.agent, change.settings)
            self._say(f"{doubts}. Choose once more to do it all the same.", "error")
        else:
            self.dismiss(change)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """What is refused says why."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            words = f"{error.message} — {error.hint}" if isinstance(error, HitlError) else str(error)
            self._say(words, "error")

    def action_close(self) -> None:
        """Leave; nothing is changed."""
        self.dismiss(None)


async def ask_settings(screen: RunScreen, session: Session, agent: str = "") -> None:
    """Ask for other settings of an agent, and do what was decided.

    Args:
        agent: its name; "" for the one that made the shown step.
    """
    agents = [one for one in await session.driver.agents() if one.can_change]
    if not agents:
        screen.tell("the graph has no agents that can be changed", "Try", "warning")
        return
    checkpoint = session.step_view.checkpoint
    wanted = agent or next((use.agent for use in reversed(checkpoint.uses if checkpoint else ())), "")
    at = next((place for place, one in enumerate(agents) if one.name == wanted), 0)

    def answered(change: Change | None) -> None:
        if change is not None and change.fork:
            screen.command(_try_in_fork(screen, session, change))
        elif change is not None:
            screen.command(_change(screen, session, change))

    screen.app.push_screen(TryDialog(session, agents, at), answered)


async def _change(screen: RunScreen, session: Session, change: Change) -> None:
    await session.driver.configure_agent(
        change.agent, change.settings, actor=screen.hitl.actor, note=change.note
    )
    screen.tell(f"{change_words(change.settings)}, from the next step on", change.agent)


async def _try_in_fork(screen: RunScreen, session: Session, change: Change) -> None:
    trial = change.trial
    own = trial.thread_id == session.thread_id
    driver = session.driver if own else await session.hub.open(trial.thread_id)
    await driver.fork(
        trial.base,
        change.fork,
        agents={change.agent: change.settings},
        actor=screen.hitl.actor,
        note=change.note,
    )
    await screen.threads.open(change.fork)
    if screen.session is not None:
        await screen.session.driver.step()
