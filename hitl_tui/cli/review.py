"""`review`: the most urgent request that waits for you, opened with its card."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final

import click

from hitl_tui.cli.invocation import note_store
from hitl_tui.cli.opening import Target
from hitl_tui.cli.options import plain_option, reviewer_option, stores_option, theme_option
from hitl_tui.cli.output import say
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.cli.inbox import InboxStore
    from hitl_tui.config import Settings
    from hitl_tui.view.queue import QueueRow


_PATIENCE: Final = 0.5
"""Seconds to wait for the stores of the inbox; the queue shows those that need longer."""


@click.command()
@click.option(
    "--filter",
    "query",
    metavar="TEXT",
    default="",
    help='Only requests that match, as on screen: "graph:advisor risk:low".',
)
@stores_option
@theme_option
@reviewer_option
@plain_option
def review(*, query: str, store: str | None, theme: str | None, reviewer: str | None, plain: bool) -> int:
    """Open the most urgent request that waits for you.

    Its card is open at once; `n` on screen opens the next one. The order is that of the queue: expired, then
    due soonest, then high risk, then waiting longest.

        hitl-tui review
        hitl-tui review --filter "risk:high"
        hitl-tui review --store support.db --store finance.db
    """
    from hitl_tui.cli.inbox import inbox_stores
    from hitl_tui.cli.screen import show
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings

    settings = load_settings({"store": store, "theme": theme, "reviewer": reviewer})
    stores = inbox_stores(settings)
    row = _most_urgent(settings, stores, query)
    if row is None:
        say("No request that matches waits for you." if query else "No request waits for you.")
        return int(ExitCode.DONE)
    name, request = row.name, row.request
    for source in stores:
        if source.name == row.source:
            settings = source.settings
            note_store()(source.url)
    return show(
        settings,
        open_existing,
        lambda opened: Target(name),
        plain=plain,
        request=request.id if request is not None else "",
        stores=stores,
    )


def _most_urgent(settings: Settings, stores: Sequence[InboxStore], query: str) -> QueueRow | None:
    """Return the first row of the queue that asks something of the person.

    Raises:
        UsageError: the filter can't be read.
    """
    from hitl_tui.cli.inbox import read_inbox
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.view.queue import MOST, QueueView, read_filter, rows_of, source_problems

    if wrong := read_filter(query).problems:
        raise UsageError("; ".join(wrong), "see the filters of the queue in its help: Q, then ?")
    me = settings.reviewer
    waiting: Sequence[QueueRow]
    if stores:
        waiting, sources, now = read_inbox(stores, _PATIENCE)
        if problems := source_problems(sources):
            say(*problems, err=True)
    else:
        with closing(open_existing(settings, part="all")) as store:
            waiting, now = rows_of(store.waiting(MOST)), store.now()
    rows = [row for row in waiting if _is_for(row, me, now)]
    return next(iter(QueueView(query).shown(rows, now, me)), None)


def _is_for(row: QueueRow, me: str, now: int) -> bool:
    """Whether a row asks something that this person has not voted on, and that nobody else has claimed."""
    from hitl_tui.engine.thread.interrupts import has_voted

    request = row.request
    return request is not None and not has_voted(request, me) and row.claimed(now) in ("", me)
