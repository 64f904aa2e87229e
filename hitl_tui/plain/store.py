"""Store in plain text mode: what fills it, threads deleted by name or by a rule, freed space."""

from __future__ import annotations

from typing import Final

from hitl_tui.errors import UsageError
from hitl_tui.plain.context import Context
from hitl_tui.view.deletion import (
    MOST_DELETED,
    deleted_lines,
    part_rows,
    size_rows,
    space_words,
)
from hitl_tui.view.format import capital, count
from hitl_tui.view.lines import content

_SIZES: Final = 20
_DELETED: Final = 5 * MOST_DELETED


def sizes(context: Context, typed: str) -> None:
    """Print what fills the store, or a thread by channel; "deleted" prints which threads were deleted.

    Raises:
        UsageError: there is no such thread, or it can't be done here.
    """
    say = context.console.say
    if typed == "deleted":
        say(
            *content(
                deleted_lines(context.run(context.hub.deleted(MOST_DELETED)), context.hub.now()), _DELETED
            )
        )
        return
    threads, space = context.run(context.hub.sizes())
    if typed:
        chosen = next((size for size in threads if size.thread_id == typed), None)
        if chosen is None:
            raise UsageError(f"there is no thread {typed!r}", "t lists them")
        say(*(f"{part}: {filled}" for part, filled in part_rows(chosen)))
        return
    largest = threads[:_SIZES]
    for size, (thread, _, filled, most) in zip(largest, size_rows(largest), strict=True):
        say(f"{thread}: {filled} in {count(size.steps, 'step')}, most of it {most}")
    if len(threads) > _SIZES:
        say(f"And {count(len(threads) - _SIZES, 'smaller thread')}; S THREAD shows one.")
    if words := space_words(space):
        hint = "" if context.hub.upkeep_refusal else "; vacuum frees the space"
        say(f"{capital(words)}{hint}.")
