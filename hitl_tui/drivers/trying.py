"""Trying a step otherwise on a local thread: forks, and other models or instructions for its agents."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from hitl_tui.drivers.part import DriverPart
from hitl_tui.engine.humans import agent_changes, forking
from hitl_tui.engine.log.events import ThreadForked
from hitl_tui.engine.thread.agent_settings import AgentInfo, Settings
from hitl_tui.engine.thread.session import Session


class Trying(DriverPart):
    """The part of a local driver that makes forks and changes agents."""

    async def fork(
        self,
        step: int,
        new_thread_id: str,
        *,
        changes: Mapping[str, Any] | None = None,
        agents: Settings | None = None,
        actor: str | None = None,
        note: str | None = None,
    ) -> str:
        """Make a new thread from a committed step; returns its id."""

        def make(session: Session) -> str:
            forking.fork(
                session,
                self._store,
                step,
                new_thread_id,
                changes=changes,
                agents=agents,
                actor=actor,
                note=note,
            )
            self._tell(ThreadForked(new_thread_id, step))
            return new_thread_id

        return await self._on_engine(make, graph=True)

    async def agents(self) -> tuple[AgentInfo, ...]:
        """The thread's agents as they are for the next step."""
        return await self._on_engine(
            lambda session: agent_changes.agents_of(session, self._store), graph=True
        )

    async def configure_agent(
        self, agent: str, settings: Mapping[str, Any], *, actor: str | None = None, note: str | None = None
    ) -> None:
        """Change settings of an agent from the next step on; logged."""
        await self._write(
            lambda session: agent_changes.configure_agents(session, {agent: settings}, actor=actor, note=note)
        )

    async def doubts(self, agent: str, settings: Mapping[str, Any]) -> str:
        """What an agent with other settings would lack to be called."""
        changed = await self._on_engine(
            lambda session: agent_changes.changed_agent(session, agent, settings), graph=True
        )
        lacks = getattr(changed, "lacks", None)
        # Asking the provider's library may import it, which takes seconds.
        return await asyncio.to_thread(lacks) if lacks else ""

    async def clear_turns(self, agent: str, *, actor: str | None = None, note: str | None = None) -> int:
        """Let an agent forget its turns; returns how many it had.  Logged."""
        return await self._write(
            lambda session: agent_changes.clear_turns(session, agent, actor=actor, note=note)
        )
