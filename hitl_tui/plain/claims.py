"""Claims in plain text mode: claiming a request, handing it over, allowing calls of a tool."""

from __future__ import annotations

from hitl_tui.engine.commands import Allow
from hitl_tui.engine.thread.allowances import allowances
from hitl_tui.plain.context import Context
from hitl_tui.plain.deciding import ready_to
from hitl_tui.view.allowances import (
    allowance_words,
    call_asked_about,
    exact_args,
    read_patterns,
)
from hitl_tui.view.lines import split_words


def allow(context: Context, typed: str) -> None:
    """List the allowances; "call" allows the waiting call; "TOOL NAME=PATTERN…" those like it.

    Raises:
        UsageError: no single call waits, or a pattern can't be parsed.
    """
    word, _, rest = typed.partition(" ")
    if word:
        snapshot = ready_to(context, Allow)
        actor, driver = context.actor, context.driver
        exact = word == "call"
        call = call_asked_about(snapshot.progress.pending) if exact else None
        args = exact_args(call) if call else read_patterns(split_words(rest))
        note = context.console.ask("Why (logged); empty for none:") or None
        tool = call.name if call else word
        context.run(driver.execute(Allow(tool, actor, args, exact, note=note, seen=snapshot.state_hash)))
        context.console.say("Its calls are approved when the thread continues.")
    snapshot = context.snapshot()
    known = allowances(snapshot.ledger, snapshot.thread_id)
    context.console.say(*(f"{allowance_words(allowance)}." for allowance in known))
    if not known:
        context.console.say("Nothing is allowed in this thread without asking.")
