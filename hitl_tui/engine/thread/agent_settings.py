"""A thread's own agents: new chat histories, and changed models or instructions from its next step on.

The engine knows no models. An agent is any object; one that can be changed has `configure(settings)`,
`settings`, and the attributes that `AgentInfo` shows.
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
"""Settings by agent, such as {"worker": {"model": "...", "temperature": 0}}; None resets one."""


class AgentInfo(msgspec.Struct, frozen=True):
    """An agent of a thread as it will be in the next step.

    `changed` are the settings that a person has changed since the graph was made. Calls, tokens and cost
    (US dollars, None if a price is unknown) are those of the thread's committed steps. `turns` is its chat:
    the value of the channel `history` if that keeps it, otherwise the chat in this process, which a restore,
    an edit or a fork does not change. `last` is its newest model call, `tools` are the names of the tools
    that it may call.
    """

    name: Annotated[str, about("The agent's name.")]
    model: Annotated[str, about("Provider and model.")]
    instructions: Annotated[str, about("The instructions.")]
    role: Annotated[str, about("Its role in the workflow.")]
    temperature: Annotated[float | None, about("The temperature; null for the model's default.")]
    changed: Annotated[tuple[str, ...], about("The settings that people changed.")]
    calls: Annotated[int, about("Model calls in committed steps.")]
    tokens_in: Annotated[int, about("Tokens sent.")]
    tokens_out: Annotated[int, about("Tokens written.")]
    cost: Annotated[float | None, about("US dollars; null where a price is unknown.")]
    turns: Annotated[tuple[Mapping[str, Any], ...], about("Its chat turns, if this process has them.")]
    history: Annotated[
        str | None,
        about("The channel that keeps its turns; null if the running process keeps them."),
    ]
    can_change: Annotated[bool, about("Whether its settings can be changed.")]
    last: Annotated[ModelUse | None, about("Its newest model call.")] = None
    tools: Annotated[tuple[str, ...], about("The tools that it may call.")] = ()


class Agents(dict[str, Any]):
    """`config.agents` of a node: agents by name; the error for a wrong name lists the right ones."""

    def __missing__(self, name: str) -> Any:
        known = f"agents: {', '.join(self)}" if self else f"hand it over: compile(agents={{{name!r}: …}})"
        raise UsageError(f"the graph has no agent {name!r}", known)


def fresh_agents(graph: CompiledGraph) -> dict[str, Any]:
    """Return the graph's agents with new chat histories, if they can make them."""
    return Agents(
        (name, agent.fresh() if hasattr(agent, "fresh") else agent) for name, agent in graph.agents.items()
    )


def apply_settings(agents: Mapping[str, Any], settings: Settings) -> None:
    """Give agents the settings of their thread; other settings are reset to the graph's."""
    for name, agent in agents.items():
        wanted = settings.get(name, {})
        if hasattr(agent, "configure") and dict(agent.settings) != dict(wanted):
            agent.configure(wanted)


def merged_settings(agents: Mapping[str, Any], now: Settings, changes: Settings) -> dict[str, dict[str, Any]]:
    """Return the settings after changes, checked on new copies of the agents.

    Raises:
        UsageError: no such agent, one that can't be changed, or a setting that it does not have.
    """
    result = {name: dict(settings) for name, settings in now.items()}
    for name, changed in changes.items():
        agent = agents.get(name)
        if agent is None:
            known = ", ".join(agents) or "none"
            raise UsageError(f"the graph has no agent {name!r}", f"agents: {known}")
        if not hasattr(agent, "configure"):
            raise UsageError(f"agent {name!r} can't be changed", "it is not a hitl-tui Agent")
        settings = result.get(name, {}) | thaw(
            normalise(dict(changed), what=f"the settings of agent {name!r}")
        )
        settings = {setting: value for setting, value in settings.items() if value is not None}
        agent.fresh().configure(settings)
        result[name] = settings
    return {name: settings for name, settings in result.items() if settings}


def settings_at(ledger: Iterable[LedgerEntry]) -> dict[str, dict[str, Any]]:
    """Return the settings in force after these entries of a ledger."""
    by_agent: dict[str, dict[str, Any]] = {}
    for entry in ledger:
        if entry.kind == "agent" and isinstance(entry.data, Mapping) and "is" in entry.data:
            by_agent[str(entry.data["agent"])] = dict(entry.data["is"])
    return {name: settings for name, settings in by_agent.items() if settings}


def differences(before: Settings, now: Settings) -> list[dict[str, Any]]:
    """Yield what the ledger keeps of a change: one fact for each changed agent."""
    return [
        {"agent": name, "was": dict(before.get(name, {})), "is": dict(now.get(name, {}))}
        for name in sorted(before.keys() | now.keys())
        if before.get(name, {}) != now.get(name, {})
    ]


def agent_info(name: str, agent: Any, uses: Iterable[ModelUse], channel_turns: Any) -> AgentInfo:
    """Return an agent as data.

    Args:
        uses: the model calls that it has made in the thread, oldest first.
        channel_turns: the value of the channel that keeps its turns, None if none does.
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
