"""Screens that close once, however fast the keys come."""

from __future__ import annotations

from textual.actions import SkipAction
from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen, ScreenResultType


class ClosesOnce(Screen[ScreenResultType]):
    """A screen that closes itself and nothing else: Textual's `dismiss` closes whatever is on top."""

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close with a result, and what is over it too; nothing where it has been closed before."""
        if self not in self.app.screen_stack:
            return AwaitComplete()
        while self.app.screen is not self:
            self.app.pop_screen()
        return super().dismiss(result)


class Modal(ModalScreen[ScreenResultType], ClosesOnce[ScreenResultType]):
    """One over another screen, which stays in sight."""

    def action_copy_text(self) -> None:
        """Copy what is selected; else it is the app's key, which Textual keeps from modal screens."""
        try:
            super().action_copy_text()
        except SkipAction:
            self.call_later(self.run_action, "app.interrupt")
