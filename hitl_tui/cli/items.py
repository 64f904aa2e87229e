"""`items`: contents of a LangGraph graph's long-term store, read only."""

from __future__ import annotations

import click

from hitl_tui.cli.output import emit, say, table
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import ExitCode


@click.command()
@click.argument("namespace", required=False, default="")
@click.argument("words", nargs=-1)
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many to show."
)
@on_thread()
async def items(opened: OpenThread, *, namespace: str, words: tuple[str, ...], limit: int) -> ExitCode:
    """List the items of a LangGraph graph's long-term store.

    Those whose NAMESPACE starts with this, its parts separated by dots ("" for all), and that contain all
    WORDS in namespace, key or value.

        hitl-tui items --store langgraph:app.py
        hitl-tui items users.ann coffee --store langgraph:app.py --json
    """
    from hitl_tui.cli.reports import ItemsDocument
    from hitl_tui.view.items import place_of, value_words
    from hitl_tui.view.sanitise import sanitise_line

    prefix = [part for part in namespace.split(".") if part]
    found = await opened.hub.items(prefix, " ".join(words), limit)
    if opened.as_json:
        emit(ItemsDocument(items=found))
    else:
        rows = [(place_of(item), sanitise_line(item.key, 60), value_words(item.value)) for item in found]
        say(*(table(rows) or ["no items"]))
    return ExitCode.DONE
