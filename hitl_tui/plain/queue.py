"""Queue of waiting requests in plain text mode: listed with numbers, and opened."""

from __future__ import annotations

from typing import Final

from hitl_tui.config import queue_looks_file
from hitl_tui.plain.context import Context
from hitl_tui.plain.running import open_thread
from hitl_tui.view.lines import name, sentence
from hitl_tui.view.queue import (
    MOST,
    QueueView,
    about_words,
    due_words,
    notes_words,
    read_filter,
    read_sort,
    rows_of,
    source_problems,
    span_words,
)
from hitl_tui.view.queue_kept import last_look, save_look

_SORT: Final = "sort:"


def queue(context: Context, typed: str) -> None:
    """Open a listed request by its number, or list those that match a filter, with numbers.

    The most urgent is the first; "sort:due" sorts otherwise, "sort:-due" in reverse.

    Raises:
        UsageError: there is no such column to sort by.
    """
    if typed.isdigit() and 1 <= int(typed) <= len(context.listed):
        row = context.listed[int(typed) - 1]
        context.hub = context.hub.inbox.hub_of(row.source)
        open_thread(context, row.name)
        context.console.say(f"It is {int(typed)} of {len(context.listed)} waiting.")
        return
    inbox, me, looks = context.hub.inbox, context.actor, queue_looks_file()
    now, looked = inbox.now(), last_look(looks, me)
    words = typed.split()
    sorts = [word.removeprefix(_SORT) for word in words if word.startswith(_SORT)]
    typed = " ".join(word for word in words if not word.startswith(_SORT))
    by = sorts[-1] if sorts else "urgency"
    view = QueueView(typed, read_sort(by.removeprefix("-")), by.startswith("-"))
    rows = view.shown(rows_of(context.run(inbox.waiting(MOST))), now, me)
    context.console.say(*(f"{problem}." for problem in read_filter(typed).problems))
    for number, row in enumerate(rows, 1):
        facts = [
            "new" if row.is_new(me, looked) else "",
            f"waits {span_words(max(now - row.since, 0))}",
            due_words(row, now),
            "high risk" if row.high_risk else "",
            notes_words(row, now, me),
        ]
        details = ", ".join(fact for fact in facts if fact)
        context.console.say(f"{number}. {name(row.title)}: {name(row.name)} of {name(row.graph)}, {details}")
        if about := about_words(row):
            context.console.say(f"  | {about}")
    if not rows:
        context.console.say("No request matches the filter." if typed else "Nothing waits for a human.")
    context.console.say(*(sentence(words) for words in source_problems(inbox.sources())))
    context.listed = tuple(rows)
    save_look(looks, me, now)
