"""Clear the chat turns of an agent.

It starts without them at the next step. The state does not change, and the turns can't be restored; the
log says who did it. Only turns that this process keeps are cleared: those in a channel are state, which you
edit. A process that has run no step of the thread keeps none, so use this on screen or in plain text mode.

    hitl-tui clear-turns r1 writer --note "off the subject"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hitl_tui.engine.commands import ClearTurns
from hitl_tui.verbs.conversation import NOTE, Ask, AskChoice, AskField, At, Do, Show, Talk, Verb
from hitl_tui.view.actions import Action, thread_open
from hitl_tui.view.format import count
from hitl_tui.view.shapes import AgentsDocument

if TYPE_CHECKING:
    from hitl_tui.engine.thread.agent_settings import AgentInfo

_AGENT: Final = AskField("agent", "the agent", required=True)


async def _talk(at: At) -> Talk:
    """Ask whether an agent should forget its turns, and which one if none is named."""
    # It loads how agents are shown, which the first paint does not need.
    from hitl_tui.view.agents import find_agent

    infos = await at.driver.agents()
    wanted = at.given.get("agent") or at.agent
    if not wanted and len(infos) > 1:
        reply = yield _which(infos)
        if reply is None:
            return
        wanted = reply.choice
    info = find_agent(infos, wanted or (infos[0].name if infos else ""), at.hub.no_agents)
    if info.history is not None:
        yield Do(ClearTurns(info.name, at.actor))  # it says which channel to edit
        return
    document = AgentsDocument(thread=at.driver.thread_id, agents=infos)
    if not info.turns:
        yield Show(f"{info.name} remembers nothing in this process", document=document)
        return
    turns = count(len(info.turns), "turn")
    reply = yield Ask(
        f"Clear the turns of {info.name}?",
        (
            f"{info.name} forgets its {turns} and starts without them at the next step. The state does not "
            "change; the turns can't be restored. The log says who did it.",
        ),
        (AskChoice("forget", "f", "forget them", final=True),),
        (NOTE,),
    )
    if reply is None:
        return
    forgotten = yield Do(ClearTurns(info.name, at.actor, reply.text("note")))
    document = AgentsDocument(thread=at.driver.thread_id, agents=await at.driver.agents())
    yield Show(f"{info.name} has forgotten {count(forgotten, 'turn')}", document=document)


def _which(infos: tuple[AgentInfo, ...]) -> Ask:
    choices = (
        AskChoice(info.name, str(number) if number < 10 else "", info.name, count(len(info.turns), "turn"))
        for number, info in enumerate(infos, 1)
    )
    return Ask("Which agent should forget its turns?", (), tuple(choices))


VERB = Verb(
    ClearTurns,
    _talk,
    Action("agents.forget", "x", "Forget turns", "Let the agent forget its turns", "Agents", thread_open),
    after="agents.change",
    arguments=(_AGENT,),
    options=(NOTE,),
    builds=True,
    alone="ask which agent should forget its turns",
)
