"""A thread's own agents: fresh memories, and other models or instructions from its next step on.

The engine knows no models.  An agent is anything; one that can be changed has `configure(settings)`,
`settings`, and what `AgentInfo` tells as attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.log.units import about
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.state.values import normalise
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from hitl_tui.engine.graph.compiled import CompiledGraph
    from hitl_tui.engine.log.records import LedgerEntry

Settings = Mapping[str, Mapping[str, Any]]
"""Settings by agent, as {"worker": {"model": "...", "temperature": 0}}; None takes one back."""


class AgentInfo(msgspec.Struct, frozen=True):
    """An agent of a thread as it is for the next step.

    `changed` are the settings that a human has changed since the graph was made.  Calls, tokens and cost
    (US dollars, None where a price is unknown) are those of the thread's committed steps.  `turns` is
    its chat: of this process alone, which a restore, an edit or a fork does not touch, or the
    value of the channel `history` where that keeps them.  `last` is its newest model call, `tools` the names
    of what it may call.
    """

    name: Annotated[str, about("Its name.")]
    model: Annotated[str, about("Provider and model.")]
    instructions: Annotated[str, about("What it is told.")]
    role: Annotated[str, about("What it is in its workflow.")]
    temperature: Annotated[float | None, about("Null for the model's own.")]
    changed: Annotated[tuple[str, ...], about("The settings that a human changed.")]
    calls: Annotated[int, about("Model calls of the committed steps.")]
    tokens_in: Annotated[int, about("Tokens sent.")]
    tokens_out: Annotated[int, about("Tokens written.")]
    cost: Annotated[float | None, about("US dollars; null where a price is unknown.")]
    turns: Annotated[
        tuple[Mapping[str, Any], ...], about("Its chat turns, as far as this process can know them.")
    ]
    history: Annotated[
        str | None,
        about("The channel that keeps its turns; null where they live in the process that runs it."),
    ]
    can_change: Annotated[bool, about("Whether its settings can be changed.")]
    last: Annotated[ModelUse | None, about("Its newest model call.")] = None
    tools: Annotated[tuple[str, ...], about("What it may call.")] = ()


class Agents(dict[str, Any]):
    """What a node finds as `config.agents`: agents by name, with an error that names them for a wrong one."""

    def __missing__(self, name: str) -> Any:
        known = f"agents: {', '.join(self)}" if self else f"hand it over: compile(agents={{{name!r}: …}})"
        raise UsageError(f"the graph has no agent {name!r}", known)


def fresh_agents(graph: CompiledGraph) -> dict[str, Any]:
    """The graph's agents with chat histories of their own, where they know how to start afresh."""
    return Agents(
        (name, agent.fresh() if hasattr(agent, "fresh") else agent) for name, agent in graph.agents.items()
    )


def apply(agents: Mapping[str, Any], settings: Settings) -> None:
    """Give agents the settings of their thread; those that it says nothing of go back to the graph's."""
    for name, agent in agents.items():
        wanted = settings.get(name, {})
        if hasattr(agent, "configure") and dict(agent.settings) != dict(wanted):
            agent.configure(wanted)


def merged(agents: Mapping[str, Any], now: Settings, changes: Settings) -> dict[str, dict[str, Any]]:
    """The settings once changes are made, checked on fresh copies of the agents.

    Raises:
        UsageError: no such agent, one that can't be changed, or a setting it does not take.
    """
    result = {name: dict(settings) for name, settings in now.items()}
    for name, changed in changes.items():
        agent = agents.get(name)
        if agent is None:
            known = ", ".join(agents) or "none"
            raise UsageError(f"the graph has no agent {name!r}", f"agents: {known}")
        if not hasattr(agent, "configure"):
            raise UsageError(f"agent {name!r} can't be changed", "it is no Agent of hitl-tui")
        settings = result.get(name, {}) | thaw(
            normalise(dict(changed), what=f"the settings of agent {name!r}")
        )
        settings = {setting: value for setting, value in settings.items() if value is not None}
        agent.fresh().configure(settings)
        result[name] = settings
    return {name: settings for name, settings in result.items() if settings}


def settings_at(ledger: Iterable[LedgerEntry]) -> dict[str, dict[str, Any]]:
    """The settings in force after these entries of a ledger."""
    by_agent: dict[str, dict[str, Any]] = {}
    for entry in ledger:
        if entry.kind == "agent" and isinstance(entry.data, Mapping) and "is" in entry.data:
            by_agent[str(entry.data["agent"])] = dict(entry.data["is"])
    return {name: settings for name, settings in by_agent.items() if settings}


def differences(before: Settings, now: Settings) -> list[dict[str, Any]]:
    """What the ledger keeps of a change: one fact for each agent that is not as it was."""
    return [
        {"agent": name, "was": dict(before.get(name, {})), "is": dict(now.get(name, {}))}
        for name in sorted(before.keys() | now.keys())
        if before.get(name, {}) != now.get(name, {})
    ]


def agent_info(name: str, agent: Any, uses: Iterable[ModelUse], channel_turns: Any) -> AgentInfo:
    """An agent as data.

    Args:
        uses: the model calls it has made in the thread, oldest first.
        channel_turns: the value of the channel that keeps its turns, None where none does.
    """
    calls = list(uses)
    costs = [use.cost for use in calls]
    channel = getattr(agent, "history_channel", None)
    turns = channel_turns if channel else getattr(agent, "turns", ())
    options = getattr(agent, "options", {})
    return AgentInfo(
        name=name,
        model=str(getattr(agent, "model", type(agent).__name__)),
        instructions=str(getattr(agent, "instructions", None) or ""),
        role=str(getattr(agent, "role", None) or ""),
        temperature=options.get("temperature"),
        changed=tuple(getattr(agent, "settings", ())),
        calls=len(calls),
        tokens_in=sum(use.tokens_in for use in calls),
        tokens_out=sum(use.tokens_out for use in calls),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
        turns=tuple(thaw(turn) for turn in turns or () if isinstance(turn, Mapping)),
        history=channel,
        can_change=hasattr(agent, "configure"),
        last=calls[-1] if calls else None,
        tools=tuple(getattr(agent, "tools", ())),
    )
