"""The app: opens a thread after the first paint, shows it, and says at the end what was not committed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.errors import HitlError
from hitl_tui.ui.screens.run import RunScreen
from hitl_tui.ui.session import Session
from hitl_tui.ui.theming import DEFAULT_THEME, builtin_theme, theme_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import SystemCommand
    from textual.screen import Screen

log = logging.getLogger(__name__)
OpenDriver = Callable[[], Awaitable[tuple[Hub, Driver]]]


@dataclass(frozen=True, slots=True)
class AppResult:
    """How a session on screen ended.

    Args:
        thread_id: the thread that was open last, "" if none came to be opened.
        status: its status then.
        not_committed: a sentence for each thing that was given up, for the caller to print.
        error: why nothing could be opened, None if it could.
    """

    thread_id: str = ""
    status: str = ""
    not_committed: tuple[str, ...] = ()
    error: HitlError | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """What a session begins with; see `run_app`."""

    open_driver: OpenDriver
    actor: str
    inputs: Mapping[str, Any] | None = None
    ask_inputs: bool = True
    auto_continue: bool = False


class HitlApp(App[AppResult]):
    """One terminal, one hub, one thread at a time."""

    TITLE = "hitl-tui"
    # Textual does not load the CSS of a default screen, so the run screen's is ours.
    CSS_PATH: ClassVar[list[str | PurePath]] = ["screens/base.tcss", "screens/run.tcss"]
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "ask_to_quit", "Quit", show=False, priority=True),
        Binding("ctrl+c", "ask_to_quit", "Quit", show=False, priority=True),
    ]

    def __init__(self, start: Start, *, theme: str | None = None) -> None:
        super().__init__()
        self.start = start
        self.actor = start.actor
        self.hub: Hub | None = None
        chosen = theme or DEFAULT_THEME
        found = builtin_theme(chosen)
        if found is not None:
            self.register_theme(found)
            self.theme = chosen
        elif chosen in self.available_themes:
            self.theme = chosen
        self.run_screen = RunScreen()

    def get_default_screen(self) -> Screen[Any]:
        """The run screen is the first and stays below all others."""
        return self.run_screen

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our roles for themes that don't know them."""
        theme = builtin_theme(DEFAULT_THEME)
        return dict(theme.variables) if theme else {}

    def on_mount(self) -> None:
        """Open the thread once something is on screen."""
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.run_worker(self._open(), group="open", exit_on_error=False)
        self.set_timer(0.2, self._register_other_themes)

    def _register_other_themes(self) -> None:
        for name in theme_names():
            found = builtin_theme(name)
            if found is not None and name not in self.available_themes:
                self.register_theme(found)

    async def _open(self) -> None:
        """Open hub and driver; a failure ends the app with the reason, for the caller to print."""
        try:
            self.hub, driver = await self.start.open_driver()
            session = await Session.open(self.hub, driver)
        except HitlError as error:
            self.exit(AppResult(error=error))
            return
        await self.run_screen.begin(session)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """All our actions with their keys, and what Textual offers that is of use here."""
        from textual.app import SystemCommand

        from hitl_tui.ui.actions import ACTIONS

        if screen is self.run_screen:
            for action in ACTIONS:
                if action.id != "app.palette":
                    yield SystemCommand(
                        f"{action.label}  ({action.key})", action.help, self.run_screen.doing(action.id)
                    )
        for name in theme_names():
            yield SystemCommand(
                f"Theme: {name}", "Change the colours", lambda name=name: self.use_theme(name)
            )
        yield SystemCommand("Screenshot", "Save a picture of the screen as SVG", self.deliver_screenshot)

    def use_theme(self, name: str) -> None:
        """Change the colours."""
        self._register_other_themes()
        self.theme = name

    def action_ask_to_quit(self) -> None:
        """Quit from anywhere, asking where something would be lost."""
        while self.screen is not self.run_screen and len(self.screen_stack) > 1:
            self.pop_screen()
        self.run_screen.do_app_quit()

    async def leave(self) -> None:
        """Close everything and end; what was not committed goes into the result."""
        session = self.run_screen.session
        lost: tuple[str, ...] = ()
        if self.hub is not None:
            try:
                lost = await self.hub.close()
            except HitlError as error:
                lost = (str(error),)
        status = session.view.progress.status if session else ""
        self.exit(AppResult(session.thread_id if session else "", status, lost))


def run_app(
    open_driver: OpenDriver,
    *,
    actor: str,
    inputs: Mapping[str, Any] | None = None,
    ask_inputs: bool = True,
    theme: str | None = None,
    mouse: bool = True,
) -> AppResult:
    """Show a thread until the user leaves.

    Args:
        open_driver: called once after the first paint, so that nothing heavy need be imported or opened
            before; gives the hub and the driver of the thread to show.  A `HitlError` it raises ends the
            app and comes back as `AppResult.error`.
        actor: who decides and edits, as the log will name them.
        inputs: channel values to start with if the thread has no step yet.
        ask_inputs: with no `inputs` and a new thread, ask on screen for what the graph wants; else
            start with its defaults.
        theme: name of a theme, None for the default.
        mouse: whether to listen to the mouse.
    """
    app = HitlApp(Start(open_driver, actor, inputs, ask_inputs), theme=theme)
    return app.run(mouse=mouse) or AppResult()
