"""`worker`, `workers`: run the threads of a team, and list who runs them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.opening import observer_of, open_named
from hitl_tui.cli.options import durability_option, store_option
from hitl_tui.cli.output import emit, json_option, keep_nodes_apart, one_line, say, table
from hitl_tui.cli.storage import open_existing
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.stores import Checkpointer
    from hitl_tui.stores.postgres.jobs import PostgresJobs


def jobs_of(store: Checkpointer) -> PostgresJobs:
    """Return the jobs of a store.

    Raises:
        UsageError: the store has no workers.
    """
    jobs = store.jobs()
    if jobs is None:
        raise UsageError("only a store in PostgreSQL has workers", "name one: --store postgresql://…")
    from hitl_tui.stores.postgres.jobs import PostgresJobs

    assert isinstance(jobs, PostgresJobs)
    return jobs


@click.command()
@click.option(
    "--graph",
    "graphs",
    metavar="GRAPH",
    multiple=True,
    required=True,
    help="A graph to run; repeatable.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=4,
    show_default=True,
    metavar="N",
    help="How many threads to run at once.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a running node may continue once the worker is told to stop.",
)
@store_option
@durability_option
def worker(
    *, graphs: tuple[str, ...], concurrency: int, grace: float, store: str | None, durability: str | None
) -> ExitCode:
    """Run threads that were left to workers.

    Each runs to its next stop, until a signal ends the worker. The worker runs only the graphs that you
    name; threads of other graphs or versions wait for a worker that has them. SIGTERM and ctrl+c let
    running nodes finish; a second one stops them.

        hitl-tui worker --store postgresql://walt@db/team --graph flow.py --graph my.flows:build
    """
    import asyncio
    import signal
    from contextlib import closing

    from hitl_tui.cli.logs import start_log
    from hitl_tui.config import load_settings

    try:
        from hitl_tui.team.workers.worker import Worker
    except ImportError as error:
        raise UsageError("a worker takes procrastinate", "install hitl-tui[team]") from error
    settings = load_settings({"store": store, "durability": durability})
    start_log()
    keep_nodes_apart()

    async def work(opened: Checkpointer) -> None:
        jobs = jobs_of(opened)
        if not jobs.exist():
            jobs.make()
        runners = {}
        for spec in graphs:
            runner = open_named(spec, opened)
            runners[runner.graph.digest] = runner
            say(f"{spec}: graph {one_line(runner.graph.name)} {runner.graph.digest[:12]}")
        at_work = Worker(
            opened, jobs, runners, concurrency=concurrency, grace=grace, report=_report,
            observe=observer_of(settings),
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, at_work.stop)
        await at_work.run()

    with closing(open_existing(settings)) as opened:
        asyncio.run(work(opened))
    return ExitCode.DONE


def _report(line: str) -> None:
    say(f"{time.strftime('%H:%M:%S')} {one_line(line, 400)}")


@click.command()
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many to show."
)
@store_option
@json_option
def workers(*, limit: int, store: str | None, as_json: bool) -> None:
    """Show which worker runs what, and what is queued.

    Threads that no worker can run are listed with the reason.

        hitl-tui workers --store postgresql://ann@db/team
    """
    from contextlib import closing

    from hitl_tui.config import load_settings

    with closing(open_existing(load_settings({"store": store}))) as opened:
        work = jobs_of(opened).at_work(limit)
    if as_json:
        from hitl_tui.cli.reports import WorkersDocument

        emit(
            WorkersDocument(
                workers=work.workers, jobs=work.jobs, orphans=work.orphans,
                running=work.running, queued=work.queued, later=work.later,
            )
        )  # fmt: skip
        return
    from hitl_tui.view.jobs import job_rows, orphan_words, summary_words, worker_rows

    say(f"{summary_words(work)}", *map(orphan_words, work.orphans), "")
    if work.workers:
        say(*table(worker_rows(work.workers, work.jobs, work.now), give=(5, 1)), "")
    if work.jobs:
        say(*table(job_rows(work.jobs, work.now, work.workers), give=(1, 0), prose=True))
    if len(work.jobs) < work.running + work.queued + work.later:
        say(f"(the first {limit}; --limit for more)")
