"""`delete`, `prune`, `deleted`, `size`, `vacuum`: what a store keeps, and what it takes."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import click

from hitl_tui.cli.options import complete_thread, note_option, reviewer_option, store_option
from hitl_tui.cli.output import emit, json_option, one_line, progress, say, table
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hitl_tui.config import Settings
    from hitl_tui.engine.log.records import LedgerEntry
    from hitl_tui.engine.log.threads import ThreadSize
    from hitl_tui.stores import Checkpointer
    from hitl_tui.stores.deletion import Kept, Leaving, Retention

_CHANNELS = 3
"""How many channels of a thread are named in a list of many."""

_yes = click.option("--yes", is_flag=True, help="Don't ask first.")
_dry_run = click.option("--dry-run", is_flag=True, help="Only show what would go.")
_force = click.option("--force", is_flag=True, help="Also what runs or waits for a human.")


@click.command()
@click.argument("threads", nargs=-1, required=True, metavar="THREAD...", shell_complete=complete_thread)
@click.option("--forks", is_flag=True, help="With their forks, which share their steps.")
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
    """Delete threads, with what ran inside them.

    All of them or, where one can't go, none: what runs or waits for a human stays without --force, what a
    fork shares without --forks. The ledger of the store keeps who did it, when, why, and the last hashes;
    `deleted` shows it. Nothing else remains. Without --yes it shows what goes and asks.
    """
    from hitl_tui.cli.opening import find_thread
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.stores.deletion import leaving

    settings = load_settings({"store": store, "reviewer": reviewer})
    with closing(open_existing(settings)) as opened:
        names = [find_thread(opened, thread) for thread in threads]
        going = leaving(opened, names, forks=forks, force=force)
        return _delete(opened, going, settings, _How(note, force, dry_run, yes, as_json))


@click.command()
@click.option("--older-than", metavar="TIME", help="Only what has not changed for so long, as 30d or 12h.")
@click.option("--keep-last", type=click.IntRange(0), metavar="N", help="Keep the N that changed last.")
@click.option("--keep-decided", is_flag=True, default=None, help="Keep what a person has decided in.")
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

    By these options or, without any, by [retention] of the configuration; it never happens by itself. What
    runs or waits stays, and so does what a fork shares that stays. Without --yes it shows what goes and asks.
    """
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.stores.deletion import prunable

    settings = load_settings({"store": store, "reviewer": reviewer})
    given = {"older_than": older_than, "keep_last": keep_last, "keep_decided": keep_decided}
    rule = _rule({name: value for name, value in given.items() if value is not None} or settings.retention)
    with closing(open_existing(settings)) as opened:
        with progress("looking", as_json=as_json) as watch:
            going, kept = prunable(opened, rule, opened.now(), force=force, watch=watch)
        how = _How(note, force, dry_run, yes, as_json, rule.words)
        return _delete(opened, going, settings, how, kept)


@click.command()
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many.")
@store_option
@json_option
def deleted(*, limit: int, store: str | None, as_json: bool) -> None:
    """Show who deleted which threads, when and why.

    The ledger of the store itself, newest first: of each thread the last hashes, so that an export or an
    anchor can be told from another. `verify` checks that none was changed or taken away.
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

        told = tuple(DeletedThread(entry.thread_id, entry) for entry in page)
        emit(DeletedDocument(entries=told, more=len(entries) > limit))
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
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="At most so many threads."
)
@store_option
@json_option
def size(*, thread: str | None, limit: int, store: str | None, as_json: bool) -> None:
    """Show what fills the store, by thread and channel.

    The largest thread first, or all channels of one. Bytes of what was written; the store takes more on
    the disk for its own order, and `vacuum` gives back what is free. A fork shares its parent's steps.
    """
    from hitl_tui.cli.opening import find_thread
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.engine.log.store import all_threads

    with closing(open_existing(load_settings({"store": store}))) as opened:
        if thread is not None:
            sizes = [opened.size(find_thread(opened, thread))]
        else:
            names = [summary.info.thread_id for summary in all_threads(opened)]
            sizes = sorted(map(opened.size, names), key=lambda size: -size.bytes)
        space = opened.space()
    if as_json:
        from hitl_tui.cli.reports import SizeDocument

        shown = tuple(sizes[:limit])
        emit(SizeDocument(used=space.used, free=space.free, threads=shown, more=len(sizes) > limit))
    elif thread is not None:
        say(*_parts_of(sizes[0]))
    else:
        say(*_sizes(sizes[:limit]))
        if len(sizes) > limit:
            say(f"there are {len(sizes):,} threads: give --limit", err=True)
        if space.used:
            from hitl_tui.view.format import filled

            say(f"on the disk: {filled(space.used)}, {filled(space.free)} of it free")


@click.command()
@store_option
@json_option
def vacuum(*, store: str | None, as_json: bool) -> None:
    """Give the space of what was deleted back.

    Graphs that no thread names any more go, too. Nobody can write to the store meanwhile.
    """
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.view.format import filled

    with closing(open_existing(load_settings({"store": store}))) as opened:
        before, after = opened.space().used, opened.vacuum().used
    if as_json:
        from hitl_tui.cli.reports import VacuumDocument

        emit(VacuumDocument(before=before, after=after))
    else:
        say(f"{filled(before)} before, {filled(after)} now")


class _How(NamedTuple):
    """How to delete, and how to tell it; `rule` is that of `prune`."""

    note: str | None
    force: bool
    dry_run: bool
    yes: bool
    as_json: bool
    rule: str = ""


def _delete(
    store: Checkpointer,
    going: Sequence[Leaving],
    settings: Settings,
    how: _How,
    kept: Mapping[Kept, int] | None = None,
) -> ExitCode:
    """Say what goes, ask, and delete it."""
    from hitl_tui.stores.deletion import delete_in_batches
    from hitl_tui.view.deletion import kept_words, leaving_lines
    from hitl_tui.view.format import count

    now = store.now()
    say(*(leaving_lines(going, now) or ["nothing goes"]))
    if words := kept_words(kept or {}):
        say(words)
    entries: list[LedgerEntry] = []
    if going and not how.dry_run:
        if not how.yes and not _agreed(count(len(going), "thread")):
            say("Nothing was deleted.", err=True)
            return ExitCode.USAGE
        batches = delete_in_batches(
            store, going, actor=settings.reviewer, note=how.note, at=now, why=how.rule, force=how.force
        )
        try:
            with progress("deleting", as_json=how.as_json) as watch:
                for batch in batches:
                    entries += batch
                    if watch:
                        watch(len(entries), len(going))
        finally:
            if entries:
                left = len(going) - len(entries)
                stays = f"{count(left, 'thread')} stayed; " if left else ""
                told = "`hitl-tui deleted` shows what is kept of them"
                say(f"deleted {count(len(entries), 'thread')}; {stays}{told}")
    if how.as_json:
        from hitl_tui.cli.reports import DeleteDocument, DeletedThread

        emit(
            DeleteDocument(
                threads=tuple(going),
                dry_run=how.dry_run,
                entries=tuple(DeletedThread(entry.thread_id, entry) for entry in entries),
                rule=how.rule,
                kept=dict(kept or {}),
            )
        )
    return ExitCode.DONE


def _agreed(what: str) -> bool:
    """Whether the person at the terminal agrees; a program must say so with --yes."""
    if not sys.stdin.isatty():
        raise UsageError("what is deleted is gone for good", "confirm it with --yes, or look with --dry-run")
    return click.confirm(f"Delete {what} for good?", default=False, err=True)


def _rule(given: Mapping[str, object]) -> Retention:
    from hitl_tui.engine.log.units import span_of
    from hitl_tui.stores.deletion import Retention

    if not given:
        raise UsageError(
            "there is no rule for what goes",
            "give --older-than, --keep-last or --keep-decided, or [retention]",
        )
    age = given.get("older_than")
    try:
        older_than = None if age is None else span_of(str(age))
    except ValueError as error:
        raise UsageError(f"--older-than: {error}") from None
    last = given.get("keep_last", 0)
    return Retention(older_than, last if isinstance(last, int) else 0, bool(given.get("keep_decided")))


def _parts_of(size: ThreadSize) -> list[str]:
    from hitl_tui.view.format import filled

    parts = sorted(size.channels.items(), key=lambda part: -part[1])
    rows = [(f"channel {one_line(name, 60)}", filled(number)) for name, number in parts]
    rest = (("steps", size.checkpoints), ("cached states", size.snapshots), ("decisions", size.decisions))
    rows += [(name, filled(number)) for name, number in rest]
    return table([*rows, ("in all", filled(size.bytes))])


def _sizes(sizes: Sequence[ThreadSize]) -> list[str]:
    from hitl_tui.view.format import filled

    rows = [("THREAD", "STEPS", "SIZE", "MOST OF IT")]
    for size in sizes:
        parts = {**size.channels, "(steps)": size.checkpoints, "(cached states)": size.snapshots}
        largest = sorted(parts.items(), key=lambda part: -part[1])[:_CHANNELS]
        most = ", ".join(f"{one_line(name, 40)} {filled(number)}" for name, number in largest if number)
        rows.append((one_line(size.thread_id, 60), f"{size.steps:,}", filled(size.bytes), most or "-"))
    return table(rows, give=(3, 0))
