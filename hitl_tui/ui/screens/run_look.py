"""The keys of the run screen that only look: other ways to show a value, other steps."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, cast

from hitl_tui.ui.screens.run_base import RunBase
from hitl_tui.ui.session import Session
from hitl_tui.ui.value_modes import MODES
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.tabs import TabsBar
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.view.timeline import Direction, Place, neighbours

if TYPE_CHECKING:
    from hitl_tui.ui.app import HitlApp
    from hitl_tui.ui.screens.find import Finding


class LookKeys(RunBase):
    """Nothing here changes a thread."""

    finding: Finding | None = None
    """What was looked for last, where it stands, and which place is shown."""

    @property
    def hitl(self) -> HitlApp:
        """The app, as ours."""
        return cast("HitlApp", self.app)

    def command(self, work: Coroutine[Any, Any, Any], group: str = "command") -> None:
        """Send a command to the driver; what goes wrong is shown, never raised."""
        self.run_worker(work, group=group, exit_on_error=False)

    def do_look_text(self) -> None:
        """Show the value as text."""
        self.set_mode("text")

    def do_look_diff(self) -> None:
        """Show what changed."""
        self.set_mode("diff")

    def do_look_json(self) -> None:
        """Show the value as JSON."""
        self.set_mode("json")

    def do_look_blame(self) -> None:
        """Show who wrote what."""
        self.set_mode("blame")

    def do_look_view(self) -> None:
        """Go round the ways."""
        self.set_mode(MODES[(MODES.index(self.mode) + 1) % len(MODES)])

    def do_look_costs(self) -> None:
        """Show what the thread has cost."""
        from hitl_tui.ui.screens.costs import CostsScreen

        if self.session:
            self.app.push_screen(CostsScreen(self.session, self.keymap.bindings["look.costs"]))

    def do_look_find(self) -> None:
        """Ask what to look for, and where to go."""
        from hitl_tui.ui.screens.find import FindScreen

        if self.session is None:
            return
        ways = (self.ways["look.next"], self.ways["look.previous"])
        query = self.finding[0] if self.finding else ""
        self.app.push_screen(FindScreen(self.session, query, ways), self._go_to_found)

    def do_look_next(self) -> None:
        """The next place where it stands."""
        self._walk(1)

    def do_look_previous(self) -> None:
        """The place before."""
        self._walk(-1)

    def _walk(self, by: int) -> None:
        if self.finding is not None:
            query, found, at = self.finding
            self._go_to_found((query, found, (at + by) % len(found)))

    def _go_to_found(self, finding: Finding | None) -> None:
        """Show a place: its step, its channel, and the line in it."""
        session = self.session
        if finding is None or session is None:
            return
        query, found, at = self.finding = finding
        place = found[at]
        if place.step != session.step_view.step:
            self.travel((session.thread_id, place.step))
        if place.channel:
            pane = self.query_one(ValuePane)
            pane.seek = (place.channel, place.line)
            pane.mark(query)
            self.query_one(ChannelsPane).picked = True
            self.query_one(ChannelsPane).select(place.channel)
            self.set_mode("text")
            pane.show_sought()
        self.tell(f"{place.where}, {at + 1} of {len(found)}", f"“{query}”")

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
        self.app.push_screen(CompareScreen(session, left, newest, self.keymap.bindings["look.compare"]))

    def do_look_tab(self) -> None:
        """Next pane on a narrow screen."""
        self.show_tab(self.query_one(TabsBar).next())

    def action_go(self, direction: str) -> None:
        """Show the step next to the shown one."""
        session = self.session
        head = session.view.head if session else None
        if session is None or head is None:
            return
        place = session.shown or (session.thread_id, head.step)
        oldest = session.view.checkpoints[0].step
        if direction == "left" and place == (session.thread_id, oldest) and oldest > 0:
            self.command(self._older(session, place), group="older")
            return
        self.travel(neighbours(session.view, session.family, place, cast(Direction, direction)))

    async def _older(self, session: Session, place: Place) -> None:
        if await session.load_older():
            self.travel(neighbours(session.view, session.family, place, "left"))

    def do_travel_back(self) -> None:
        """The step before."""
        self.action_go("left")

    def do_travel_on(self) -> None:
        """The step after."""
        self.action_go("right")

    def do_travel_up(self) -> None:
        """The thread above."""
        self.action_go("up")

    def do_travel_down(self) -> None:
        """The thread below."""
        self.action_go("down")

    def do_travel_first(self) -> None:
        """The oldest loaded step."""
        session = self.session
        if session and session.view.checkpoints:
            self.travel((session.thread_id, session.view.checkpoints[0].step))

    def do_travel_head(self) -> None:
        """Back to the newest step."""
        self.travel(None)
