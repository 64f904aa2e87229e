"""`taint`: why a channel is tainted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import complete_thread
from hitl_tui.cli.output import emit, say
from hitl_tui.cli.thread import OpenStored, on_log
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.engine.audit.lineage import Arrival
    from hitl_tui.engine.graph.description import GraphInfo
    from hitl_tui.engine.log.taint import Taint


@click.command()
@click.argument("place", metavar="THREAD[@STEP]", shell_complete=complete_thread)
@click.argument("channel", required=False)
@on_log()
def taint(opened: OpenStored, *, place: str, channel: str | None) -> ExitCode:
    """Show which channels hold untrusted data, and why.

    A channel is untrusted while its value came from outside, such as a web page or the result of a tool, or
    was made from such a value. With CHANNEL it shows only that one: which step, node or tool brought it in,
    and through which nodes it came.

        hitl-tui taint w1
        hitl-tui taint w1 mail
    """
    from hitl_tui.cli.inputs import logged_place
    from hitl_tui.cli.reports import TaintDocument, TaintedChannel

    at = logged_place(opened, place)
    if channel is not None:
        _check_known(at.thread.graph, channel)
    point = at.thread.checkpoint(at.step)
    tainted = [taint for taint in point.tainted if channel in (None, taint.channel)]
    arrivals = {taint.channel: at.thread.lineage(taint.channel, at.step) for taint in tainted}
    if opened.as_json:
        rows = tuple(TaintedChannel(taint, arrivals[taint.channel]) for taint in tainted)
        emit(TaintDocument(thread=at.thread.thread_id, step=at.step, channels=rows))
    else:
        _say(tainted, arrivals, channel)
    return ExitCode.DONE


def _check_known(graph: GraphInfo, channel: str) -> None:
    from hitl_tui.suggest import did_you_mean

    names = [declared.name for declared in graph.channels]
    if channel not in names:
        raise UsageError(f"there is no channel {channel!r}", did_you_mean(channel, names))


def _say(tainted: list[Taint], arrivals: dict[str, tuple[Arrival, ...]], channel: str | None) -> None:
    from hitl_tui.view.spans import plain_text
    from hitl_tui.view.taint import lineage_lines, taint_line

    if not tainted:
        say(f"{channel or 'no channel'} is {'not ' if channel else ''}tainted")
    for taint in tainted:
        say(plain_text(taint_line(taint)))
        say(*(f"  {plain_text(line)}" for line in lineage_lines(arrivals[taint.channel])))
