"""The app: opens a thread, shows it, and reports at the end what was not committed.

Whatever the first frame does not need is imported after it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import msgspec
from textual import on
from textual.binding import Binding, BindingType
from textual.driver import Driver as TextualDriver
from textual.events import Event, Key, Resize
from textual.notifications import Notify

from hitl_tui.collector import collect_as_usual
from hitl_tui.drivers.node_streams import (
    in_browser,
    keep_output,
    keep_python_streams,
    keyboard_kept,
    terminal_size,
)
from hitl_tui.errors import HitlError, LogCorrupt
from hitl_tui.ui.gate import DOUBLE_CLICK_SECONDS
from hitl_tui.ui.guard import Guarded
from hitl_tui.ui.keys_in_turn import KeysInTurn
from hitl_tui.ui.terminal import (
    keep_text,
    let_go_of_a_lost_terminal,
    listen,
    on_our_terminal,
    short_turns,
    take_any_bytes,
    wait_for_keys,
)
from hitl_tui.ui.terminal_input import read_input_first
from hitl_tui.ui.theme import LOOK_EVERY, Look, Themed
from hitl_tui.ui.toasts import SafeNotification
from hitl_tui.ui.work import start_work
from hitl_tui.view.sanitise import sanitise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType
    from textual.app import SystemCommand
    from textual.command import Provider
    from textual.geometry import Size
    from textual.screen import Screen

    from hitl_tui.drivers.protocol import Driver, Hub
    from hitl_tui.drivers.unsent_answers import UnsentAnswers
    from hitl_tui.engine.log.events import Progress
    from hitl_tui.loading.trust import Question
    from hitl_tui.ui.pictures import Recording
    from hitl_tui.ui.screens.damaged import Damage
    from hitl_tui.ui.screens.decisions import DecisionChoice
    from hitl_tui.ui.screens.opening import OpeningScreen
    from hitl_tui.ui.screens.run import RunScreen
    from hitl_tui.ui.screens.threads import ThreadsScreen
    from hitl_tui.view.keymap import Keymap
    from hitl_tui.view.notices import Notice
    from hitl_tui.view.presence import Attention
    from hitl_tui.view.session import ViewSession
    from hitl_tui.view.stage import Performance

log = logging.getLogger(__name__)
OpenDriver = Callable[[], Awaitable["tuple[Hub, Driver]"]]
OpenHub = Callable[[], Awaitable["Hub"]]


class AppResult(msgspec.Struct, frozen=True):
    """Result of a session on screen.

    Args:
        thread_id: the thread that was open last, "" if none could be opened.
        progress: its state at the end, None if none could be opened.
        not_committed: a sentence for each thing that was discarded, for the caller to print.
        error: why nothing could be opened, None if something was.
        ended_by: the signal that ended it, 0 if the user did.
        source: the source of the inbox that has the thread; "" for a single store.
    """

    thread_id: str = ""
    progress: Progress | None = None
    not_committed: tuple[str, ...] = ()
    error: HitlError | None = None
    ended_by: int = 0
    source: str = ""


async def _nothing(driver: Driver) -> None:
    """Prepare nothing."""


def _no_performance() -> None:
    """Present nothing."""


BeginNotices: TypeAlias = Callable[
    [Callable[[str], object], Callable[["Notice"], bool]], Callable[[], object]
]
"""Starts the notifications for the person; see `run_app`."""


class AppStart(msgspec.Struct, frozen=True):
    """What a session begins with; see `run_app`."""

    open_driver: OpenDriver | None
    actor: str
    inputs: Mapping[str, Any] | None = None
    ask_inputs: bool = True
    breaks: Sequence[str] = ()
    prepare: Callable[[Driver], Awaitable[None]] = _nothing
    waits_for: Callable[[], str] = str
    notices: BeginNotices | None = None
    open_hub: OpenHub | None = None
    attention: Attention | None = None
    perform: Callable[[], Performance | None] = _no_performance
    request: str = ""
    unsent: Callable[[str], UnsentAnswers | None] = lambda source: None


def action_commands() -> type[Provider]:
    """Commands of the palette, imported when it is opened."""
    from hitl_tui.ui.palette import ActionCommands

    return ActionCommands


_RUN_SCREEN: Final = "hitl_tui.ui.screens.run"
_HANG_UP_SECONDS: Final = 1.0
"""Seconds after which the app ends if its terminal has gone without a signal."""
_AT_ONCE: Final = 1.0
"""Seconds to open the thread in, so that it is the first thing that is painted."""


class HitlApp(Guarded[AppResult], KeysInTurn[AppResult], Themed[AppResult]):
    """App with one terminal, one hub, one thread at a time."""

    TITLE = "hitl-tui"
    ENABLE_COMMAND_PALETTE = True
    CLICK_CHAIN_TIME_THRESHOLD = DOUBLE_CLICK_SECONDS
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {action_commands}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "ask_to_quit", "Quit", show=False, priority=True),
        # Without priority: with a selection ctrl+c copies it.
        Binding("ctrl+c", "interrupt", "Copy or quit", show=False),
        Binding("ctrl+p", "command_palette", "Palette", show=False, priority=True, id="app.palette"),
        Binding("ctrl+z", "suspend", "Suspend", show=False, priority=True),
        Binding("ctrl+l", "repaint", "Repaint", show=False, priority=True, id="app.repaint"),
        Binding("question_mark,f1", "help", "Help", show=False, id="app.help"),
    ]

    def __init__(self, start: AppStart, look: Look | None = None) -> None:
        # Textual does not load the CSS of a default screen.
        first = ("run",) if start.open_hub is None else ("dialogs", "threads")
        super().__init__(css_path=[f"screens/{name}.tcss" for name in ("base", *first)])
        self.start = start
        self.actor = start.actor
        self.hub: Hub | None = None
        self.run_screen: RunScreen | None = None
        self._ended_by = 0
        self._keeping = False
        self._is_leaving = False
        self._end_notices: Callable[[], object] | None = None
        self._problems_shown = False
        self._unshown_errors: list[HitlError] = []
        self._open_session: asyncio.Task[ViewSession] | None = None
        self._damage: Damage | None = None
        self._threads: ThreadsScreen | None = None
        self._performance: Performance | None = None
        self._then: Callable[[RunScreen], None] | None = None
        self.apply_look(look or Look())
        self._opening: OpeningScreen | None = None
        self.recording: Recording | None = None
        self._known_size: Size | None = None

    def record(self, path: Path) -> None:
        """Record the screen from its first paint on.

        Raises:
            UsageError: the file already exists, or can't be written.
        """
        from hitl_tui.ui.pictures import Recording, recorded

        size = terminal_size((80, 24))
        self.recording = Recording(path, (size.columns, size.lines), self.TITLE)
        self.driver_class = recorded(self.driver_class, self.recording)

    def on_notify(self, event: Notify) -> None:
        """Show a notification even if its time is over; Textual's own handler does the rest."""
        event.notification = SafeNotification.of(event.notification)

    @on(TextualDriver.SignalResume)
    def _paint_again(self) -> None:
        """Paint everything after a stop: the terminal shows something else, and Textual paints changes."""
        self.gate.screen_changed()
        self.refresh(layout=True)

    def on_painted(self, screen: Screen[Any]) -> None:
        """Note when a screen of another size was first painted for that size."""
        if (
            screen.outer_size == self.size
        ):  # Textual's `screen.size` is the app's, before it is laid out for it
            self.gate.painted()

    def on_resize(self, event: Resize) -> None:
        """Note that nobody has read the screen of the new size yet; a recording gets the size."""
        if self._known_size not in (None, event.size):
            self.gate.screen_changed()
        self._known_size = event.size
        if self.recording is not None:
            self.recording.resize((event.size.width, event.size.height))

    @cached_property
    def keymap(self) -> Keymap:
        """Keys in use."""
        from hitl_tui.verbs.keymap import load_keymap

        return load_keymap(self.look.keys, lambda name: self.look.key_places.get(name, name))

    def show_error(self, error: HitlError) -> None:
        """Show an error once there is a screen to show it on."""
        if self.run_screen is not None:
            self.run_screen.complain(error)
        elif self._threads is not None:
            super().show_error(error)
        else:
            self._unshown_errors.append(error)

    async def on_event(self, event: Event) -> None:
        """Show an audience the pressed keys, except for those typed into a text."""
        if isinstance(event, Key) and not event.is_forwarded and self.run_screen is not None:
            focused = self.focused
            if focused is None or not focused.check_consume_key(event.key, event.character):
                self.run_screen.show_pressed(event.key)
        await super().on_event(event)

    def get_default_screen(self) -> Screen[Any]:
        """Return the first screen: the threads, a thread, or empty frames while it is being opened."""
        return self._threads or self.run_screen or self._open_frames()

    def _open_frames(self) -> OpeningScreen:
        """Return empty frames, for a thread that takes long to open."""
        from hitl_tui.ui.screens.opening import OpeningScreen

        self._opening = OpeningScreen(quits="app.quit" not in self.look.keys, reviewing=self.look.reviewing)
        return self._opening

    async def on_load(self) -> None:
        """Start before the terminal is changed, so that it is restored if the app is ended from now on.

        A thread that opens quickly is painted at once, with everything that is known about it.
        """
        listen(self.on_stop_signal)
        if self.start.open_hub is not None:
            await self._open_threads(self.start.open_hub)
            return
        self._open_session = asyncio.create_task(self._open())
        done, _ = await asyncio.wait([self._open_session], timeout=_AT_ONCE)
        if done:
            self._take_session()

    def _take_session(self) -> None:
        """Make the run screen for the open session, or end with the reason why there is none."""
        opened = self._open_session
        if opened is None:
            return
        try:
            session = opened.result()
        except LogCorrupt:
            return  # its own screen reports it
        except HitlError as error:
            self.exit(AppResult(error=error))
            return
        self._open_session = None
        self.run_screen = self._screen_of(session)

    def on_mount(self) -> None:
        """Set up the terminal; show a thread that is not open yet once it is."""
        keep_python_streams()  # Textual has installed its own there
        configured = self.keymap.configured
        self.set_keymap({name: ",".join(self.keymap.bindings[name]) for name in configured})
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        """Do what the first frame did not need."""
        collect_as_usual()
        self.set_interval(LOOK_EVERY, self._look_around)
        if self._open_session is not None:
            # The worker makes the coroutine: the app may end before it begins.
            show = partial(self._show_late, self._open_session)
            start_work(self, show, group="open")
        if self._threads is not None:
            try:
                self._begin_notices()
            except HitlError as failure:
                self._unshown_errors.append(failure)
            for error in self._take_unshown_errors():
                self.notify(sanitise(str(error)), title=error.title, severity="error", markup=False)
            start_work(self, partial(asyncio.to_thread, import_module, _RUN_SCREEN), group="import")

    async def _open_threads(self, open_hub: OpenHub) -> None:
        """Make the list of threads the first screen, or end with the reason why it can't be shown."""
        from hitl_tui.ui.screens.threads import ThreadsScreen, first_page

        try:
            self.hub = await open_hub()
            page = await first_page(self.hub)
        except HitlError as error:
            await self._give_up(error)
            return
        self.hub.inbox.ask_by(self._ask_trust)
        newest = page.rows[0].name if page.rows else ""
        self._threads = ThreadsScreen(
            self.hub, "", self.hub.now, do=self._do_once_shown, open_step=self._step_once_shown,
            actor=self.actor, first=page,
            leave=lambda chosen: self._open_chosen(chosen or newest),
        )  # fmt: skip

    def _open_chosen(self, thread_id: str) -> None:
        """Show a thread over the list of threads; if it can't be opened, show the list again."""
        hub = self.hub
        if hub is None or not thread_id or self.screen is not self._threads:
            return
        self.push_screen(self._open_frames())

        async def show() -> None:
            try:
                driver = await hub.open(thread_id, at_once=True)
                await self._show(await self._look_at(hub, driver))
            except LogCorrupt:
                self._show_damage()
            except HitlError as error:
                self._back_to_threads()
                self.notify(sanitise(str(error)), title=error.title, severity="error", markup=False)

        start_work(self, show, group="open")

    def _do_once_shown(self, action_id: str) -> None:
        """From the first list: do an action, over the newest thread."""
        self._then = lambda screen: screen.do_action(action_id)

    def _step_once_shown(self, choice: DecisionChoice) -> None:
        """From the first list: show the step of a decision, over the newest thread."""

        def show(screen: RunScreen) -> None:
            from hitl_tui.ui.screens.run_actions import open_decision

            open_decision(screen, choice)

        self._then = show

    def go_from_page(self, action_id: str) -> None:
        """Close the pages over the first list or the run, and do an action there.

        Nothing happens if something else is open, such as a dialog or an editor.
        """
        from hitl_tui.ui.screens.page import OverlayScreen

        below: Screen[Any] | None = self.run_screen or self._threads
        at = self.screen_stack.index(below) if below in self.screen_stack else len(self.screen_stack)
        pages = self.screen_stack[at + 1 :]
        are_pages = all(isinstance(page, OverlayScreen) and not page.STAYS for page in pages)
        if below is None or not are_pages or self._under_way:
            return
        for _ in pages:
            self.pop_screen()
        if self.run_screen is not None:
            self.run_screen.do_action(action_id)
        elif self._threads is not None:
            self._threads.action_waiting() if action_id == "app.queue" else self._threads.action_decided()

    def _back_to_threads(self) -> None:
        while self.screen is not self._threads:
            self.pop_screen()

    def _look_around(self) -> None:
        """Run all checks for news together once a second, so that an idle screen wakes up once."""
        self.look_at_theme()
        # Between two screens, and at the end, there is none.
        screens = self.screen_stack
        look: Callable[[], None] | None = getattr(screens[-1], "look", None) if screens else None
        if look is not None:
            look()

    async def _open(self) -> ViewSession:
        """Open the driver of the thread, and load its state.

        Raises:
            LogCorrupt: its log is damaged; `_damage` can show it all the same.
            HitlError: it can't be opened; everything is closed again.
        """
        assert self.start.open_driver is not None
        self.hub, driver = await self.start.open_driver()
        self.hub.inbox.ask_by(self._ask_trust)
        try:
            return await self._look_at(self.hub, driver)
        except LogCorrupt:
            raise
        except HitlError:
            await self._close_hub()
            raise

    async def _look_at(self, hub: Hub, driver: Driver) -> ViewSession:
        from hitl_tui.view.session import ViewSession

        try:
            return await ViewSession.open(hub, driver)
        except LogCorrupt as error:
            from hitl_tui.ui.screens.damaged import Damage

            self._damage = Damage(driver, error)
            raise

    async def _ask_trust(self, question: Question) -> bool:
        from hitl_tui.ui.screens.dialogs import ask_trust

        return await ask_trust(self, question)

    async def _show_late(self, opening: asyncio.Task[ViewSession]) -> None:
        """Show the thread over the empty frames; if its log is damaged, show what is wrong with it."""
        try:
            await self._show(await opening)
        except LogCorrupt:
            self._show_damage()
        except HitlError as error:
            self.exit(AppResult(error=error))
        except Exception as error:  # there is nothing to show, so the app ends
            self.end_with(error)

    def _show_damage(self) -> None:
        from hitl_tui.ui.screens.damaged import show_damage

        def left(outcome: ViewSession | HitlError) -> None:
            if self._threads is not None and isinstance(outcome, HitlError):
                self._back_to_threads()
                return
            work = (
                partial(self._give_up, outcome)
                if isinstance(outcome, HitlError)
                else partial(self._show, outcome)
            )
            start_work(self, work, group="open")

        if self.hub is not None and self._damage is not None:
            show_damage(self, self.hub, self._damage, "Back" if self._threads else "Quit", left)

    async def _close_hub(self) -> None:
        with suppress(HitlError):
            if self.hub is not None:
                await self.hub.inbox.close()

    async def _give_up(self, error: HitlError) -> None:
        """End, because nothing can be shown."""
        await self._close_hub()
        self.exit(AppResult(error=error))

    async def _show(self, session: ViewSession) -> None:
        """Show a thread on the run screen from now on."""
        self.run_screen = self._screen_of(session)
        await self.push_screen(self.run_screen)

    def _screen_of(self, session: ViewSession) -> RunScreen:
        """Return the run screen, which begins with a session."""
        from hitl_tui.ui.screens.run import RunScreen
        from hitl_tui.ui.screens.run_actions import HANDLERS

        start, self._performance = self.start, self.start.perform()
        make: Callable[..., RunScreen] = RunScreen
        if self._performance is not None:
            from hitl_tui.ui.screens.run_stage import StageScreen

            make = partial(StageScreen, self._performance)
        return make(
            session, start.actor, self.leave_asking, self._shown, HANDLERS, inputs=start.inputs,
            ask_inputs=start.ask_inputs, breaks=start.breaks, keymap=self.keymap,
            waits_for=start.waits_for, attention=start.attention, unsent=start.unsent,
            reviewing=self.look.reviewing,
        )  # fmt: skip

    async def _shown(self, screen: RunScreen, error: HitlError | None) -> None:
        """Continue what waited for the run screen's first session, or end if it can't be shown."""
        from hitl_tui.ui.widgets.header import HeaderBar

        if error is not None:
            await self._give_up(error)
            return
        for unshown in self._take_unshown_errors():
            screen.complain(unshown)
        if self._then is not None:
            then, self._then = self._then, None
            screen.query_one(HeaderBar).opened = False
            then(screen)
        if self.start.request and screen.session is not None:
            screen.command(partial(screen.open_to_decide, *screen.session.thread_key, self.start.request))
        for key in self._opening.early_keys if self._opening is not None else ():
            self.simulate_key(key)
        if screen.session is not None:
            await self.start.prepare(screen.session.driver)
        try:
            self._begin_notices()
        except HitlError as failure:
            screen.complain(failure)

    def _begin_notices(self) -> None:
        """Start the notifications of the store."""
        if self.start.notices is not None and self.terminal_driver is not None and self._end_notices is None:
            self._end_notices = self.start.notices(self.terminal_driver.write, self._sees)
            if self.hub is not None and self.hub.inbox is not self.hub:
                start_work(self, self._connect_inbox, group="inbox")

    async def _connect_inbox(self) -> None:
        """Open the other stores of the inbox, so that the person is notified of their requests."""
        assert self.hub is not None
        await self.hub.inbox.waiting(1)

    def _sees(self, notice: Notice) -> bool:
        """Whether the person sees what a notice says, or had it on screen before going elsewhere."""
        from hitl_tui.view.notices import was_seen

        screen = self.run_screen
        if not self.app_focus or screen is None or screen.session is None:
            return False
        thread = (notice.source or screen.hub.inbox.home.source, notice.thread)
        if screen.session.thread_key == thread and screen.on_top:
            return True
        left = screen.left.get(thread)
        return left is not None and was_seen(notice, left)

    def _take_unshown_errors(self) -> list[HitlError]:
        """Return the errors from before there was a screen to show them on, and forget them."""
        from hitl_tui.verbs.keymap import KeysInvalid

        errors, self._unshown_errors = self._unshown_errors, []
        if self.keymap.problems and not self._problems_shown:
            self._problems_shown = True
            errors.append(KeysInvalid("\n".join(self.keymap.problems), "all other keys apply"))
        return errors

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield all our actions with their keys, and those of Textual that are useful here."""
        from textual.app import SystemCommand

        from hitl_tui.verbs.actions import ACTIONS

        run = self.run_screen
        if run is not None and screen is run:
            for action in ACTIONS:
                if action.id != "app.palette" and action.is_shown(run.situation):
                    key = run.keymap.shown(action.id)
                    label = f"{action.label}  ({key})" if key else action.label
                    do = self.action_repaint if action.id == "app.repaint" else run.doing(action.id)
                    yield SystemCommand(label, action.help, do)
        elif screen is not self._opening:
            yield from self._screen_commands(screen)
        for name in self.theme_names():
            yield SystemCommand(
                f"Theme: {name}", "Change the colours", lambda name=name: self.use_theme(name)
            )
        yield SystemCommand("Screenshot", "Save a picture of the screen as SVG", self.deliver_screenshot)

    def _screen_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the actions of a screen over the run, with their keys."""
        from textual.app import SystemCommand

        from hitl_tui.verbs.actions import SCREEN_ACTIONS

        bound = {active.binding.id: active for active in screen.active_bindings.values()}
        for action in SCREEN_ACTIONS:
            active = bound.get(action.id)
            if active is not None:
                do = partial(self.run_action, active.binding.action, active.node)
                yield SystemCommand(f"{action.label}  ({self.keymap.shown(action.id)})", action.help, do)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the palette until there is a screen with actions; the opening screen keeps its key."""
        return action != "command_palette" or self.run_screen is not None or self.screen is self._threads

    def action_command_palette(self) -> None:
        """Open the palette."""
        from hitl_tui.ui.palette import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette())

    def action_help(self) -> None:
        """Show all keys, from any screen over the run."""
        if self.run_screen is not None:
            self.run_screen.action_do("app.help")
        elif self.screen is self._threads:
            from hitl_tui.ui.screens.help import HelpScreen
            from hitl_tui.view.actions import Situation

            self.push_screen(HelpScreen(Situation(key_hints=self.keymap.key_hints), self.keymap))

    def copy_to_clipboard(self, text: str) -> None:
        """Copy the selection, and say so."""
        start_work(self, partial(self._copy, text), group="copy")

    async def _copy(self, text: str) -> None:
        from hitl_tui.view.clipboard import copy

        result = await copy(super().copy_to_clipboard, text)
        if self.run_screen is not None:
            self.run_screen.show_message(result.words)

    def action_interrupt(self) -> None:
        """Ask before leaving, as nothing was selected to be copied; pressed again there, leave."""
        from hitl_tui.ui.screens.dialogs import QuitDialog

        if self._is_leaving:
            self.exit(AppResult(ended_by=self._ended_by))
        elif self.run_screen is None:
            self._leave_early()
        elif isinstance(self.screen, QuitDialog):
            self.screen.leave()
        else:
            self._ask_quit()

    def action_suspend(self) -> None:
        """Stop this program and what it runs in the terminal, as ctrl+z does anywhere; `fg` continues it."""
        if self.terminal_driver is None or not self.terminal_driver.can_suspend:
            self.notify("only a program in a terminal can be suspended", severity="warning", markup=False)
            return
        self.note_suspension()
        os.kill(0, signal.SIGTSTP)

    def action_repaint(self) -> None:
        """Paint the whole screen, as another program may have written to the terminal."""
        self.refresh(layout=True)

    def action_ask_to_quit(self) -> None:
        """Quit from anywhere, asking first if something would be lost."""
        if self.run_screen is None:
            self._leave_early()
            return
        if getattr(self.screen, "changed", False):
            keymap = self.keymap
            keys = f"{keymap.shown('edit.apply')} applies it, {keymap.shown('edit.back')} leaves the editor"
            text = f"what you wrote is not applied yet: {keys}"
            self.notify(text, severity="warning", markup=False)
            return
        if self._under_way:
            self.action_interrupt()
            return
        while self.screen is not self.run_screen and len(self.screen_stack) > 1:
            self.pop_screen()
        self.leave_asking()

    def _leave_early(self) -> None:
        """Leave before a thread was shown: nothing waits for an answer."""
        if self._threads is None:
            self.exit(AppResult())
        else:
            start_work(self, self.leave, group="leave")

    def leave_asking(self) -> None:
        """Leave, asking first if something is unfinished."""
        try:
            is_safe = self.run_screen is not None and not self._lost()
        except Exception as error:  # it must be possible to quit, whatever is wrong with the view
            self.survive(error)
            is_safe = True
        if is_safe:
            start_work(self, self.leave, group="leave")
        else:
            self._ask_quit()

    def _ask_quit(self) -> None:
        from hitl_tui.ui.screens.dialogs import ask_quit

        ask_quit(self, self._lost, self._unsent, self._leave_from_dialog)

    def _leave_from_dialog(self, send: bool) -> None:
        async def send_and_leave() -> None:
            if self.run_screen is None or await self.run_screen.send_decision():
                self.leave_keeping()

        if send:
            start_work(self, send_and_leave, group="leave")
        else:
            self.leave_keeping()

    def _unsent(self) -> str:
        return self.run_screen.unsent if self.run_screen is not None else ""

    def _lost(self) -> list[str]:
        """Return what would be lost by leaving now, a sentence each."""
        run = self.run_screen
        sentences = []
        if run is not None and run.unsent:
            sentences.append(f"Your decision “{run.unsent}” has not been sent yet.")
        if run is not None and run.runs:
            again = "What it has done so far will not be committed; it runs again on resume."
            sentences.append(f"{run.runs} is running. {again}")
        kept = "It will be kept in a file."
        sentences += self._under_way
        return sentences + [f"Not applied yet: {what}. {kept}" for _, what in self.unapplied]

    @property
    def _under_way(self) -> list[str]:
        """Return sentences on what screens over the run do to the store, and what leaving does to that."""
        sentences = [getattr(screen, "under_way", "") for screen in self.screen_stack]
        return [sentence for sentence in sentences if sentence]

    @property
    def takes_keys(self) -> bool:
        """Whether keys can be used: they wait while a screen, a card or a search is being put together."""
        run = self.run_screen
        coming = run is not None and run.on_top and run.is_preparing
        return self.screen.is_mounted and not coming

    def panic(self, *renderables: RenderableType) -> None:
        """End as with any error that nobody caught, without a traceback on the screen."""
        if self.fatal_error is None:
            with self.console.capture() as captured:
                self.console.print(*renderables, markup=False)
            self.fatal_error = RuntimeError(captured.get().strip())
        self.close_at_once()

    def on_stop_signal(self, number: int) -> None:
        """Quit on a signal without asking; a second one does not even wait for what is running."""
        hurried = self._ended_by or self.hub is None
        self._ended_by = number
        if hurried:
            self.exit(AppResult(ended_by=number))
        else:
            start_work(self, self.leave, group="leave")

    def terminal_lost(self) -> None:
        """End as the signal for a closed terminal would end the app: nobody is at its other end.

        The signal itself does not always come, as in a container. If nohup ignores it, the run continues,
        but nobody looks any more, and nobody is notified here.
        """
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            self.set_timer(_HANG_UP_SECONDS, self._hang_up)
            return
        if self._end_notices is not None:
            self._end_notices()
        if self.run_screen is not None:
            self.run_screen.close_card()

    def _hang_up(self) -> None:
        if not self._ended_by:
            let_go_of_a_lost_terminal()
            self.on_stop_signal(signal.SIGHUP)

    def leave_keeping(self) -> None:
        """Leave from any screen; what was typed and not applied is kept in a file."""
        self._keeping = True
        start_work(self, self.leave, group="leave")

    @property
    def unapplied(self) -> tuple[tuple[str, str], ...]:
        """Return what was typed and not applied, each with its name; what is kept anyway is left out."""
        card = self.run_screen.card if self.run_screen and self.run_screen.card_open else None
        review = card.review if card is not None and not card.review.keeps else None
        places = [getattr(place, "unapplied", ("", "")) for place in (review, *self.screen_stack)]
        return tuple((text, what) for text, what in places if text)

    def _kept(self) -> tuple[str, ...]:
        """Save what was typed and not applied, and return a sentence for each text that says where.

        A person who leaves by a key was warned about what was not sent; typed text is never lost.
        """
        card = self.run_screen.card if self.run_screen and self.run_screen.card_open else None
        sentences = [keep_text(text, what) for text, what in self.unapplied]
        if card is not None and card.review.unsent:
            sentences.insert(0, f"the decision {card.review.unsent!r} was not sent")
        return tuple(sentences)

    async def leave(self) -> None:
        """Close everything and end; what was not committed becomes part of the result."""
        self._is_leaving = True
        try:
            await self._leave()
        except Exception as error:  # it must be possible to quit, whatever can't be closed
            self.survive(error)
            self.exit(AppResult(not_committed=(f"{type(error).__name__}: {error}",), ended_by=self._ended_by))

    async def _leave(self) -> None:
        if self._end_notices is not None:
            self._end_notices()
        session = self.run_screen.session if self.run_screen else None
        if self._performance is not None:
            self._performance.end()
        lost = self._kept() if self._ended_by or self._keeping else ()
        if self.run_screen is not None:
            lost += self.run_screen.keep_answer()
        if self.hub is not None:
            try:
                lost += await self.hub.inbox.close()
            except HitlError as error:
                lost += (str(error),)
        if session is None:
            self.exit(AppResult(not_committed=lost, ended_by=self._ended_by))
            return
        # Closing has stopped the run of this thread: it waits now.
        with suppress(HitlError):
            await session.drain()
        self.exit(
            AppResult(
                session.thread_id,
                session.view.progress,
                lost,
                ended_by=self._ended_by,
                source=session.hub.source,
            )
        )


def run_app(
    open_driver: OpenDriver | None,
    *,
    actor: str,
    inputs: Mapping[str, Any] | None = None,
    ask_inputs: bool = True,
    look: Look | None = None,
    mouse: bool = True,
    breaks: Sequence[str] = (),
    prepare: Callable[[Driver], Awaitable[None]] = _nothing,
    waits_for: Callable[[], str] = str,
    notices: BeginNotices | None = None,
    open_hub: OpenHub | None = None,
    attention: Attention | None = None,
    perform: Callable[[], Performance | None] = _no_performance,
    record_screen: Path | None = None,
    request: str = "",
    unsent: Callable[[str], UnsentAnswers | None] = lambda source: None,
) -> AppResult:
    """Show a thread, or the list of threads, until the user leaves.

    Args:
        open_driver: called once before the first paint, which waits at most a second for it; returns the
            hub and the driver of the thread to show. A `HitlError` that it raises ends the app and becomes
            `AppResult.error`. None with `open_hub`.
        actor: who decides and edits, as the log names them.
        inputs: channel values to start with if the thread has no step yet.
        ask_inputs: if there are no `inputs` and the thread is new, ask on screen for the graph's inputs;
            else start with their defaults.
        look: theme, keys and characters, None for the defaults.
        mouse: whether to listen to the mouse.
        breaks: breakpoints to begin with, as `--break` takes them.
        prepare: called once the thread was painted, to prepare what its nodes will need.
        waits_for: what a running node waits for before it can begin, in words; "" for nothing.
        notices: called once a thread is shown, with a function that writes to the terminal from any thread
            and one that returns whether the person has seen a notice; returns a function to end them.
        open_hub: called before the first paint, which is then the list of its threads.
        attention: how others learn what is viewed and claimed here.
        record_screen: the file that the screen is recorded into, None for none.
        perform: called once the thread is open; returns what is presented to an audience, None for nothing.
        request: the id of the request whose card is opened once the thread is shown; "" for none.
        unsent: called once a thread is open, with its source; returns where answers are kept until they are
            sent, None for nowhere.

    Raises:
        Exception: whatever nobody caught, once the terminal is as it was before.
    """
    keep_output(_log_written)
    app = HitlApp(
        AppStart(
            open_driver,
            actor,
            inputs,
            ask_inputs,
            breaks,
            prepare,
            waits_for,
            notices,
            open_hub,
            attention,
            perform,
            request,
            unsent,
        ),
        look,
    )
    if in_browser():
        from hitl_tui.ui.browser import PageDriver

        app.driver_class = PageDriver
    else:
        app.driver_class = on_our_terminal(app.driver_class)
    if record_screen is not None:
        app.record(record_screen)
    take_any_bytes()
    wait_for_keys()
    read_input_first()
    from hitl_tui.ui.debugging import terminal_lent

    with short_turns(), keyboard_kept(from_all=True, lend=partial(terminal_lent, app)):
        result = app.run(mouse=mouse)
    if app.recording is not None:
        app.recording.close()
    if app.fatal_error is not None:
        raise app.fatal_error
    return result or AppResult()


def _log_written(lines: Sequence[str]) -> None:
    """Write to the log file what nodes printed and no screen has shown."""
    for line in lines:
        log.info("written while the screen was shown: %s", sanitise(line))
