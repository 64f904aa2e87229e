"""The palette: every action, found by its name or by a word of what it does."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from textual import work
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.css.query import NoMatches

from hitl_tui.ui.screens.modal import BaseScreen

_GATHER: Any = vars(CommandPalette._gather_commands)["__wrapped__"]
_BY_HELP = 0.5
"""What a match of the explanation counts beside one of the name."""


class Palette(CommandPalette, BaseScreen[None]):
    """Textual's palette, for fast keys."""

    def _action_command_list(self, action: str) -> None:
        # Before the list is laid out, Textual fails to find its rows.
        with suppress(KeyError):
            super()._action_command_list(action)

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        # Where it is closed as soon as it is open, its list has gone before the search begins.
        with suppress(NoMatches):
            await _GATHER(self, search_value)


class ActionCommands(Provider):
    """Actions, themes and what else the app offers (`App.get_system_commands`)."""

    async def discover(self) -> Hits:
        """All of them, in the order of the action table."""
        for name, help_text, callback, discover in self.app.get_system_commands(self.screen):
            if discover:
                yield DiscoveryHit(Content(name), callback, text=name, help=help_text)

    async def search(self, query: str) -> Hits:
        """Those whose name or explanation matches, by name first."""
        matcher = self.matcher(query)
        for name, help_text, callback, _ in self.app.get_system_commands(self.screen):
            # Letters scattered over a name and its key would match nearly anything.
            label = name.partition("  (")[0]
            if (match := matcher.match(label)) > 0:
                yield Hit(match, matcher.highlight(name), callback, text=name, help=help_text)
            elif query.casefold() in f"{name} {help_text or ''}".casefold():
                yield Hit(_BY_HELP, Content(name), callback, text=name, help=help_text)
