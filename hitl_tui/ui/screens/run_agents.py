"""The keys of the run screen that are about agents: what they remember, and trying them otherwise."""

from __future__ import annotations

from hitl_tui.ui.screens.run_keys import RunKeys


class AgentKeys(RunKeys):
    """Looking at the agents, and other settings for one of them."""

    def do_look_agents(self) -> None:
        """Show the agents and what they remember; comes back with one that is to be changed."""
        from hitl_tui.ui.screens.agents import AgentsScreen

        if self.session:
            shown = AgentsScreen(
                self.session, self.screen.hitl.actor, self.screen.keymap.bindings["look.agents"]
            )
            self.screen.app.push_screen(shown, lambda agent: self.do_change_agent(agent) if agent else None)

    def do_change_agent(self, agent: str = "") -> None:
        """Ask how an agent is to go on: from the next step, or in a fork."""
        from hitl_tui.ui.screens.agents import ask_settings

        if self.session:
            self.screen.command(ask_settings(self.screen, self.session, agent))
