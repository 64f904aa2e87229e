"""What the groups of keys of the run screen share: the screen they belong to, and what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen
    from hitl_tui.view.session import Session


class RunKeys:
    """A group of keys of the run screen: a method `do_…` for each action, and what is kept between two keys.

    Dialogs and editors are imported when a key first needs them.
    """

    def __init__(self, screen: RunScreen) -> None:
        self.screen = screen

    @property
    def session(self) -> Session | None:
        """The session that is shown now."""
        return self.screen.session
