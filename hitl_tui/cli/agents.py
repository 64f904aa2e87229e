"""`agents`: the agents of a thread, and other settings for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import note_option, thread_argument
from hitl_tui.cli.output import emit, say, table
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import ExitCode, UsageError
from hitl_tui.suggest import did_you_mean

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.engine.thread.agent_settings import AgentInfo

_HEADINGS = ("AGENT", "MODEL", "TEMPERATURE", "CALLS", "TOKENS", "COST", "TURNS", "CHANGED")


@click.command()
@thread_argument
@click.argument("settings", nargs=-1, metavar="[AGENT.SETTING=VALUE]...")
@click.option("--turns", metavar="AGENT", help="Show everything about one agent, including its turns.")
@click.option("--forget", metavar="AGENT", multiple=True, help="Clear the chat turns of an agent.")
@note_option
@on_thread(acts=True, builds=True)
async def agents(
    opened: OpenThread,
    *,
    thread: str,
    settings: tuple[str, ...],
    turns: str | None,
    forget: tuple[str, ...],
    note: str | None,
) -> ExitCode:
    """Show the agents of a thread, or change them.

    A change applies from the next step on. SETTING is model, instructions, temperature or api_base; VALUE
    null restores the graph's own. Each change is logged. TURNS are kept in a channel; "-" means that they
    are only in the process that runs the thread.
    """
    from hitl_tui.engine.commands import ClearTurns, ConfigureAgents
    from hitl_tui.view.answers import read_settings
    from hitl_tui.view.sanitise import sanitise_line

    wanted = read_settings(settings)
    driver = await opened.thread(thread)
    actor = opened.settings.reviewer
    doubts: Mapping[str, str] = {}
    if wanted:
        change = ConfigureAgents(wanted, actor, note)
        doubts = (await driver.preview(change)).problems
        await driver.execute(change)
    for name in forget:
        await driver.execute(ClearTurns(name, actor, note))
    for doubt in doubts.values():
        say(f"warning: {sanitise_line(doubt, 200)}", err=True)
    await _print_agents(driver, turns, why=opened.hub.no_agents, as_json=opened.as_json)
    return ExitCode.DONE


async def _print_agents(driver: Driver, only: str | None, *, why: str, as_json: bool) -> None:
    """Print a line for each agent, or everything about one.

    Args:
        why: why the agents can't be shown, "" if they can.
    """
    from hitl_tui.view.agents import whole_agent

    infos = await driver.agents()
    shown = [info for info in infos if only in (None, info.name)]
    if only is not None and not shown:
        raise UsageError(f"there is no agent {only!r}", did_you_mean(only, [info.name for info in infos]))
    if as_json:
        from hitl_tui.cli.reports import AgentsDocument

        emit(AgentsDocument(thread=driver.thread_id, agents=tuple(shown)))
    elif only is not None:
        for info in shown:
            say(*whole_agent(info))
    elif shown:
        say(*table([_HEADINGS, *map(_row, shown)], give=(1, 7, 0)))
    else:
        say(f"the graph has no agents{f' here: {why}' if why else ''}", err=True)


def _row(info: AgentInfo) -> tuple[str, ...]:
    from hitl_tui.view.format import cost
    from hitl_tui.view.sanitise import sanitise_line

    cells = (
        info.name,
        info.model,
        "-" if info.temperature is None else f"{info.temperature:g}",
        str(info.calls),
        f"{info.tokens_in} + {info.tokens_out}",
        "unknown" if info.cost is None else cost(info.cost),
        str(len(info.turns)) if info.history else "-",
        ", ".join(info.changed) or "-",
    )
    return tuple(sanitise_line(cell, 60) for cell in cells)
