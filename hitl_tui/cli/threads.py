"""`threads`: what is in a store."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import store_option
from hitl_tui.cli.output import emit, json_option, say, table
from hitl_tui.drivers.node_streams import own_out
from hitl_tui.errors import NoSuchStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hitl_tui.config import Settings
    from hitl_tui.engine.log.threads import ThreadSummary
    from hitl_tui.stores import Checkpointer

_HEADINGS = ("THREAD", "ORIGIN", "GRAPH", "STATUS", "STEP", "WAITS FOR", "LAST", "CHANGED")
_GIVE = ("WAITS FOR", "ORIGIN", "GRAPH", "LAST", "THREAD")
"""What is cut on a narrow terminal: the question first, the name of the thread last."""
_WIDE_ONLY = ("ORIGIN", "LAST")
_WIDE = 100


@click.command()
@click.argument("query", default="")
@click.option(
    "--waiting", is_flag=True, help="Only those that wait for a human, longest first; says when they expire."
)
@click.option("--inside", is_flag=True, help="With the threads of subgraphs below the ones they ran in.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many.")
@store_option
@json_option
def threads(*, query: str, waiting: bool, inside: bool, limit: int, store: str | None, as_json: bool) -> None:
    """List the threads of a store.

    Last changed first; what ran inside a thread is counted, and listed below it with --inside. With QUERY
    those whose name contains it, wherever they ran.
    """
    from hitl_tui.config import load_settings

    settings = load_settings({"store": store})
    rows = _rows(settings, query, limit + 1, inside=inside, waiting=waiting, deadlines=not as_json)
    shown, more = rows[:limit], len(rows) > limit
    if as_json:
        from hitl_tui.cli.shapes import ThreadsDocument

        emit(ThreadsDocument(threads=tuple(summary for summary, _ in shown), more=more))
        return
    if not shown:
        none = (
            f"no thread{' that matches' if query else ''} waits for a human"
            if waiting
            else "no thread matches"
            if query
            else f"no thread yet in {settings.store}; `hitl-tui demo` makes one"
        )
        say(none, err=True)
        return
    now = time.time_ns() // 1000
    say(*_table([_row(summary, depth, now, count=not inside) for summary, depth in shown]))
    if more:
        say(f"there are more than {limit:,}: name a part of one, or give --limit", err=True)


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    from hitl_tui.view.lines import columns_beside

    narrow = own_out().isatty() and columns_beside(0) < _WIDE
    kept = [at for at, name in enumerate(_HEADINGS) if not (narrow and name in _WIDE_ONLY)]
    shown = [tuple(row[at] for at in kept) for row in (_HEADINGS, *rows)]
    return table(shown, give=[shown[0].index(name) for name in _GIVE if name in shown[0]])


def _rows(
    settings: Settings, query: str, limit: int, *, inside: bool, waiting: bool, deadlines: bool
) -> list[tuple[ThreadSummary, int]]:
    """The threads, each with how many it is below; none where no store was made yet, unless it was named.

    Args:
        deadlines: say of what waits when it expires.
    """
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.engine.log.store import all_threads

    try:
        opened = open_existing(settings)
    except NoSuchStore:
        if settings.origins["store"] == "flag":
            raise
        return []
    try:
        rows: Iterator[tuple[ThreadSummary, int]]
        if waiting and (query or not inside):
            rows = ((row, 0) for row in all_threads(opened, query, None if query else "", waiting=True))
        else:
            everywhere = ((row, 0) for row in all_threads(opened, query))
            rows = everywhere if query else _nested(opened, "", 0 if inside else None)
            rows = (row for row in rows if not waiting or row[0].waiting_since is not None)
        page = list(islice(rows, limit))
        if waiting and deadlines:
            return [(_with_deadline(opened, summary), depth) for summary, depth in page]
        return page
    finally:
        opened.close()


def _with_deadline(store: Checkpointer, summary: ThreadSummary) -> ThreadSummary:
    """What it waits for, with when that expires."""
    import msgspec

    from hitl_tui.view.status import deadline_words

    cursor = store.cursor(summary.info.thread_id)
    pending = cursor.pending if cursor else ()
    deadlines = [request.deadline for request in pending if request.deadline is not None]
    if not deadlines:
        return summary
    when = deadline_words(min(deadlines), time.time_ns() // 1000)
    return msgspec.structs.replace(summary, waiting_for=f"{summary.waiting_for}, {when}")


def _nested(store: Checkpointer, within: str, depth: int | None) -> Iterator[tuple[ThreadSummary, int]]:
    """The threads directly inside one, those at the top for ""; with a depth, what is inside each, too."""
    from hitl_tui.engine.log.store import all_threads

    for summary in all_threads(store, within=within):
        yield summary, depth or 0
        if summary.inside and depth is not None:
            yield from _nested(store, summary.info.thread_id, depth + 1)


def _row(summary: ThreadSummary, depth: int, now: int, *, count: bool) -> tuple[str, ...]:
    from hitl_tui.view.format import ago
    from hitl_tui.view.sanitise import sanitise_line

    info = summary.info
    origin = f"fork of {info.parent}@{info.fork_step}" if info.parent else "-"
    if info.owner:
        origin = f"inside {info.owner.thread_id}"
    below = f" (+{summary.inside:,} inside)" if summary.inside and count else ""
    reason = f" ({summary.reason})" if summary.reason else ""
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
