"""`demo`: the advisor workflow on scripted models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hitl_tui.cli.opening import Target, open_named
from hitl_tui.cli.options import plain_option, reviewer_option, store_option, theme_option, thread_option
from hitl_tui.cli.storage import open_for_writing
from hitl_tui.cli.tape import tape, tape_options
from hitl_tui.cli.which_thread import new_thread_id
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from hitl_tui.stores import Checkpointer


@click.command()
@thread_option
@click.option("--task", metavar="TEXT", help="What the worker shall write.")
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
    """Step through an advisor workflow; no key, no network.

    With --model it runs on a real model. A worker writes a draft, an advisor judges it, you have the
    last word on every verdict. Starts a new thread in your store unless --thread names one that is there.
    """
    from hitl_tui.cli.session import show
    from hitl_tui.config import load_settings

    def choose(opened: Checkpointer) -> Target:
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
