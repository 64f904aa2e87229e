"""Store in plain text mode: what fills it, threads deleted by name or by a rule, freed space."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from hitl_tui.config import load_settings
from hitl_tui.errors import UsageError
from hitl_tui.plain.console import confirm
from hitl_tui.plain.context import Context
from hitl_tui.stores.deletion import DeletionPlan, Retention, read_rule
from hitl_tui.view.deletion import (
    MOST_DELETED,
    deleted_lines,
    leaving_lines,
    part_rows,
    plan_words,
    result_words,
    size_rows,
    space_words,
    stays_lines,
)
from hitl_tui.view.format import capital, count
from hitl_tui.view.lines import content, split_words

_SIZES: Final = 20
_STAYS: Final = 40
_DELETED: Final = 5 * MOST_DELETED
_FORCE: Final = "force"


def delete(context: Context, typed: str) -> None:
    """Delete threads with their forks and subgraphs' threads, after a yes; "force" includes waiting ones.

    Raises:
        UsageError: none is named, or nothing can be deleted here.
    """
    names, force = _words(typed)
    if not names:
        raise UsageError("no thread is named", "X THREAD...; t lists them")
    _delete(context, names, force=force)


def prune(context: Context, typed: str) -> None:
    """Delete the threads that a rule does not keep, after a yes: "older 30d", "last 5", "decided".

    Without words by [retention] of the configuration; "force" includes threads that run or wait.

    Raises:
        UsageError: there is no rule, it can't be parsed, or nothing can be deleted here.
    """
    words, force = _words(typed)
    given: dict[str, object] = {}
    rest = iter(words)
    for word in rest:
        if word == "decided":
            given["keep_decided"] = True
        elif word == "older":
            given["older_than"] = next(rest, "")
        elif word == "last" and (number := next(rest, "")).isascii() and number.isdigit():
            given["keep_last"] = int(number)
        else:
            raise UsageError(f"{word!r} is not part of a rule", "P older 30d last 5 decided")
    _delete(context, read_rule(given or load_settings({}).retention), force=force)


def _words(typed: str) -> tuple[list[str], bool]:
    words = split_words(typed)
    return [word for word in words if word != _FORCE], _FORCE in words


def _delete(context: Context, what: Sequence[str] | Retention, *, force: bool) -> None:
    """Print what would be deleted and why the rest is kept, ask, and delete; ctrl+c stops after a batch."""
    hub, say = context.hub, context.console.say
    plan: DeletionPlan = context.run(hub.plan_deletion(what, force=force, spared=context.driver.thread_id))
    words = plan_words(plan)
    say(f"{capital(words)}.")
    say(*content(leaving_lines(plan.going, hub.now()), len(plan.going) + 1))
    if stays := stays_lines(plan):
        say("These would be kept:", *content(stays, _STAYS))
    if not plan.going:
        return
    if not confirm(context.console, f"Delete {count(len(plan.going), 'thread')} for good?"):
        say("Nothing was deleted.")
        return
    note = context.console.ask("Why (logged); empty for none:") or None
    deletions: list[asyncio.Task[int]] = []
    stopped = False

    def on_batch(gone: Sequence[str]) -> bool:
        return not stopped

    async def ended() -> int:
        if not (deletions or stopped):
            deletions.append(
                asyncio.create_task(hub.delete(plan, actor=context.actor, note=note, on_batch=on_batch))
            )
        return await asyncio.shield(deletions[0]) if deletions else 0

    while True:
        try:
            gone = context.run(ended())
            break
        except KeyboardInterrupt:
            stopped = True
            say("Stopping after the current batch.")
    words = result_words(plan, gone)
    say(f"{capital(words)}.")


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
