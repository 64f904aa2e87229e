"""Private names of Textual for the palette; see the package."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from textual import work
from textual.command import CommandPalette
from textual.css.query import NoMatches

_GATHER: Any = vars(CommandPalette._gather_commands)["__wrapped__"]


class QuickPalette(CommandPalette):
    """Textual's palette, without its errors when keys come fast."""

    def _action_command_list(self, action: str) -> None:
        # Before the list is laid out, Textual fails to find its rows.
        with suppress(KeyError):
            super()._action_command_list(action)

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        # If it is closed as soon as it is open, its list has gone before the search begins.
        with suppress(NoMatches):
            await _GATHER(self, search_value)
