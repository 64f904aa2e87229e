"""`cost`: what a thread's model calls have used."""

from __future__ import annotations

import click

from hitl_tui.cli.options import store_option, thread_argument
from hitl_tui.cli.output import emit, json_option, say
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import ExitCode


@click.command()
@thread_argument
@store_option
@json_option
def cost(thread: str, store: str | None, as_json: bool) -> int:
    """Show what a thread has cost: by agent, by node and by step.

    Attempts that failed count too. A price that nobody knows is unknown, never 0.
    """

    async def work(desk: OpenThread) -> ExitCode:
        from hitl_tui.engine.audit.costs import CostReport
        from hitl_tui.view.costs import cost_lines
        from hitl_tui.view.spans import plain_text

        driver = await desk.reading(thread)
        points = await driver.history(limit=1 << 31)
        report = CostReport(reversed(points), (await driver.snapshot()).progress.uses)
        if as_json:
            from hitl_tui.cli.shapes import CostDocument

            emit(
                CostDocument(
                    thread=thread,
                    agents=tuple(report),
                    nodes=tuple(report.by_node()),
                    steps=report.steps,
                    without_step=report.lost,
                    total=report.total,
                )
            )
        else:
            say(*map(plain_text, cost_lines(report)))
        return ExitCode.DONE

    return on_thread(work, store=store)
