"""`cost`: what a thread's model calls have used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hitl_tui.cli.options import store_option, thread_argument
from hitl_tui.cli.output import emit, json_option, say
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import ExitCode

if TYPE_CHECKING:
    from hitl_tui.engine.audit.costs import Spent


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
            from hitl_tui.cli.documents import document

            emit(document("cost", thread=thread, **_tables(report)))
        else:
            say(*map(plain_text, cost_lines(report)))
        return ExitCode.DONE

    return on_thread(work, store=store)


def _tables(report: Any) -> dict[str, Any]:
    return {
        "agents": [
            {
                "agent": line.agent,
                "provider": line.provider,
                "model": line.model,
                "calls": line.calls,
                "tokens_in": line.tokens_in,
                "tokens_out": line.tokens_out,
                "cost": line.cost,
            }
            for line in report
        ],
        "nodes": [{"node": one.node, "runs": one.runs, **_spent(one.spent)} for one in report.by_node()],
        "steps": [{"step": one.step, "node": one.node, **_spent(one.spent)} for one in report.steps],
        "without_step": _spent(report.lost),
        "total": _spent(report.total),
    }


def _spent(spent: Spent) -> dict[str, Any]:
    """`cost` is null where a part of it is unknown; `cost_at_least` is the part that is known."""
    return {
        "calls": spent.calls,
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "cost": spent.cost if spent.cost_known else None,
        "cost_at_least": spent.cost,
    }
