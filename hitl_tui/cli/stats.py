"""`stats`: what the reviews in a store measure."""

from __future__ import annotations

import click

from hitl_tui.cli.output import emit, say, table
from hitl_tui.cli.thread import OpenStored, on_log
from hitl_tui.errors import ExitCode, UsageError


@click.command()
@click.option("--graph", metavar="NAME", help="Only threads of this graph.")
@click.option("--by", metavar="NAME", help="Only decisions of this person.")
@click.option("--since", metavar="TIME", help="Only since then: 7d, today, yesterday or 2026-11-20.")
@click.option("--until", metavar="TIME", help="Only up to then; a day counts to its end.")
@on_log(acts=True)
def stats(
    opened: OpenStored, *, graph: str | None, by: str | None, since: str | None, until: str | None
) -> ExitCode:
    """Count decisions, reasons, times, edits and rubric scores.

    By person and by graph. The time to decide runs from the question to the decision. A decision counts
    as edited if the person changed the thread before it, or a call's arguments with it. Deadlines,
    policies and allowances are not counted.

    Second readings show how far people agree: Cohen's kappa, and its 95 % interval for large samples. Of
    canaries, which only measure reviews, it says how many each person caught.

        hitl-tui stats --since 30d
        hitl-tui stats --graph advisor --by ann --json
    """
    from hitl_tui.drivers.measured import reviews
    from hitl_tui.view.decisions import moment_of
    from hitl_tui.view.format import capital
    from hitl_tui.view.stats import Counted, stats_of, summary, tables

    now = opened.store.now()
    try:
        first = moment_of(since, now) if since else None
        last = moment_of(until, now, end=True) if until else None
    except ValueError as error:
        raise UsageError(str(error)) from None
    found = stats_of(reviews(opened.store), opened.settings.reviewer, Counted(graph, by, first, last))
    if opened.as_json:
        from hitl_tui.cli.reports import StatsDocument

        emit(StatsDocument(stats=found))
    else:
        say(f"{capital(summary(found))}.")
        for heading, rows in tables(found):
            say("", heading, *table(rows, give=(len(rows[0]) - 1,)))
    return ExitCode.DONE
