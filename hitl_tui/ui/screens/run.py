"""The run screen: its panes, updated once a frame from a batch of events, and its actions."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker, WorkerFailed, WorkerState

from hitl_tui.drivers.protocol import ContextField, Driver, command_refusal
from hitl_tui.engine.commands import Answer, Command, Pause, PrepareGraph, Run, Start
from hitl_tui.engine.log.outcomes import ErrorInfo, Frame
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.gate import gate_of
from hitl_tui.ui.screens.modal import Severity
from hitl_tui.ui.screens.run_actions import HANDLERS
from hitl_tui.ui.screens.run_edit import Editing
from hitl_tui.ui.screens.run_filler import FillerRows
from hitl_tui.ui.screens.run_look import ShownValue, go
from hitl_tui.ui.screens.run_review import Reviewing
from hitl_tui.ui.screens.run_search import Search
from hitl_tui.ui.screens.run_stage import Stage
from hitl_tui.ui.screens.run_stepping import Stepping
from hitl_tui.ui.screens.run_threads import Threads
from hitl_tui.ui.screens.run_watch import Watches
from hitl_tui.ui.sizes import BREAKPOINTS, HEIGHTS, HIGH_FROM, WIDE_FROM
from hitl_tui.ui.textual_private import forget_arrangements
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.footer import FooterBar
from hitl_tui.ui.widgets.graph import GraphPane
from hitl_tui.ui.widgets.header import BannerBar, HeaderBar
from hitl_tui.ui.widgets.lens import LensPane
from hitl_tui.ui.widgets.lines import Column, RoleScreen, Room
from hitl_tui.ui.widgets.stream import StreamPane
from hitl_tui.ui.widgets.tabs import TABS, TabsBar
from hitl_tui.ui.widgets.timeline import TimelinePane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.ui.work import Work, start_work
from hitl_tui.verbs.actions import ACTIONS, BY_ID
from hitl_tui.verbs.keymap import load_keymap
from hitl_tui.view.actions import Situation
from hitl_tui.view.banner import banner_of
from hitl_tui.view.keymap import Keymap
from hitl_tui.view.presence import Attention
from hitl_tui.view.run_view import crumbs
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.session import PaintPace, Revealed, ViewSession
from hitl_tui.view.spans import Role, plain_text, untrusted
from hitl_tui.view.status import status
from hitl_tui.view.timeline import Place

if TYPE_CHECKING:
    from hitl_tui.engine.log.events import Progress
    from hitl_tui.ui.widgets.search import SearchPane
    from hitl_tui.view.stage import Performance

log = logging.getLogger(__name__)
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
_SOON: Final = 0.05
"""Seconds for which the paint of another step waits for its values."""
_LONG_KINDS: Final = ("list", "object")
_SHORT: Final = 40
"""Number of characters of a value on one line that need no space of their own."""
_BRIEF: Final = 240
"""Number of characters of a stream that fit in a few rows."""
_COVERED_SECONDS: Final = 1.0
"""Seconds between two frames of a screen below another one."""
_LOOK_SECONDS: Final = 0.1
"""Seconds between checks whether it still is."""
_READ_SECONDS: Final = 8
_READ_CHARS: Final = 200


_BESIDE_CARD: Final = ("card.comment", "card.uncomment", "card.hand", "card.allow")
"""Effects of an open card's keys while another pane has the focus, for example after a selection there."""


_WALKS: Final = {"app.next": "look.next", "app.before": "look.previous"}
"""Effects of keys while a search is open, as in other pagers."""


class RunScreen(RoleScreen):
    """Screen of one thread: see it, step it, travel, edit, decide, fork.

    What an action does is in the table of `run_actions`; state that outlasts a key is in the
    parts of the screen.

    Args:
        session: the thread to begin with.
        leave: leaves the app, after asking if something is unfinished.
        on_shown: called once that thread is shown, or with why it can't be.
        inputs: inputs of a thread without a step; None if they are asked for, or its defaults are used.
        breaks: breakpoints of the first thread's graph, as `--break` takes them.
        waits_for: what a running node waits for before it can begin, in words; "" for nothing.
        performance: the presentation; None for none.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *(bound(action_id, f"do('{action_id}')") for action_id in _BESIDE_CARD),
        *(
            bound(action.id, f"do('{action.id}')", priority=action.group == "Stage")
            for action in ACTIONS
            if action.id in HANDLERS and action.group != "Card"
        ),
    ]

    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    VERTICAL_BREAKPOINTS = HEIGHTS
    AUTO_FOCUS = "#channels"

    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(
        self,
        session: ViewSession,
        actor: str,
        leave: Callable[[], None],
        on_shown: Callable[[RunScreen, HitlError | None], Awaitable[None]],
        *,
        inputs: Mapping[str, Any] | None = None,
        ask_inputs: bool = True,
        breaks: Sequence[str] = (),
        keymap: Keymap | None = None,
        waits_for: Callable[[], str] = str,
        attention: Attention | None = None,
        performance: Performance | None = None,
    ) -> None:
        # Set from the beginning: adding a class later would restyle all panes.
        super().__init__(id="run", classes=f"-tab-{TABS[0][0]}")
        self.hub = session.hub
        self._first = session
        self._on_shown = on_shown
        self.actor = actor
        self.leave: Callable[[], None] = leave
        self.breaks = breaks
        self.waits_for: Callable[[], str] = waits_for
        self.attention: Attention = attention or Attention()
        self._inputs = inputs
        self._ask_for_inputs = ask_inputs
        self.keymap = keymap or load_keymap({})
        self.key_hints: Mapping[str, str] = self.keymap.key_hints
        self.session: ViewSession | None = None
        self.left: dict[str, Progress] = {}
        """Progress of the threads that were shown before."""
        self.now: Callable[[], int] = self.hub.now
        self.shown_value: ShownValue = ShownValue(self)
        self.filler: FillerRows = FillerRows(self)
        self.search: Search = Search(self)
        self.watches: Watches = Watches(self)
        self.stepping: Stepping = Stepping(self)
        self.editing: Editing = Editing(self)
        self.review: Reviewing = Reviewing(self)
        self.threads: Threads = Threads(self)
        self.stage: Stage = Stage(self, performance)
        self._failure: ErrorInfo | None = None
        self._returned: tuple[str, tuple[Frame, ...]] = ("", ())
        self._family_due = 0.0
        self._laid_out = False
        self._unshown: Timer | None = None
        self.is_stream_silent = False

    def compose(self) -> ComposeResult:
        """Yield the panes, which are filled before they are painted, and styled for the screen's size."""
        width, height = self.app.size
        self.update_classes(
            {_breakpoint(width, BREAKPOINTS): True, _breakpoint(height, HEIGHTS): True}, update=False
        )
        yield HeaderBar()
        yield BannerBar()
        yield TabsBar(self.keymap.shown("look.tab"))
        with Room(id="body"):
            yield GraphPane()
            with Column(id="middle"):
                yield ChannelsPane()
                yield ValuePane()
            with Column(id="right"):
                yield LensPane(self.key_hints)
                yield StreamPane()
        if self.stage.show is not None:
            from hitl_tui.ui.widgets.caption import CaptionBox

            yield CaptionBox()
        yield TimelinePane(self.keymap, self.actor)
        yield FooterBar(self.keymap)

    async def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Show the first session: panes wrap it for the room that a layout gives, and are painted once.

        It happens before Textual paints the screen, not on mount, when nothing has a position yet.
        """
        if self._laid_out:
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
        self._laid_out = True
        self._begin_following()
        # Called by the app: a key that this screen simulates would bubble only up to the screen.
        self.call_after_refresh(self.app.call_later, self._on_shown, self, error)

    def read_styles(self, name: str) -> None:
        """Read the style sheets of the screens that will be shown here, unless they were already read."""
        path, sheet = str(Path(__file__).with_name(f"{name}.tcss")), self.app.stylesheet
        if not sheet.has_source(path):
            sheet.read(path)
            sheet.parse()

    @property
    def is_narrow(self) -> bool:
        """Whether the panes are tabs."""
        return self.size.width < WIDE_FROM

    @property
    def is_high(self) -> bool:
        """Whether there are rows to show more than necessary."""
        return self.size.height >= HIGH_FROM

    @property
    def on_top(self) -> bool:
        """Whether no dialog, page or editor is over it."""
        return self.app.screen is self

    @property
    def situation(self) -> Situation:
        """Situation, which decides which actions are available."""
        row = self.query_one(ChannelsPane).selected_row
        return msgspec.structs.replace(
            self.session.situation if self.session else Situation(),
            key_hints=self.key_hints,
            card=self.review.state,
            voted=self.review.voted,
            typing=self.focused is not None and self.focused.check_consume_key("a", "a"),
            found=self.search.finding is not None,
            tainted=row is not None and row.tainted,
            private=row is not None and row.visibility == "private",
            **self.stage.facts,
        )

    async def begin(self, session: ViewSession) -> None:
        """Show the first session; a thread without a step gets its input first."""
        before = self.session
        self.stepping.bring_breakpoints(session)
        self.stepping.begin(session, before=before)
        self.search.begin(session)
        self.watches.begin(session)
        self.attach(session)
        self.editing.begin(session)
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

    def attach(self, session: ViewSession) -> None:
        """Show a session from now on."""
        if self.session is not None:
            self.left[self.session.thread_id] = self.session.view.progress
        self.session = session
        self.shown_value.forget()
        self._family_due = 0.0
        self.query_one(ChannelsPane).picked = False
        if self._laid_out or session.view.checkpoints:  # a first step is about to come, and is shown at once
            self.show_all()
        if self._laid_out:  # nothing competes with the first paint
            self._begin_following()

    def _begin_following(self) -> None:
        if self.session is not None:
            start_work(self, partial(self._follow, self.session), group="follow", exclusive=True)

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
        self.stage.on_progress(session)
        self.stepping.look_at_retry(session)
        if session.deadline_passed:
            session.deadline_passed = False
            if not session.running and "run" not in session.refusals:
                self.command(partial(self.stepping.after_answer, session))
        if not self.editing.open_failed_channel(session):
            self.review.on_progress(session)

    async def _refresh_family(self, session: ViewSession) -> None:
        if await session.refresh_family() and session is self.session and self.display:
            self.query_one(TimelinePane).show_view(session.view, session.family, session.shown)
            self.query_one(LensPane).show_session(session)

    def show_all(self) -> None:
        """Update every pane for the session; each paints only differences."""
        session = self.session
        if session is None or not self.display:
            return
        if self._unshown is not None:
            self._unshown.stop()
            self._unshown = None
        with self.app.batch_update():
            self._show_channels(session)
            self.watches.show(session)
            self.query_one(LensPane).show_session(session)
            self.stage.show_caption(session)
            lines = () if session.is_past else session.view.logged
            self.query_one(StreamPane).show_stream(
                session.stream, session.view.inside, lines, past=session.is_past
            )
            self.query_one(TabsBar).show_live(session.view.stream.live and session.view.stream.length > 0)
            timeline = self.query_one(TimelinePane)
            timeline.set_class(session.is_past, "-past")
            timeline.show_view(session.view, session.family, session.shown)
            self.query_one(GraphPane).show_session(session)
            self.show_bars()
            if self._laid_out:  # the first one is painted with everything else
                self.shown_value.show()
            self.share_rows(session)
            self.filler.show(session)

    def share_rows(self, session: ViewSession) -> None:
        """Give the rows of a short value, or of an empty stream, to the pane above it."""
        row = self.query_one(ChannelsPane).selected_row
        short = row is not None and row.kind not in _LONG_KINDS and len(row.preview) < _SHORT
        self.query_one("#middle").set_class(short and not session.frames[1], "-short-value")
        brief = session.stream.length < (_BRIEF if self.is_high else 1)
        silent = brief and not session.stream.live and not self.query_one(StreamPane).below
        self.is_stream_silent = silent
        self.query_one("#right").set_class(silent, "-no-stream")

    def _show_channels(self, session: ViewSession) -> None:
        pane = self.query_one(ChannelsPane)
        step = session.step_view
        fresh = pane.all_rows is not step.rows
        pane.show_step(step, session.is_past)
        if fresh and not pane.picked and not session.is_past:
            pane.select(_first_channel(session))
        error = session.view.error
        if session.view.returned is not self._returned:
            self._returned = session.view.returned
            self.shown_value.at_failure = bool(self._returned[1])
        if error is not self._failure:
            self._failure = error
            self.shown_value.at_failure = error is not None
            if error is not None and error.channel:
                pane.select(error.channel)

    @property
    def card_coming(self) -> bool:
        """Whether a request is about to be shown on its card."""
        session = self.session
        return self.review.coming or (session is not None and self.review.opens_for(session))

    def _show_header(self, session: ViewSession) -> None:
        if self.card_coming:  # code that reads that it waits must find the card's keys working
            return
        waits = self.waits_for() if session.running and not session.is_past else ""
        line = status(session.view, self.now(), pausing=session.pausing, keys=self.turn_keys, waits_for=waits)
        if session.is_past:  # those keys are for the newest step; the banner has the key to go there
            turn = line.turn.partition(" — ")[0]
            line = msgspec.structs.replace(line, turn=turn, brief=turn)
        where = crumbs(session.thread_id, session.view.owners)
        if place := self.stage.place:
            where, turn = "", line.turn.partition(" — ")[0]
            line = msgspec.structs.replace(
                line, turn=turn, brief=turn, step=place, tokens="", cost="", elapsed=""
            )
        if place := self.threads.place_words:
            line = msgspec.structs.replace(line, step=f"{place} · {line.step}" if line.step else place)
        self.query_one(HeaderBar).show(session.view.graph.name, where, line)

    @property
    def turn_keys(self) -> dict[str, str]:
        """Keys to press, by the words of the status line; the card itself shows those that decide."""
        keys = {name: self.key_hints[action_id] for name, action_id in _STATUS_WORDS.items()}
        view = self.session.view if self.session is not None else None
        if view is not None and (why := command_refusal(view.refusals, Answer)):
            is_mended = view.graph_changed is not None and why == command_refusal(view.refusals, PrepareGraph)
            keys["unable"] = "load its graph to decide" if is_mended else why
        if self.review.state:
            keys["decide"] = ""
        if self.review.state == "sending":
            keys["undo"] = self.key_hints["card.undo"]
        return keys

    def _show_banner(self, session: ViewSession) -> None:
        narrow = self.is_narrow and not self.review.card_open
        rows = banner_of(session, self.key_hints, self.size, narrow=narrow)
        self.query_one(BannerBar).show(*rows)

    def show_bars(self) -> None:
        """Update header, banner and footer for what the user is doing."""
        if self.session is not None and self.display:  # while it is removed, its parts go one by one
            self._show_header(self.session)
            self._show_banner(self.session)
            self.query_one(FooterBar).show(self.situation)

    def show_tab(self, name: str) -> None:
        """On a narrow screen, show this pane."""
        for tab, _ in TABS:
            self.set_class(tab == name, f"-tab-{tab}")
        self.query_one(TabsBar).show(name)
        if self.session is not None:
            self.call_after_refresh(self.show_all)

    def on_resize(self) -> None:
        """Lay out for another width."""
        self.search.resize()
        self.call_after_refresh(self.show_all)

    def travel(self, place: Place | None) -> None:
        """Show another step in all panes; None for the newest."""
        session = self.session
        if session is None:
            return
        session.move_to(place)
        if place is not None:
            self.stage.look_back()
        # Its values mostly arrive before the first paint; else it is painted without them after a moment.
        self._unshown = self._unshown or self.set_timer(_SOON, self.show_all)
        start_work(self, partial(self._load_step, session), group="travel", exclusive=True)

    async def _load_step(self, session: ViewSession) -> None:
        if await session.load_shown() and session is self.session:
            await self.shown_value.show_first()
            self.show_all()

    def on_descendant_focus(self) -> None:
        """Update the footer, as its keys depend on the focus."""
        self.show_bars()

    def on_descendant_blur(self) -> None:
        """Update the footer, as its keys depend on the focus."""
        self.show_bars()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys of unavailable actions; while the card is open, its keys move the focus there.

        Keys of a presentation belong to other actions while none runs.
        """
        if action != "do":
            return True
        action_id = str(parameters[0])
        if BY_ID[action_id].group == "Stage" and not self.stage.takes_keys:
            return False
        asked = action_id not in _BESIDE_CARD or bool(self.review.state)
        return asked and bool(self.keymap.bindings[action_id])

    def doing(self, action_id: str) -> Callable[[], None]:
        """Return the function that the palette calls for an action."""
        return lambda: self.action_do(action_id)

    def action_do(self, action_id: str) -> None:
        """Do an action, or show why it is disabled."""
        if self.search.open and not self.review.state:
            action_id = _WALKS.get(action_id, action_id)
        action = BY_ID[action_id]
        # Nothing that is wrong with the thread or its view may keep the user here.
        disabled_reason = action.disabled_reason(self.situation) if action_id != "app.quit" else ""
        if not disabled_reason and self.keymap.actions[action_id].at_once:
            disabled_reason = gate_of(self.app).run_refusal
        if disabled_reason:
            self.show_message(disabled_reason, action.label, "warning")
            return
        HANDLERS[action_id](self)

    @on(FooterBar.Chosen)
    def _footer_chosen(self, event: FooterBar.Chosen) -> None:
        self.action_do(event.action.id)

    @on(TabsBar.Chosen)
    def _tab_chosen(self, event: TabsBar.Chosen) -> None:
        self.show_tab(event.name)

    @on(ValuePane.Resized)
    def _value_resized(self) -> None:
        if self._laid_out:
            self.shown_value.show()

    @on(ValuePane.ModeChosen)
    def _mode_chosen(self, event: ValuePane.ModeChosen) -> None:
        self.shown_value.set_mode(event.mode)

    @on(ChannelsPane.Selected)
    def _channel_selected(self, event: ChannelsPane.Selected) -> None:
        if event.picked:
            self.shown_value.at_failure = False
        self.shown_value.show()
        if self.session is not None:
            self.share_rows(self.session)

    def on_search_pane_chosen(self, event: SearchPane.Chosen) -> None:
        """Show the place."""
        self.search.go(event.finding)

    def on_search_pane_left(self) -> None:
        """Close the search."""
        self.search.close()

    @on(TimelinePane.Chosen)
    def _place_chosen(self, event: TimelinePane.Chosen) -> None:
        self.travel(event.place)

    @on(TimelinePane.Travel)
    def _travel_key(self, event: TimelinePane.Travel) -> None:
        go(self, event.direction)

    @property
    def unsent(self) -> str:
        """Return the decision that could still be undone, in words."""
        card = self.review.card
        return card.review.unsent if card is not None and self.review.card_open else ""

    @property
    def runs(self) -> str:
        """Return the node that runs here, "" for none; a run of another process continues there."""
        session = self.session
        return (session.view.running_node or "") if session and not session.view.held_by else ""

    async def open_thread(self, thread_id: str) -> None:
        """Show another thread of the hub."""
        await self.threads.open(thread_id)

    def command(self, work: Work, group: str = "command") -> None:
        """Send a command to the driver; show errors instead of raising them."""
        start_work(self, work, group=group)

    def before_command(self, command: Command[Any]) -> None:
        """Show at once that the thread is being paused."""
        if isinstance(command, Pause):
            self.stepping.note_pause()

    async def follow(self, command: Command[None], driver: Driver) -> None:
        """Start a run, and continue after its requests as after those of any run."""
        session = self.session
        if session is None or session.driver is not driver:
            await driver.execute(command)
        elif isinstance(command, Run):
            self.stepping.continue_()
        else:
            self.stepping.go_on(session)
            await self.stepping.in_turn(session, lambda chosen: chosen.execute(command))

    def complain(self, error: HitlError) -> None:
        """Show an error whose message says what to do."""
        between = "\n" if "\n" in error.message else " — "
        text = f"{error.message}{between}{error.hint}" if error.hint else error.message
        self.show_message(text, error.title, "error")

    def show_value(self, channel: str, step: int, value: object) -> None:
        """Show the value of a private channel until another channel or step is selected."""
        if self.session is not None:
            self.session.revealed = Revealed(channel, step, value)
            self.shown_value.show_again()

    def show_work(self, text: str) -> None:
        """Show the progress of an operation."""
        self.show_message(text)

    def show_message(self, text: str, title: str = "", severity: Severity = "information") -> None:
        """Show a short message in the footer; as a toast if it is longer. Never markup."""
        role: Role = "error" if severity == "error" else "warning" if severity == "warning" else "ok"
        line = (untrusted(f"{title}: " if title else "", role), untrusted(text, "plain"))
        short = (
            "\n" not in text and cell_len(plain_text(line)) <= self.size.width * 2 // 3
        )  # the keys get the remaining room
        if short and self.on_top and self.display:
            self.query_one(FooterBar).say(line)
        else:
            seconds = _READ_SECONDS * (1 + len(text) // _READ_CHARS)
            self.notify(sanitise(text), title=title, severity=severity, markup=False, timeout=seconds)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show why a command was refused."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and isinstance(error, HitlError):
            self.complain(error)


def _breakpoint(size: int, breakpoints: Sequence[tuple[int, str]]) -> str:
    """Return the class that Textual gives a screen of that size on a resize."""
    return next(name for least, name in reversed(breakpoints) if size >= least)


def _first_channel(session: ViewSession) -> str:
    """Return the first channel to show: a request's subject, else a text of the newest step, else any."""
    if session.request is not None and session.request.subject:
        return session.request.subject
    rows = session.step_view.rows
    written = [row for row in rows if row.mark != " "] or list(rows)
    texts = [row for row in written if row.kind == "text"] or written
    return texts[0].name if texts else ""
