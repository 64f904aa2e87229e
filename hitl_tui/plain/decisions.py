"""The decisions of all threads in plain text mode: searched, listed, and opened at their step."""

from __future__ import annotations

from typing import Final

from hitl_tui.plain.context import Context
from hitl_tui.plain.history import show_step
from hitl_tui.plain.running import open_thread
from hitl_tui.view.decisions import read_filter, sentence_of
from hitl_tui.view.followed import followed
from hitl_tui.view.lines import spans

_MOST: Final = 20
_WIDE: Final = 120


def decisions(context: Context, typed: str) -> None:
    """Open a listed decision by its number, or list those that match a filter, with numbers."""
    if typed.isdigit() and 1 <= int(typed) <= len(context.decisions):
        decision = context.decisions[int(typed) - 1]
        open_thread(context, decision.thread)
        show_step(context, decision.step)
        context.console.say(f"fork step={decision.before} decides it again in a new thread.")
        return
    wanted, problems = read_filter(typed, context.hub.now(), context.actor)
    search = context.hub.decisions(wanted)
    found = [followed(decided) for decided in search.all(_MOST)]
    context.console.say(*(f"{problem}." for problem in problems))
    context.console.say(*(f"{number}. {sentence_of(decision)}" for number, decision in enumerate(found, 1)))
    if not found:
        context.console.say("No decision matches." if typed else "Nobody has decided anything in this store.")
    elif not search.ended:
        context.console.say("There are older ones: add words, or until:2026-11-20.")
    context.decisions = tuple(found)


def stats(context: Context) -> None:
    """Print what the reviews in the store measure."""
    # It loads statistics, which only this needs.
    from hitl_tui.view.stats import stats_lines, stats_of

    found = stats_of(context.run(context.hub.reviews()), context.actor)
    context.console.say(*spans(stats_lines(found, _WIDE)))
