"""Describes the space in a store, which threads a deletion removes or keeps, and its result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Final

import msgspec

from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.threads import Space, ThreadSize
from hitl_tui.engine.log.units import Inline, Maybe, about
from hitl_tui.stores.deletion import DeletionPlan, Kept, Leaving
from hitl_tui.view.cells import thread_name
from hitl_tui.view.format import ago, count, filled
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.shapes import Document

_NAME: Final = 60
_CHANNEL: Final = 40
_WHY: Final = 200
_LEFT: Final = 5
_CHANNELS: Final = 3
"""How many channels of a thread are named in a list of many."""
SIZE_HEADS: Final = ("THREAD", "STEPS", "SIZE", "LARGEST PART")
_UNREST: Final = ("running", "waiting")
_KEPT: Final[Mapping[Kept, str]] = {
    "newest": "among the last changed",
    "young": "too recent",
    "waits": "running or waiting",
    "decided": "with decisions of a person",
    "forked": "shared with a fork that is kept",
    "open": "open here",
}


class DeletedThread(msgspec.Struct, frozen=True):
    """The entry for a deleted thread in the ledger of its store."""

    thread: Annotated[str, about("The thread.")]
    entry: Inline[LedgerEntry]


class DeleteDocument(Document, frozen=True):
    """`delete` and `prune`."""

    threads: Annotated[
        tuple[Leaving, ...], about("The threads to delete, with those that are deleted with them.")
    ]
    dry_run: Annotated[bool, about("Whether it was a dry run.")]
    entries: Annotated[
        tuple[DeletedThread, ...], about("The store's ledger entries for the deleted threads.")
    ]
    rule: Annotated[Maybe, about("The rule of `prune`, as text.")]
    kept: Annotated[
        dict[Kept, int],
        about("Kept top-level threads by reason: `newest`, `young`, `waits`, `decided`, `forked`, `open`."),
    ]


def leaving_line(thread: Leaving, now: int) -> str:
    """Describe a thread to delete: its steps, its status, and the thread that it is deleted with.

    A sign is before one that runs or waits.
    """
    name, of = thread_name(thread.thread_id, _NAME), thread_name(thread.of, _NAME)
    steps = count(thread.step + 1, "step")
    with_it = {"named": "", "inside": f", ran inside {of}", "fork": f", a fork of {of}"}[thread.why]
    sign = "! " if unrest(thread) else ""
    return f"{sign}{name}: {steps}, {thread.status}, changed {ago(thread.updated_at, now)}{with_it}"


def kept_words(kept: Mapping[Kept, int]) -> str:
    """Describe how many threads a rule keeps, and why; "" if it keeps none."""
    parts = [f"{number:,} {_KEPT[why]}" for why, number in kept.items()]
    return f"{sum(kept.values()):,} kept: {', '.join(parts)}" if parts else ""


def unrest(thread: Leaving) -> bool:
    """Whether a thread to delete was running or waiting."""
    return thread.status in _UNREST


def plan_words(plan: DeletionPlan) -> str:
    """Describe how many threads are deleted, how many of those were running or waiting, how many are kept."""
    restless = sum(map(unrest, plan.going))
    words = (
        f"{count(len(plan.going), 'thread')} would be deleted" if plan.going else "nothing would be deleted"
    )
    if restless:
        words += f", {restless:,} of them running or waiting"
    stays = len(plan.stays) + sum(plan.kept.values())
    return f"{words}; {stays:,} would be kept" if stays else words


def stays_lines(plan: DeletionPlan) -> list[str]:
    """Describe why each named thread is kept that is not deleted."""
    return [f"{sanitise_line(name, _NAME)}: {sanitise_line(why, _WHY)}" for name, why in plan.stays.items()]


def result_words(plan: DeletionPlan, gone: int) -> str:
    """Describe the result of a deletion."""
    stayed = len(plan.going) - gone
    rest = f"{count(stayed, 'thread')} kept; " if stayed else ""
    return f"deleted {count(gone, 'thread')}; {rest}`hitl-tui deleted` shows their last hashes"


def left_lines(plan: DeletionPlan, gone: Collection[str]) -> list[str]:
    """Name the first few threads of a deletion that was stopped before they were deleted."""
    left = [thread.thread_id for thread in plan.going if thread.thread_id not in gone]
    rest = len(left) - _LEFT
    names = ", ".join(thread_name(name, _NAME) for name in left[:_LEFT])
    return [f"not deleted: {names}{f' and {rest:,} more' if rest > 0 else ''}"] if left else []


def size_rows(sizes: Sequence[ThreadSize]) -> list[tuple[str, str, str, str]]:
    """Return rows below `SIZE_HEADS`: a thread, its steps, its size, and its largest part."""
    rows = []
    for size in sizes:
        parts = {**size.channels, "(steps)": size.checkpoints, "(cached states)": size.snapshots}
        largest = sorted(parts.items(), key=lambda part: -part[1])[:_CHANNELS]
        most = ", ".join(
            f"{sanitise_line(name, _CHANNEL)} {filled(number)}" for name, number in largest if number
        )
        name = thread_name(size.thread_id, _NAME)
        rows.append((name, f"{size.steps:,}", filled(size.bytes), most or "-"))
    return rows


def part_rows(size: ThreadSize) -> list[tuple[str, str]]:
    """Return the sizes of a thread's channels, the largest first."""
    parts = sorted(size.channels.items(), key=lambda part: -part[1])
    rows = [(f"channel {sanitise_line(name, _NAME)}", filled(number)) for name, number in parts]
    rest = (("steps", size.checkpoints), ("cached states", size.snapshots), ("decisions", size.decisions))
    rows += [(name, filled(number)) for name, number in rest]
    return [*rows, ("in total", filled(size.bytes))]


def space_words(space: Space) -> str:
    """Describe a store's space on disk; "" for a store without a disk."""
    return f"on the disk: {filled(space.used)}, {filled(space.free)} of it free" if space.used else ""


def vacuum_words(before: Space, after: Space) -> str:
    """Describe the disk space that was freed."""
    return f"{filled(before.used)} before, {filled(after.used)} now"


MOST_DELETED: Final = 50
"""Most entries of the store's ledger that are shown; `hitl-tui deleted --limit` shows more."""


def deleted_lines(entries: Sequence[LedgerEntry], now: int) -> list[str]:
    """Return lines of the store's ledger, newest first."""
    lines: list[str] = []
    for entry in reversed(entries):
        first, *rest = entry_lines(entry)
        lines += [f"{entry.n}. {ago(entry.at, now)}: {first}", *rest]
    return lines or ["nothing was deleted from this store"]


def entry_lines(entry: LedgerEntry) -> list[str]:
    """Describe an entry of the store's ledger: the thread, by whom and why, and its last hashes."""
    facts = entry.data if isinstance(entry.data, Mapping) else {}
    who = f" by {sanitise_line(entry.actor, _NAME)}" if entry.actor else ""
    account = f" ({sanitise_line(entry.account, _NAME)})" if entry.account else ""
    graph = sanitise_line(str(facts.get("graph") or "no graph"), _NAME)
    name = thread_name(entry.thread_id, _NAME)
    last = sanitise_line(str(facts.get("checkpoint_hash", ""))[:16], 16)
    lines = [
        f"{name} deleted{who}{account}",
        f"  {graph}, {count(entry.step + 1, 'step')}, {sanitise_line(str(facts.get('status', '')), 20)}; "
        f"newest checkpoint {last}",
    ]
    if rule := facts.get("rule"):
        lines.append(f"  {sanitise_line(str(rule), 120)}")
    if entry.note:
        lines.append(f"  {sanitise_line(entry.note, 200)}")
    return lines
