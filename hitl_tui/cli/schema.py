"""`schema`: the JSON Schemas of what is written with `--json` and of what a graph file may hold."""

from __future__ import annotations

import click

SCHEMAS = {"json": ("hitl_tui.cli", "output"), "graph-file": ("hitl_tui.loading", "graph-file")}


@click.command()
@click.argument("which", type=click.Choice(list(SCHEMAS)))
def schema(which: str) -> None:
    """Write a JSON Schema of all output, or of graph files.

    Each field with its type and what it means. json: the documents that every command writes with --json.
    graph-file: what a graph file may hold, for an editor.
    """
    from importlib.resources import files

    package, name = SCHEMAS[which]
    click.echo((files(package) / f"{name}.schema.json").read_text("utf-8"), nl=False)
