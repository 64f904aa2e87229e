"""`completion`: the script that makes a shell complete our commands, options and threads."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_HITL_TUI_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Write the completion script for your shell.

    bash: eval "$(hitl-tui completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc;
    fish: hitl-tui completion fish > ~/.config/fish/completions/hitl-tui.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - click knows all three
        raise click.UsageError(f"click knows no completion for {shell}")
    click.echo(kind(ctx.find_root().command, {}, "hitl-tui", VARIABLE).source())
