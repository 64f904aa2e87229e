"""The keys of the run screen about taint, private values and contracts (SPEC 6, 8)."""

from __future__ import annotations

from hitl_tui.ui.screens.run_look import LookKeys
from hitl_tui.ui.widgets.channels import ChannelsPane


class TrustKeys(LookKeys):
    """What somebody looks into, and answers for by name."""

    def do_change_declassify(self) -> None:
        """Ask why the selected channel may be trusted."""
        from hitl_tui.ui.screens.trust import ask_declassify

        row = self.query_one(ChannelsPane).selected_row
        if self.session and row:
            ask_declassify(self, self.session, row, self.hitl.actor)

    def do_look_reveal(self) -> None:
        """Ask before a private value is shown."""
        from hitl_tui.ui.screens.trust import ask_reveal

        if self.session:
            ask_reveal(self, self.session, self.query_one(ChannelsPane).selected, self.hitl.actor)

    def do_look_taint(self) -> None:
        """Show what came from outside."""
        from hitl_tui.ui.screens.trust import why_tainted

        if self.session:
            why_tainted(self, self.session, self.query_one(ChannelsPane).selected)

    def do_look_contract(self) -> None:
        """Show what the node may do and did."""
        from hitl_tui.ui.screens.trust import show_contract

        if self.session:
            show_contract(self, self.session)
