"""Palette: every action, found by its name or by a word of its explanation."""

from __future__ import annotations

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from hitl_tui.ui.screens.modal import BaseScreen
from hitl_tui.ui.textual_private.palette import QuickPalette

_BY_HELP = 0.5
"""Weight of a match in the explanation, compared with one in the name."""


class Palette(QuickPalette, BaseScreen[None]):
    """Palette as a screen of ours."""


class ActionCommands(Provider):
    """Actions, themes and the other commands of the app (`App.get_system_commands`)."""

    async def discover(self) -> Hits:
        """Yield all commands, in the order of the action table."""
        for name, help_text, callback, discover in self.app.get_system_commands(self.screen):
            if discover:
                yield DiscoveryHit(Content(name), callback, text=name, help=help_text)

    async def search(self, query: str) -> Hits:
        """Yield those whose name or explanation matches, matching names first."""
        matcher = self.matcher(query)
        for name, help_text, callback, _ in self.app.get_system_commands(self.screen):
            # Letters scattered over a name and its key would match nearly anything.
            label = name.partition("  (")[0]
            if (match := matcher.match(label)) > 0:
                yield Hit(match, matcher.highlight(name), callback, text=name, help=help_text)
            elif query.casefold() in f"{name} {help_text or ''}".casefold():
                yield Hit(_BY_HELP, Content(name), callback, text=name, help=help_text)
