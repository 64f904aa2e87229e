"""Forks in plain text mode: the family of a thread, and the differences between two steps."""

from __future__ import annotations

from hitl_tui.drivers.protocol import Driver, Snapshot
from hitl_tui.errors import UsageError
from hitl_tui.plain.context import Context
from hitl_tui.view.diff_lines import compare_states, diff_text
from hitl_tui.view.family import family_tree, fork_label
from hitl_tui.view.first_difference import first_difference, first_difference_lines
from hitl_tui.view.lines import short_id


def list_family(context: Context) -> None:
    """Print all forks and what they were forked from, each below its parent."""
    for member in family_tree(context.run(context.driver.family())):
        relative = member.relative
        words = f", forked from {short_id(relative.parent)}, {fork_label(member)}" if relative.parent else ""
        status, head = relative.summary.status, relative.summary.head
        context.console.say(f"{short_id(relative.thread_id)}: {status}, step {head}{words}")


def compare(context: Context, typed: str) -> None:
    """Print the differences between a step and the newest one, and where two threads first differ.

    The step is another thread's newest one, with @STEP any step of it or of this thread; without a word it is
    the newest step of a fork's parent, or else the previous step.

    Raises:
        UsageError: there is no such step.
    """
    snapshot, driver = context.snapshot(), context.driver
    head = snapshot.progress.head
    other, step = _place(context, snapshot, typed)
    rows = compare_states(context.run(other.state_at(step)), context.run(driver.state_at(head)))
    beside = f"{short_id(other.thread_id)} at step {step}" if other is not driver else f"Step {step}"
    context.console.say(f"{beside}, beside step {head} here:", *diff_text(rows))
    parts = context.run(first_difference(other, driver, min(step, head))) if other is not driver else None
    if parts is not None:
        context.console.say(*first_difference_lines(parts))


def _place(context: Context, snapshot: Snapshot, typed: str) -> tuple[Driver, int]:
    """Return the requested thread and step."""
    driver, head = context.driver, snapshot.progress.head
    thread, at, number = typed.rpartition("@")
    if not at or not number.isdecimal():
        thread, number = typed or snapshot.parent or "", ""
    if not thread:
        if not number and head < 1:
            raise UsageError("there is no earlier step", "= THREAD is another thread's end")
        step = int(number) if number else head - 1
        other, last = driver, head
    else:
        other = context.run(context.hub.open(thread))
        last = context.run(other.snapshot()).progress.head
        step = int(number) if number else last
    if not 0 <= step <= last:
        raise UsageError(f"there is no step {step}", f"the newest is step {last}")
    return other, step
