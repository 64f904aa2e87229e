"""`step`: a thread's run, without a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hitl_tui.cli.opening import Target, find_thread
from hitl_tui.cli.options import (
    break_option,
    building_options,
    durability_option,
    kept_breaks_option,
    on_busy_option,
    store_option,
    stream_option,
    thread_argument,
)
from hitl_tui.cli.output import json_option
from hitl_tui.cli.run import tape, tape_options
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from hitl_tui.stores import Checkpointer


@click.command()
@thread_argument
@building_options
@store_option
@durability_option
@json_option
@tape_options
@on_busy_option
@stream_option
@break_option
@kept_breaks_option
@click.option(
    "--into", is_flag=True, help="Step into a subgraph: start its thread, and pause before its first node."
)
@click.option(
    "--out", is_flag=True, help="Step out of a subgraph: finish its thread and the node that runs it."
)
@click.option("--to", metavar="NODE", help="Run on, and stop before this node.")
def step(
    *,
    thread: str,
    on_busy: str | None,
    breaks: tuple[str, ...],
    kept_breaks: bool,
    into: bool,
    out: bool,
    to: str | None,
    store: str | None,
    durability: str | None,
    as_json: bool,
    record: str | None,
    cassette: str | None,
) -> int:
    """Run one node of a thread.

    Exit code 0: the node is done, and the thread can continue or has ended; 3: something waits for a
    person; 1: the node failed.

        hitl-tui step r1
    """
    from hitl_tui.cli.headless import run_headless
    from hitl_tui.cli.opening import owner_of
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.engine.commands import Run, Step

    if into + out + (to is not None) > 1:
        raise UsageError("--into, --out and --to don't go together", "give one of them")

    def choose(opened: Checkpointer) -> Target:
        thread_id = find_thread(opened, thread)
        return Target(owner_of(opened, thread_id) if out else thread_id)

    with tape(record, cassette, shown=False):
        return run_headless(
            load_settings({"store": store, "durability": durability, "on_busy": on_busy}),
            open_existing,
            choose,
            breaks=breaks if to is None else (*breaks, to),
            kept=kept_breaks,
            command=Run if to is not None else lambda points: Step(into, points),
            as_json=as_json,
        )
