"""The keys of the run screen that only look: other ways to show a value, other steps."""

from __future__ import annotations

from hitl_tui.ui.screens.run_keys import RunKeys
from hitl_tui.ui.widgets.tabs import TabsBar
from hitl_tui.view.session import Session
from hitl_tui.view.timeline import Direction, Place, neighbours
from hitl_tui.view.value_source import MODES


class LookKeys(RunKeys):
    """Nothing here changes a thread."""

    def do_look_text(self) -> None:
        """Show the value as text."""
        self.screen.shown_value.set_mode("text")

    def do_look_diff(self) -> None:
        """Show what changed."""
        self.screen.shown_value.set_mode("diff")

    def do_look_json(self) -> None:
        """Show the value as JSON."""
        self.screen.shown_value.set_mode("json")

    def do_look_blame(self) -> None:
        """Show who wrote what."""
        self.screen.shown_value.set_mode("blame")

    def do_look_view(self) -> None:
        """Go round the ways."""
        value = self.screen.shown_value
        value.set_mode(MODES[(MODES.index(value.mode) + 1) % len(MODES)])

    def do_look_costs(self) -> None:
        """Show what the thread has cost."""
        from hitl_tui.ui.screens.page import CostsScreen

        if self.session:
            self.screen.app.push_screen(CostsScreen(self.session, self.screen.keymap.bindings["look.costs"]))

    def do_look_compare(self) -> None:
        """The shown step beside the newest one; at the newest, beside the one before it.

        The first step of a fork stands beside the one that its parent made in its place.
        """
        from hitl_tui.ui.screens.compare import CompareScreen

        session = self.session
        if session is None or session.view.head is None:
            return
        newest = (session.thread_id, session.view.head.step)
        left = session.shown or session.other_draft or (session.thread_id, max(newest[1] - 1, 0))
        self.screen.app.push_screen(
            CompareScreen(session, left, newest, self.screen.keymap.bindings["look.compare"])
        )

    def do_look_tab(self) -> None:
        """Next pane on a narrow screen."""
        self.screen.show_tab(self.screen.query_one(TabsBar).next())

    def go(self, direction: Direction) -> None:
        """Show the step next to the shown one."""
        session = self.session
        head = session.view.head if session else None
        if session is None or head is None:
            return
        place = session.shown or (session.thread_id, head.step)
        oldest = session.view.checkpoints[0].step
        if direction == "left" and place == (session.thread_id, oldest) and oldest > 0:
            self.screen.command(self._older(session, place), group="older")
            return
        self.screen.travel(neighbours(session.view, session.family, place, direction))

    async def _older(self, session: Session, place: Place) -> None:
        if await session.load_older():
            self.screen.travel(neighbours(session.view, session.family, place, "left"))

    def do_travel_back(self) -> None:
        """The step before."""
        self.go("left")

    def do_travel_on(self) -> None:
        """The step after."""
        self.go("right")

    def do_travel_up(self) -> None:
        """The thread above."""
        self.go("up")

    def do_travel_down(self) -> None:
        """The thread below."""
        self.go("down")

    def do_travel_first(self) -> None:
        """The oldest loaded step."""
        session = self.session
        if session and session.view.checkpoints:
            self.screen.travel((session.thread_id, session.view.checkpoints[0].step))

    def do_travel_head(self) -> None:
        """Back to the newest step."""
        self.screen.travel(None)
