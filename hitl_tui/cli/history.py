"""`find`, `when`, `values`: questions about the log of a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hitl_tui.cli.options import complete_thread, thread_argument
from hitl_tui.cli.output import emit, progress, say, table
from hitl_tui.cli.thread import OpenStored, on_log
from hitl_tui.errors import ExitCode

if TYPE_CHECKING:
    from hitl_tui.drivers.history import SearchHit


@click.command()
@thread_argument
@click.argument("text")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many to show.")
@on_log()
def find(opened: OpenStored, *, thread: str, text: str, limit: int) -> ExitCode:
    """Search all steps of a thread for a text, newest first.

    Searches what nodes and people wrote to channels, what was printed and streamed, tool calls, notes,
    decisions and errors. Capitals do not matter, and private values are never searched. Exit code 1 if
    nothing matches.

        hitl-tui find r1 b.csv
        hitl-tui find r1 'n/a' --limit 5 --json
    """
    from hitl_tui.drivers.history import search
    from hitl_tui.view.format import count
    from hitl_tui.view.hits import hit_line
    from hitl_tui.view.lines import name
    from hitl_tui.view.spans import plain_text

    reading = opened.thread(thread)
    hits: list[SearchHit] = []
    looked = 0

    with progress("looking", as_json=opened.as_json) as watch:

        def print_hits(some: tuple[SearchHit, ...], steps: int, of: int) -> None:
            nonlocal looked
            hits.extend(some)
            looked = steps
            if watch:
                watch(steps, of)
            if len(hits) >= limit:
                raise _Enough

        try:
            search(reading.logged, opened.store, text, print_hits)
        except _Enough:
            del hits[limit:]
    if opened.as_json:
        from hitl_tui.cli.reports import FindDocument

        emit(FindDocument(thread=reading.thread_id, text=text, looked=looked, hits=tuple(hits)))
    else:
        rows = [(str(hit.step), name(hit.node), plain_text(hit_line(hit))) for hit in hits]
        say(*table([("step", "node", "what"), *rows], prose=True) if rows else ())
        more = f"; there may be more: --limit {2 * limit}" if len(hits) == limit else ""
        say(f"{count(len(hits), 'place')} in {count(looked, 'step')}{more}", err=True)
    return ExitCode.DONE if hits else ExitCode.FAILED


class _Enough(Exception):
    """As many places were found as were wanted."""


@click.command()
@thread_argument
@click.argument("expression")
@click.option("--first", is_flag=True, help="Find only the first such step.")
@click.option("--monotone", is_flag=True, help="Once true, it stays true: find the first step by bisection.")
@on_log()
def when(opened: OpenStored, *, thread: str, expression: str, first: bool, monotone: bool) -> ExitCode:
    """Find the steps at which a condition became true.

    EXPRESSION is as in breakpoints: score == null, len(facts) > 3, facts[-1].source == "b.csv". The log is
    read once, and only for the channels that it names. An undefined condition counts as false. Exit code 1
    if it is never true.

        hitl-tui when r1 'score == null'
        hitl-tui when r1 'n > 100' --monotone
    """
    from hitl_tui.drivers.history import ask, bisect
    from hitl_tui.view.hits import answer_line, moment_line
    from hitl_tui.view.lines import name
    from hitl_tui.view.spans import plain_text

    reading = opened.thread(thread)
    if monotone:
        answer = bisect(reading.logged, opened.store, expression)
    else:
        with progress("looking", as_json=opened.as_json) as watch:

            def report(_moments: Any, looked: int, of: int) -> None:
                if watch:
                    watch(looked, of)

            answer = ask(reading.logged, opened.store, expression, report, first=first)
    if opened.as_json:
        from hitl_tui.cli.reports import WhenDocument

        emit(WhenDocument(thread=reading.thread_id, expression=expression, answer=answer))
    else:
        rows = [
            (str(moment.step), name(moment.actor or moment.node), plain_text(moment_line(moment)))
            for moment in answer.moments
        ]
        say(*table([("step", "by", "what"), *rows], prose=True) if rows else ())
        say(answer_line(answer), err=True)
    return ExitCode.DONE if answer.moments else ExitCode.FAILED


_STRIP = 60


@click.command()
@click.argument("place", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@click.argument("expressions", metavar="EXPRESSION...", nargs=-1, required=True)
@click.option(
    "--steps",
    type=click.IntRange(1, 10_000),
    default=_STRIP,
    show_default=True,
    help="How many steps to show.",
)
@on_log()
def values(opened: OpenStored, *, place: str, expressions: tuple[str, ...], steps: int) -> ExitCode:
    """Show the values of expressions over the run, up to a step.

    Each as a strip of blocks, or of letters for texts, with its value at the step; · is null, ? is
    undefined. A longer run is sampled evenly.

        hitl-tui values r1 score 'len(facts)'
        hitl-tui values r1@40 draft --json
    """
    from hitl_tui.cli.inputs import logged_place
    from hitl_tui.drivers.expressions import check_expression
    from hitl_tui.drivers.history import series
    from hitl_tui.view.format import inline
    from hitl_tui.view.lines import name
    from hitl_tui.view.spans import plain_text
    from hitl_tui.view.strips import strip

    at = logged_place(opened, place)
    for text in expressions:
        check_expression(text, at.thread.graph.channels)
    all_samples = series(at.thread.logged, opened.store, expressions, at.step, steps)
    if opened.as_json:
        from hitl_tui.cli.reports import Series, ValuesDocument

        shown = tuple(Series(text, samples) for text, samples in zip(expressions, all_samples, strict=True))
        emit(ValuesDocument(thread=at.thread.thread_id, step=at.step, series=shown))
        return ExitCode.DONE
    rows = []
    for text, samples in zip(expressions, all_samples, strict=True):
        newest = samples[-1]
        value = f"unknown: {newest.why}" if newest.why else inline(newest.value, 40)
        rows.append((name(text), value, plain_text(strip(samples, _STRIP))))
    say(*table(rows))
    return ExitCode.DONE
