"""The run screen: its panes, its groups of keys, and which of them does an action."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

from textual import on
from textual.binding import BindingType

from hitl_tui.engine.commands import Start
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.run_agents import AgentKeys
from hitl_tui.ui.screens.run_base import RunBase
from hitl_tui.ui.screens.run_breakpoints import BreakpointKeys
from hitl_tui.ui.screens.run_change import ChangeKeys
from hitl_tui.ui.screens.run_find import FindKeys
from hitl_tui.ui.screens.run_inside import InsideKeys
from hitl_tui.ui.screens.run_look import LookKeys
from hitl_tui.ui.screens.run_review import ReviewKeys
from hitl_tui.ui.screens.run_stepping import SteppingKeys
from hitl_tui.ui.screens.run_threads import ThreadKeys
from hitl_tui.ui.screens.run_trust import TrustKeys
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.footer import FooterBar
from hitl_tui.ui.widgets.tabs import TabsBar
from hitl_tui.ui.widgets.timeline import TimelinePane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.view.actions import ACTIONS, BY_ID, Action, Situation
from hitl_tui.view.keymap import Keymap
from hitl_tui.view.session import Session


class RunScreen(RunBase):
    """One thread: see it, step it, travel, edit, decide, fork.

    An action is done by the method `do_…` that is named after it, here or in one of the groups of keys.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bound(action.id, f"do('{action.id}')")
        for action in ACTIONS
        if action.id != "app.palette" and action.group != "Card"
    ]

    def __init__(self, now: Callable[[], int] | None = None, keymap: Keymap | None = None) -> None:
        super().__init__(now, keymap)
        self.stepping = SteppingKeys(self)
        self.breakpoints = BreakpointKeys(self)
        self.review = ReviewKeys(self)
        self.change = ChangeKeys(self)
        self.agents = AgentKeys(self)
        self.look = LookKeys(self)
        self.find = FindKeys(self)
        self.trust = TrustKeys(self)
        self.inside = InsideKeys(self)
        self.threads = ThreadKeys(self)

    async def begin(self, session: Session) -> None:
        """Show a session; a thread without a step gets its input first."""
        self.breakpoints.bring(session, before=self.session)
        self.stepping.begin(session, before=self.session)
        self.find.close()
        self.attach(session)
        self.change.begin(session)
        if session.view.checkpoints:
            self.on_progress(session)
            return
        start = self.hitl.start
        if start.inputs is not None:
            await session.driver.execute(Start(start.inputs, self.hitl.actor))
        elif start.ask_inputs and session.view.graph.inputs:
            self._ask_inputs(session)
        else:
            await session.driver.execute(Start({}, self.hitl.actor))

    def _ask_inputs(self, session: Session) -> None:
        from hitl_tui.ui.screens.inputs import InputsScreen

        def started(values: dict[str, Any] | None) -> None:
            if values is None:
                self.do_app_quit()
            else:
                self.command(session.driver.execute(Start(values, self.hitl.actor)))

        self.app.push_screen(InputsScreen(session.view.graph), started)

    def on_progress(self, session: Session) -> None:
        """Where a node has just failed by what a channel holds, open that; else as the card wants it."""
        if not self.change.mend_failure(session):
            self.review.on_progress(session)

    @property
    def card_coming(self) -> bool:
        """Whether a question is about to be shown on its card."""
        session = self.session
        return self.review.coming or (session is not None and self.review.opens_for(session))

    @property
    def situation(self) -> Situation:
        """What decides which actions there are now."""
        row = self.query_one(ChannelsPane).selected_row
        return dataclasses.replace(
            self.session.situation if self.session else Situation(),
            ways=self.ways,
            card=self.review.state,
            typing=self.focused is not None and self.focused.check_consume_key("a", "a"),
            found=self.find.finding is not None,
            tainted=row is not None and row.tainted,
            private=row is not None and row.visibility == "private",
        )

    @property
    def turn_keys(self) -> dict[str, str]:
        """What to press, by the words of the status line; the card itself says what decides."""
        keys = super().turn_keys
        if self.review.state:
            keys["decide"] = ""
        if self.review.state == "sending":
            keys["undo"] = self.ways["card.undo"]
        return keys

    def on_descendant_focus(self) -> None:
        """The keys below are others while something is typed."""
        self.show_bars()

    def on_descendant_blur(self) -> None:
        """The keys below are others while something is typed."""
        self.show_bars()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of actions that were given none do nothing."""
        return action != "do" or bool(self.keymap.bindings[str(parameters[0])])

    def doing(self, action_id: str) -> Callable[[], None]:
        """What the palette calls for an action."""
        return lambda: self.action_do(action_id)

    def action_do(self, action_id: str) -> None:
        """Do an action, or say why it can't be done now."""
        if action_id == "app.next" and self.find.open and not self.review.state:
            action_id = "look.next"  # as in other pagers, while a search is open
        action = BY_ID[action_id]
        why_not = action.why_not(self.situation)
        if why_not:
            self.tell(why_not, action.label, "warning")
            return
        self.doer(action)()

    def doer(self, action: Action) -> Callable[[], None]:
        """The method that does an action."""
        groups = (
            self.stepping, self.breakpoints, self.review, self.change, self.agents,
            self.look, self.find, self.trust, self.inside, self.threads,
        )  # fmt: skip
        owner = next(one for one in (self, *groups) if hasattr(one, action.method))
        found: Callable[[], None] = getattr(owner, action.method)
        return found

    @on(FooterBar.Chosen)
    def _footer_chosen(self, event: FooterBar.Chosen) -> None:
        self.action_do(event.action.id)

    @on(TabsBar.Chosen)
    def _tab_chosen(self, event: TabsBar.Chosen) -> None:
        self.show_tab(event.name)

    @on(ValuePane.ModeChosen)
    def _mode_chosen(self, event: ValuePane.ModeChosen) -> None:
        self.shown_value.set_mode(event.mode)

    @on(ChannelsPane.Selected)
    def _channel_selected(self) -> None:
        self.shown_value.show()

    @on(TimelinePane.Chosen)
    def _place_chosen(self, event: TimelinePane.Chosen) -> None:
        self.travel(event.place)

    @on(TimelinePane.Travel)
    def _travel_key(self, event: TimelinePane.Travel) -> None:
        self.look.go(event.direction)

    def do_app_back(self) -> None:
        """Close the card, or go back to the newest step."""
        if self.review.state == "sending":
            self.review.do_card_undo()
        elif self.review.state:
            self.review.close_card()
        elif self.find.open or (self.session and self.session.is_past):
            self.find.close()
            self.travel(None)
        else:
            self.inside.do_look_outside()

    def do_look_enter(self) -> None:
        """At a step of another thread: open that thread; else what is inside the shown step."""
        session = self.session
        if session and session.shown and session.shown[0] != session.thread_id:
            self.command(self.threads.open(session.shown[0]))
        else:
            self.inside.do_look_inside()

    def do_app_help(self) -> None:
        """Show all keys."""
        from hitl_tui.ui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self.situation, self.keymap))

    @property
    def unsent(self) -> str:
        """The decision that could still be taken back, in words."""
        card = self.review.card
        return card.review.unsent if card is not None and self.review.card_open else ""

    @property
    def runs(self) -> str:
        """The node that runs here, "" for none; what another process runs goes on there."""
        session = self.session
        return (session.view.running_node or "") if session and not session.view.held_by else ""

    def do_app_quit(self) -> None:
        """Leave, asking first where something is in the air."""
        if not self.unsent and not self.runs and not self.hitl.unapplied:
            self.command(self.hitl.leave())
            return
        from hitl_tui.ui.screens.dialogs import ask_quit

        ask_quit(self.hitl)
