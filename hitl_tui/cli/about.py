"""`themes`, `keys`, `config`: what one can choose, and what is chosen."""

from __future__ import annotations

import click

from hitl_tui.cli.options import reviewer_option, store_option, theme_option
from hitl_tui.cli.output import emit, json_option, say, table


@click.command()
@json_option
def themes(as_json: bool) -> None:
    """List the themes.

    The one in use is marked; --theme, HITL_TUI_THEME or `theme` in the configuration choose one.
    """
    from hitl_tui.config import load_settings
    from hitl_tui.ui.theming import DEFAULT_THEME, theme_names

    used = load_settings().theme or DEFAULT_THEME
    rows = [{"name": name, "in_use": name == used} for name in theme_names()]
    if as_json:
        from hitl_tui.cli.shapes import listed

        emit(listed("themes", rows))
    else:
        say(*(f"{'*' if row['in_use'] else ' '} {row['name']}" for row in rows))


@click.command()
@json_option
def keys(as_json: bool) -> None:
    """List every action of the screen with its id and its key."""
    from hitl_tui.ui.actions import ACTIONS

    rows = [
        {"id": one.id, "key": one.key, "keys": one.keys.split(","), "group": one.group, "help": one.help}
        for one in ACTIONS
    ]
    if as_json:
        from hitl_tui.cli.shapes import listed

        emit(listed("keys", rows))
    else:
        lines = [(str(row["key"]), str(row["id"]), str(row["help"])) for row in rows]
        say(*table([("KEY", "ID", "WHAT IT DOES"), *lines]))


@click.command()
@store_option
@theme_option
@reviewer_option
@json_option
def config(store: str | None, theme: str | None, reviewer: str | None, as_json: bool) -> None:
    """Show every setting and where it comes from.

    A flag, an environment variable, a line of the configuration file, or the default.
    """
    from hitl_tui.config import config_path, load_settings

    settings = load_settings({"store": store, "theme": theme, "reviewer": reviewer})
    rows = [
        {"name": name, "value": getattr(settings, name), "origin": origin}
        for name, origin in settings.origins.items()
    ]
    if as_json:
        from hitl_tui.cli.shapes import listed

        emit(listed("config", rows, file=str(config_path()), file_exists=config_path().exists()))
    else:
        shown = [(str(row["name"]), str(row["value"] or "-"), str(row["origin"])) for row in rows]
        say(*table([("SETTING", "VALUE", "FROM"), *shown]))
        there = "" if config_path().exists() else " (there is none)"
        say(f"file: {config_path()}{there}")
