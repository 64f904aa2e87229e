"""The keys of the run screen that are about agents: what they remember, and trying them otherwise."""

from __future__ import annotations

from abc import abstractmethod

from hitl_tui.ui.screens.run_look import LookKeys


class AgentKeys(LookKeys):
    """Dialogs are imported when they are first used."""

    @abstractmethod
    async def open_thread(self, thread_id: str) -> None:
        """Show another thread of the hub."""

    def do_look_agents(self) -> None:
        """Show the agents and what they remember; comes back with one that is to be changed."""
        from hitl_tui.ui.screens.agents import AgentsScreen

        if self.session:
            shown = AgentsScreen(self.session, self.hitl.actor, self.keymap.bindings["look.agents"])
            self.app.push_screen(shown, lambda agent: self.do_change_agent(agent) if agent else None)

    def do_change_agent(self, agent: str = "") -> None:
        """Ask how an agent is to go on: from the next step, or in a fork."""
        from hitl_tui.ui.screens.agent_settings import ask_settings

        if self.session:
            self.command(ask_settings(self, self.session, agent))
