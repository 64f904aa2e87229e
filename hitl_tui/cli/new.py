"""`new`: a commented start of a graph file."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("template")
@click.argument("file", type=click.Path(path_type=Path))
def new(template: str, file: Path) -> None:
    """Write a commented start of a graph file.

    TEMPLATE is advisor, sequential, supervisor, debate, planner, review, counter or blank; FILE ends
    in .toml. The start runs as it is, without keys. Nothing that is there is overwritten.
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
