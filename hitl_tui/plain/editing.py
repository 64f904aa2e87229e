"""Editing and forking in plain text mode: typed, checked, previewed, confirmed; a refused text is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_tui.engine.commands import UpdateState
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.plain.console import ask_text, confirm, json_of
from hitl_tui.plain.context import Context
from hitl_tui.plain.deciding import give_back, ready_to
from hitl_tui.view.answers import find_channel
from hitl_tui.view.edits import as_node_lines, withdrawn_lines
from hitl_tui.view.glyphs import ASCII
from hitl_tui.view.lens import lens
from hitl_tui.view.lines import content, name, spans
from hitl_tui.view.status import next_words
from hitl_tui.view.value_lines import value_lines

_READ = 78
"""Cells of a row of a text to read."""


def show_value(context: Context, typed: str) -> None:
    """Show the whole value of a channel."""
    values = context.snapshot().values
    channel = find_channel(list(values), typed or context.console.ask("Channel, by number or name:"))
    context.console.say(f"{name(channel)}:", *content(value_lines(values[channel], "text")))


def read(context: Context, typed: str) -> None:
    """Print a text rendered, with its changes and what became of comments on the last version."""
    from hitl_tui.config import looked_file
    from hitl_tui.view.reading import Looked, load_reading, reading_lines
    from hitl_tui.view.session import ViewSession

    session = context.run(ViewSession.open(context.hub, context.driver))
    request = session.request
    subject = request.subject if request is not None and request.subject else ""
    channel = typed or subject or context.console.ask("Channel, by number or name:")
    found = find_channel(list(session.view.values), channel)
    asked = request if found == subject else None
    reading = context.run(load_reading(session, found, asked, context.actor, Looked(looked_file())))
    context.console.say(*reading_lines(reading, _READ))


def edit(context: Context, typed: str) -> None:
    """Set one channel as a new step."""
    snapshot = ready_to(context, UpdateState)
    head = snapshot.progress.head
    channel = find_channel(list(snapshot.values), typed or context.console.ask("Channel, by number or name:"))
    is_text = any(known.name == channel and known.type == "text" for known in snapshot.graph.channels)
    context.console.say(
        f"{name(channel)} now:",
        *content(value_lines(snapshot.values[channel], "text"), 100, "v shows it whole"),
    )
    text, note = ask_text(context.console, f"New value, as {'text' if is_text else 'JSON'}."), None
    try:
        changes = {channel: text if is_text else json_of(text)}
        as_node = _chosen_node(context, changes, head)
        if not _agreed(context, UpdateState(changes, head, as_node)):
            context.console.say("Nothing was stored.", "Your text was:", *content([text]))
            return
        note = context.console.ask("Note (logged); empty for none:") or None
        command = UpdateState(changes, head, as_node, context.actor, note)
        step = context.run(context.driver.execute(command))
    except HitlError as error:
        give_back(context, error, head, ("text was", text), ("note was", note))
        return
    context.console.say(f"Stored as step {step}.")


def _chosen_node(context: Context, changes: Mapping[str, Any], head: int) -> str | None:
    """Return the node that an edit is made as; ask for it if the driver knows where each leads."""
    preview = context.run(context.driver.preview(UpdateState(changes, head)))
    if not preview.as_nodes:
        return None
    context.console.say("It can be made as if a node had written it:", *as_node_lines(preview.as_nodes))
    return context.console.ask("As which node? Empty for none:") or None


def _agreed(context: Context, command: UpdateState) -> bool:
    """Show the effects of the edit; raise `UsageError` if it can't be made."""
    preview = context.run(context.driver.preview(command))
    if preview.problems:
        raise UsageError("\n".join(preview.problems.values()))
    context.console.say("It would do this:", *spans(lens(preview.updates, ASCII), 60))
    context.console.say(f"Then {next_words(preview.next_node)}.")
    for title in preview.rebinds:
        context.console.say(f"The question {name(title)} would be about the new step.")
    context.console.say(*withdrawn_lines(preview.withdraws, preview.next_node))
    return confirm(context.console, "Store it?")
