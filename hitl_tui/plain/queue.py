"""The queue of what waits, in lines: listed with numbers, opened by one, several decided at once."""

from __future__ import annotations

from collections.abc import Sequence

from hitl_tui.engine.thread.journal import account
from hitl_tui.errors import UsageError
from hitl_tui.plain.console import confirm
from hitl_tui.plain.context import Context
from hitl_tui.view.batch import Decider, decide, plan, plan_words, result_words, run_on
from hitl_tui.view.lines import name
from hitl_tui.view.queue import (
    MOST,
    QueueRow,
    QueueView,
    due_words,
    notes_words,
    read_filter,
    rows_of,
    span_words,
)
from hitl_tui.view.queue_facts import Planned


def list_queue(context: Context, typed: str) -> tuple[QueueRow, ...]:
    """Say what waits and passes a filter, the most urgent first, each with a number; gives the rows."""
    now, me = context.hub.now(), context.actor
    rows = QueueView(typed).shown(rows_of(context.run(context.hub.waiting(MOST))), now, me)
    context.console.say(*(f"{problem}." for problem in read_filter(typed).problems))
    for number, row in enumerate(rows, 1):
        facts = [
            f"waits {span_words(max(now - row.since, 0))}",
            due_words(row, now),
            "high risk" if row.high_risk else "",
            notes_words(row, now, me),
        ]
        told = ", ".join(fact for fact in facts if fact)
        context.console.say(f"{number}. {name(row.title)}: {name(row.name)} of {name(row.graph)}, {told}")
    if not rows:
        context.console.say("Nothing that waits passes." if typed else "Nothing waits for a human.")
    return tuple(rows)


def decide_several(context: Context, listed: Sequence[QueueRow], typed: str) -> None:
    """Decide alike what was listed: an answer, and the numbers; without numbers all of them.

    Raises:
        UsageError: nothing was listed, no answer was given, or there is no such number.
    """
    answer, _, numbers = typed.partition(" ")
    if not listed or not answer:
        raise UsageError("nothing says what is to be decided", "n lists what waits; then D approve 1 3 4")
    rows = [_numbered(listed, word) for word in numbers.split()] or [row for row in listed if row.asks]
    signs = bool(context.snapshot().signing_key)
    by = Decider(context.actor, account(), signs)
    current = {row.key: row for row in rows_of(context.run(context.hub.waiting(MOST)))}
    plans = plan(rows, answer, by, context.hub.now(), current)
    context.console.say(*map(_plan_line, plans))
    would = [planned for planned in plans if planned.would]
    if not would or not confirm(context.console, f"{plan_words(plans)}. Decide them?"):
        context.console.say("Nothing was decided.")
        return
    results = [context.run(decide(context.hub, planned, context.actor)) for planned in would]
    for result in results:
        if result.outcome != "decided":
            context.console.say(f"{name(result.thread)}: {result.outcome}: {name(result.why)}")
    context.console.say(f"{result_words(results)}.")
    for thread in dict.fromkeys(result.thread for result in results if result.outcome == "decided"):
        context.run(run_on(context.hub, thread))


def _numbered(listed: Sequence[QueueRow], word: str) -> QueueRow:
    if not word.isdigit() or not 1 <= int(word) <= len(listed):
        raise UsageError(f"there is no number {word!r} in the list", f"give 1 to {len(listed)}")
    return listed[int(word) - 1]


def _plan_line(planned: Planned) -> str:
    """What would be answered, or why nothing."""
    what = f"would be answered {name(planned.label)}" if planned.would else f"is left: {name(planned.why)}"
    return f"{name(planned.thread)}: {name(planned.title)}: {what}"
