"""Breakpoints in lines: set, changed, taken away and listed."""

from __future__ import annotations

from hitl_tui.drivers.breakpoints import describe, read_breakpoint
from hitl_tui.plain.talk import Talk
from hitl_tui.view.sanitise import sanitise_line

_WIDE = 600


def toggle_breakpoint(talk: Talk, typed: str) -> None:
    """NODE sets a breakpoint or takes it away, NODE:CONDITION sets one; without a word they are listed.

    Raises:
        UsageError: no such node, or a condition that can't be read.
    """
    if typed.strip() in talk.breakpoints:
        del talk.breakpoints[typed.strip()]
    elif typed:
        node, condition = read_breakpoint(typed, talk.snapshot().graph)
        talk.breakpoints[node] = condition
    for node, condition in talk.breakpoints.items():
        talk.console.say(f"It stops {sanitise_line(describe(node, condition), _WIDE)}.")
    if not talk.breakpoints:
        talk.console.say("There is no breakpoint.")
