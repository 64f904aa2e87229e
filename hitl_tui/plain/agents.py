"""A thread's agents in lines: what they are and remember, other settings for them, forgetting."""

from __future__ import annotations

from hitl_tui.engine.commands import ClearTurns, ConfigureAgents
from hitl_tui.engine.thread.agent_settings import AgentInfo
from hitl_tui.errors import UsageError
from hitl_tui.plain.console import confirm
from hitl_tui.plain.context import Talk
from hitl_tui.suggest import did_you_mean
from hitl_tui.view.agents import whole_agent
from hitl_tui.view.answers import read_settings
from hitl_tui.view.format import cost, count
from hitl_tui.view.lines import name


def agents(talk: Talk, typed: str) -> None:
    """Show the agents; "AGENT" shows one and its turns, "AGENT.SETTING=VALUE" changes it, "forget AGENT"."""
    word, _, rest = typed.partition(" ")
    if word == "forget":
        _forget(talk, rest.strip())
    elif "=" in typed:
        _change(talk, typed)
    else:
        found: tuple[AgentInfo, ...] = talk.run(talk.driver.agents())
        if typed:
            talk.console.say(*whole_agent(_named(found, typed)))
        elif not found:
            talk.console.say("The graph has no agents.")
        else:
            talk.console.say(*map(_line, found))


def _named(found: tuple[AgentInfo, ...], wanted: str) -> AgentInfo:
    names = [one.name for one in found]
    if wanted not in names:
        raise UsageError(f"there is no agent {wanted!r}", did_you_mean(wanted, names))
    return found[names.index(wanted)]


def _change(talk: Talk, typed: str) -> None:
    for agent, settings in read_settings((typed,)).items():
        command = ConfigureAgents({agent: settings}, talk.actor)
        doubts = talk.run(talk.driver.preview(command)).problems.get(agent)
        talk.run(talk.driver.execute(command))
        talk.console.say(f"{name(agent)}: {', '.join(settings)} changed from the next step on.")
        if doubts:
            talk.console.say(f"Warning: {name(doubts)}.")


def _forget(talk: Talk, wanted: str) -> None:
    one = _named(talk.run(talk.driver.agents()), wanted)
    # Turns in a channel are state: the driver refuses, and says what to do.
    own = one.history is None
    if own and not confirm(
        talk.console, f"Forget {count(len(one.turns), 'turn')} of {name(wanted)} for good?"
    ):
        talk.console.say("Nothing was forgotten.")
        return
    gone = talk.run(talk.driver.execute(ClearTurns(wanted, talk.actor)))
    talk.console.say(f"{name(wanted)} forgot {count(gone, 'turn')}.")


def _line(one: AgentInfo) -> str:
    paid = "at a cost that is not known" if one.cost is None else f"for {cost(one.cost)}"
    facts = [f"{count(one.calls, 'call')} {paid}", count(len(one.turns), "turn")]
    facts += [f"changed: {', '.join(map(name, one.changed))}"] if one.changed else []
    return f"{name(one.name)}: {name(one.model)}, {', '.join(facts)}."
