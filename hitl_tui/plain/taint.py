"""Untrusted and private values in plain text mode: why, declassify with a reason, reveal with a yes."""

from __future__ import annotations

from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.log.taint import Taint
from hitl_tui.plain.context import Context
from hitl_tui.view.answers import find_channel
from hitl_tui.view.lines import name, spans
from hitl_tui.view.taint import lineage_lines, taint_line


def why_tainted(context: Context, typed: str) -> None:
    """Print which channels hold untrusted data, each with its path; or one of them."""
    snapshot = context.snapshot()
    channel = find_channel(list(snapshot.values), typed) if typed else ""
    tainted = [taint for taint in _tainted(snapshot) if channel in ("", taint.channel)]
    if not tainted:
        context.console.say(f"{name(channel)} is not tainted." if channel else "No channel is tainted.")
    for taint in tainted:
        arrivals = context.run(context.driver.lineage(taint.channel, snapshot.progress.head))
        context.console.say(*spans([taint_line(taint)]), *spans(lineage_lines(arrivals)))


def _tainted(snapshot: Snapshot) -> tuple[Taint, ...]:
    return snapshot.checkpoints[-1].tainted if snapshot.checkpoints else ()
