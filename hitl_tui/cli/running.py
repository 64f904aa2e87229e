"""`step`, `pause`, `extend`, `cancel`: a thread's run, without a screen."""

from __future__ import annotations

import click

from hitl_tui.cli.desk import Desk, at_desk
from hitl_tui.cli.opening import Target
from hitl_tui.cli.options import (
    building_options,
    durability_option,
    note_option,
    reviewer_option,
    store_option,
    thread_argument,
)
from hitl_tui.cli.output import json_option, say
from hitl_tui.cli.tape import tape, tape_options
from hitl_tui.cli.which_thread import find_thread
from hitl_tui.errors import ExitCode


@click.command()
@thread_argument
@building_options
@store_option
@durability_option
@json_option
@tape_options
def step(
    *,
    thread: str,
    store: str | None,
    durability: str | None,
    as_json: bool,
    record: str | None,
    cassette: str | None,
) -> int:
    """Run one node of a thread.

    Exit code 0: the node is done, and the thread can go on or has ended; 3: something waits for a
    human; 1: the node failed.
    """
    from hitl_tui.cli.headless import run_headless
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings

    with tape(record, cassette, shown=False):
        return run_headless(
            load_settings({"store": store, "durability": durability}),
            open_existing,
            lambda opened: Target(find_thread(opened, thread)),
            once=True,
            as_json=as_json,
        )


@click.command()
@thread_argument
@note_option
@click.option(
    "--wait",
    type=click.FloatRange(0, 86_400),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for it to be paused.",
)
@store_option
@reviewer_option
@json_option
def pause(
    *, thread: str, note: str | None, wait: float, store: str | None, reviewer: str | None, as_json: bool
) -> int:
    """Pause a thread, whichever process runs it.

    One that another process runs is asked to pause: it does at its next node boundary, and the log says
    who asked. Exit code 4 where it still runs when the waiting is over; what was asked stays asked. One
    whose process has died is taken over and left paused.
    """

    async def work(desk: Desk) -> ExitCode:
        from hitl_tui.cli.headless import report
        from hitl_tui.drivers.holding import ask_to_pause
        from hitl_tui.errors import ThreadBusy

        name = find_thread(desk.store, thread)
        actor = desk.settings.reviewer
        holder = await ask_to_pause(desk.store, name, actor=actor, note=note, patience=wait)
        if holder:
            raise ThreadBusy(
                f"thread {name!r} is still run by {holder}, which was asked to pause",
                "it pauses when the node in flight is done; a program of its own that calls the engine "
                "does not listen: end that one",
            )
        driver = await desk.thread(name)
        if notice := (await driver.snapshot()).notice:
            say(notice, err=True)
        return await report(driver, as_json=as_json, done=True)

    return at_desk(work, store=store, reviewer=reviewer)


@click.command()
@thread_argument
@click.argument("limits", nargs=-1, required=True, metavar="LIMIT=NUMBER...")
@note_option
@building_options
@store_option
@reviewer_option
@json_option
def extend(
    *,
    thread: str,
    limits: tuple[str, ...],
    note: str | None,
    store: str | None,
    reviewer: str | None,
    as_json: bool,
) -> int:
    """Raise limits, so that a thread stopped by one can go on.

    LIMIT is max_iterations, max_tokens, max_cost_usd or max_seconds; "none" takes one away.
    """
    from hitl_tui.plain.answers import read_limit

    wanted = dict(map(read_limit, limits))

    async def work(desk: Desk) -> ExitCode:
        from hitl_tui.cli.headless import report

        driver = await desk.thread(thread)
        await driver.extend_limits(wanted, actor=desk.settings.reviewer, note=note)
        return await report(driver, as_json=as_json, done=True)

    return at_desk(work, store=store, reviewer=reviewer)


@click.command()
@thread_argument
@note_option
@store_option
@reviewer_option
@json_option
def cancel(thread: str, note: str | None, store: str | None, reviewer: str | None, as_json: bool) -> int:
    """End a thread for good, as cancelled by you.

    What is committed stays; a fork can go on from any of its steps.
    """

    async def work(desk: Desk) -> ExitCode:
        from hitl_tui.cli.headless import report

        driver = await desk.thread(thread)
        await driver.cancel(actor=desk.settings.reviewer, note=note)
        return await report(driver, as_json=as_json, done=True)

    return at_desk(work, store=store, reviewer=reviewer)
