"""The run screen: the thread that is shown, what happens in it, and what a person does to it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from textual import events, on
from textual.binding import BindingType
from textual.widget import Widget
from textual.worker import WorkerFailed

from hitl_tui.drivers.kept_breakpoints import KeptBreakpoints, kept_breakpoints
from hitl_tui.drivers.protocol import ContextField, Driver, Hub, ThreadKey, command_refusal
from hitl_tui.engine.commands import Answer, Command, DoubleText, Pause, PrepareGraph, Run, Start, Step
from hitl_tui.engine.log.outcomes import ErrorInfo
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.errors import HitlError, LogCorrupt, ServerBusy
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.gate import gate_of, rows_on_screen
from hitl_tui.ui.screens.run_panes import RunPanes
from hitl_tui.ui.textual_private import forget_arrangements
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.footer import FooterBar
from hitl_tui.ui.widgets.header import BannerBar, HeaderBar
from hitl_tui.ui.widgets.lens import LensPane
from hitl_tui.ui.widgets.timeline import TimelinePane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.ui.work import start_work
from hitl_tui.verbs.actions import ACTIONS, BY_ID
from hitl_tui.verbs.keymap import load_keymap
from hitl_tui.view.actions import Situation
from hitl_tui.view.banner import banner_of
from hitl_tui.view.keymap import Keymap
from hitl_tui.view.pace import Paces
from hitl_tui.view.presence import Attention
from hitl_tui.view.run_view import crumbs
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import PaintPace, ViewSession
from hitl_tui.view.status import StatusLine, status

if TYPE_CHECKING:
    from hitl_tui.drivers.unsent_answers import UnsentAnswers
    from hitl_tui.engine.commands.command import DoubleTexting
    from hitl_tui.engine.log.events import Progress
    from hitl_tui.loading.known import KnownGraph
    from hitl_tui.view.queue import QueueChoice, WaitingQueue

log = logging.getLogger(__name__)
Begin: TypeAlias = Callable[[Driver], Coroutine[Any, Any, None]]
"""Begins a run of a thread."""
_FAMILY_EVERY: Final = 0.5
"""Least number of seconds between two checks of the other threads of the family."""
_STATUS_WORDS: Final = {
    "step": "run.step",
    "continue": "run.continue",
    "decide": "change.decide",
    "edit": "change.edit",
    "fork": "change.fork",
    "extend": "change.extend",
    "rollback": "change.rollback",
}
_COVERED_SECONDS: Final = 1.0
"""Seconds between two frames of a screen below another one."""
_LOOK_SECONDS: Final = 0.1
"""Seconds between checks whether it still is."""
_NAME: Final = 40
_OF_THE_APP: Final = ("app.palette", "app.repaint")
"""Actions that the app does itself."""
_BESIDE_CARD: Final = ("card.comment", "card.uncomment", "card.hand", "card.allow")
"""Effects of an open card's keys while another pane has the focus, for example after a selection there."""
_WALKS: Final = {"app.next": "look.next", "app.before": "look.previous"}
"""Effects of keys while a search is open, as in other pagers."""


class RunScreen(RunPanes):
    """Screen of one thread: see it, step it, travel, edit, decide, fork.

    Args:
        session: the thread to begin with.
        leave: leaves the app, after asking if something is unfinished.
        on_shown: called once that thread is shown, or with why it can't be.
        handlers: the function of each action, as in `run_actions`.
        inputs: inputs of a thread without a step; None if they are asked for, or its defaults are used.
        breaks: breakpoints of the first thread's graph, as `--break` takes them.
        waits_for: what a running node waits for before it can begin, in words; "" for nothing.
        unsent: returns where answers to requests of a source are kept until they are sent, None for nowhere.

    Attributes:
        came_from: the source and the thread that were last opened from the queue.
        left: progress of the threads that were shown before.
        paces: which threads are stepped through.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *(bound(action_id, f"do('{action_id}')") for action_id in _BESIDE_CARD),
        *(
            bound(action.id, f"do('{action.id}')", priority=action.group == "Stage")
            for action in ACTIONS
            if action.group != "Card" and action.id not in _OF_THE_APP
        ),
    ]

    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(
        self,
        session: ViewSession,
        actor: str,
        leave: Callable[[], None],
        on_shown: Callable[[RunScreen, HitlError | None], Awaitable[None]],
        handlers: Mapping[str, Callable[[RunScreen], Any]],
        *,
        inputs: Mapping[str, Any] | None = None,
        ask_inputs: bool = True,
        breaks: Sequence[str] = (),
        keymap: Keymap | None = None,
        waits_for: Callable[[], str] = str,
        attention: Attention | None = None,
        unsent: Callable[[str], UnsentAnswers | None] = lambda source: None,
        reviewing: bool = False,
    ) -> None:
        super().__init__(session.hub, actor, keymap or load_keymap({}), reviewing=reviewing)
        self._first = session
        self._on_shown = on_shown
        self._handlers = handlers
        self.leave = leave
        self._breaks = breaks
        self.waits_for = waits_for
        self.attention = attention or Attention()
        self._unsent = unsent
        self._inputs = inputs
        self._ask_for_inputs = ask_inputs
        self.left: dict[ThreadKey, Progress] = {}
        self.now: Callable[[], int] = self.hub.now
        self.paces = Paces()
        self._family_due = 0.0
        self._seen_error: ErrorInfo | None = None
        self._repeats_of: tuple[ViewSession, Progress] | None = None
        self._card_coming = False
        """Whether the card is being put together: keys wait for it, and so does “waits for you”."""
        self._card_shown_for = ""
        """Request for which the card opened last: it opens by itself only once for each."""
        self._outcome_stays = False
        """Whether the outcome of this decision replaces the card, whatever the setting says."""
        self._attending: tuple[object, ...] = ()
        self.came_from = ("", "")
        self._one_by_one = asyncio.Lock()

    # The shown thread.

    async def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Show the first session: panes wrap it for the room that a layout gives, and are painted once.

        It happens before Textual paints the screen, not on mount, when nothing has a position yet.
        """
        if self._is_painted:
            return
        event.refresh_styles = False  # all panes were styled a moment ago
        error = None
        with self.app.batch_update():
            self.lay_out()
            try:
                await self.begin(self._first)
                await self._first.drain()
            except HitlError as refused:
                error = refused
            if not (self._first.has_news or self._first.view.checkpoints):
                self.show_all()
            self.show_news(self._first)
            # Errors are reported as those of any worker.
            with suppress(WorkerFailed):
                await start_work(self, self.shown_value.show_first).wait()
            forget_arrangements((self, *self.walk_children(Widget)))
            self.lay_out()
            self.query_one(ValuePane).show_first_change()
        self._is_painted = True
        self._begin_following()
        # Called by the app: a key that this screen simulates would bubble only up to the screen.
        self.call_after_refresh(self.app.call_later, self._on_shown, self, error)

    async def begin(self, session: ViewSession) -> None:
        """Show a session; a thread without a step gets its input first."""
        before = self.session
        self._bring_breakpoints(session)
        self.paces.begin(session, before)
        self.keep_search(session)
        self._show_session(session)
        self._seen_error = session.view.error  # the editor opens by itself only for later failures
        if session.view.checkpoints:
            self.on_progress(session)
            return
        if self._inputs is not None and session is self._first:
            await session.driver.execute(Start(self._inputs, self.actor))
            return
        context = await session.driver.context_fields() if self._ask_for_inputs else ()
        needed = session.view.graph.inputs or any(field.required for field in context)
        if self._ask_for_inputs and needed:
            self._ask_inputs(session, before, context)
        else:
            await session.driver.execute(Start({}, self.actor))

    def _report_gone(self, session: ViewSession) -> None:
        """Save, as a text, what the person wrote earlier about requests that wait no more, and say where."""
        if (unsent := self._unsent(session.hub.source)) is None:
            return
        from hitl_tui.ui.terminal import keep_text
        from hitl_tui.view.card import unsent_text

        for answer in unsent.take_gone(session.thread_id, [asked.id for asked in session.requests]):
            if text := unsent_text(answer):
                kept = keep_text(text, f"what you wrote about {answer.title!r}")
                self.show_message(kept, "No longer asked")

    def _ask_inputs(
        self, session: ViewSession, before: ViewSession | None, context: Sequence[ContextField]
    ) -> None:
        """Ask for the first input; without one go back to what was shown before, or leave the app."""
        from hitl_tui.ui.screens.inputs import InputsScreen, StartValues

        def started(values: StartValues | None) -> None:
            if values is None and before is not None and before is not session:
                self.command(partial(self.begin, before))
            elif values is None:
                self.leave()
            else:
                begin = Start(values.inputs, self.actor, context=values.context or None)
                self.command(partial(session.driver.execute, begin))

        self.app.push_screen(InputsScreen(session.view.graph, context), started)

    def _show_session(self, session: ViewSession) -> None:
        """Show a session from now on."""
        if self.session is not None:
            self.left[self.session.thread_key] = self.session.view.progress
        self.session = self.shown_value.session = session
        self.hub, self.now = session.hub, session.hub.now
        self.shown_value.forget()
        self._family_due = 0.0
        self.query_one(ChannelsPane).picked = False
        if self._is_painted or session.view.checkpoints:  # a first step is about to come, and shown at once
            self.show_all()
        if self._is_painted:  # nothing competes with the first paint
            self._begin_following()

    def _begin_following(self) -> None:
        if self.session is not None:
            start_work(self, partial(self._follow, self.session), group="follow", exclusive=True)
            self._report_gone(self.session)

    async def _follow(self, session: ViewSession) -> None:
        """Show what happens as long as a session is shown; block while nothing happens."""
        pace = PaintPace()
        try:
            while session is self.session and self.display:  # while it is removed, its parts go one by one
                await self._wait_for_news(session)
                # The cost of a paint is known only after it.
                while rest := pace.rest(time.perf_counter(), time.thread_time()):
                    if await self._run_ends(session, rest):
                        break
                head = session.view.progress.head
                now, cpu = time.perf_counter(), time.thread_time()
                await session.drain()
                pace.take(now, cpu, session.view.progress.head - head)
                self._show_moment(session)
                await self._rest_while_covered(session)
        except HitlError as error:
            self.complain(error)
        except Exception:
            log.exception("events could not be read")
            self.show_message(
                "the screen could not follow the run; the log file has the details", "Error", "error"
            )

    async def _rest_while_covered(self, session: ViewSession) -> None:
        """Draw seldom below a dialog or a page: Textual paints all layers above it each time."""
        end = time.monotonic() + _COVERED_SECONDS
        while not self.on_top and time.monotonic() < end:
            if await self._run_ends(session, _LOOK_SECONDS):
                return

    async def _wait_for_news(self, session: ViewSession) -> None:
        """Wait until something has happened, or a clock on screen is out of date."""
        wait = session.clock(self.now())
        if session.family_stale:
            wait = max(self._family_due - time.monotonic(), 0.0) if wait is None else wait
        if not session.has_news:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await session.driver.changed(session.view.last_event)

    async def _run_ends(self, session: ViewSession, seconds: float) -> bool:
        """Wait at most this long for a run to end, so that its result is shown at once."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await session.driver.ended(session.view.last_event)
                return True
        return False

    def _show_moment(self, session: ViewSession) -> None:
        if session is not self.session or not self.display:
            return
        if session.has_news:
            self.show_news(session)
        elif session.clock(self.now()) is not None:
            self._show_header(session)
        if session.family_stale and time.monotonic() >= self._family_due:
            session.family_stale = False
            self._family_due = time.monotonic() + _FAMILY_EVERY
            start_work(self, partial(self._refresh_family, session), group="family")

    def show_news(self, session: ViewSession) -> None:
        """Show what has happened since the last time, even if other code has fetched it."""
        if session.has_news and self.display:
            session.has_news = False
            self.show_all()
            self.on_progress(session)
            while session.alerts:
                self.show_message(session.alerts.pop(0), severity="warning")
            if session.view.progress.status in ("completed", "cancelled"):
                self.query_one(FooterBar).take_back(session.limit_notes)

    def on_progress(self, session: ViewSession) -> None:
        """Open the editor if a node has just failed because of a channel; else update the card."""
        self._look_at_retry(session)
        if session.deadline_passed:
            session.deadline_passed = False
            if not session.running and "run" not in session.refusals:
                self.command(partial(self.after_answer, session))
        if not self._open_failed_channel(session):
            self._follow_with_card(session)

    async def _refresh_family(self, session: ViewSession) -> None:
        if await session.refresh_family() and session is self.session and self.display:
            self.query_one(TimelinePane).show_view(session.view, session.family, session.shown)
            self.query_one(LensPane).show_session(session)

    @property
    def runs(self) -> str:
        """Return the node that runs here, "" for none; a run of another process continues there."""
        session = self.session
        return (session.view.running_node or "") if session and not session.view.held_by else ""

    # Actions, and the bars that show their keys.

    @property
    def situation(self) -> Situation:
        """Situation, which decides which actions are available."""
        row = self.query_one(ChannelsPane).selected_row
        return msgspec.structs.replace(
            self.session.situation if self.session else Situation(),
            key_hints=self.key_hints,
            card=self.card_state,
            voted=self._voted,
            typing=self.focused is not None and self.focused.check_consume_key("a", "a"),
            found=self.finding is not None,
            tainted=row is not None and row.tainted,
            private=row is not None and row.visibility == "private",
            recorded=getattr(self.app, "recording", None) is not None,
            reviewing=self.reviewing,
        )

    def _show_header(self, session: ViewSession) -> None:
        if self._card_coming or self._card_opens_for(session):
            return  # code that reads that it waits must find the card's keys working
        where, line = self.status_line(session)
        if place := self.place_in_queue:
            line = msgspec.structs.replace(line, step=f"{place} · {line.step}" if line.step else place)
        graph, source = session.view.graph.name, session.hub.source
        self.query_one(HeaderBar).show(f"{source} · {graph}" if source else graph, where, line)

    def status_line(self, session: ViewSession) -> tuple[str, StatusLine]:
        """Return where the thread is among those that run each other, and what it is doing."""
        waits = self.waits_for() if session.running and not session.is_past else ""
        line = status(
            session.view, self.now(), pausing=session.pausing, keys=self._turn_keys, waits_for=waits
        )
        if session.is_past:  # those keys are for the newest step; the banner has the key to go there
            turn = line.turn.partition(" — ")[0]
            line = msgspec.structs.replace(line, turn=turn, brief=turn)
        return crumbs(session.thread_id, session.view.owners), line

    @property
    def _turn_keys(self) -> dict[str, str]:
        """Keys to press, by the words of the status line; the card itself shows those that decide."""
        keys = {name: self.key_hints[action_id] for name, action_id in _STATUS_WORDS.items()}
        if self.reviewing:
            keys["step"] = ""
        view = self.session.view if self.session is not None else None
        if view is not None and (why := command_refusal(view.refusals, Answer)):
            is_mended = view.graph_changed is not None and why == command_refusal(view.refusals, PrepareGraph)
            keys["unable"] = "load its graph to decide" if is_mended else why
        if self.card_state:
            keys["decide"] = ""
        if self.card_state == "sending":
            keys["undo"] = self.key_hints["card.undo"]
        return keys

    def _show_banner(self, session: ViewSession) -> None:
        narrow = self.is_narrow and not self.card_open
        self.query_one(BannerBar).show(*banner_of(session, self.key_hints, self.size, narrow=narrow))

    def show_bars(self) -> None:
        """Update header, banner and footer for what the user is doing."""
        if self.session is not None and self.display:  # while it is removed, its parts go one by one
            self._show_header(self.session)
            self._show_banner(self.session)
            self.query_one(FooterBar).show(self.situation)

    def on_descendant_focus(self) -> None:
        """Update the footer, as its keys depend on the focus."""
        self.show_bars()

    def on_descendant_blur(self) -> None:
        """Update the footer, as its keys depend on the focus."""
        self.show_bars()

    @property
    def takes_stage_keys(self) -> bool:
        """Whether the keys of a presentation work: they belong to other actions while none runs."""
        return False

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys of unavailable actions; while the card is open, its keys move the focus there."""
        if action != "do":
            return True
        action_id = str(parameters[0])
        if BY_ID[action_id].group == "Stage" and not self.takes_stage_keys:
            return False
        asked = action_id not in _BESIDE_CARD or self.card_open
        return asked and bool(self.keymap.bindings[action_id])

    def doing(self, action_id: str) -> Callable[[], None]:
        """Return the function that the palette calls for an action."""
        return lambda: self.action_do(action_id)

    def action_do(self, action_id: str) -> None:
        """Do an action, or show why it is disabled."""
        if self.finding is not None and not self.card_open:
            action_id = _WALKS.get(action_id, action_id)
        action = BY_ID[action_id]
        # Nothing that is wrong with the thread or its view may keep the user here.
        disabled_reason = action.disabled_reason(self.situation) if action_id != "app.quit" else ""
        if not disabled_reason and self.keymap.actions[action_id].at_once:
            disabled_reason = gate_of(self.app).run_refusal
        if disabled_reason:
            self.show_message(disabled_reason, action.label, "warning")
            return
        self.do_action(action_id)

    def do_action(self, action_id: str) -> None:
        """Do an action, whatever disables its key."""
        self._handlers[action_id](self)

    @on(ValuePane.Read)
    def _read_value(self) -> None:
        self.action_do("look.read")

    @on(FooterBar.Chosen)
    def _footer_chosen(self, event: FooterBar.Chosen) -> None:
        self.action_do(event.action.id)

    @property
    def is_preparing(self) -> bool:
        """Whether a card or a search is being put together: keys wait for it."""
        return self._card_coming or (self.search_pane is not None and not self.search_pane.is_mounted)

    def before_command(self, command: Command[Any]) -> None:
        """Show at once that the thread is being paused; neither it nor its owners continue by themselves."""
        if isinstance(command, Pause) and (session := self.session):
            session.pausing = True
            self.paces.step(session.thread_id, *(owner.thread_id for owner in session.view.owners))
            self.show_all()

    # Running.

    async def follow(self, command: Command[None], driver: Driver) -> None:
        """Start a run, and continue after its requests as after those of any run."""
        session = self.session
        if session is None or session.driver is not driver:
            await driver.execute(command)
        elif isinstance(command, Run):
            self.run_on()
        else:
            self.paces.let_run(session)
            await self.begin_run(session, lambda chosen: chosen.execute(command))

    def run_on(self) -> None:
        """Run until something waits."""
        if session := self.session:
            self.run_with(lambda driver: driver.execute(Run(armed(session))), "run.continue")

    def step(self) -> None:
        """Run one node."""
        if session := self.session:
            step = Step(False, armed(session))
            self.run_with(lambda driver: driver.execute(step), "run.step", stepping=True)

    def run_with(self, begin: Begin, action: str, *, stepping: bool = False) -> None:
        """Begin a run, but first show what would run again if that has side effects.

        Args:
            action: the action whose key began it, and confirms it, too.
            stepping: whether the person steps through the thread, instead of letting it run.
        """
        session = self.session
        if session is None:
            return
        if stepping:
            self.paces.step(session.thread_id)
        else:
            self.paces.let_run(session)
        if _may_repeat(session):
            from hitl_tui.ui.screens.dialogs import ask_to_repeat

            start = partial(self.begin_run, session, begin)
            self.command(partial(ask_to_repeat, self, session, action, start))
        else:
            self.command(partial(self.begin_run, session, begin))

    async def begin_run(self, session: ViewSession, begin: Begin) -> None:
        """Begin a run; if a server already runs the thread, first ask what to do about that run."""
        try:
            await begin(session.driver)
        except ServerBusy:
            from hitl_tui.ui.screens.dialogs import ask_double_texting

            def chosen(strategy: DoubleTexting) -> None:
                self.command(partial(self._make_room_on_server, session, strategy, begin))

            ask_double_texting(self, chosen)

    async def _make_room_on_server(self, session: ViewSession, strategy: DoubleTexting, begin: Begin) -> None:
        if strategy == "enqueue":
            self.show_message("waiting for the run on the server to end", "Busy")
        await session.driver.execute(DoubleText(strategy, self.actor))
        if session is self.session:
            await self.begin_run(session, begin)

    def _look_at_retry(self, session: ViewSession) -> None:
        """Find out what continuing would run again, to show it beside the failure."""
        progress = session.view.progress
        if not _may_repeat(session):
            session.retry, self._repeats_of = None, None
        elif self._repeats_of != (session, progress):
            self._repeats_of = session, progress
            self.command(partial(self._load_retry, session), group="repeats")

    async def _load_retry(self, session: ViewSession) -> None:
        session.retry = (await session.driver.preview(Run())).repeats
        if session is self.session:
            self.show_bars()

    async def after_answer(self, session: ViewSession) -> None:
        """Run to the next stop, unless the thread was being stepped through when the request opened.

        It does so even if another thread is shown by now.
        """
        if self.paces.is_stepping(session):
            return
        await session.drain()
        if session is self.session:
            self.show_news(session)
        goes_on = session.view.progress.status in ("waiting", "pending") and not session.driver.refusal(Run)
        if not session.request and goes_on and not (await session.driver.snapshot()).handed:
            self.paces.let_run(session)
            await self.begin_run(session, lambda driver: driver.execute(Run(armed(session))))

    # Breakpoints belong to a graph: they are kept for it, and all its threads have them.

    def _bring_breakpoints(self, session: ViewSession) -> None:
        """Give a session its graph's kept breakpoints, and the first one those of the command line, too."""
        kept = _kept(session)
        session.breakpoints = kept.load()
        if self.session is None and self._breaks:
            from hitl_tui.drivers.breakpoints import put, read_breakpoints

            for point in read_breakpoints(self._breaks, session.view.graph):
                session.breakpoints = put(session.breakpoints, point)
        self._report_problem(kept)

    def keep_breakpoints(self, session: ViewSession, breakpoints: tuple[Breakpoint, ...]) -> None:
        """Set the breakpoints of a thread and save them for the next session."""
        session.breakpoints = breakpoints
        kept = _kept(session)
        kept.save(breakpoints)
        self._report_problem(kept)
        self.show_all()

    def _report_problem(self, kept: KeptBreakpoints) -> None:
        if kept.problem:
            self.show_message(kept.problem, "Breakpoints", "warning")

    # Moving between threads.

    @cached_property
    def _queue(self) -> WaitingQueue:
        """Return the waiting requests, in the order in which they are opened one after the other."""
        from hitl_tui.view.queue import WaitingQueue

        return WaitingQueue()

    @property
    def place_in_queue(self) -> str:
        """Return which of the waiting requests is shown: "4 of 12"; "" if it wasn't opened from the queue."""
        shown = self.session is not None and self.session.thread_key == self.came_from
        return "{} of {}".format(*self._queue.place) if shown else ""

    async def open_thread(self, thread_id: str, hub: Hub | None = None) -> None:
        """Show another thread; if its log is damaged show what is wrong, with a way back here.

        A decision that could still be undone is sent; if it is refused, its card stays.

        Args:
            hub: the hub of its source, None for that of the shown thread.
        """
        if not await self.send_decision():
            return
        hub = hub or self.hub
        driver = await hub.open(thread_id, at_once=True)
        try:
            session = await ViewSession.open(hub, driver)
        except LogCorrupt as error:
            from hitl_tui.ui.screens.damaged import Damage, show_damage

            show_damage(self.app, hub, Damage(driver, error), "Back", self._after_damage)
        else:
            await self.change_to(session)

    def _after_damage(self, outcome: ViewSession | HitlError) -> None:
        if isinstance(outcome, ViewSession):
            self.command(partial(self.change_to, outcome))

    async def open_at(self, thread_id: str, step: int | None) -> None:
        """Open an inner thread at one of its steps, if it can be opened."""
        await self.open_thread(thread_id)
        if step is not None and self.session is not None and self.session.thread_id == thread_id:
            self.travel((thread_id, step))

    async def change_to(self, session: ViewSession) -> None:
        """Replace the shown session."""
        self._close_followed()
        self.close_card()
        self._card_shown_for = ""
        await self.begin(session)

    def go_to_thread(self, thread_id: str | None) -> None:
        """Open the thread that was chosen in a list, unless it is shown."""
        if thread_id and (self.session is None or thread_id != self.session.thread_id):
            self.command(partial(self.open_thread, thread_id))

    async def start_thread(self, graph: KnownGraph) -> None:
        """Start a thread of a graph, and show it."""
        if await self.send_decision():
            await self.change_to(await ViewSession.open(self.hub, await self.hub.start(graph, self.actor)))

    async def open_to_decide(self, source: str, thread_id: str, request_id: str) -> None:
        """Show a thread of a source with the card of one of its requests."""
        if self.session is None or (source, thread_id) != self.session.thread_key:
            await self.open_thread(thread_id, self.hub.inbox.hub_of(source))
        opened = self.session
        if opened is None or opened.thread_key != (source, thread_id):
            return
        request = next((asked for asked in opened.requests if asked.id == request_id), None)
        self.close_card()  # of another request of the thread
        if request is None:
            return
        if disabled_reason := BY_ID["change.decide"].disabled_reason(self.situation):
            self.show_message(disabled_reason, severity="warning")
        else:
            self.paces.let_run(opened)
            self.open_card(request)

    def open_chosen(self, choice: QueueChoice) -> None:
        """Open a request that was chosen in the queue; the next one is looked for from there."""
        self._queue.chosen(choice)
        self.came_from = choice.row.thread_key
        self.command(partial(self.open_to_decide, *choice.row.key))

    def next_thread(self, *, back: bool = False) -> None:
        """Open the next thread that waits for a person, and its card; once it is answered the run continues.

        Args:
            back: whether to open the previous one instead.
        """

        async def after_the_last_key() -> None:
            async with self._one_by_one:
                await self._open_next(back=back)

        self.command(after_the_last_key)

    async def _open_next(self, *, back: bool) -> None:
        from hitl_tui.view.queue import MOST, rows_of

        session, queue = self.session, self._queue
        assert session is not None
        # Sent first, so that a thread which asks again is found.
        if not await self.send_decision():
            return
        open_now = (session.thread_id, *(owner.thread_id for owner in session.view.owners))
        inbox, source = session.hub.inbox, session.hub.source
        rows = rows_of(await inbox.waiting(MOST))
        find = queue.preceding if back else queue.following
        row = find(rows, [(source, thread) for thread in open_now], self.now(), self.actor)
        if row is None and back:
            self.show_message("no earlier thread still waits")
            return
        if row is None:
            passes = f" that matches {queue.view.filter}" if queue.view.filter else ""
            self.show_message(f"no other thread{passes} waits for a person")
            return
        self.came_from = row.thread_key
        await self.open_thread(row.name, inbox.hub_of(row.source))
        opened = self.session
        decides = opened is not session and not BY_ID["change.decide"].disabled_reason(self.situation)
        if opened is not None and decides:
            self.paces.let_run(opened)
            self.decide()

    async def leave_inner_thread(self, owner: str) -> None:
        """Show the owner; if it was running when it was left, it continues unless something waits."""
        await self.open_thread(owner)
        session = self.session
        if session is not None and self.paces.is_running_on(session) and not session.running:
            await self.after_answer(session)
            self.on_progress(session)

    # The editor.

    def _open_failed_channel(self, session: ViewSession) -> bool:
        """Open the editor if a node has just failed because of a channel; return whether it did."""
        error, seen = session.view.error, self._seen_error
        self._seen_error = error
        failed = error is not None and error is not seen and session.view.progress.status == "failed"
        channel = error.channel if failed and error is not None else ""
        free = not self.card_open and not session.is_past and self.on_top
        if not channel or not free or BY_ID["change.edit"].disabled_reason(self.situation):
            return False
        from hitl_tui.ui.screens.edit import FailedValueScreen

        def done(applied: str | None) -> None:
            if applied and session is self.session:
                self._run_again(session)

        self.app.push_screen(FailedValueScreen(session, channel, self.actor), done)
        return True

    def _run_again(self, session: ViewSession) -> None:
        """Continue after a failure was fixed, as the person did last."""
        if self.paces.is_running_on(session):
            self.run_on()
        else:
            self.step()

    def edit_channel(self, channel: str) -> None:
        """Open the editor on a channel at the shown step."""
        from hitl_tui.ui.screens.edit import EditScreen

        session = self.session
        if session is None or not channel:
            return
        deciding = self.card_open
        self.close_card()

        def done(thread_id: str | None) -> None:
            if thread_id and thread_id != session.thread_id:
                self.command(partial(self.open_thread, thread_id))
                return
            if thread_id:
                self.travel(None)
            if deciding:
                self.command(partial(self._decide_again, session))

        self.app.push_screen(EditScreen(session, channel, self.actor), done)

    async def _decide_again(self, session: ViewSession) -> None:
        """Go back to the card that the editor was opened from; the request may be about a new step by now."""
        await session.drain()
        self.show_news(session)
        if session is self.session and session.request is not None:
            self.open_card(session.request)

    # The review card. It opens by itself if the user had let the thread run; after a single step it does
    # not: a person who steps looks at the changes, which the card would hide.

    @property
    def card_state(self) -> Literal["", "open", "aside", "sending"]:
        """State of the card, as for `Situation`."""
        card = self.card if self.card_open else None
        if card is None or card.review.unsent:
            return "sending" if card else ""
        return "open" if card.has_focus_within else "aside"

    @property
    def unsent(self) -> str:
        """Return the decision that could still be undone, in words."""
        return self.card.review.unsent if self.card is not None and self.card_open else ""

    @property
    def _voted(self) -> str:
        """Message to a person who has voted on all waiting requests, as for `Situation`."""
        requests = self.session.requests if self.session else ()
        if not requests:
            return ""
        from hitl_tui.engine.thread.interrupts import has_voted

        if not all(has_voted(asked, self.actor) for asked in requests):
            return ""
        from hitl_tui.view.card import vote_given

        return vote_given(requests[0])

    @property
    def asked_about(self) -> Request | None:
        """Return the request on the card while it waits, else the first that waits."""
        waiting = self.session.requests if self.session else ()
        wanted = self.card.review.request.id if self.card is not None else ""
        return next((request for request in waiting if request.id == wanted), waiting[0] if waiting else None)

    def decide(self) -> None:
        """Open the review card, or go back to it: unsent input stays."""
        if self.card_open and self.card is not None:
            self.spotlight("")
            self.card.focus_choices()
        elif self.session and self.session.requests:
            from hitl_tui.engine.thread.interrupts import has_voted

            waiting = self.session.requests
            request = next(asked for asked in waiting if not has_voted(asked, self.actor))
            self.open_card(request, summoned=True)

    def open_card(self, request: Request, *, summoned: bool = False) -> None:
        """Show the card of a request beside its subject.

        Args:
            summoned: whether a person opened it with a key, and may type on into it.
        """
        from hitl_tui.ui.widgets.review import ReviewPane
        from hitl_tui.view.review import Review

        session = self.session
        assert session is not None
        self.travel(None)
        self.spotlight("")
        self._card_shown_for = request.id
        self._outcome_stays = False
        self._close_followed()
        if request.subject:
            self.query_one(ChannelsPane).select(request.subject)
        self._card_coming = True
        self.read_styles("card")
        self.set_class(True, "-deciding")
        if self.card is None:
            review = Review(
                session, request, self.actor, self.keymap, self.clock(),
                summoned=summoned, unsent=self._unsent(session.hub.source), reasons=self.attention.reasons,
            )  # fmt: skip
            beside = self.query_one(ValuePane)
            self.card = ReviewPane(review, session, self, beside, attention=self.attention, clock=self.clock)
            self.query_one("#body").mount(self.card)
        else:
            self.card.show_request(session, request, self.actor, summoned=summoned)

    def _follow_with_card(self, session: ViewSession) -> None:
        """Open the card if something waits and the user had let the thread run; close it if nothing waits."""
        request, card = session.request, self.card
        self._show_attending(session)
        if card is None or not card.is_open:
            if request is not None and self._card_opens_for(session):
                self.open_card(request)
            return
        from hitl_tui.view.card import how_it_went, vote_given

        asked, known, sent = self.asked_about, card.review.request.id, card.review.state == "sent"
        gone = all(pending.id != known for pending in session.requests)
        if gone and not sent and card.survives_refresh():
            return
        if asked is None:
            if sent:
                self._close_decided()
            else:
                self.show_message(how_it_went(session.view.ledger, known))
                self.close_card()
        elif sent and asked.id == known and asked.votes:
            # One of several votes: nothing is left to do here for the person who has given it.
            self.show_message(vote_given(asked))
            self._close_decided()
        else:
            card.follow(session, asked)

    def _show_attending(self, session: ViewSession) -> None:
        """Show who has opened, left, claimed or handed over the request."""
        attending = session.view.attending, tuple(request.handed for request in session.requests)
        if attending != self._attending:
            self._attending = attending
            if self.card_open and self.card is not None:
                self.card.attend(session)

    def _card_opens_for(self, session: ViewSession) -> bool:
        """Whether the card opens by itself: something waits, and the user had let the thread run."""
        request = session.request
        return (
            request is not None
            and not request.breakpoint
            and not self.card_open
            and self.paces.is_running_on(session)
            and request.id != self._card_shown_for
            and not session.is_past
            and self.on_top
        )

    async def send_decision(self) -> bool:
        """Send at once what could still be undone; return False if it was refused."""
        return not self.card_open or self.card is None or await self.card.send_at_once()

    def keep_answer(self) -> tuple[str, ...]:
        """Keep the unsent answer on the card in its file; return a sentence that says so."""
        if not self.card_open or self.card is None or not self.card.review.keeps:
            return ()
        self.card.keep()
        text, what = self.card.review.unapplied
        return (f"{what} is kept until you send it",) if text else ()

    def close_card(self) -> None:
        """Hide the card; the request continues to wait."""
        if self.card is None or not self.card_open:
            return
        self.card.leave()
        self._card_coming = False
        self.set_class(False, "-deciding")
        self._show_asked()
        self.query_one(ChannelsPane).focus()
        if self.session is not None:
            self.card_closed(self.session)
        self.show_bars()

    def card_closed(self, session: ViewSession) -> None:
        """React to the card's being closed."""

    def card_arrived(self) -> None:
        """Note that the card is visible and has the focus."""
        self._card_coming = False
        self.show_bars()

    def card_changed(self) -> None:
        """Update the keys: other ones work now; the pane beside the card shows what it is about."""
        self._show_asked()
        self.show_bars()

    def _show_asked(self) -> None:
        asked = self.card.review.beside if self.card is not None and self.card_open else None
        self.set_class(asked is not None, "-asked")
        self.shown_value.ask_about(asked)

    def play_about_card(self, name: str) -> None:
        """Play the conversation of a verb about the request on the card."""
        from hitl_tui.ui.conversations import play
        from hitl_tui.verbs import verbs

        session, request = self.session, self.asked_about
        if session is not None and request is not None:
            verb = verbs()[name].load()
            call = self.card.review.draft.part if self.card is not None and self.card_open else None
            self.command(partial(play, self, session, verb, request=request.id, call=call))

    def not_shown(self, request: Request) -> str:
        """Return why the subject can't be seen beside the card, "" if it can; show it if possible."""
        session, pane = self.session, self.query_one(ValuePane)
        if self.shown_value.asked is not None and not rows_on_screen(pane):
            self.spotlight("")
            return "what you decide about was not on screen; look at it, then press again"
        if session is None or not request.subject or request.subject not in session.view.values:
            return ""
        name = sanitise_line(request.subject, _NAME)
        if session.is_past or pane.text is None or pane.text.channel != request.subject:
            self.travel(None)
            self.query_one(ChannelsPane).select(request.subject)
            return f"{name} was not on screen; look at it, then press again"
        if not rows_on_screen(pane):
            if self.spotlit:
                self.spotlight("")
                return f"{name} was not on screen; look at it, then press again"
            return f"{name} is not on screen; make the window larger"
        return ""

    def edit_asked(self) -> None:
        """Edit the subject; that of an inner thread is edited there."""
        request = self.asked_about
        if request is not None and request.thread:
            self.go_to_thread(request.thread)
        elif request is not None and request.subject:
            self.edit_channel(request.subject)

    def read_asked(self) -> None:
        """Read the subject alone."""
        self.do_action("card.read")

    def other_request(self, by: int) -> None:
        """Show another of the waiting requests."""
        waiting = self.session.requests if self.session else ()
        request = self.asked_about
        if request is not None and len(waiting) > 1:
            other = waiting[(waiting.index(request) + by) % len(waiting)]
            self.command(partial(self._ask_instead, other))

    async def _ask_instead(self, request: Request) -> None:
        """Show this request; first send a decision about the previous one."""
        sent = await self.send_decision()
        waiting = self.session.requests if self.session else ()
        if sent and any(other.id == request.id for other in waiting):
            self.open_card(request)

    def restore_draft(self, session: ViewSession) -> None:
        """Restore the input of a refused answer: if its request has gone, the card comes back with it."""
        card = self.card
        gone = card is not None and all(request.id != card.review.request.id for request in session.requests)
        if card is not None and gone and session is self.session and card.survives_refresh():
            card.is_open = True
            self.set_class(True, "-deciding")

    # Outcomes of the person's decisions, in place of the card.

    @property
    def followed_open(self) -> bool:
        """Whether the outcomes of the person's decisions are shown in place of the card."""
        return bool(self.query("#followed"))

    def switch_followed(self) -> None:
        """Show the outcomes of the person's decisions, or hide them; first send the card's decision."""
        if self.card_open:
            self._outcome_stays = not self._outcome_stays
            stays = "once you have decided, the results stay here"
            self.show_message(stays if self._outcome_stays else "once you have decided, the card closes")
        elif self.followed_open:
            self._close_followed()
            self.query_one(ChannelsPane).focus()
        else:
            self._show_followed()

    def _show_followed(self) -> None:
        from hitl_tui.ui.widgets.followed import FollowedPane

        if self.session is not None and not self.followed_open:
            self.read_styles("card")
            self.add_class("-followed")
            way = self.key_hints["look.followed"]
            self.query_one("#body").mount(FollowedPane(self.session, self.actor, way))

    def _close_followed(self) -> None:
        self.remove_class("-followed")
        self.query("#followed").remove()

    def _close_decided(self) -> None:
        """Close the card after its decision was sent, or replace it by the outcome."""
        stays = self._outcome_stays or self.attention.stays
        self.close_card()
        if stays:
            self._show_followed()


def _may_repeat(session: ViewSession) -> bool:
    """Whether a node may have to run again: it failed, or what it asked of models is in no step."""
    progress = session.view.progress
    return not session.running and (progress.status == "failed" or bool(progress.uses))


def _kept(session: ViewSession) -> KeptBreakpoints:
    return kept_breakpoints(session.view.graph.name, session.view.source)


def armed(session: ViewSession) -> tuple[Breakpoint, ...]:
    """Return the breakpoints that the graph can have as it is now."""
    if not session.breakpoints:
        return ()
    from hitl_tui.drivers.breakpoints import fits

    return tuple(point for point in session.breakpoints if fits(point, session.view.graph))
