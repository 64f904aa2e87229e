"""`threads`: what is in a store."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.invocation import given_stores
from hitl_tui.cli.langgraph import listed, server_store, waiting_in_mirrors
from hitl_tui.cli.options import server_option, stores_option
from hitl_tui.cli.output import emit, json_option, say, table
from hitl_tui.drivers.node_streams import own_out
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hitl_tui.cli.inbox import InboxStore
    from hitl_tui.config import Settings
    from hitl_tui.drivers.protocol import SourceState
    from hitl_tui.engine.log.threads import ThreadSummary
    from hitl_tui.stores import Checkpointer
    from hitl_tui.view.queue import QueueRow, QueueView
    from hitl_tui.view.queue_facts import WaitingRequest

_HEADINGS = ("THREAD", "ORIGIN", "GRAPH", "STATUS", "STEP", "WAITS FOR", "LAST", "CHANGED")
_GIVE = ("WAITS FOR", "ORIGIN", "GRAPH", "LAST", "THREAD")
"""Columns that are cut on a narrow terminal: the question first, the name of the thread last."""
_WIDE_ONLY = ("ORIGIN", "LAST")
_WIDE = 100
_QUEUE_HEADINGS = ("ASKS", "THREAD", "GRAPH", "WAITS", "DUE", "RISK", "NOTES", "ABOUT")
_MORE = "there are more than {:,}: name a part of one, or give --limit"


@click.command()
@click.argument("query", default="")
@click.option("--waiting", is_flag=True, help="Show the queue, most urgent first.")
@click.option("--filter", "wanted", metavar="TEXT", help='Filter the queue, as "graph:advisor due:today".')
@click.option("--sort", metavar="COLUMN", help="Sort the queue by waits, due, risk, votes, graph, ...")
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@click.option("--inside", is_flag=True, help="Also list the threads of subgraphs.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many to show."
)
@server_option
@click.option("--assistant", metavar="ID", help="Which of the server's graphs.")
@stores_option
@json_option
def threads(
    *,
    query: str,
    waiting: bool,
    wanted: str | None,
    sort: str | None,
    reverse: bool,
    inside: bool,
    limit: int,
    server: str | None,
    assistant: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """List the threads of a store.

    Last changed first. Subgraphs of a thread are counted, and listed below it with --inside. With QUERY,
    only threads whose name contains it. --waiting lists requests, one a row. A filter has words and graph:
    thread: title: goal: risk: due: waits: votes: claimed: handed: back: open: form: asks: source:, and "-"
    before one excludes it.

        hitl-tui threads
        hitl-tui threads --waiting
        hitl-tui threads --waiting --store support.db --store finance.db
        hitl-tui threads report --limit 5
    """
    from hitl_tui.config import load_settings

    if server is not None:
        if store is not None:
            raise UsageError("--store and --server don't go together", "leave one out")
        store = server_store(server, assistant)
    settings = load_settings({"store": store})
    if waiting and not inside:
        from hitl_tui.cli.inbox import inbox_stores

        stores = inbox_stores(settings) if server is None else ()
        _queue(stores, settings, query, limit, _queue_view(wanted, sort, reverse=reverse), as_json=as_json)
        return
    if len(given_stores()) > 1:
        raise UsageError("several stores have one queue, not one list", "give --waiting, or one --store")
    if wanted is not None or sort is not None or reverse:
        raise UsageError("--filter, --sort and --reverse are for the queue", "give them with --waiting")
    rows, now = _rows(settings, query, limit + 1, inside=inside, waiting=waiting)
    shown, more = rows[:limit], len(rows) > limit
    if as_json:
        from hitl_tui.cli.reports import ThreadsDocument

        summaries = tuple(summary for summary, _ in shown)
        emit(ThreadsDocument(threads=summaries, more=more, requests=_requests(settings, summaries)))
        return
    if not shown:
        none = "no thread waits for a human" if waiting else "no thread matches"
        say(none if query or waiting else _no_thread(settings), err=True)
    else:
        say(*_table([_row(summary, depth, now, count=not inside) for summary, depth in shown]))
    if more:
        say(_MORE.format(limit), err=True)
    _print_mirrors(settings)


def _requests(settings: Settings, shown: Sequence[ThreadSummary]) -> tuple[WaitingRequest, ...]:
    """Return the requests of these threads, the most urgent first."""
    from hitl_tui.view.queue import QueueView, fact_of

    wait = {summary.info.thread_id for summary in shown if summary.waiting_since is not None}
    rows, now = _waiting(settings) if wait else ((), 0)
    theirs = [row for row in rows if row.name in wait]
    me, looked = settings.reviewer, _last_look(settings)
    return tuple(fact_of(row, now, me, looked) for row in QueueView().shown(theirs, now, me))


def _last_look(settings: Settings) -> int | None:
    """Return when the person last left the queue."""
    from hitl_tui.config import queue_looks_file
    from hitl_tui.view.queue_kept import last_look

    return last_look(queue_looks_file(), settings.reviewer)


def _print_mirrors(settings: Settings, shown: Sequence[InboxStore] = ()) -> None:
    """Print where threads of LangGraph wait, which are in other stores; nothing if a store was named.

    Args:
        shown: the stores of the inbox, whose requests are listed.
    """
    if settings.origins["store"] == "flag":
        return
    from shlex import quote

    for url, number in waiting_in_mirrors().items():
        if url in [store.url for store in shown]:
            continue
        wait = "thread of LangGraph waits" if number == 1 else "threads of LangGraph wait"
        say(f"{number:,} {wait} elsewhere: hitl-tui threads --waiting --store {quote(url)}", err=True)


def _no_thread(settings: Settings) -> str:
    from hitl_tui.cli.langgraph import run_command
    from hitl_tui.stores.opening import without_password

    store = settings.store
    if known := run_command(store):
        return f"no thread yet in {without_password(store)}; `{known}` makes one"
    commands = "`hitl-tui demo` makes one; `hitl-tui run GRAPH` runs your own graph"
    return f"no thread yet in {without_password(store)}; {commands}"


def _queue_view(wanted: str | None, sort: str | None, *, reverse: bool) -> QueueView:
    """Return the filter and order of the queue; raise `UsageError` if one can't be parsed."""
    from hitl_tui.view.queue import QueueView, read_filter, read_sort

    if problems := read_filter(wanted or "").problems:
        raise UsageError(problems[0], 'as in --filter "graph:advisor risk:high due:today words"')
    return QueueView(wanted or "", read_sort(sort or "urgency"), reverse)


def _queue(
    stores: Sequence[InboxStore],
    settings: Settings,
    query: str,
    limit: int,
    view: QueueView,
    *,
    as_json: bool,
) -> None:
    """Print the waiting requests, as on the screen of the queue.

    Args:
        stores: those of the inbox; () for the store of the settings alone.
    """
    from hitl_tui.cli.inbox import read_inbox
    from hitl_tui.view.queue import about_words, due_words, fact_of, notes_words, source_problems, span_words
    from hitl_tui.view.sanitise import sanitise_line

    me = settings.reviewer
    sources: Sequence[SourceState] = ()
    waits: Sequence[QueueRow]
    if stores:
        waits, sources, now = read_inbox(stores)
    else:
        waits, now = _waiting(settings)
    named = [row for row in waits if query.lower() in row.name.lower()]
    rows = view.shown(named, now, me)
    shown, more = rows[:limit], len(rows) > limit
    if as_json:
        from hitl_tui.cli.reports import ThreadsDocument

        summaries = {row.thread_key: row.thread for row in shown}
        looked = _last_look(settings)
        facts = tuple(fact_of(row, now, me, looked) for row in shown)
        threads = tuple(summaries.values())
        emit(ThreadsDocument(threads=threads, more=more, requests=facts, sources=tuple(sources)))
        return
    if problems := source_problems(sources):
        say(*problems, err=True)
    if not shown:
        which = " that matches" if query or view.filter else ""
        say(f"no thread{which} waits for a human", err=True)
        _print_mirrors(settings, stores)
        return
    cells = [
        (
            row.title,
            sanitise_line(row.name, 60),
            sanitise_line(row.graph, 60),
            span_words(max(now - row.since, 0)),
            due_words(row, now) or "-",
            "high" if row.high_risk else "normal",
            notes_words(row, now, me) or "-",
            about_words(row) or "-",
        )
        for row in shown
    ]
    say(*table([_QUEUE_HEADINGS, *cells], give=(7, 6, 0, 2, 1)))
    if more:
        say(_MORE.format(limit), err=True)
    _print_mirrors(settings, stores)


def _waiting(settings: Settings) -> tuple[Sequence[QueueRow], int]:
    """Return all waiting requests, and the store's time."""
    from hitl_tui.cli.langgraph import still_waiting
    from hitl_tui.cli.storage import open_if_made
    from hitl_tui.view.queue import MOST, rows_of

    opened = open_if_made(settings, part="waiting")
    if opened is None:
        return (), 0
    with closing(opened):
        return rows_of(still_waiting(opened, opened.waiting(MOST))), opened.now()


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    from hitl_tui.view.lines import columns_beside

    narrow = own_out().isatty() and columns_beside(0) < _WIDE
    kept = [at for at, name in enumerate(_HEADINGS) if not (narrow and name in _WIDE_ONLY)]
    shown = [tuple(row[at] for at in kept) for row in (_HEADINGS, *rows)]
    return table(shown, give=[shown[0].index(name) for name in _GIVE if name in shown[0]])


def _rows(
    settings: Settings, query: str, limit: int, *, inside: bool, waiting: bool
) -> tuple[list[tuple[ThreadSummary, int]], int]:
    """Return the threads, each with the number of threads inside it, and the store's time."""
    from hitl_tui.cli.storage import open_if_made
    from hitl_tui.engine.log.store import all_threads

    opened = open_if_made(settings, part="waiting" if waiting else "none")
    if opened is None:
        return [], 0
    with closing(opened):
        theirs = None if waiting else listed(opened, query, limit, None if query else "")
        top: Iterable[ThreadSummary] = theirs or all_threads(opened, query, None if query else "")
        rows = _nested(opened, top, 0 if inside and not query else None)
        rows = (row for row in rows if not waiting or row[0].waiting_since is not None)
        return list(islice(rows, limit)), opened.now()


def _nested(
    store: Checkpointer, threads: Iterable[ThreadSummary], depth: int | None
) -> Iterator[tuple[ThreadSummary, int]]:
    """Return threads, each with the number of threads inside; with a depth, also what is inside each."""
    from hitl_tui.engine.log.store import all_threads

    for summary in threads:
        yield summary, depth or 0
        if summary.inside and depth is not None:
            yield from _nested(store, all_threads(store, within=summary.info.thread_id), depth + 1)


def _row(summary: ThreadSummary, depth: int, now: int, *, count: bool) -> tuple[str, ...]:
    from hitl_tui.view.format import ago
    from hitl_tui.view.jobs import job_words
    from hitl_tui.view.sanitise import sanitise_line

    info = summary.info
    origin = f"fork of {info.parent}@{info.fork_step}" if info.parent else "-"
    if info.owner:
        origin = f"inside {info.owner.thread_id}"
    below = f" (+{summary.inside:,} inside)" if summary.inside and count else ""
    reason = f" ({summary.reason})" if summary.reason else ""
    if summary.job:
        reason += f", {job_words(summary.job, now)}"
    cells = (
        f"{'  ' * depth}{info.thread_id}{below}",
        origin,
        info.graph_name,
        f"{summary.status}{reason}",
        str(summary.head) if summary.head >= 0 else "-",
        summary.waiting_for or "-",
        summary.last_writer or "-",
        ago(summary.updated_at, now),
    )
    return tuple(sanitise_line(cell, 60) for cell in cells)
