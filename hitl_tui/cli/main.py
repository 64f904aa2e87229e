"""The entry point `hitl-tui`: its commands, and what runs without one."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from inspect import cleandoc
from typing import Any, NamedTuple, NoReturn

import click

from hitl_tui import __version__
from hitl_tui.cli.failures import guarded, print_warning
from hitl_tui.cli.options import stores_option
from hitl_tui.cli.streams import open_the_closed
from hitl_tui.collector import collect_no_more
from hitl_tui.drivers.node_streams import has_screen
from hitl_tui.errors import UsageError
from hitl_tui.suggest import did_you_mean
from hitl_tui.verbs import VerbEntry, split_help, verbs


class Entry(NamedTuple):
    """Module and attribute of a command, and its line in `--help`.

    `attribute` is its name in the module, the command's own with underscores by default.
    """

    module: str
    summary: str
    attribute: str = ""


class LazyGroup(click.Group):
    """Lists its commands from a table, so that `--help` costs no imports.

    Args:
        groups: the commands by name, under the headings of `--help`.
    """

    def __init__(self, *args: Any, groups: dict[str, dict[str, Entry | VerbEntry]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups
        self.entries = {name: entry for group in groups.values() for name, entry in group.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        command: click.Command
        if isinstance(entry, Entry):
            attribute = entry.attribute or cmd_name.replace("-", "_")
            command = getattr(import_module(entry.module), attribute)
        else:
            from hitl_tui.cli.verbs import command_of

            command = command_of(entry)
        text, examples = split_help(cleandoc(command.help or ""))
        if examples:
            command.help, command.epilog = text, _epilog(examples)
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


def _epilog(lines: Sequence[str]) -> str:
    """Return examples as the last paragraph of a command's help."""
    heading = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join(["\b", heading, *(f"  {line}" for line in lines)])


GROUPS: dict[str, dict[str, Entry | VerbEntry]] = {
    "Start and run": {
        "demo": Entry("hitl_tui.cli.run", "Step through the advisor workflow, without key or network."),
        "run": Entry("hitl_tui.cli.run", "Run your own workflow, with or without a screen."),
        "present": Entry("hitl_tui.cli.present", "Give a presentation from a script, or show its notes."),
        "serve": Entry("hitl_tui.cli.serve", "Serve the app to browsers; each page is a session."),
        "worker": Entry("hitl_tui.cli.worker", "Run threads that were left to workers."),
        "play": Entry("hitl_tui.cli.play", "Play a recorded run on screen."),
        "new": Entry("hitl_tui.cli.about", "Write a commented graph file to start from."),
        "resume": Entry("hitl_tui.cli.run", "Continue a thread where it stopped."),
        "step": Entry("hitl_tui.cli.running", "Run one node of a thread."),
    },
    "Decide and change": {
        "review": Entry("hitl_tui.cli.review", "Open the most urgent request that waits for you."),
        "approve": Entry("hitl_tui.cli.decide", "Approve the request of a thread."),
        "revise": Entry("hitl_tui.cli.decide", "Send a request back with your comment."),
        "answer": Entry("hitl_tui.cli.decide", "Answer any request of a thread."),
        "update-state": Entry("hitl_tui.cli.change", "Set channels of a thread as one new step."),
    },
    "Look": {
        "watch": Entry("hitl_tui.cli.notify", "Notify you of what waits for you, expires soon or has ended."),
        "threads": Entry("hitl_tui.cli.threads", "List the threads of a store."),
        "workers": Entry("hitl_tui.cli.worker", "Show which worker runs what, and what is queued."),
        "show": Entry("hitl_tui.cli.inspect", "Show a thread at its newest step, or at another one."),
        "log": Entry("hitl_tui.cli.inspect", "Show the steps of a thread, oldest first."),
        "decisions": Entry("hitl_tui.cli.decisions", "Search the decisions of all threads, newest first."),
        "stats": Entry("hitl_tui.cli.stats", "Count decisions, reasons, times, edits and rubric scores."),
        "diff": Entry("hitl_tui.cli.inspect", "Compare two steps, threads or forks, channel by channel."),
        "read": Entry("hitl_tui.cli.read", "Read a text, rendered, with its changes and comments."),
        "blame": Entry("hitl_tui.cli.inspect", "Show who last wrote each part of a channel."),
        "find": Entry("hitl_tui.cli.history", "Search all steps of a thread for a text, newest first."),
        "when": Entry("hitl_tui.cli.history", "Find the steps at which a condition became true."),
        "values": Entry("hitl_tui.cli.history", "Show the values of expressions over the run, up to a step."),
        "cost": Entry("hitl_tui.cli.inspect", "Show what a thread has cost: by agent, by node and by step."),
        "agents": Entry("hitl_tui.cli.agents", "Show the agents of a thread: model, use and turns."),
        "taint": Entry("hitl_tui.cli.taint", "Show which channels hold untrusted data, and why."),
        "graphs": Entry("hitl_tui.cli.graph", "List the graphs from which you can start a thread."),
        "graph": Entry("hitl_tui.cli.graph", "Print a graph as text, Mermaid, Graphviz, SVG or JSON."),
    },
    "Check and export": {
        "verify": Entry("hitl_tui.cli.transfer", "Check that a thread's log agrees with itself."),
        "anchor": Entry("hitl_tui.cli.transfer", "Print a thread's newest hashes, to check the store later."),
        "replay": Entry("hitl_tui.cli.replay", "Run a thread's graph again on recorded results."),
        "items": Entry("hitl_tui.cli.items", "List the items of a LangGraph graph's long-term store."),
        "artifacts": Entry("hitl_tui.cli.artifacts", "List the artifacts of a thread, read one or save it."),
        "export": Entry(
            "hitl_tui.cli.transfer", "Write a thread to a file, or to stdout for a pipe.", "export_command"
        ),
        "import": Entry("hitl_tui.cli.transfer", "Import a thread that `export` wrote.", "import_command"),
    },
    "Keep and delete": {
        "deleted": Entry("hitl_tui.cli.retention", "Show who deleted which threads, when and why."),
        "size": Entry("hitl_tui.cli.retention", "Show what fills the store, by thread and channel."),
    },
    "Set up": {
        "themes": Entry("hitl_tui.cli.about", "List the themes."),
        "keys": Entry("hitl_tui.cli.about", "List every action of the screen with its id and its keys."),
        "config": Entry("hitl_tui.cli.about", "Show every setting and where it comes from."),
        "doctor": Entry("hitl_tui.cli.doctor", "Check versions, store, terminal, directories and keys."),
        "store": Entry("hitl_tui.cli.store", "Set up a store in PostgreSQL: tables and roles."),
        "schema": Entry("hitl_tui.cli.about", "Print a JSON Schema of all output, or of graph files."),
        "completion": Entry("hitl_tui.cli.about", "Print the completion script for your shell."),
    },
}
for _verb in verbs().values():
    GROUPS[_verb.heading][_verb.name] = _verb
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


@click.group(
    cls=LazyGroup,
    groups=GROUPS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-v", "--version", message="hitl-tui %(version)s")
@stores_option
@click.pass_context
def cli(ctx: click.Context, store: str | None) -> None:
    """Run an agent workflow with a human in the loop.

    Step through it, see every channel, edit, decide, resume and fork. Without a command, you see the
    threads of your store. Start with `hitl-tui demo`.

    A graph is a workflow: nodes that run one after another and write channels, the named values of
    its state. A thread is one run of a graph, kept step by step in a store, so that any process can
    show it and continue it. A request is a question of the graph that waits for a person.
    """
    if ctx.invoked_subcommand is not None:
        if store is not None:
            known = f"hitl-tui {ctx.invoked_subcommand} --store {shlex.quote(store)}"
            raise click.UsageError(f"write --store after the command: {known}")
        return
    if has_screen():
        from hitl_tui.cli.screen import browse

        if browse(store):
            return
    click.echo(ctx.get_help())


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    open_the_closed()
    arguments = sys.argv[1:]
    warnings.showwarning = print_warning

    def command() -> object:
        _check_text(arguments)
        return cli.main(arguments, prog_name="hitl-tui", standalone_mode=False)

    code = guarded(command, arguments)
    collect_no_more()
    sys.exit(code)


def _check_text(arguments: Sequence[str]) -> None:
    """Refuse arguments that are not valid text: neither a store nor JSON could keep them."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{argument!r} is not UTF-8 text", "type it again, or rename the file") from None
