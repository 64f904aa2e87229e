"""Breakpoints in plain text mode: set, listed, switched off and on, removed."""

from __future__ import annotations

from msgspec.structs import replace

from hitl_tui.drivers.breakpoints import describe, fits, put, read_breakpoint, toggled
from hitl_tui.errors import UsageError
from hitl_tui.plain.context import Context
from hitl_tui.view.sanitise import sanitise_line

_WIDE = 600


def change_breakpoints(context: Context, typed: str) -> None:
    """Set a breakpoint as `--break` takes it; NODE removes those before it; a number removes the one with
    that number, `off 2` and `on 2` switch it; without a word they are listed.

    Raises:
        UsageError: the text can't be parsed, or there is none with that number.
    """
    graph = context.snapshot().graph
    word, _, rest = typed.strip().partition(" ")
    if word.isdigit() or (word in ("on", "off") and rest.strip().isdigit()):
        _change_numbered(context, word, int(rest if word in ("on", "off") else word))
    elif typed.strip() in {point.place for point in context.breakpoints if point.kind == "before"}:
        context.keep_breakpoints(toggled(context.breakpoints, typed.strip()))
    elif typed:
        context.keep_breakpoints(put(context.breakpoints, read_breakpoint(typed.strip(), graph)))
    for number, point in enumerate(context.breakpoints, 1):
        off = ", switched off" if point.off else "" if fits(point, graph) else ", no longer in the graph"
        does = "tells" if point.log else "stops"
        context.console.say(f"{number}. It {does} {sanitise_line(describe(point), _WIDE)}{off}.")
    if not context.breakpoints:
        context.console.say("There is no breakpoint.")


def _change_numbered(context: Context, word: str, number: int) -> None:
    points = list(context.breakpoints)
    if not 0 < number <= len(points):
        raise UsageError(f"there is no breakpoint {number}", "b lists them")
    point = points.pop(number - 1)
    if word in ("on", "off"):
        points.insert(number - 1, replace(point, off=word == "off"))
    context.keep_breakpoints(tuple(points))
