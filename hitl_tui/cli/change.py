"""`update-state`, `fork` and `rerun`: a human's hand on a thread's state, and on its code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import dry_run_option, note_option, thread_argument
from hitl_tui.cli.output import emit, say
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import ExitCode, StaleWriter

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver


as_node_option = click.option("--as-node", metavar="NODE", help="Continue as if this node had written it.")


@click.command("update-state")
@thread_argument
@click.argument("values", nargs=-1, required=True, metavar="CHANNEL=JSON...")
@as_node_option
@click.option("--expected-step", type=int, metavar="N", help="Refuse the edit if the newest step is not N.")
@note_option
@on_thread(acts=True, builds=True)
async def update_state(
    opened: OpenThread,
    *,
    thread: str,
    values: tuple[str, ...],
    as_node: str | None,
    expected_step: int | None,
    note: str | None,
) -> ExitCode:
    """Set channels of a thread as one new step.

    All of them or none, checked against the graph's schemas. A value replaces the old one, without
    reducers. A text channel takes words without quotation marks too; @FILE reads several from a JSON
    object.
    """
    from hitl_tui.cli.headless import report
    from hitl_tui.engine.commands import UpdateState
    from hitl_tui.view.edits import check_edit
    from hitl_tui.view.inputs import Inputs

    given = Inputs(values, option="")
    driver = await opened.thread(thread)
    snapshot = await driver.snapshot()
    head = snapshot.progress.head
    if expected_step is not None and expected_step != head:
        raise await _moved(driver, expected_step, head)
    changes = given.for_channels(snapshot.graph)
    withdrawn = await check_edit(driver, changes, head, as_node)
    try:
        step = await driver.execute(UpdateState(changes, head, as_node, opened.settings.reviewer, note))
    except StaleWriter:
        raise await _moved(driver, head, (await driver.snapshot()).progress.head) from None
    say(*withdrawn, err=True)
    return await report(driver, as_json=opened.as_json, done=True, made_step=step)


@click.command()
@thread_argument
@click.argument("new", required=False)
@dry_run_option
@note_option
@on_thread(acts=True, builds=True)
async def rerun(
    opened: OpenThread, *, thread: str, new: str | None, dry_run: bool, note: str | None
) -> ExitCode:
    """Run a thread again in a fork, from where its code changed.

    A step is still valid while its node, its route, its questions and the reducers of what it wrote are
    unchanged. NEW is the fork's name, THREAD-b by default. First you see what changed, which nodes run again,
    which of them have side effects, and what they used last time. Then the fork runs until it waits for a
    person, fails or ends. Compare it with `hitl-tui diff THREAD NEW`.
    """
    from hitl_tui.cli.headless import print_repeats, run_on
    from hitl_tui.engine.commands import Rerun
    from hitl_tui.view.family import free_name
    from hitl_tui.view.shapes import ForkDocument

    driver = await opened.thread(thread)
    family = await driver.family()
    name = new or free_name(driver.thread_id, {relative.thread_id for relative in family})
    command = Rerun(name, opened.settings.reviewer, note)
    if dry_run or not opened.as_json:
        await print_repeats(driver, command, as_json=opened.as_json)
    if dry_run:
        return ExitCode.DONE
    fork = await opened.hub.open(await driver.execute(command))
    if opened.as_json:
        step = (await fork.snapshot()).fork_step
        emit(ForkDocument(thread=name, parent=driver.thread_id, step=step))
    return await run_on(fork, opened.settings, as_json=opened.as_json)


async def _moved(driver: Driver, expected: int, head: int) -> StaleWriter:
    """A refusal that shows what has changed since the step that was expected."""
    from hitl_tui.view.diff_lines import changed_since

    error = StaleWriter(
        f"thread {driver.thread_id!r} is at step {head}, the edit was made on {expected}; nothing was stored",
        "look at what changed, then edit again",
    )
    error.details = await changed_since(driver, expected, head)
    return error
