"""Bases of all screens: they close only once, however fast the keys come, and use the screen below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from textual.actions import SkipAction
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, ScreenResultType

from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Command
from hitl_tui.ui.textual_private import SteadyScreen
from hitl_tui.ui.work import Work
from hitl_tui.view.keymap import Keymap
from hitl_tui.view.presence import Attention
from hitl_tui.view.session import ViewSession

Severity = Literal["information", "warning", "error"]


class StoreHost(Protocol):
    """Screen below a dialog about a store."""

    @property
    def app(self) -> App[object]:
        """App that it belongs to."""

    def command(self, work: Work, group: str = "command") -> None:
        """Do some work; show errors instead of raising them."""

    def show_message(self, text: str, title: str = "", severity: Severity = "information") -> None:
        """Show a short message."""

    def show_work(self, text: str) -> None:
        """Show the progress until the next message."""


class Host(StoreHost, Protocol):
    """Screen below a dialog: it sends commands, and shows their results."""

    actor: str
    keymap: Keymap
    key_hints: Mapping[str, str]
    session: ViewSession | None
    attention: Attention

    def show_value(self, channel: str, step: int, value: object) -> None:
        """Show the value of a channel that is otherwise hidden."""

    def before_command(self, command: Command[Any]) -> None:
        """A verb's command is carried out now."""

    async def follow(self, command: Command[None], driver: Driver) -> None:
        """Start a run, and show it."""

    async def open_thread(self, thread_id: str) -> None:
        """Show another thread of the hub."""


class BaseScreen(SteadyScreen[ScreenResultType]):
    """Screen that closes itself and nothing else."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close with a result, with any screen above; do nothing if it is already closed."""
        if self not in self.app.screen_stack:
            return AwaitComplete()
        while self.app.screen is not self:
            self.app.pop_screen()
        return super().dismiss(result)


class Modal(ModalScreen[ScreenResultType], BaseScreen[ScreenResultType]):
    """Screen over another one, which stays visible."""

    def action_copy_text(self) -> None:
        """Copy the selection; without one, act as the app's key, which Textual keeps from modal screens."""
        try:
            super().action_copy_text()
        except SkipAction:
            self.call_later(self.run_action, "app.interrupt")
