"""Lists in plain text mode: threads, workers, graphs to start a thread of, items of the long-term store."""

from __future__ import annotations

from collections.abc import Sequence

from hitl_tui.loading.known import KnownGraph
from hitl_tui.plain.context import Context
from hitl_tui.plain.running import begin, look
from hitl_tui.view.items import MOST, item_lines
from hitl_tui.view.jobs import job_words, orphan_words, summary_words, worker_words
from hitl_tui.view.lines import name, short_id, spans

_THREADS = 20


def list_threads(context: Context, typed: str) -> None:
    """List the threads; words filter by name."""
    within = None if typed else ""
    for row in context.run(context.hub.threads(typed, _THREADS, within=within)):
        waits = f", waits for {name(row.waiting_for)}" if row.waiting_for else ""
        inside = f", inside {short_id(row.info.owner.thread_id)}" if row.info.owner else ""
        inside += f", {row.inside:,} inside it" if row.inside else ""
        job = f", {job_words(row.job, context.hub.now())}" if row.job else ""
        context.console.say(
            f"{short_id(row.info.thread_id)}: {row.status}, step {row.head}{waits}{inside}{job}"
        )


def list_workers(context: Context) -> None:
    """List who runs threads, what each runs, what is queued, and what nobody can run."""
    if why := context.hub.no_workers:
        context.console.say(f"There are no workers: {why}.")
        return
    work = context.run(context.hub.at_work(_THREADS))
    context.console.say(summary_words(work), *map(orphan_words, work.orphans))
    for worker in work.workers:
        context.console.say(f"Worker {worker.id}: {worker_words(worker, work)}.")
    for job in work.jobs:
        context.console.say(
            f"{short_id(job.thread)} of {name(job.graph)}: {job_words(job, work.now, work.workers)}."
        )


def new_thread(context: Context, typed: str) -> None:
    """Start a thread of a graph by its number, or list the known graphs; words filter by name."""
    if typed.isdigit() and 1 <= int(typed) <= len(context.graphs):
        graph = context.graphs[int(typed) - 1]
        context.open(context.run(context.hub.start(graph, context.actor)))
        begin(context)
        look(context)
        return
    known: Sequence[KnownGraph] = context.run(context.hub.known_graphs())
    listed = context.graphs = tuple(graph for graph in known if graph.matches(typed))
    for number, graph in enumerate(listed, 1):
        context.console.say(f"{number}. {name(graph.name)}: {name(graph.origin)}")
    context.console.say("N and a number starts one." if listed else "No graph matches.")


def list_items(context: Context, typed: str) -> None:
    """List the items of the graph's long-term store that contain the words, a line each."""
    if why := context.hub.no_items:
        context.console.say(f"There are no items: {why}.")
        return
    items = context.run(context.hub.items((), typed, MOST))
    if not items:
        context.console.say("No item matches." if typed else "The store is empty.")
    context.console.say(*spans(item_lines(items)))
