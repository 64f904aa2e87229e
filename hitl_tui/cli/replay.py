"""`replay`: a thread's graph again, on the results its nodes once had."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.opening import build_now
from hitl_tui.cli.options import building_options, store_option, thread_argument
from hitl_tui.cli.output import emit, json_option, keep_nodes_apart, progress, say
from hitl_tui.errors import ExitCode

if TYPE_CHECKING:
    from hitl_tui.engine.audit.replay import ReplayReport


@click.command()
@thread_argument
@building_options
@store_option
@json_option
def replay(thread: str, store: str | None, as_json: bool) -> int:
    """Run a thread's graph again on recorded results.

    Routes and termination conditions are evaluated, and updates are reduced again. No node and no model is
    called, and nothing is changed. Exit code 1 if the graph would take another route today, or if a result
    differs.

        hitl-tui replay r1
    """
    from hitl_tui.cli.opening import find_thread
    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.engine.audit.replay import replay as run_again

    keep_nodes_apart()
    with closing(open_existing(load_settings({"store": store}))) as opened:
        name = find_thread(opened, thread)
        info = opened.info(name)
        assert info is not None
        graph = build_now(opened, info).graph
        with progress("replaying", as_json=as_json) as watch:
            report = run_again(opened, graph, name, watch)
    if as_json:
        import msgspec

        from hitl_tui.cli.reports import ReplayDocument

        facts = msgspec.structs.asdict(report)
        changed = report.changed_reducers
        emit(ReplayDocument(thread=thread, ok=report.ok, changed_reducers=changed, **facts))
    else:
        say(*_lines(report))
    return ExitCode.DONE if report.ok else ExitCode.FAILED


def _lines(report: ReplayReport) -> list[str]:
    from hitl_tui.view.findings import finding_line
    from hitl_tui.view.format import count

    lines = [finding_line(mismatch) for mismatch in report.mismatches]
    counted = f"{count(report.steps, 'step')} replayed, the results of {count(report.nodes, 'node')} served"
    return [*lines, f"{'ok' if report.ok else count(len(lines), 'finding')}: {counted}"]
