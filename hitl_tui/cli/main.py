"""The entry point `hitl-tui`: what the commands are, and what runs without one."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from hitl_tui import __version__
from hitl_tui.cli.failures import guarded
from hitl_tui.cli.lazy import Entry, LazyGroup

COMMANDS = {
    "demo": Entry("hitl_tui.cli.demo", "Step through an advisor workflow; no key, no network."),
    "run": Entry("hitl_tui.cli.run", "Open a workflow of your own on screen."),
    "resume": Entry("hitl_tui.cli.resume", "Go on with a thread where it stopped."),
    "threads": Entry("hitl_tui.cli.threads", "List the threads of a store."),
    "new": Entry("hitl_tui.cli.new", "Write a commented start of a graph file."),
}


@click.group(
    cls=LazyGroup,
    entries=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-v", "--version", message="hitl-tui %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Run an agent workflow with a human inside the loop.

    Step it, see every channel, edit, decide, resume and fork. Without a command: the threads of
    your store, on screen.
    """
    if ctx.invoked_subcommand is not None:
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        from hitl_tui.cli.resume import browse

        if browse():
            return
    click.echo(ctx.get_help())


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    sys.exit(guarded(lambda: cli.main(prog_name="hitl-tui", standalone_mode=False)))
