"""`delete`, `prune`, `deleted`, `size`: what a store keeps, and what it takes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from hitl_tui.cli.options import complete_thread, note_option, reviewer_option, store_option
from hitl_tui.cli.output import emit, json_option, progress, say, table
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.config import Settings
    from hitl_tui.engine.log.records import LedgerEntry
    from hitl_tui.stores import Checkpointer
    from hitl_tui.stores.deletion import DeletionPlan

_yes = click.option("--yes", is_flag=True, help="Don't ask first.")
_dry_run = click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
_force = click.option("--force", is_flag=True, help="Also delete threads that run or wait for a person.")


@click.command()
@click.argument("threads", nargs=-1, required=True, metavar="THREAD...", shell_complete=complete_thread)
@click.option("--forks", is_flag=True, help="Also delete their forks, which share their steps.")
@_force
@_dry_run
@_yes
@note_option
@store_option
@reviewer_option
@json_option
def delete(
    *,
    threads: tuple[str, ...],
    forks: bool,
    force: bool,
    dry_run: bool,
    yes: bool,
    note: str | None,
    store: str | None,
    reviewer: str | None,
    as_json: bool,
) -> ExitCode:
    """Delete threads with their subgraphs.

    All of them, or none if one can't be deleted. Threads that run or wait for a person need --force, and
    those whose steps a fork shares need --forks. The ledger of the store keeps who did it, when, why, and
    the last hashes; `deleted` shows it. Without --yes it shows what would be deleted, and asks.

        hitl-tui delete r1 --dry-run
        hitl-tui delete r1 r2 --forks --yes --note "an experiment"
    """
    from hitl_tui.cli.opening import find_thread
    from hitl_tui.cli.storage import open_own
    from hitl_tui.config import load_settings
    from hitl_tui.stores.deletion import DeletionPlan, leaving

    settings = load_settings({"store": store, "reviewer": reviewer})
    with closing(open_own(settings)) as opened:
        names = [find_thread(opened, thread) for thread in threads]
        plan = DeletionPlan(tuple(leaving(opened, names, forks=forks, force=force)), force=force)
        return _delete(opened, plan, settings, _How(note, dry_run, yes, as_json))


@click.command()
@click.option("--older-than", metavar="TIME", help="Only threads unchanged for this long, as 30d or 12h.")
@click.option(
    "--keep-last", type=click.IntRange(0), metavar="N", help="Keep the N most recently changed threads."
)
@click.option(
    "--keep-decided", is_flag=True, default=None, help="Keep threads in which a person has decided."
)
@_force
@_dry_run
@_yes
@note_option
@store_option
@reviewer_option
@json_option
def prune(
    *,
    older_than: str | None,
    keep_last: int | None,
    keep_decided: bool | None,
    force: bool,
    dry_run: bool,
    yes: bool,
    note: str | None,
    store: str | None,
    reviewer: str | None,
    as_json: bool,
) -> ExitCode:
    """Delete the threads that a rule does not keep.

    By these options or, without any, by [retention] of the configuration; it never happens by itself.
    Threads that run or wait are kept, and so are those whose steps a kept fork shares. Without --yes it
    shows what would be deleted, and asks.

        hitl-tui prune --older-than 30d --dry-run
        hitl-tui prune --older-than 30d --keep-last 100 --keep-decided --yes
    """
    from hitl_tui.cli.storage import open_own
    from hitl_tui.config import load_settings
    from hitl_tui.stores.deletion import prunable, read_rule

    settings = load_settings({"store": store, "reviewer": reviewer})
    given = {"older_than": older_than, "keep_last": keep_last, "keep_decided": keep_decided}
    rule = read_rule(
        {name: value for name, value in given.items() if value is not None} or settings.retention
    )
    with closing(open_own(settings)) as opened:
        with progress("looking", as_json=as_json) as watch:
            plan = prunable(opened, rule, opened.now(), force=force, watch=watch)
        return _delete(opened, plan, settings, _How(note, dry_run, yes, as_json))


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
        from hitl_tui.cli.reports import DeletedDocument, DeletedThread

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


class _How(NamedTuple):
    """How to delete, and how to print the outcome."""

    note: str | None
    dry_run: bool
    yes: bool
    as_json: bool


def _delete(store: Checkpointer, plan: DeletionPlan, settings: Settings, how: _How) -> ExitCode:
    """Print what would be deleted, ask, and delete it."""
    from hitl_tui.stores.deletion import delete_in_batches
    from hitl_tui.view.deletion import kept_words, leaving_lines, result_words
    from hitl_tui.view.format import count

    now, going = store.now(), plan.going
    say(*(leaving_lines(going, now) or ["nothing to delete"]))
    if words := kept_words(plan.kept):
        say(words)
    entries: list[LedgerEntry] = []
    if going and not how.dry_run:
        if not how.yes and not _agreed(count(len(going), "thread")):
            say("Nothing was deleted.", err=True)
            return ExitCode.USAGE
        batches = delete_in_batches(
            store, going, actor=settings.reviewer, note=how.note, at=now, why=plan.rule, force=plan.force
        )
        try:
            with progress("deleting", as_json=how.as_json) as watch, _asked_to_stop() as stop:
                for batch in batches:
                    entries += batch
                    if watch:
                        watch(len(entries), len(going))
                    if stop():
                        break
        finally:
            if entries:
                say(result_words(plan, len(entries)))
    if how.as_json:
        from hitl_tui.cli.reports import DeleteDocument, DeletedThread

        emit(
            DeleteDocument(
                threads=going,
                dry_run=how.dry_run,
                entries=tuple(DeletedThread(entry.thread_id, entry) for entry in entries),
                rule=plan.rule,
                kept=dict(plan.kept),
            )
        )
    if entries and len(entries) < len(going):
        raise KeyboardInterrupt
    return ExitCode.DONE


@contextmanager
def _asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Yield whether ctrl+c was pressed: the current batch ends first; pressed again it is cancelled, too."""
    asked = False

    def hear(_number: int, _frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


def _agreed(what: str) -> bool:
    """Ask the person at the terminal to agree; a program must say so with --yes."""
    if not sys.stdin.isatty():
        raise UsageError("what is deleted is gone for good", "confirm it with --yes, or look with --dry-run")
    return click.confirm(f"Delete {what} for good?", default=False, err=True)
