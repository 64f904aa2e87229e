"""The keys of the run screen about taint, private values and contracts (SPEC 6, 8)."""

from __future__ import annotations

from hitl_tui.ui.screens.run_keys import RunKeys
from hitl_tui.ui.widgets.channels import ChannelsPane


class TrustKeys(RunKeys):
    """What somebody looks into, and answers for by name."""

    def do_change_declassify(self) -> None:
        """Ask why the selected channel may be trusted."""
        from hitl_tui.ui.screens.trust import ask_declassify

        row = self._channels.selected_row
        if self.session and row:
            ask_declassify(self.screen, self.session, row, self.screen.hitl.actor)

    def do_look_reveal(self) -> None:
        """Ask before a private value is shown."""
        from hitl_tui.ui.screens.trust import ask_reveal

        if self.session:
            ask_reveal(self.screen, self.session, self._channels.selected, self.screen.hitl.actor)

    def do_look_taint(self) -> None:
        """Show what came from outside."""
        from hitl_tui.ui.screens.trust import why_tainted

        if self.session:
            why_tainted(self.screen, self.session, self._channels.selected)

    def do_look_contract(self) -> None:
        """Show what the node may do and did."""
        from hitl_tui.ui.screens.trust import show_contract

        if self.session:
            show_contract(self.screen, self.session)

    @property
    def _channels(self) -> ChannelsPane:
        return self.screen.query_one(ChannelsPane)
