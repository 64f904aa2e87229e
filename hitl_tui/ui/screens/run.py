"""The run screen: what each key does.  Dialogs and editors are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from textual import on
from textual.binding import BindingType

from hitl_tui.drivers.protocol import Driver
from hitl_tui.ui.actions import ACTIONS, BY_ID
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.failures import Failures
from hitl_tui.ui.keymap import Keymap
from hitl_tui.ui.screens.run_review import ReviewKeys
from hitl_tui.ui.session import Session
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.footer import FooterBar
from hitl_tui.ui.widgets.tabs import TabsBar
from hitl_tui.ui.widgets.timeline import TimelinePane
from hitl_tui.ui.widgets.value import ValuePane


class RunScreen(ReviewKeys):
    """One thread: see it, step it, travel, edit, decide, fork."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound(action.id, f"do('{action.id}')")
        for action in ACTIONS
        if action.id != "app.palette" and action.group != "Card"
    ]

    def __init__(self, now: Callable[[], int] | None = None, keymap: Keymap | None = None) -> None:
        super().__init__(now, keymap)
        self._failures = Failures()

    async def begin(self, session: Session) -> None:
        """Show a session; a thread without a step gets its input first."""
        self.attach(session)
        self._failures.begin(session)
        if session.view.checkpoints:
            self._continuing = session.running
            self.on_progress(session)
            return
        start = self.hitl.start
        if start.inputs is not None:
            await session.driver.start(start.inputs, actor=self.hitl.actor)
        elif start.ask_inputs and session.view.graph.inputs:
            self._ask_inputs(session)
        else:
            await session.driver.start({}, actor=self.hitl.actor)

    def _ask_inputs(self, session: Session) -> None:
        from hitl_tui.ui.screens.inputs import InputsScreen

        def started(values: dict[str, Any] | None) -> None:
            if values is None:
                self.do_app_quit()
            else:
                self.command(session.driver.start(values, actor=self.hitl.actor))

        self.app.push_screen(InputsScreen(session.view.graph), started)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of actions that were given none do nothing."""
        return action != "do" or bool(self.keymap.bindings[str(parameters[0])])

    def doing(self, action_id: str) -> Callable[[], None]:
        """What the palette calls for an action."""
        return lambda: self.action_do(action_id)

    def action_do(self, action_id: str) -> None:
        """Do an action, or say why it can't be done now."""
        action = BY_ID[action_id]
        why_not = action.why_not(self.situation)
        if why_not:
            self.tell(why_not, action.label, "warning")
            return
        getattr(self, action.method)()

    @on(FooterBar.Chosen)
    def _footer_chosen(self, event: FooterBar.Chosen) -> None:
        self.action_do(event.action.id)

    @on(TabsBar.Chosen)
    def _tab_chosen(self, event: TabsBar.Chosen) -> None:
        self.show_tab(event.name)

    @on(ValuePane.ModeChosen)
    def _mode_chosen(self, event: ValuePane.ModeChosen) -> None:
        self.set_mode(event.mode)

    @on(ChannelsPane.Selected)
    def _channel_selected(self) -> None:
        self._show_value()

    @on(TimelinePane.Chosen)
    def _place_chosen(self, event: TimelinePane.Chosen) -> None:
        self.travel(event.place)

    @on(TimelinePane.Travel)
    def _travel_key(self, event: TimelinePane.Travel) -> None:
        self.action_go(event.direction)

    # Run

    def do_run_step(self) -> None:
        """Run one node."""
        self._run(lambda driver: driver.step(), going_on=False)

    def do_run_continue(self) -> None:
        """Run until something waits."""
        self._run(self.going_on, going_on=True)

    def _run(self, start: Callable[[Driver], Coroutine[Any, Any, None]], *, going_on: bool) -> None:
        session = self.session
        if session is None:
            return
        self._continuing = going_on
        self.command(start(session.driver))

    def do_run_pause(self) -> None:
        """Stop at the next node boundary."""
        if self.session:
            self.session.pausing = True
            self.stop_going_on()
            self.show_all()
            self.command(self.session.driver.pause())

    def do_run_cancel(self) -> None:
        """Ask what to give up."""
        from hitl_tui.ui.screens.dialogs import ask_cancel

        session = self.session
        if session is None:
            return
        ask_cancel(self, session.driver, session.view.running_node, self.hitl.actor)

    def do_change_rollback(self) -> None:
        """Show what would be undone, and ask."""
        from hitl_tui.ui.screens.undo import ask_rollback

        if self.session:
            self.command(ask_rollback(self, self.session.driver, self.hitl.actor))

    # Back and on

    def do_app_back(self) -> None:
        """Close the card, or go back to the newest step."""
        card = self.card
        if self.card_open and card is not None and card.unsent:
            card.take_back()
        elif self.card_open:
            self.close_card()
        elif self.session and self.session.is_past:
            self.travel(None)
        else:
            self.do_look_outside()

    def do_look_enter(self) -> None:
        """At a step of another thread: open that thread; else what is inside the shown step."""
        session = self.session
        if session and session.shown and session.shown[0] != session.thread_id:
            self.command(self.open_thread(session.shown[0]))
        else:
            self.do_look_inside()

    # Change

    def do_change_edit(self) -> None:
        """Edit the selected channel."""
        self.edit_channel(self.query_one(ChannelsPane).selected)

    def on_progress(self, session: Session) -> None:
        """Where a node has just failed by what a channel holds, open that; else as the card wants it."""
        channel = self._failures.to_mend(session)
        free = not self.card_open and not session.is_past and self.app.screen is self
        if channel and free and not BY_ID["change.edit"].why_not(self.situation):
            self._mend(session, channel)
        else:
            super().on_progress(session)

    def _mend(self, session: Session, channel: str) -> None:
        """Open the editor on what a node failed by; once it is mended, go on as the user did."""
        from hitl_tui.ui.screens.mend import MendScreen

        def done(applied: str | None) -> None:
            if applied and session is self.session:
                (self.do_run_continue if self._continuing else self.do_run_step)()

        self.app.push_screen(MendScreen(session, channel, self.hitl.actor), done)

    def edit_channel(self, channel: str) -> None:
        """Open the editor on a channel at the shown step."""
        from hitl_tui.ui.screens.edit import EditScreen

        session = self.session
        if session is None or not channel:
            return
        deciding = self.card_open
        self.close_card()

        def done(thread_id: str | None) -> None:
            if thread_id and thread_id != session.thread_id:
                self.command(self.open_thread(thread_id))
                return
            if thread_id:
                self.travel(None)
            if deciding:
                self.command(self._decide_again(session))

        self.app.push_screen(EditScreen(session, channel, self.hitl.actor), done)

    async def _decide_again(self, session: Session) -> None:
        """Back to the card that the editor was opened from; the request may be about a new step by now."""
        await session.drain()
        self.show_all()
        if session is self.session and session.request is not None:
            self.open_card(session.request)

    def do_change_extend(self) -> None:
        """Ask for new limits."""
        from hitl_tui.ui.screens.dialogs import ask_limits

        if self.session:
            ask_limits(self, self.session, self.hitl.actor)

    def do_change_fork(self) -> None:
        """Ask for a name and fork the shown step."""
        from hitl_tui.ui.screens.dialogs import ask_fork

        if self.session:
            ask_fork(self, self.session, self.hitl.actor)

    # App

    def do_app_reload(self) -> None:
        """Go on with the graph as it is in its file now."""
        if self.session:
            self.command(self._reload_graph(self.session))

    async def _reload_graph(self, session: Session) -> None:
        found = await session.driver.reload_graph(actor=self.hitl.actor)
        self.tell("; ".join(found) or "the graph was loaded again", "Reloaded" if found else "")

    def do_app_help(self) -> None:
        """Show all keys."""
        from hitl_tui.ui.screens.help import HelpScreen

        self.app.push_screen(HelpScreen(self.situation, self.keymap))

    def do_app_quit(self) -> None:
        """Leave, asking first where something is in the air."""
        session, card = self.session, self.card
        unsent = card.unsent if card is not None and self.card_open else ""
        # What another process runs goes on there.
        running = session.view.running_node if session and not session.view.held_by else None
        if not unsent and not running:
            self.command(self.hitl.leave())
            return
        from hitl_tui.ui.screens.dialogs import ask_quit

        ask_quit(self, unsent, running or "", lambda: self.command(self.hitl.leave()))
