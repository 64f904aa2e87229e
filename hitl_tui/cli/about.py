"""`themes`, `keys`, `config`, `schema`, `new`, `completion`: the available settings and the current ones."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import durability_option, reviewer_option, store_option, theme_option
from hitl_tui.cli.output import emit, json_option, one_line, say, table
from hitl_tui.errors import ExitCode, HitlError

if TYPE_CHECKING:
    from hitl_tui.cli.reports import ThemeRow
    from hitl_tui.config import InboxSource
    from hitl_tui.ui.theme import Themes


@click.command()
@json_option
def themes(as_json: bool) -> int:
    """List the themes.

    Built-in themes and those in your configuration directory; the current one is marked. One that can't be
    used is reported with file and line, with exit code 2.

        hitl-tui themes
    """
    from hitl_tui.cli.reports import ThemesDocument
    from hitl_tui.config import load_settings, user_themes
    from hitl_tui.ui.theme import DEFAULT_THEME, Themes

    settings = load_settings()
    used = settings.theme or DEFAULT_THEME
    known = Themes(user_themes())
    rows = [_theme(known, name, in_use=name == used) for name in known.names()]
    broken = [row.problem for row in rows if row.problem]
    if used not in known.names():
        broken.append(f"{settings.origins['theme']}: theme: {_problem(known, used)}")
    if as_json:
        emit(ThemesDocument(themes=tuple(rows), directory=str(user_themes())))
    else:
        marks = ["*" if row.in_use else "!" if row.problem else " " for row in rows]
        lines = [(mark, row.name, row.title) for mark, row in zip(marks, rows, strict=True)]
        say(*table([tuple(one_line(cell) for cell in line) for line in lines]))
        say(f"yours go into {user_themes()}")
    say(*broken, err=True)
    return ExitCode.USAGE if broken else ExitCode.DONE


def _problem(known: Themes, name: str) -> str:
    """Return why there is no theme of that name."""
    try:
        known.load(name)
    except HitlError as error:
        return str(error)
    return ""


def _theme(known: Themes, name: str, *, in_use: bool) -> ThemeRow:
    from hitl_tui.cli.reports import ThemeRow

    try:
        theme = known.load(name)
    except HitlError as error:
        return ThemeRow(in_use, name, "can't be used", problem=error.message)
    return ThemeRow(in_use, name, theme.title, theme.theme.dark, str(theme.files[0]))


@click.command()
@json_option
def keys(as_json: bool) -> int:
    """List every action of the screen with its id and its keys.

    With the keys of your configuration. Mistakes in it are reported, with exit code 2.

        hitl-tui keys
    """
    from hitl_tui.cli.reports import KeyRow, KeysDocument
    from hitl_tui.config import load_settings
    from hitl_tui.verbs.actions import ALL_ACTIONS
    from hitl_tui.verbs.keymap import load_keymap

    settings = load_settings()
    keymap = load_keymap(settings.keys, lambda name: settings.key_places.get(name, f"keys.{name}"))
    rows = [
        KeyRow(
            action.id,
            tuple(keymap.spelled(action.id)),
            action.id in keymap.configured,
            action.group,
            action.help,
        )
        for action in ALL_ACTIONS
    ]
    if as_json:
        emit(KeysDocument(keys=tuple(rows), problems=tuple(keymap.problems)))
    else:
        lines = [(",".join(row.keys) or "-", row.id, row.help) for row in rows]
        say(*table([("KEYS", "ID", "WHAT IT DOES"), *lines], prose=True))
    say(*keymap.problems, err=True)
    return ExitCode.USAGE if keymap.problems else ExitCode.DONE


@click.command()
@store_option
@durability_option
@theme_option
@reviewer_option
@json_option
def config(*, as_json: bool, **flags: str | None) -> None:
    """Show every setting and where it comes from.

    A flag, an environment variable, a line of the configuration file, or the default.

        hitl-tui config
    """
    from hitl_tui.cli.reports import ConfigDocument, Setting
    from hitl_tui.config import config_path, load_settings
    from hitl_tui.ui.theme import DEFAULT_THEME

    settings = load_settings(flags)
    values = {name: getattr(settings, name) for name in settings.origins}
    values["theme"] = values["theme"] or DEFAULT_THEME
    if urls := settings.notify.get("urls"):
        # These hold passwords.
        values["notify"] = {**settings.notify, "urls": [f"{len(urls)} not shown"]}
    values["inbox"] = [_shown_source(source) for source in settings.inbox]
    rows = [Setting(name, values[name], origin) for name, origin in settings.origins.items()]
    if as_json:
        file = config_path()
        emit(ConfigDocument(config=tuple(rows), file=str(file), file_exists=os.path.exists(file)))
    else:
        shown = [tuple(map(one_line, (row.name, _shown(row.value), row.origin))) for row in rows]
        shown += [
            (one_line(f"keys.{name}"), one_line(_shown(value)), one_line(settings.key_places.get(name, "-")))
            for name, value in settings.keys.items()
        ]
        say(*table([("SETTING", "VALUE", "FROM"), *shown]))
        there = "" if os.path.exists(config_path()) else " (there is none)"
        say(f"file: {config_path()}{there}")


def _shown_source(source: InboxSource) -> dict[str, str]:
    """Return a table of the inbox, without a password."""
    from hitl_tui.stores.opening import without_password

    given = {
        "name": source.name,
        "store": without_password(source.store),
        "server": source.server,
        "assistant": source.assistant,
    }
    return {key: value for key, value in given.items() if value}


def _shown(value: object) -> str:
    """Return a setting for people; keys have lines of their own."""
    if isinstance(value, list):
        names = (source.get("name") or source.get("store") or source["server"] for source in value)
        return ", ".join(names) or "-"
    if isinstance(value, Mapping):
        return f"{len(value)} of your own" if value else "-"
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None or value == "" else str(value)


SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_HITL_TUI_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for your shell.

    bash: eval "$(hitl-tui completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc;
    fish: hitl-tui completion fish > ~/.config/fish/completions/hitl-tui.fish

        hitl-tui completion bash
        hitl-tui completion fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - click knows all three
        raise click.UsageError(f"click knows no completion for {shell}")
    click.echo(kind(ctx.find_root().command, {}, "hitl-tui", VARIABLE).source())


@click.command()
@click.argument("template")
@click.argument("file", type=click.Path(path_type=Path))
def new(template: str, file: Path) -> None:
    """Write a commented graph file to start from.

    TEMPLATE is advisor, sequential, supervisor, debate, planner, review, counter or blank; FILE ends in
    .toml. The file runs as it is, without keys. An existing file is never overwritten.

        hitl-tui new advisor my.toml && hitl-tui run my.toml
    """
    import shlex

    from hitl_tui.loading.starts import takes_model, write_start
    from hitl_tui.view.sanitise import sanitise

    for path in write_start(template, file):
        click.echo(f"wrote {sanitise(str(path), multiline=False)}")
    run = f"hitl-tui run {shlex.quote(str(file))}"
    click.echo(f"run it:       {sanitise(run, multiline=False)}")
    if takes_model(template):
        click.echo("with a model: add --model NAME, as in --model ollama/llama3.2")


@click.command()
@click.argument("which", type=click.Choice(("json", "graph-file")))
def schema(which: str) -> None:
    """Print a JSON Schema of all output, or of graph files.

    Each field with its type and meaning. json: the documents that commands print with --json. graph-file:
    what a graph file may hold, for an editor.

        hitl-tui schema json > hitl-tui.schema.json
    """
    from hitl_tui.cli.documents import output_schema
    from hitl_tui.loading.graphfile.schema import graph_file_schema

    shape = output_schema() if which == "json" else graph_file_schema()
    click.echo(json.dumps(shape, indent=2, ensure_ascii=False))
