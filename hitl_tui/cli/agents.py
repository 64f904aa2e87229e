"""`agents`: the agents of a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import thread_argument
from hitl_tui.cli.output import emit, say, table
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import ExitCode

if TYPE_CHECKING:
    from hitl_tui.engine.thread.agent_settings import AgentInfo

_HEADINGS = ("AGENT", "MODEL", "TEMPERATURE", "CALLS", "TOKENS", "COST", "TURNS", "CHANGED")


@click.command()
@thread_argument
@click.option("--turns", metavar="AGENT", help="Show everything about one agent, including its turns.")
@on_thread(builds=True)
async def agents(opened: OpenThread, *, thread: str, turns: str | None) -> ExitCode:
    """Show the agents of a thread: model, use and turns.

    TURNS are kept in a channel; "-" means that they are only in the process that runs the thread.
    `hitl-tui change-agent` gives an agent another model.

        hitl-tui agents r1
        hitl-tui agents r1 --turns writer
    """
    from hitl_tui.view.agents import find_agent, whole_agent
    from hitl_tui.view.shapes import AgentsDocument

    driver, why = await opened.thread(thread), opened.hub.no_agents
    infos = await driver.agents()
    shown = infos if turns is None else (find_agent(infos, turns, why),)
    if opened.as_json:
        emit(AgentsDocument(thread=driver.thread_id, agents=shown))
    elif turns is not None:
        say(*whole_agent(shown[0]))
    elif shown:
        say(*table([_HEADINGS, *map(_row, shown)], give=(1, 7, 0)))
    else:
        say(f"the graph has no agents{f' here: {why}' if why else ''}", err=True)
    return ExitCode.DONE


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
