"""`step`, `rollback`: a thread's run, without a screen."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.opening import Target, find_thread
from hitl_tui.cli.options import (
    break_option,
    building_options,
    durability_option,
    kept_breaks_option,
    note_option,
    on_busy_option,
    store_option,
    stream_option,
    thread_argument,
)
from hitl_tui.cli.output import emit, json_option, say
from hitl_tui.cli.run import tape, tape_options
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver
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


@click.command()
@thread_argument
@click.option("--dry-run", is_flag=True, help="Only show what would run, in its order.")
@click.option("--yes", is_flag=True, help="Don't ask first.")
@note_option
@on_thread(acts=True, builds=True)
async def rollback(
    opened: OpenThread, *, thread: str, dry_run: bool, yes: bool, note: str | None
) -> ExitCode:
    """Undo the side effects of a thread's nodes.

    Runs the handlers that the nodes left, last one first. If one fails, that is recorded and the others
    still run. The thread ends cancelled, with exit code 0, or failed with the remaining ones, with 1; the
    next rollback tries them again. Without --yes it shows what would run, and asks.
    """
    from hitl_tui.cli.headless import print_run
    from hitl_tui.engine.commands import Rollback
    from hitl_tui.view.rollback import entry_line, remaining

    driver = await opened.thread(thread)
    entries = await driver.rollback_entries()
    if not opened.as_json:
        lines = [f"{number}. {entry_line(entry)}" for number, entry in enumerate(remaining(entries), 1)]
        say(*lines or ["Nothing is left to undo."])
    if dry_run or not (yes or remaining(entries)):
        return await _outcome(driver, ExitCode.DONE, as_json=opened.as_json, dry_run=True)
    if not yes and not _agreed():
        say("Nothing was undone.", err=True)
        return ExitCode.USAGE
    await print_run(driver, Rollback(opened.settings.reviewer, note), opened.settings, as_json=opened.as_json)
    status = (await driver.snapshot()).progress.status
    code = ExitCode.DONE if status == "cancelled" else ExitCode.FAILED
    return await _outcome(driver, code, as_json=opened.as_json, dry_run=False)


def _agreed() -> bool:
    """Ask the person at the terminal to agree; a program must say so with --yes."""
    if not sys.stdin.isatty():
        raise UsageError("rolling back runs handlers with side effects", "confirm it with --yes")
    return click.confirm("Run them?", default=False, err=True)


async def _outcome(driver: Driver, code: ExitCode, *, as_json: bool, dry_run: bool) -> ExitCode:
    from hitl_tui.cli.headless import standing_lines
    from hitl_tui.cli.reports import RollbackDocument
    from hitl_tui.view.rollback import entry_line, summary

    snapshot = await driver.snapshot()
    entries = await driver.rollback_entries()
    if as_json:
        emit(
            RollbackDocument(
                thread=driver.thread_id,
                progress=snapshot.progress,
                dry_run=dry_run,
                entries=tuple(entries),
                exit_code=int(code),
            )
        )
    elif not dry_run:
        failed = [f"  {entry_line(entry)}" for entry in entries if entry.state == "failed"]
        say(*standing_lines(snapshot), f"  {summary(entries)}", *failed)
    return code
