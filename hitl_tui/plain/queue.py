"""Queue of waiting requests in plain text mode: listed with numbers, opened, decided together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hitl_tui.drivers.policies import read_policy
from hitl_tui.engine.thread.journal import account
from hitl_tui.errors import UsageError
from hitl_tui.given_files import expanded
from hitl_tui.plain.console import confirm
from hitl_tui.plain.context import Context
from hitl_tui.plain.running import open_thread
from hitl_tui.view.batch import Decider, decide, plan, plan_by, plan_words, result_words, run_on
from hitl_tui.view.lines import name, short_id, split_words
from hitl_tui.view.queue import (
    MOST,
    QueueRow,
    QueueView,
    due_words,
    notes_words,
    read_filter,
    read_sort,
    rows_of,
    span_words,
)
from hitl_tui.view.queue_facts import Planned

_SORT: Final = "sort:"


def queue(context: Context, typed: str) -> None:
    """Open a listed request by its number, or list those that match a filter, with numbers.

    The most urgent is the first; "sort:due" sorts otherwise, "sort:-due" in reverse.

    Raises:
        UsageError: there is no such column to sort by.
    """
    if typed.isdigit() and 1 <= int(typed) <= len(context.listed):
        open_thread(context, context.listed[int(typed) - 1].name)
        context.console.say(f"It is {int(typed)} of {len(context.listed)} waiting.")
        return
    now, me = context.hub.now(), context.actor
    words = typed.split()
    sorts = [word.removeprefix(_SORT) for word in words if word.startswith(_SORT)]
    typed = " ".join(word for word in words if not word.startswith(_SORT))
    by = sorts[-1] if sorts else "urgency"
    view = QueueView(typed, read_sort(by.removeprefix("-")), by.startswith("-"))
    rows = view.shown(rows_of(context.run(context.hub.waiting(MOST))), now, me)
    context.console.say(*(f"{problem}." for problem in read_filter(typed).problems))
    for number, row in enumerate(rows, 1):
        facts = [
            f"waits {span_words(max(now - row.since, 0))}",
            due_words(row, now),
            "high risk" if row.high_risk else "",
            notes_words(row, now, me),
        ]
        details = ", ".join(fact for fact in facts if fact)
        context.console.say(f"{number}. {name(row.title)}: {name(row.name)} of {name(row.graph)}, {details}")
    if not rows:
        context.console.say("No request matches the filter." if typed else "Nothing waits for a human.")
    context.listed = tuple(rows)


def decide_several(context: Context, typed: str) -> None:
    """Decide listed requests: an answer, or "@" and the file of a policy, and the numbers; without them all.

    Raises:
        UsageError: nothing was listed, no answer was given, the policy can't be read, or there is no such
            number.
    """
    answer, *numbers = split_words(typed) or [""]
    listed = context.listed
    if not listed or not answer:
        raise UsageError("say what to decide", "n lists the requests; then D approve 1 3 4")
    rows = [_numbered(listed, word) for word in numbers] or [row for row in listed if row.asks]
    policy = read_policy(expanded(answer[1:])) if answer.startswith("@") else None
    signs = bool(context.snapshot().signing_key)
    by = Decider(context.actor, account(), signs)
    current = {row.key: row for row in rows_of(context.run(context.hub.waiting(MOST)))}
    if policy:
        plans = context.run(plan_by(policy, context.hub, rows, by, context.hub.now(), current=current))
    else:
        plans = plan(rows, answer, by, context.hub.now(), current)
    context.console.say(*map(_plan_line, plans))
    would = [planned for planned in plans if planned.would]
    if not would or not confirm(context.console, f"{plan_words(plans)}. Decide them?"):
        context.console.say("Nothing was decided.")
        return
    results: list[Planned] = []
    try:
        results.extend(context.run(decide(context.hub, planned, context.actor)) for planned in would)
    except KeyboardInterrupt:
        context.console.say("Stopped; n lists what still waits.")
    for result in results:
        if result.outcome != "decided":
            context.console.say(f"{short_id(result.thread)}: {result.outcome}: {name(result.why)}")
    context.console.say(f"{result_words(results)}.")
    for thread in dict.fromkeys(result.thread for result in results if result.outcome == "decided"):
        context.run(run_on(context.hub, thread))


def _numbered(listed: Sequence[QueueRow], word: str) -> QueueRow:
    if not word.isdigit() or not 1 <= int(word) <= len(listed):
        raise UsageError(f"there is no number {word!r} in the list", f"give 1 to {len(listed)}")
    return listed[int(word) - 1]


def _plan_line(planned: Planned) -> str:
    """Return the answer for a request, or why it gets none."""
    by = f" by rule {name(planned.rule)}" if planned.rule else ""
    would = f"would be answered {name(planned.label)}{by}"
    what = would if planned.would else f"is left: {name(planned.why)}"
    return f"{short_id(planned.thread)}: {name(planned.title)}: {what}"
