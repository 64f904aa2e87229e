"""`rollback`: what a thread's nodes did outside of it is undone, last one first."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from hitl_tui.cli.desk import Desk, at_desk
from hitl_tui.cli.options import building_options, note_option, reviewer_option, store_option, thread_argument
from hitl_tui.cli.output import emit, json_option, say
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver, RollbackEntry


@click.command()
@thread_argument
@click.option("--dry-run", is_flag=True, help="Only show what would run, in its order.")
@click.option("--yes", is_flag=True, help="Don't ask first.")
@note_option
@building_options
@store_option
@reviewer_option
@json_option
def rollback(
    *,
    thread: str,
    dry_run: bool,
    yes: bool,
    note: str | None,
    store: str | None,
    reviewer: str | None,
    as_json: bool,
) -> int:
    """Undo what a thread's nodes did outside of it.

    Runs the handlers that the nodes left, last one first; one that fails is noted, and the others still
    run. The thread ends cancelled, with exit code 0, or failed with what remains, with 1: the next
    rollback tries that again. Without --yes it shows what will run and asks.
    """

    async def work(desk: Desk) -> ExitCode:
        from hitl_tui.cli.headless import tell_run
        from hitl_tui.view.undoing import entry_line, remaining

        driver = await desk.thread(thread)
        entries = await driver.rollback_entries()
        if not as_json:
            lines = [f"{number}. {entry_line(one)}" for number, one in enumerate(remaining(entries), 1)]
            say(*lines or ["Nothing is left to undo."])
        if dry_run or not (yes or remaining(entries)):
            return await _outcome(driver, ExitCode.DONE, as_json=as_json, dry_run=True)
        if not yes and not _agreed():
            say("Nothing was undone.", err=True)
            return ExitCode.USAGE
        actor = desk.settings.reviewer
        await tell_run(driver, lambda: driver.rollback(actor=actor, note=note), as_json=as_json)
        status = (await driver.snapshot()).progress.status
        code = ExitCode.DONE if status == "cancelled" else ExitCode.FAILED
        return await _outcome(driver, code, as_json=as_json, dry_run=False)

    return at_desk(work, store=store, reviewer=reviewer)


def _agreed() -> bool:
    """Whether the person at the terminal agrees; a program must say so with --yes."""
    if not sys.stdin.isatty():
        raise UsageError("a rollback runs handlers that reach out of the thread", "confirm it with --yes")
    return click.confirm("Run them?", default=False, err=True)


async def _outcome(driver: Driver, code: ExitCode, *, as_json: bool, dry_run: bool) -> ExitCode:
    from hitl_tui.cli.headless import standing_lines
    from hitl_tui.cli.shapes import document, standing
    from hitl_tui.view.undoing import entry_line, summary

    snapshot = await driver.snapshot()
    entries = await driver.rollback_entries()
    if as_json:
        facts: dict[str, Any] = standing(snapshot.progress)
        shown = [_shape(one) for one in entries]
        emit(
            document(
                "rollback",
                thread=driver.thread_id,
                **facts,
                dry_run=dry_run,
                entries=shown,
                exit_code=int(code),
            )
        )
    elif not dry_run:
        failed = [f"  {entry_line(one)}" for one in entries if one.state == "failed"]
        say(*standing_lines(snapshot), f"  {summary(entries)}", *failed)
    return code


def _shape(one: RollbackEntry) -> dict[str, Any]:
    return {
        "thread": one.thread or None,
        "step": one.step,
        "node": one.node,
        "handler": one.handler,
        "args": one.args,
        "state": one.state,
        "error": one.error or None,
        "attempts": one.attempts,
    }
