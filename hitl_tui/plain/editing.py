"""Editing and forking in lines: typed, checked, previewed, confirmed; a refused text is shown again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.commands import Fork, UpdateState
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.plain.console import ask_text, confirm, json_of
from hitl_tui.plain.context import Talk
from hitl_tui.plain.deciding import give_back, ready_to
from hitl_tui.suggest import did_you_mean
from hitl_tui.view.glyphs import ASCII
from hitl_tui.view.lens import lens
from hitl_tui.view.lines import content, name, spans
from hitl_tui.view.status import next_words
from hitl_tui.view.value_lines import value_lines


def find_channel(names: Sequence[str], typed: str) -> str:
    """A channel by number, as listed, or by name.

    Raises:
        UsageError: there is none.
    """
    if typed in names:
        return typed
    if typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(names):
        return names[int(typed) - 1]
    raise UsageError(f"there is no channel {typed!r}", did_you_mean(typed, names))


def show_value(talk: Talk, typed: str) -> None:
    """Show the whole value of a channel."""
    values = talk.snapshot().values
    channel = find_channel(list(values), typed or talk.console.ask("Channel, by number or name:"))
    talk.console.say(f"{name(channel)}:", *content(value_lines(values[channel], "text")))


def edit(talk: Talk, typed: str) -> None:
    """Set one channel as a new step."""
    snapshot = ready_to(talk, UpdateState)
    head = snapshot.progress.head
    channel = find_channel(list(snapshot.values), typed or talk.console.ask("Channel, by number or name:"))
    is_text = _type(snapshot, channel) == "text"
    talk.console.say(
        f"{name(channel)} now:",
        *content(value_lines(snapshot.values[channel], "text"), 100, "v shows it whole"),
    )
    text, note = ask_text(talk.console, f"New value, as {'text' if is_text else 'JSON'}."), None
    try:
        changes = {channel: text if is_text else json_of(text)}
        if not _agreed(talk, changes, head):
            talk.console.say("Nothing was stored.", "Your text was:", *content([text]))
            return
        note = talk.console.ask("Note, for the record; empty for none:") or None
        command = UpdateState(changes, head, actor=talk.actor, note=note)
        step = talk.run(talk.driver.execute(command))
    except HitlError as error:
        give_back(talk, error, head, ("text was", text), ("note was", note))
        return
    talk.console.say(f"Stored as step {step}.")


def fork(talk: Talk) -> None:
    """Make a new thread from a step, and turn to it."""
    snapshot = ready_to(talk, Fork)
    head = snapshot.progress.head
    typed = talk.console.ask(f"From which step? The newest is {head}; empty takes it:") or str(head)
    if not (typed.isascii() and typed.isdigit()):
        raise UsageError(f"{typed!r} is no step", f"steps are 0 to {head}")
    new = talk.console.ask("Name of the new thread; empty makes none:")
    if not new:
        talk.console.say("No fork was made.")
        return
    talk.run(talk.driver.execute(Fork(int(typed), new, actor=talk.actor)))
    talk.open(talk.run(talk.hub.open(new)))
    talk.console.say(f"Made {name(new)} from step {typed}; this is it now.")


def _agreed(talk: Talk, changes: Mapping[str, Any], head: int) -> bool:
    """Show what the edit would do; raises `UsageError` for one that can't be made."""
    preview = talk.run(talk.driver.preview(UpdateState(changes, head)))
    if preview.problems:
        raise UsageError("\n".join(preview.problems.values()))
    talk.console.say("It would do this:", *spans(lens(preview.updates, ASCII), 60))
    talk.console.say(f"Then {next_words(preview.next_node)}.")
    for title in preview.rebinds:
        talk.console.say(f"The question {name(title)} would be about the new step.")
    return confirm(talk.console, "Store it?")


def _type(snapshot: Snapshot, channel: str) -> str:
    return next((one.type for one in snapshot.graph.channels if one.name == channel), "")
