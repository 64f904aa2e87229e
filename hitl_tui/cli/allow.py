"""`allow`: calls of a tool that need no approval in a thread; lists them, and takes them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from hitl_tui.cli.options import note_option, thread_argument
from hitl_tui.cli.output import emit, say
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.engine.thread.allowances import Allowance
    from hitl_tui.engine.thread.approval_formats import ToolAction


@click.command()
@thread_argument
@click.argument("tool", required=False)
@click.option(
    "--arg", "args", metavar="NAME=PATTERN", multiple=True,
    help="What an argument must be like, as path=docs/*; JSON for what is no text. Repeatable.",
)  # fmt: skip
@click.option("--call", "exact", is_flag=True, help="The call that waits, with its arguments as they stand.")
@click.option("--high-risk", is_flag=True, help="Also where the question is of high risk.")
@click.option("--tainted", is_flag=True, help="Also where its asker has read something from outside.")
@click.option("--list", "lists", is_flag=True, help="Only list what is allowed.")
@click.option("--revoke", metavar="ID", help="Take an allowance back.")
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
    revoke: str | None,
    note: str | None,
) -> ExitCode:
    """Allow calls of a tool in a thread, unasked.

    TOOL is that of the call that waits, where it is left out. What waits already and is allowed is approved
    when the thread goes on. An allowance is for this thread and what runs inside it; the ledger keeps it, and
    each call that it approves names it.
    """
    from hitl_tui.engine.commands import Allow, Revoke

    driver = await opened.reading(thread)
    actor, snapshot = opened.settings.reviewer, await driver.snapshot()
    if revoke is not None:
        await driver.execute(Revoke(revoke, actor, note))
    elif not lists:
        if exact and args:
            raise UsageError("--call takes the arguments as they stand", "leave --arg out")
        asked = await _asked(driver, tool) if exact or tool is None else None
        patterns = asked.args if exact and asked else _patterns(args)
        if not isinstance(patterns, dict):
            raise UsageError("the arguments of this call have no names", "allow the tool without --call")
        named = tool or (asked.name if asked else "")
        await driver.execute(
            Allow(named, actor, patterns, exact, high_risk, tainted, note, snapshot.state_hash)
        )
    return _tell(opened, driver.thread_id)


async def _asked(driver: Driver, tool: str | None) -> ToolAction:
    """The call that waits; raises `UsageError` where it isn't one alone."""
    from hitl_tui.engine.state.frozen import thaw
    from hitl_tui.view.card import actions

    pending = (await driver.snapshot()).progress.pending
    calls = [action for request in pending for action in actions(request) if tool in (None, action.name)]
    if len(calls) != 1:
        names = ", ".join(action.name for action in calls) or "none"
        raise UsageError(
            f"not one call waits, but: {names}", "name the tool, and what its --arg must be like"
        )
    return replace(calls[0], args=thaw(calls[0].args))


def _patterns(args: tuple[str, ...]) -> dict[str, Any]:
    from hitl_tui.view.format import NotJson, read_json

    patterns: dict[str, Any] = {}
    for given in args:
        name, equals, pattern = given.partition("=")
        if not equals or not name:
            raise UsageError(f"--arg {given!r} is no NAME=PATTERN", "as in --arg 'path=docs/*'")
        try:
            patterns[name] = read_json(pattern)
        except NotJson:
            patterns[name] = pattern
    return patterns


def _tell(opened: OpenThread, thread_id: str) -> ExitCode:
    """List what is allowed."""
    from hitl_tui.cli.reports import AllowancesDocument
    from hitl_tui.engine.thread.allowances import allowances_for

    info = opened.store.info(thread_id)
    known: tuple[Allowance, ...] = allowances_for(opened.store, info) if info else ()
    if opened.as_json:
        emit(AllowancesDocument(thread_id, known))
    else:
        say(*(map(_words, known) if known else ["nothing is allowed"]))
    return ExitCode.DONE


_NAME = 60
_VALUE = 80


def _words(allowance: Allowance) -> str:
    """What is allowed by whom, as "a4: send with to=ann@*, by ann: “they know us”"."""
    from hitl_tui.view.format import inline
    from hitl_tui.view.sanitise import sanitise_line

    tool = sanitise_line(allowance.tool, _NAME)
    args = ", ".join(
        f"{sanitise_line(name, _NAME)}="
        f"{sanitise_line(value, _VALUE) if isinstance(value, str) else inline(value, _VALUE)}"
        for name, value in sorted(allowance.args.items())
    )
    like = (
        f" with {'exactly ' if allowance.exact else ''}{args or 'no arguments'}"
        if args or allowance.exact
        else ""
    )
    more = [
        *(["of high risk, too"] if allowance.high_risk else []),
        *(["where something from outside was read, too"] if allowance.tainted else []),
        f"by {sanitise_line(allowance.actor or 'somebody', _NAME)}",
    ]
    note = f": “{sanitise_line(allowance.note, 200)}”" if allowance.note else ""
    return f"{sanitise_line(allowance.id, _NAME)}: {tool}{like}, {', '.join(more)}{note}"
