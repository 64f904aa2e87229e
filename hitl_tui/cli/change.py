"""`update-state`: a human's hand on a thread's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import note_option, thread_argument
from hitl_tui.cli.output import say
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

        hitl-tui update-state r1 draft="In short: yes." approved=true --note "mine"
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


async def _moved(driver: Driver, expected: int, head: int) -> StaleWriter:
    """Return a refusal that shows what has changed since the expected step."""
    from hitl_tui.view.diff_lines import changed_since

    error = StaleWriter(
        f"thread {driver.thread_id!r} is at step {head}, the edit was made on {expected}; nothing was stored",
        "look at what changed, then edit again",
    )
    error.details = await changed_since(driver, expected, head)
    return error
