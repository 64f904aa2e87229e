"""`resume`: go on with a thread that is in a store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import (
    break_option,
    complete_thread,
    headless_option,
    plain_option,
    reviewer_option,
    store_option,
    theme_option,
)
from hitl_tui.cli.output import json_option
from hitl_tui.cli.tape import tape, tape_options
from hitl_tui.errors import NoSuchStore, UnknownThread, UsageError

if TYPE_CHECKING:
    from hitl_tui.engine.threads import ThreadSummary
    from hitl_tui.stores import Checkpointer

_PAGE = 100


@click.command()
@click.argument("thread", required=False, shell_complete=complete_thread)
@store_option
@theme_option
@reviewer_option
@plain_option
@headless_option
@break_option
@json_option
@tape_options
def resume(
    *,
    thread: str | None,
    store: str | None,
    theme: str | None,
    reviewer: str | None,
    plain: bool,
    headless: bool,
    breaks: tuple[str, ...],
    as_json: bool,
    record: str | None,
    cassette: str | None,
) -> int:
    """Go on with a thread where it stopped.

    Without THREAD the one that waits for a human and changed last, or else the last unfinished one.
    With --headless, or --json, it runs without a screen until something waits, fails or ends; a
    request that waits goes on waiting: `answer` answers it.
    """
    from hitl_tui.cli.session import Target, run_headless, show
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings

    settings = load_settings({"store": store, "theme": theme, "reviewer": reviewer})

    def choose(opened: Checkpointer) -> Target:
        return Target(find_thread(opened, thread))

    quiet = headless or as_json
    with tape(record, cassette, shown=not quiet):
        if quiet:
            return run_headless(settings, open_existing, choose, as_json=as_json, breaks=breaks)
        return show(settings, open_existing, choose, plain=plain, breaks=breaks)


def browse() -> bool:
    """Show the threads of the store, on screen; False where there is none yet."""
    from hitl_tui.cli.session import Target, show
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings

    settings = load_settings()
    try:
        store = open_existing(settings)
    except NoSuchStore:
        return False
    newest = store.threads(limit=1)
    store.close()
    if newest:
        thread = newest[0].info.thread_id
        show(settings, open_existing, lambda _: Target(thread), list_threads=True)
    return bool(newest)


def find_thread(store: Checkpointer, thread: str | None) -> str:
    """The named thread, or without a name the one to go on with.

    Raises:
        UnknownThread: there is no such thread.
        UsageError: no thread is unfinished.
    """
    if thread is not None:
        if store.info(thread) is None:
            from hitl_tui.suggest import did_you_mean

            known = [summary.info.thread_id for summary in store.threads(limit=1000)]
            raise UnknownThread(f"there is no thread {thread!r}", did_you_mean(thread, known))
        return thread
    unfinished = None
    for summary in _all(store):
        if summary.status == "waiting":
            return summary.info.thread_id
        if unfinished is None and summary.status not in ("completed", "cancelled"):
            unfinished = summary.info.thread_id
    if unfinished is None:
        raise UsageError("no thread is unfinished", "`hitl-tui threads` lists all, `hitl-tui demo` makes one")
    return unfinished


def _all(store: Checkpointer) -> Iterator[ThreadSummary]:
    offset = 0
    while page := store.threads(limit=_PAGE, offset=offset):
        yield from page
        offset += len(page)
