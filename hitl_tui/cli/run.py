"""`run`: a graph of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hitl_tui.cli.opening import Target, open_named
from hitl_tui.cli.options import thread_option
from hitl_tui.cli.run_options import RunOptions, run_options
from hitl_tui.cli.storage import open_for_writing
from hitl_tui.cli.which_thread import new_thread_id

if TYPE_CHECKING:
    from hitl_tui.stores import Checkpointer


@click.command()
@click.argument("graph")
@thread_option
@click.option(
    "--input",
    "inputs",
    metavar="NAME=VALUE",
    multiple=True,
    help="A first value; JSON where it is JSON. @FILE reads several from a JSON object.",
)
@click.option("--model", metavar="NAME", help="Any model litellm knows, as ollama/llama3.2.")
@click.option("--api-base", metavar="URL", help="Address of the model's server.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Longest reply of a model.")
@run_options
def run(
    *,
    graph: str,
    thread: str | None,
    inputs: tuple[str, ...],
    model: str | None,
    api_base: str | None,
    max_tokens: int | None,
    how: RunOptions,
) -> int:
    """Run a workflow of your own, on screen or without.

    GRAPH is module:attribute, file.py or file.py:name: a StateGraph, a GraphRunner, or a function
    that returns one; or a graph file, file.toml; or the name of a sample, such as review, planner or
    order. Starts a new thread unless --thread names one that is there. With --headless, or --json,
    it runs without a screen until something waits (exit code 3), fails (1) or ends (0).
    """
    from hitl_tui.cli.inputs import Inputs
    from hitl_tui.loading.graphs import resolve_spec

    given = Inputs(inputs)
    resolve_spec(graph)
    flags = {"model": model, "api_base": api_base}
    settings = how.settings(**flags)

    def choose(opened: Checkpointer) -> Target:

        options = {
            name: value for name, value in {**flags, "max_tokens": max_tokens}.items() if value is not None
        }
        defaults = {"model": settings.model, "api_base": settings.api_base}
        defaults = {name: value for name, value in defaults.items() if value is not None}
        runner = open_named(graph, opened, options, defaults)
        name = thread or new_thread_id(opened, runner.graph.name)
        return Target(name, runner, given.for_graph(runner.graph.info) if given else None)

    return how.run(settings, open_for_writing, choose)
