"""Taint and private values in lines: why, declassify with a reason, reveal with a yes."""

from __future__ import annotations

from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.commands import Declassify, Reveal
from hitl_tui.engine.log.taint import Taint
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.plain.console import confirm
from hitl_tui.plain.context import Context
from hitl_tui.plain.deciding import give_back, ready_to
from hitl_tui.plain.editing import find_channel
from hitl_tui.view.lines import content, name, spans
from hitl_tui.view.taint import lineage_lines, taint_line
from hitl_tui.view.value_lines import value_lines


def why_tainted(context: Context, typed: str) -> None:
    """Which channels hold what came from outside, each with the way it came; or one of them."""
    snapshot = context.snapshot()
    channel = find_channel(list(snapshot.values), typed) if typed else ""
    tainted = [taint for taint in _tainted(snapshot) if channel in ("", taint.channel)]
    if not tainted:
        context.console.say(f"{name(channel)} is not tainted." if channel else "No channel is tainted.")
    for taint in tainted:
        ways = context.run(context.driver.lineage(taint.channel, snapshot.progress.head))
        context.console.say(*spans([taint_line(taint)]), *spans(lineage_lines(ways)))


def declassify(context: Context, typed: str) -> None:
    """Say that a tainted channel may be trusted as it is now, and why."""
    snapshot = context.snapshot()
    tainted = [taint.channel for taint in _tainted(snapshot)]
    if not tainted:
        raise UsageError("no channel is tainted")
    ready_to(context, Declassify)
    listed = list(snapshot.values)
    channel = find_channel(listed, typed or context.console.ask("Channel, by number or name:"))
    if channel not in tainted:
        raise UsageError(f"channel {channel!r} is not tainted", f"tainted channels: {', '.join(tainted)}")
    context.console.say(
        f"{name(channel)} now:",
        *content(value_lines(snapshot.values[channel], "text"), 100, "v shows it whole"),
    )
    reason = context.console.ask("Why may it be trusted? Empty leaves it untrusted:")
    if not reason:
        context.console.say("Nothing was changed.")
        return
    head = snapshot.progress.head
    seen = snapshot.checkpoints[-1].state_hash
    command = Declassify(channel, context.actor, reason, head, seen)
    try:
        step = context.run(context.driver.execute(command))
    except HitlError as error:
        give_back(context, error, head, ("reason was", reason))
        return
    context.console.say(f"Declassified as step {step}; what was made from it before stays untrusted.")


def reveal(context: Context, typed: str) -> None:
    """Show a private value once; the ledger keeps who has looked."""
    snapshot = context.snapshot()
    channel = find_channel(list(snapshot.values), typed or context.console.ask("Channel, by number or name:"))
    private = [declared.name for declared in snapshot.graph.channels if declared.visibility == "private"]
    if channel not in private:
        raise UsageError(f"channel {channel!r} is not private", f"v {channel} shows it")
    if not confirm(context.console, "That you looked will be logged. Show it?"):
        context.console.say("Nothing was shown.")
        return
    value = context.run(context.driver.execute(Reveal(channel, context.actor, snapshot.progress.head)))
    context.console.say(f"{name(channel)}:", *content(value_lines(value, "text")))


def _tainted(snapshot: Snapshot) -> tuple[Taint, ...]:
    return snapshot.checkpoints[-1].tainted if snapshot.checkpoints else ()
