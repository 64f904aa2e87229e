"""`diff`: two steps, threads or forks, channel by channel."""

from __future__ import annotations

import click

from hitl_tui.cli.desk import Desk, at_desk
from hitl_tui.cli.options import complete_thread, store_option
from hitl_tui.cli.output import emit, json_option, say
from hitl_tui.errors import ExitCode


@click.command()
@click.argument("a", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@click.argument("b", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@store_option
@json_option
def diff(a: str, b: str, store: str | None, as_json: bool) -> int:
    """Compare two steps, threads or forks, channel by channel.

    Without @STEP the newest step is meant. Private channels are named, not compared.
    """

    async def work(desk: Desk) -> ExitCode:
        from hitl_tui.cli.places import open_place
        from hitl_tui.cli.shapes import document
        from hitl_tui.plain.differing import compared, diff_lines

        left, right = await open_place(desk, a, reading=True), await open_place(desk, b, reading=True)
        before, after = await left.driver.state_at(left.step), await right.driver.state_at(right.step)
        rows = compared(before, after)
        if as_json:
            places = [{"thread": one.driver.thread_id, "step": one.step} for one in (left, right)]
            equal = all(row["change"] in ("same", "private") for row in rows)
            emit(document("diff", a=places[0], b=places[1], equal=equal, channels=rows))
        else:
            say(f"--- {left.name}", f"+++ {right.name}", *diff_lines(rows))
        return ExitCode.DONE

    return at_desk(work, store=store)
