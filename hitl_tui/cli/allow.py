"""`allow`: calls of a tool that need no approval in a thread; lists and revokes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import note_option, thread_argument
from hitl_tui.cli.output import emit, say
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.engine.thread.allowances import Allowance


@click.command()
@thread_argument
@click.argument("tool", required=False)
@click.option(
    "--arg", "args", metavar="NAME=PATTERN", multiple=True,
    help="A pattern for an argument, as path=docs/*; JSON for other values than text. Repeatable.",
)  # fmt: skip
@click.option("--call", "exact", is_flag=True, help="The call that waits, with exactly its arguments.")
@click.option("--high-risk", is_flag=True, help="Also for high-risk calls.")
@click.option("--tainted", is_flag=True, help="Also if the agent has read untrusted data.")
@click.option("--list", "lists", is_flag=True, help="Only list what is allowed.")
@note_option
@on_thread(acts=True)
async def allow(
    opened: OpenThread,
    *,
    thread: str,
    tool: str | None,
    args: tuple[str, ...],
    exact: bool,
    high_risk: bool,
    tainted: bool,
    lists: bool,
    note: str | None,
) -> ExitCode:
    """Allow calls of a tool in a thread without approval.

    Without TOOL, the tool of the waiting call. A waiting call that is now allowed is approved when the
    thread continues. An allowance is for this thread and its subgraphs. The ledger keeps it, and names it
    for each call that it approves.
    """
    from hitl_tui.engine.commands import Allow
    from hitl_tui.view.allowances import call_asked_about, exact_args, read_patterns

    driver = await opened.reading(thread)
    actor, snapshot = opened.settings.reviewer, await driver.snapshot()
    if not lists:
        if exact and args:
            raise UsageError("--call uses the exact arguments of the call", "leave --arg out")
        asked = call_asked_about(snapshot.progress.pending, tool) if exact or tool is None else None
        patterns = exact_args(asked) if exact and asked else read_patterns(args)
        named = tool or (asked.name if asked else "")
        await driver.execute(Allow(named, actor, patterns, exact, high_risk, tainted, note))
    return _print_allowances(opened, driver.thread_id)


def _print_allowances(opened: OpenThread, thread_id: str) -> ExitCode:
    """Print which calls are allowed, with their ids."""
    from hitl_tui.cli.reports import AllowancesDocument
    from hitl_tui.engine.thread.allowances import allowances_for
    from hitl_tui.view.allowances import allowance_words

    info = opened.store.info(thread_id)
    known: tuple[Allowance, ...] = allowances_for(opened.store, info) if info else ()
    if opened.as_json:
        emit(AllowancesDocument(thread_id, known))
    else:
        say(*(map(allowance_words, known) if known else ["nothing is allowed"]))
    return ExitCode.DONE
