"""Items of the graph's long-term store in lines."""

from __future__ import annotations

from hitl_tui.plain.context import Context
from hitl_tui.view.items import MOST, item_lines
from hitl_tui.view.lines import spans


def list_items(context: Context, typed: str) -> None:
    """Those that have the words, a line each."""
    if why := context.hub.no_items:
        context.console.say(f"There are no items: {why}.")
        return
    items = context.run(context.hub.items((), typed, MOST))
    if not items:
        context.console.say("No item has that." if typed else "The store is empty.")
    context.console.say(*spans(item_lines(items)))
