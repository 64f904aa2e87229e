"""Agents of a thread in plain text mode: what they are and remember, other settings, forgetting."""

from __future__ import annotations

from hitl_tui.engine.commands import ClearTurns, ConfigureAgents
from hitl_tui.engine.thread.agent_settings import AgentInfo
from hitl_tui.errors import UsageError
from hitl_tui.plain.console import confirm
from hitl_tui.plain.context import Context
from hitl_tui.suggest import did_you_mean
from hitl_tui.view.agents import whole_agent
from hitl_tui.view.answers import read_settings
from hitl_tui.view.format import cost, count
from hitl_tui.view.lines import name


def agents(context: Context, typed: str) -> None:
    """Show the agents; "AGENT" shows one and its turns, "AGENT.SETTING=VALUE" changes it, "forget AGENT"."""
    word, _, rest = typed.partition(" ")
    if word == "forget":
        _forget(context, rest.strip())
    elif "=" in typed:
        _change(context, typed)
    else:
        infos: tuple[AgentInfo, ...] = context.run(context.driver.agents())
        if typed:
            context.console.say(*whole_agent(_named(infos, typed)))
        elif not infos:
            why = context.hub.no_agents
            context.console.say(
                f"The graph has no agents here: {why}." if why else "The graph has no agents."
            )
        else:
            context.console.say(*map(_line, infos))


def _named(infos: tuple[AgentInfo, ...], wanted: str) -> AgentInfo:
    names = [info.name for info in infos]
    if wanted not in names:
        raise UsageError(f"there is no agent {wanted!r}", did_you_mean(wanted, names))
    return infos[names.index(wanted)]


def _change(context: Context, typed: str) -> None:
    for agent, settings in read_settings((typed,)).items():
        command = ConfigureAgents({agent: settings}, context.actor)
        doubts = context.run(context.driver.preview(command)).problems.get(agent)
        context.run(context.driver.execute(command))
        context.console.say(f"{name(agent)}: {', '.join(settings)} changed from the next step on.")
        if doubts:
            context.console.say(f"Warning: {name(doubts)}.")


def _forget(context: Context, wanted: str) -> None:
    info = _named(context.run(context.driver.agents()), wanted)
    # Turns in a channel are state: the driver refuses, and says what to do.
    own = info.history is None
    if own and not confirm(
        context.console, f"Forget {count(len(info.turns), 'turn')} of {name(wanted)} for good?"
    ):
        context.console.say("Nothing was forgotten.")
        return
    gone = context.run(context.driver.execute(ClearTurns(wanted, context.actor)))
    context.console.say(f"{name(wanted)} forgot {count(gone, 'turn')}.")


def _line(info: AgentInfo) -> str:
    paid = "price unknown" if info.cost is None else f"for {cost(info.cost)}"
    facts = [f"{count(info.calls, 'call')} {paid}", count(len(info.turns), "turn")]
    facts += [f"changed: {', '.join(map(name, info.changed))}"] if info.changed else []
    return f"{name(info.name)}: {name(info.model)}, {', '.join(facts)}."
