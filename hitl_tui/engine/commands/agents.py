"""Commands on a thread's agents: change their settings from the next step on, or clear their chat turns.

Each command is one commit; the session must be held for writing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from hitl_tui.engine.commands.command import ClearTurns, ConfigureAgents
from hitl_tui.engine.commands.decisions import decision_entry
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.log.records import Cursor, LedgerEntry
from hitl_tui.engine.log.signing import Signer
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.agent_settings import (
    AgentInfo,
    Settings,
    agent_info,
    apply_settings,
    differences,
    merged_settings,
)
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import UsageError

_ALL = 1 << 31


def configure_agents(session: Session, command: ConfigureAgents) -> None:
    """Carry out `ConfigureAgents`."""
    _refuse_unstarted(session)
    before = session.cursor.agents
    now = merged_settings(session.agents, before, command.agents)
    ledger = agent_entries(
        session.cursor,
        before,
        now,
        at=session.clock(),
        actor=command.actor,
        note=command.note,
        signer=session.signer,
    )
    session.commit_cursor(replace(session.cursor, agents=now), ledger)
    apply_settings(session.agents, now)


def agent_entries(
    cursor: Cursor,
    before: Settings,
    now: Settings,
    *,
    at: int,
    actor: str | None,
    note: str | None,
    signer: Signer | None,
) -> list[LedgerEntry]:
    """Return the ledger's entries for a change of settings, numbered after the cursor's last one."""
    entries: list[LedgerEntry] = []
    for data in differences(before, now):
        known = journal.after_entries(cursor, entries)
        entries.append(
            journal.ledger_entry(known, "agent", at=at, actor=actor, note=note, data=data, signer=signer)
        )
    return entries


def changed_agent(session: Session, name: str, settings: Mapping[str, Any]) -> Any:
    """Return a new copy of an agent with other settings; raises the errors of `ConfigureAgents`."""
    now = merged_settings(session.agents, session.cursor.agents, {name: settings})
    agent = session.agents[name].fresh()
    agent.configure(now.get(name, {}))
    return agent


def clear_turns(session: Session, command: ClearTurns) -> int:
    """Carry out `ClearTurns`."""
    name = command.agent
    _refuse_unstarted(session)
    agent = session.agents.get(name)
    if agent is None or not hasattr(agent, "set_turns"):
        known = (
            ", ".join(
                agent_name for agent_name, agent in session.agents.items() if hasattr(agent, "set_turns")
            )
            or "none"
        )
        raise UsageError(f"the graph has no agent {name!r} with turns", f"agents: {known}")
    channel = getattr(agent, "history_channel", None)
    if channel:
        raise UsageError(
            f"the turns of agent {name!r} are in the channel {channel!r}", "edit that channel, it is state"
        )
    count = len(agent.turns)
    data = {"agent": name, "forgot": count}
    entry = decision_entry(session, [], "agent", actor=command.actor, note=command.note, data=data)
    session.commit_cursor(session.cursor, [entry])
    agent.set_turns([])
    return count


def agents_of(session: Session, store: Store | None) -> tuple[AgentInfo, ...]:
    """Return all agents of a thread as they will be in the next step."""
    uses: dict[str, list[ModelUse]] = {}
    points = list(store.checkpoints(session.thread_id, None, _ALL)) if store and session.exists else []
    for use in (*(use for point in reversed(points) for use in point.uses), *session.cursor.uses):
        uses.setdefault(use.agent, []).append(use)
    return tuple(
        agent_info(name, agent, uses.get(getattr(agent, "name", name), ()), _turns(session, agent))
        for name, agent in session.agents.items()
    )


def _turns(session: Session, agent: Any) -> Any:
    """Return the turns that are kept in a channel; none if it is private."""
    channel = session.graph.channels.get(getattr(agent, "history_channel", None) or "")
    if channel is None:
        return None
    if channel.visibility == "private":
        return ({"role": "private", "content": repr(PRIVATE)},)
    return session.state.values.get(channel.name)


def _refuse_unstarted(session: Session) -> None:
    if session.cursor.head < 0:
        raise UsageError(f"thread {session.thread_id!r} has no step yet", "start it with an input first")
