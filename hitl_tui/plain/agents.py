"""Agents of a thread in plain text mode: what they are and remember."""

from __future__ import annotations

from hitl_tui.engine.thread.agent_settings import AgentInfo
from hitl_tui.plain.context import Context
from hitl_tui.view.agents import find_agent, whole_agent
from hitl_tui.view.format import cost, count
from hitl_tui.view.lines import name


def agents(context: Context, typed: str) -> None:
    """Show the agents, or one with its turns."""
    infos: tuple[AgentInfo, ...] = context.run(context.driver.agents())
    why = context.hub.no_agents
    if typed:
        context.console.say(*whole_agent(find_agent(infos, typed, why)))
    elif not infos:
        context.console.say(f"The graph has no agents here: {why}." if why else "The graph has no agents.")
    else:
        context.console.say(*map(_line, infos))


def _line(info: AgentInfo) -> str:
    paid = "price unknown" if info.cost is None else f"for {cost(info.cost)}"
    facts = [f"{count(info.calls, 'call')} {paid}", count(len(info.turns), "turn")]
    facts += [f"changed: {', '.join(map(name, info.changed))}"] if info.changed else []
    return f"{name(info.name)}: {name(info.model)}, {', '.join(facts)}."
