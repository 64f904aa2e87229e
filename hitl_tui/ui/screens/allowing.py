"""Allowances: calls of tools that need no approval in a thread; adding and revoking them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hitl_tui.engine.commands import Allow
from hitl_tui.engine.thread.approval_formats import ToolAction
from hitl_tui.errors import UsageError
from hitl_tui.ui.conversations import play
from hitl_tui.ui.screens.dialogs import Dialog, DialogField, DialogResult
from hitl_tui.ui.screens.modal import Host
from hitl_tui.verbs import verbs
from hitl_tui.view.allowances import args_words, exact_args, read_patterns
from hitl_tui.view.keymap import BACK, Option
from hitl_tui.view.lines import split_words
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession


def ask_allow(screen: Host, session: ViewSession, call: ToolAction, actor: str) -> None:
    """Ask which calls of a tool to allow in this thread from now on; waiting ones are then approved, too."""

    async def allow(args: Mapping[str, Any], note: str | None, *, exact: bool) -> None:
        seen = session.view.state_hash
        named = await session.driver.execute(Allow(call.name, actor, args, exact, note=note, seen=seen))
        screen.show_message(f"allowed as {named}; it is approved when the thread continues", "Allowed")

    def answered(answer: DialogResult | None) -> None:
        if answer is None:
            return
        if answer.id == "allowed":
            screen.command(partial(play, screen, session, verbs()["revoke"].load()))
            return
        exact, note = answer.id == "call", answer.fields["why"].strip() or None
        try:
            like = read_patterns(split_words(answer.fields["like"]))
            if exact and like:
                raise UsageError(
                    "this call is allowed with exactly its arguments", "l allows those like yours"
                )
            args = exact_args(call) if exact else like
        except UsageError as error:
            screen.show_message(f"{error.message}, {error.hint}; nothing was allowed", "Allow", "warning")
        else:
            screen.command(partial(allow, args, note, exact=exact))

    text = [
        f"{sanitise_line(call.name, 80)} with {args_words(call.args) or 'no arguments'}",
        "Never for high risk or untrusted data.",
    ]
    fields = [DialogField("like", "arguments, as path=docs/*; empty: any"), DialogField("why", "why")]
    options = [
        Option("call", "c", "this call, with these arguments"),
        Option("like", "l", "this tool, where arguments match"),
        Option("allowed", "w", "show what is allowed"),
        BACK,
    ]
    screen.app.push_screen(Dialog("Allow in this thread", text, options, fields), answered)
