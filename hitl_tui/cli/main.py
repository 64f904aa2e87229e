"""The entry point `hitl-tui`: what the commands are, and what runs without one."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

import click

from hitl_tui import __version__
from hitl_tui.cli.failures import guarded, tell_warning
from hitl_tui.cli.lazy import Entry, LazyGroup
from hitl_tui.cli.streams import open_the_closed
from hitl_tui.errors import UsageError

GROUPS = {
    "Start and run": {
        "demo": Entry("hitl_tui.cli.demo", "Step through an advisor workflow; no key, no network."),
        "run": Entry("hitl_tui.cli.run", "Run a workflow of your own, on screen or without."),
        "new": Entry("hitl_tui.cli.new", "Write a commented start of a graph file."),
        "resume": Entry("hitl_tui.cli.resume", "Go on with a thread where it stopped."),
        "step": Entry("hitl_tui.cli.running", "Run one node of a thread."),
        "pause": Entry("hitl_tui.cli.running", "Pause a thread, whichever process runs it."),
        "extend": Entry("hitl_tui.cli.running", "Raise limits, so that a thread stopped by one can go on."),
        "cancel": Entry("hitl_tui.cli.running", "End a thread for good, as cancelled by you."),
        "rollback": Entry("hitl_tui.cli.rollback", "Undo what a thread's nodes did outside of it."),
    },
    "Decide and change": {
        "approve": Entry("hitl_tui.cli.decide", "Approve what a thread waits for."),
        "revise": Entry("hitl_tui.cli.decide", "Send back what a thread waits for, with your words."),
        "answer": Entry("hitl_tui.cli.decide", "Answer a request that waits for a human."),
        "update-state": Entry("hitl_tui.cli.change", "Set channels of a thread as one new step."),
        "fork": Entry("hitl_tui.cli.change", "Make a new thread from a step of another."),
        "agents": Entry("hitl_tui.cli.agents", "Show the agents of a thread, or change them."),
        "declassify": Entry("hitl_tui.cli.taint", "Say that a tainted channel may be trusted as it is now."),
    },
    "Look": {
        "threads": Entry("hitl_tui.cli.threads", "List the threads of a store."),
        "show": Entry("hitl_tui.cli.show", "Show a thread at its newest step, or at any other."),
        "log": Entry("hitl_tui.cli.log", "Show the steps of a thread, oldest first."),
        "diff": Entry("hitl_tui.cli.compare", "Compare two steps, threads or forks, channel by channel."),
        "blame": Entry("hitl_tui.cli.blame", "Show who wrote each part of a channel last."),
        "cost": Entry("hitl_tui.cli.cost", "Show what a thread has cost: by agent, by node and by step."),
        "taint": Entry("hitl_tui.cli.taint", "Show which channels hold what came from outside, and why."),
        "graph": Entry("hitl_tui.cli.graph", "Write a graph as text, Mermaid, Graphviz, SVG or JSON."),
    },
    "Check and carry": {
        "verify": Entry("hitl_tui.cli.carry", "Check that a thread's log agrees with itself."),
        "anchor": Entry("hitl_tui.cli.carry", "Write where a thread stands, to check the store against."),
        "replay": Entry("hitl_tui.cli.replay", "Run a thread's graph again on its recorded results."),
        "export": Entry(
            "hitl_tui.cli.carry", "Write a thread to a file, or to stdout for a pipe.", "export_command"
        ),
        "import": Entry("hitl_tui.cli.carry", "Take in a thread that `export` wrote.", "import_command"),
    },
    "Set up": {
        "themes": Entry("hitl_tui.cli.about", "List the themes."),
        "keys": Entry("hitl_tui.cli.about", "List every action of the screen with its id and its keys."),
        "config": Entry("hitl_tui.cli.about", "Show every setting and where it comes from."),
        "doctor": Entry("hitl_tui.cli.doctor", "Check versions, store, terminal, directories and keys."),
        "schema": Entry("hitl_tui.cli.schema", "Write a JSON Schema of all output, or of graph files."),
        "completion": Entry("hitl_tui.cli.completion", "Write the completion script for your shell."),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


@click.group(
    cls=LazyGroup,
    groups=GROUPS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-v", "--version", message="hitl-tui %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Run an agent workflow with a human inside the loop.

    Step it, see every channel, edit, decide, resume and fork. Without a command: the threads of
    your store, on screen. `hitl-tui demo` is a good beginning.

    A graph is a workflow: nodes that run one after another and write channels, the named values of
    its state. A thread is one run of a graph, kept step by step in a store, so that any process can
    look at it and go on. A request is a question of the graph that waits for a human.
    """
    if ctx.invoked_subcommand is not None:
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        from hitl_tui.cli.session import browse

        if browse():
            return
    click.echo(ctx.get_help())


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    open_the_closed()
    arguments = sys.argv[1:]
    warnings.showwarning = tell_warning

    def command() -> object:
        _check_text(arguments)
        return cli.main(arguments, prog_name="hitl-tui", standalone_mode=False)

    sys.exit(guarded(command, arguments))


def _check_text(arguments: Sequence[str]) -> None:
    """Refuse bytes that are no text: neither a store nor JSON could keep them."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"{argument!r} is no text in UTF-8", "type it anew, or rename the file that it names"
            ) from None
