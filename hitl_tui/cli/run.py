"""`run`, `resume`, `demo`: a graph on screen, in plain text mode or headless."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from hitl_tui.cli.invocation import note_store
from hitl_tui.cli.langgraph import (
    open_graph_store,
    open_server_store,
    opened_graph,
    server_store,
    thread_named_on_server,
)
from hitl_tui.cli.opening import Target, open_named, thread_to_open
from hitl_tui.cli.options import (
    break_option,
    building_options,
    complete_thread,
    dry_run_option,
    durability_option,
    headless_option,
    kept_breaks_option,
    on_busy_option,
    options_as,
    plain_option,
    reviewer_option,
    server_option,
    store_option,
    stream_option,
    theme_option,
    thread_option,
)
from hitl_tui.cli.output import json_option, say
from hitl_tui.cli.storage import open_existing, open_for_writing
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hitl_tui.cli.langgraph import OpenedGraph
    from hitl_tui.cli.opening import Choose, OpenStore
    from hitl_tui.config import Settings
    from hitl_tui.stores import Checkpointer


F = TypeVar("F", bound=Callable[..., Any])


def tape_options(command: F) -> F:
    """Add the two options, for commands that run nodes."""
    command = click.option(
        "--cassette", metavar="FILE", help="Answer model calls from FILE, and fail on any that is not in it."
    )(command)
    return click.option("--record", metavar="FILE", help="Record every model call in FILE, without keys.")(
        command
    )


@contextmanager
def tape(record: str | None, cassette: str | None, *, shown: bool) -> Iterator[None]:
    """Let the agents of this process use the named file, if there is one.

    Args:
        shown: whether somebody watches, so that recorded replies arrive at their original speed.

    Raises:
        UsageError: both are given, or the file can't be used.
    """
    if record and cassette:
        raise UsageError("--record and --cassette don't go together", "give one of them")
    if not record and not cassette:
        yield
        return
    from hitl_tui.agents.cassettes import cassette as use

    with use(record or cassette or "", record=bool(record), pace=1.0 if shown else 0.0):
        yield


class RunOptions(NamedTuple):
    """Options of the command line for how, where, and by whom a thread is run."""

    store: str | None
    durability: str | None
    theme: str | None
    reviewer: str | None
    plain: bool
    headless: bool
    on_busy: str | None
    breaks: tuple[str, ...]
    kept_breaks: bool
    as_json: bool
    record: str | None
    cassette: str | None
    detach: bool
    at: str | None
    after: str | None
    priority: int | None

    def settings(self, **flags: str | None) -> Settings:
        """Return the settings of the command.

        Args:
            flags: other settings of the command line; None sets nothing.

        Raises:
            UsageError: lists every problem found.
        """
        from hitl_tui.config import load_settings

        own = {"store": self.store, "durability": self.durability, "theme": self.theme}
        return load_settings({**own, "reviewer": self.reviewer, "on_busy": self.on_busy, **flags})

    def run(self, settings: Settings, open_store: OpenStore, choose: Choose) -> int:
        """Run the chosen thread in the requested mode; return the exit code.

        Raises:
            HitlError: the options don't go together, or the thread can't be opened.
        """
        if self.detach:
            from hitl_tui.cli.detached import begins_at, run_detached

            begin = begins_at(self.at, self.after)
            return run_detached(settings, open_store, choose, begin, self.priority or 0, as_json=self.as_json)
        if self.at or self.after or self.priority is not None:
            raise UsageError("--at, --in and --priority are for workers", "give them with --detach")
        if settings.store == "memory:":
            note_store()(settings.store)
        quiet = self.headless or self.as_json
        with tape(self.record, self.cassette, shown=not quiet):
            if quiet:
                from hitl_tui.cli.headless import run_headless

                return run_headless(
                    settings,
                    open_store,
                    choose,
                    as_json=self.as_json,
                    breaks=self.breaks,
                    kept=self.kept_breaks,
                )
            from hitl_tui.cli.screen import show

            return show(settings, open_store, choose, plain=self.plain, breaks=self.breaks)


run_options = options_as(
    "how",
    RunOptions,
    store_option,
    durability_option,
    theme_option,
    reviewer_option,
    plain_option,
    headless_option,
    on_busy_option,
    stream_option,
    break_option,
    kept_breaks_option,
    json_option,
    tape_options,
    click.option("--detach", is_flag=True, help="Leave it to workers, at once and after each decision."),
    click.option(
        "--at", metavar="TIME", help="With --detach: start not before TIME, as 2026-03-01T08:00 or 08:00."
    ),
    click.option("--in", "after", metavar="SPAN", help="With --detach: start after SPAN, as 90m, 12h or 2d."),
    click.option(
        "--priority",
        type=click.IntRange(-1000, 1000),
        metavar="N",
        help="With --detach: higher priorities start first; 0 by default.",
    ),
)


@click.command()
@click.argument("graph", required=False)
@server_option
@click.option("--assistant", metavar="ID", help="Which of the server's graphs.")
@thread_option
@click.option(
    "--input",
    "inputs",
    metavar="NAME=VALUE",
    multiple=True,
    help="A first value, as JSON or text. @FILE reads several from a JSON object; {} gives none.",
)
@click.option(
    "--context",
    "context",
    metavar="NAME=VALUE",
    multiple=True,
    help="What nodes, routes and tools read as config.context (LangGraph: runtime.context), as JSON or text. "
    "@FILE reads several.",
)
@click.option(
    "--configurable",
    metavar="NAME=VALUE",
    multiple=True,
    help="What nodes of a LangGraph graph read in config['configurable'], as JSON or text.",
)
@click.option(
    "--keep-memory", is_flag=True, help="Leave a LangGraph graph the InMemorySaver it was compiled with."
)
@click.option("--model", metavar="NAME", help="Any model litellm knows, as ollama/llama3.2.")
@click.option("--api-base", metavar="URL", help="Address of the model's server.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Longest reply of a model.")
@run_options
def run(
    *,
    graph: str | None,
    server: str | None,
    assistant: str | None,
    thread: str | None,
    inputs: tuple[str, ...],
    context: tuple[str, ...],
    configurable: tuple[str, ...],
    keep_memory: bool,
    model: str | None,
    api_base: str | None,
    max_tokens: int | None,
    how: RunOptions,
) -> int:
    """Run your own workflow, with or without a screen.

    GRAPH is module:attribute, file.py or file.py:name: a StateGraph, a GraphRunner, or a function that
    returns one. It can also be a graph file (file.toml), a sample such as review, planner or order, or a
    LangGraph graph, also as langgraph.json or langgraph.json:ID. --server runs it on a LangGraph server.
    It starts a new thread unless --thread names an existing one. With --headless or --json it runs without
    a screen until something waits (exit code 3), fails (1) or ends (0).

        hitl-tui run review --input task=Hills
        hitl-tui run flow.py --model anthropic/claude-sonnet-4-5 --thread r1
        hitl-tui run flow.toml --input @first.json --headless
    """
    from hitl_tui.loading.graphs import resolve_spec
    from hitl_tui.view.inputs import Inputs

    given = Inputs(inputs)
    besides = Inputs(context, "--context ").plain() if context else None
    if configurable:
        besides = {**(besides or {}), "configurable": Inputs(configurable, "--configurable ").plain()}
    if graph is not None:
        resolve_spec(graph)
    elif server is None:
        raise UsageError("there is no graph to run", "name one, as in `hitl-tui run review`, or --server URL")
    flags = {"model": model, "api_base": api_base}
    options = {
        name: value for name, value in {**flags, "max_tokens": max_tokens}.items() if value is not None
    }
    if server and keep_memory:
        raise UsageError(
            "--keep-memory and --server don't go together",
            "the server keeps the threads: leave --keep-memory out",
        )
    own = {"store": _server(graph, server, assistant, how, options)} if server else {}
    settings = how.settings(**flags, **own)
    note = note_store()

    def open_store(settings: Settings) -> Checkpointer:
        if graph is None:
            note(settings.store)
            return open_server_store(settings)
        mirror = open_graph_store(graph, settings, options, keep_memory=keep_memory)
        if mirror is None and keep_memory:
            raise UsageError(
                f"{graph} is not a LangGraph graph", "use --store memory: in place of --keep-memory"
            )
        if mirror is None:
            return open_for_writing(settings)
        if (theirs := opened_graph(mirror)) is not None:
            note(theirs.url)
        return mirror

    def choose(opened: Checkpointer) -> Target:
        from hitl_tui.engine.log.store import new_thread_id

        defaults = {"model": settings.model, "api_base": settings.api_base}
        defaults = {name: value for name, value in defaults.items() if value is not None}
        if (theirs := opened_graph(opened)) is not None:
            name = thread_named_on_server(opened, thread) if thread else _new_name(opened, theirs)
            if thread and name != thread:
                say(f"hitl-tui: thread {thread} is {name} on the server", err=True)
            return Target(name, None, given.for_graph(theirs.info) if given else None, besides, begins=True)
        assert graph is not None
        if configurable:
            raise UsageError(f"{graph} is not a LangGraph graph: it has no configurable", "use --context")
        runner = open_named(graph, opened, options, defaults)
        name = thread or new_thread_id(opened, runner.graph.name)
        return Target(name, runner, given.for_graph(runner.graph.info) if given else None, besides)

    return how.run(settings, open_store, choose)


def _server(
    graph: str | None, server: str, assistant: str | None, how: RunOptions, options: Mapping[str, Any]
) -> str:
    """Return the URL of a server's graph as a store; raise `UsageError` for options that don't go with it."""
    if graph is not None:
        raise UsageError(
            f"{graph} and --server don't go together", "the server has the graph: --assistant ID"
        )
    if how.store is not None or options:
        besides = "--store" if how.store is not None else f"--{next(iter(options)).replace('_', '-')}"
        raise UsageError(f"{besides} and --server don't go together", "leave one out")
    return server_store(server, assistant)


def _new_name(store: Checkpointer, theirs: OpenedGraph) -> str:
    """Return a name for a new thread of a graph of LangGraph."""
    from hitl_tui.drivers.langgraph.server_names import SERVER, new_server_thread

    if SERVER in theirs.source.source:
        return new_server_thread()
    from hitl_tui.engine.log.store import new_thread_id

    return new_thread_id(store, theirs.source.name)


@click.command()
@click.argument("thread", required=False, shell_complete=complete_thread)
@dry_run_option
@building_options
@run_options
def resume(*, thread: str | None, dry_run: bool, how: RunOptions) -> int:
    """Continue a thread where it stopped.

    Without THREAD it is the one that waits for a person and changed last, or else the last unfinished one.
    With --headless or --json it runs without a screen until something waits, fails or ends. A waiting
    request stays: `answer` answers it. If a node failed or was stopped, you first see whether it has side
    effects and what it used; --dry-run shows that and runs nothing.

        hitl-tui resume
        hitl-tui resume r1 --headless
    """
    if dry_run:
        return _would_repeat(thread, how)
    # The hub mirrors a named thread of LangGraph; without a name all are searched for the one.
    open_store = partial(open_existing, part="all" if thread is None else "none")
    return how.run(how.settings(), open_store, lambda opened: Target(thread_to_open(opened, thread)))


def _would_repeat(thread: str | None, how: RunOptions) -> int:
    """Print what continuing would run again."""
    from hitl_tui.cli.headless import print_repeats
    from hitl_tui.cli.thread import OpenThread, work_on
    from hitl_tui.engine.commands import Run
    from hitl_tui.errors import ExitCode

    async def look(opened: OpenThread) -> ExitCode:
        await print_repeats(await opened.reading(thread), Run(), as_json=opened.as_json)
        return ExitCode.DONE

    return work_on(how.settings(), open_existing, look, as_json=how.as_json)


@click.command()
@thread_option
@click.option("--task", metavar="TEXT", help="What the worker writes.")
@click.option(
    "--human/--no-human", default=True, help="Whether you decide on every verdict.", show_default=True
)
@click.option(
    "--pace", type=click.FloatRange(0), default=70.0, hidden=True, help="Tokens a second; 0: at once."
)
@click.option("--seed", type=int, default=0, hidden=True, help="Of the pauses between words.")
@click.option("--model", metavar="NAME", help="A real model in place of the script, as ollama/llama3.2.")
@click.option("--api-base", metavar="URL", help="Address of the model's server.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Longest reply of the model.")
@store_option
@theme_option
@reviewer_option
@plain_option
@tape_options
def demo(
    *,
    thread: str | None,
    task: str | None,
    human: bool,
    pace: float,
    seed: int,
    model: str | None,
    api_base: str | None,
    max_tokens: int | None,
    store: str | None,
    theme: str | None,
    reviewer: str | None,
    plain: bool,
    record: str | None,
    cassette: str | None,
) -> int:
    """Step through the advisor workflow, without key or network.

    A worker writes a draft, an advisor judges it, and you decide on every verdict. --model uses a real
    model. It starts a new thread in your store unless --thread names an existing one.

        hitl-tui demo
        hitl-tui demo --task "Explain recursion" --theme presenter
    """
    from hitl_tui.cli.screen import show
    from hitl_tui.config import load_settings

    def choose(opened: Checkpointer) -> Target:
        from hitl_tui.engine.log.store import new_thread_id
        from hitl_tui.workflows.demo import TASK

        options: dict[str, Any] = {"human": human, "pace": pace, "seed": seed}
        given = {"model": model, "api_base": api_base, "max_tokens": max_tokens}
        options |= {name: value for name, value in given.items() if value is not None}
        runner = open_named("hitl_tui.workflows.demo:build", opened, options)
        name = thread or new_thread_id(opened, "demo")
        if task is None and opened.info(name) is not None:
            return Target(name, runner)
        return Target(name, runner, {"task": task or TASK})

    if model is None and (api_base is not None or max_tokens is not None):
        raise UsageError("--api-base and --max-tokens are for a real model", "name it: --model NAME")
    settings = load_settings({"store": store, "theme": theme, "reviewer": reviewer})
    with tape(record, cassette, shown=True):
        return show(settings, open_for_writing, choose, plain=plain)
