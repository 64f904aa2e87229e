"""A thread's agents in lines: what they are, other settings from the next step on, forgetting turns."""

from __future__ import annotations

from hitl_tui.engine.agent_settings import AgentInfo
from hitl_tui.plain.answers import read_settings
from hitl_tui.plain.talk import Talk
from hitl_tui.plain.words import name
from hitl_tui.view.format import cost, count


def agents(talk: Talk, typed: str) -> None:
    """Show the agents; "AGENT.SETTING=VALUE" changes one of them first, "forget AGENT" its turns."""
    word, _, rest = typed.partition(" ")
    if word == "forget":
        gone = talk.run(talk.driver.clear_turns(rest.strip(), actor=talk.actor))
        talk.console.say(f"{name(rest.strip())} forgot {count(gone, 'turn')}.")
        return
    if typed:
        for agent, settings in read_settings((typed,)).items():
            talk.run(talk.driver.configure_agent(agent, settings, actor=talk.actor))
            talk.console.say(f"{name(agent)}: {', '.join(settings)} changed from the next step on.")
        return
    found: tuple[AgentInfo, ...] = talk.run(talk.driver.agents())
    if not found:
        talk.console.say("The graph has no agents.")
    for one in found:
        talk.console.say(_line(one))


def _line(one: AgentInfo) -> str:
    paid = "at a cost that is not known" if one.cost is None else f"for {cost(one.cost)}"
    facts = [f"{count(one.calls, 'call')} {paid}", count(len(one.turns), "turn")]
    facts += [f"changed: {', '.join(map(name, one.changed))}"] if one.changed else []
    return f"{name(one.name)}: {name(one.model)}, {', '.join(facts)}."
