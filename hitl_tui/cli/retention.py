"""`deleted`, `size`: which threads were deleted from a store, and what fills it."""

from __future__ import annotations

from contextlib import closing

import click

from hitl_tui.cli.options import complete_thread, store_option
from hitl_tui.cli.output import emit, json_option, progress, say, table


@click.command()
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many to show.")
@store_option
@json_option
def deleted(*, limit: int, store: str | None, as_json: bool) -> None:
    """Show who deleted which threads, when and why.

    The ledger of the store, newest first, with the last hashes of each thread. With these you can recognise
    an export or an anchor of it. `verify` checks that no entry was changed or removed.

        hitl-tui deleted
        hitl-tui deleted --limit 5 --json
    """
    from hitl_tui.cli.documents import time as shown
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.view.deletion import entry_lines

    with closing(open_existing(load_settings({"store": store}))) as opened:
        entries = opened.store_ledger()[::-1]
    page = entries[:limit]
    if as_json:
        from hitl_tui.cli.reports import DeletedDocument
        from hitl_tui.view.deletion import DeletedThread

        deleted = tuple(DeletedThread(entry.thread_id, entry) for entry in page)
        emit(DeletedDocument(entries=deleted, more=len(entries) > limit))
        return
    for entry in page:
        at = (shown(entry.at) or "").partition(".")[0].replace("T", " ")
        first, *rest = entry_lines(entry)
        say(f"{entry.n}. {at} UTC: {first}", *rest)
    if not page:
        say("nothing was deleted from this store", err=True)
    elif len(entries) > limit:
        say(f"there are {len(entries):,}: give --limit", err=True)


@click.command()
@click.argument("thread", required=False, shell_complete=complete_thread)
@click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="How many threads to show."
)
@store_option
@json_option
def size(*, thread: str | None, limit: int, store: str | None, as_json: bool) -> None:
    """Show what fills the store, by thread and channel.

    The largest thread first, or all channels of one thread. It counts bytes that were written. The file is
    larger, and `vacuum` frees unused space. A fork shares its parent's steps. For LangGraph threads it is
    what their checkpointer keeps, including forks and subgraphs.

        hitl-tui size
        hitl-tui size r1
    """
    from hitl_tui.cli.langgraph import measured
    from hitl_tui.cli.opening import find_thread
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.stores.deletion import sizes
    from hitl_tui.view.deletion import SIZE_HEADS, part_rows, size_rows, space_words

    settings = load_settings({"store": store})
    with closing(open_existing(settings, part="none", thread=thread)) as opened:
        name = None if thread is None else find_thread(opened, thread)
        with progress("looking", as_json=as_json) as watch:
            if (theirs := measured(opened, name, watch)) is not None:
                threads, space = theirs
            else:
                threads = sizes(opened, watch) if name is None else [opened.size(name)]
                space = opened.space()
    if as_json:
        from hitl_tui.cli.reports import SizeDocument

        shown = tuple(threads[:limit])
        emit(SizeDocument(used=space.used, free=space.free, threads=shown, more=len(threads) > limit))
    elif thread is not None:
        say(*table(part_rows(threads[0])))
    else:
        say(*table([SIZE_HEADS, *size_rows(threads[:limit])], give=(3, 0)))
        if len(threads) > limit:
            say(f"there are {len(threads):,} threads: give --limit", err=True)
        if words := space_words(space):
            say(words)
