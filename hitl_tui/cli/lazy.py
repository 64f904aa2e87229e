"""A click group that imports a command's module only when the command is called."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import click

from hitl_tui.cli.examples import examples
from hitl_tui.suggest import did_you_mean


class Entry(NamedTuple):
    """Where a command lives, and its line in `--help`.

    `attribute` is its name in the module, the command's own with underscores by default.
    """

    module: str
    summary: str
    attribute: str = ""


class LazyGroup(click.Group):
    """Lists its commands from a table, so that `--help` costs no imports.

    Args:
        groups: the commands by name under the headings of `--help`, in the order in which it shows them.
    """

    def __init__(self, *args: Any, groups: dict[str, dict[str, Entry]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups
        self.entries = {name: entry for group in groups.values() for name, entry in group.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(
            import_module(entry.module), entry.attribute or cmd_name.replace("-", "_")
        )
        command.epilog = examples(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in self.entries:
            hint = did_you_mean(name, self.entries)
            ctx.fail(f"No such command {name!r}; {hint}" if hint else f"No such command {name!r}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.entries))
        for heading, group in self.groups.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), entry.summary) for name, entry in group.items()])
