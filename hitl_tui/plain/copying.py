"""Copying something of the open thread in plain text mode, to the clipboard of terminal and machine."""

from __future__ import annotations

from typing import get_args

from hitl_tui.errors import UsageError
from hitl_tui.plain.context import Context
from hitl_tui.view.clipboard import copy, to_own_terminal
from hitl_tui.view.copying import TextKind, copied_text
from hitl_tui.view.format import capital
from hitl_tui.view.session import ViewSession

_KINDS: dict[str, TextKind] = {kind: kind for kind in get_args(TextKind)}


def take_along(context: Context, typed: str) -> None:
    """Copy "value CHANNEL", "diff CHANNEL", "card" or "command".

    Raises:
        UsageError: it is none of these, or there is no such thing.
    """
    word, _, channel = typed.partition(" ")
    kind = _KINDS.get(word)
    if kind is None:
        raise UsageError("say what to copy", "K value CHANNEL, K diff CHANNEL, K card or K command")
    session = context.run(ViewSession.open(context.hub, context.driver))
    text = context.run(copied_text(session, kind, channel.strip()))
    words = context.run(copy(to_own_terminal(), text)).words
    context.console.say(f"{capital(words)}.")
