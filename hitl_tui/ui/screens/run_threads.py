"""Moving between threads: the list of them, those that wait, and those inside a node."""

from __future__ import annotations

import asyncio
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from hitl_tui.errors import HitlError, LogCorrupt
from hitl_tui.ui.widgets.graph import GraphPane
from hitl_tui.verbs.actions import BY_ID
from hitl_tui.view.session import ViewSession

if TYPE_CHECKING:
    from hitl_tui.loading.known import KnownGraph
    from hitl_tui.ui.screens.run import RunScreen
    from hitl_tui.view.queue import QueueChoice, WaitingQueue
    from hitl_tui.view.run_view import InsidePlace


_GO_ON: Final = 8
"""Number of threads that were decided together and continue at the same time."""


class Threads:
    """Replaces the shown thread by others."""

    def __init__(self, screen: RunScreen) -> None:
        self.screen = screen
        self._queue_at = ""
        self._one_by_one = asyncio.Lock()
        self._going_on = asyncio.Semaphore(_GO_ON)

    @cached_property
    def _queue(self) -> WaitingQueue:
        """Return the waiting requests, in the order in which they are opened one after the other."""
        from hitl_tui.view.queue import WaitingQueue

        return WaitingQueue()

    def choose(self) -> None:
        """List the threads."""
        from hitl_tui.ui.screens.threads import ThreadsScreen

        current = self.screen.session.thread_id if self.screen.session else ""
        keys = self.screen.keymap.bindings["app.threads"]
        hub, actor = self.screen.hub, self.screen.actor
        threads = ThreadsScreen(hub, current, self.screen.now, keys, to=self, actor=actor)
        self.screen.app.push_screen(threads, self._go_to)

    def choose_waiting(self) -> None:
        """Show the queue; a chosen request opens with its card."""
        from hitl_tui.config import queue_file
        from hitl_tui.ui.screens.queue import QueueScreen

        def chosen(choice: QueueChoice | None) -> None:
            if choice is not None:
                self._queue.chosen(choice)
                self._queue_at = choice.row.name
                self.screen.command(partial(self.open_to_decide, *choice.row.key))

        session, screen = self.screen.session, self.screen
        signs = bool(session and session.view.signing_key)
        keys = screen.keymap.bindings["app.queue"]
        file = queue_file()
        minutes = screen.attention.claim_minutes
        queue = QueueScreen(
            screen.hub, screen.actor, screen.now, file,
            signs=signs, claim_minutes=minutes, to=self, came_from=self._queue_at, keys=keys,
        )  # fmt: skip
        screen.app.push_screen(queue, chosen)

    def show_workers(self) -> None:
        """Show who runs what; a chosen thread is opened."""
        from hitl_tui.ui.screens.workers import WorkersScreen

        keys = self.screen.keymap.bindings["app.workers"]
        self.screen.app.push_screen(WorkersScreen(self.screen.hub, keys), self._go_to)

    def _go_to(self, thread_id: str | None) -> None:
        """Open the thread that was chosen in a list, unless it is shown."""
        if thread_id and (self.screen.session is None or thread_id != self.screen.session.thread_id):
            self.screen.command(partial(self.open, thread_id))

    async def open_to_decide(self, thread_id: str, request_id: str) -> None:
        """Show a thread with the card of one of its requests."""
        if self.screen.session is None or thread_id != self.screen.session.thread_id:
            await self.open(thread_id)
        opened = self.screen.session
        if opened is None or opened.thread_id != thread_id:
            return
        request = next((asked for asked in opened.requests if asked.id == request_id), None)
        self.screen.review.close_card()  # of another request of the thread
        if request is None:
            return
        if disabled_reason := BY_ID["change.decide"].disabled_reason(self.screen.situation):
            self.screen.show_message(disabled_reason, severity="warning")
        else:
            self.screen.stepping.go_on(opened)
            self.screen.review.open_card(request)

    def go_on(self, thread: str) -> None:
        """Continue a thread that was decided in the queue, while the queue stays open."""
        from hitl_tui.view.batch import run_on

        async def in_turn() -> None:
            async with self._going_on:
                await run_on(self.screen.hub, thread)

        self.screen.command(in_turn, group="continue")

    @property
    def place_words(self) -> str:
        """Return which of the waiting requests is shown: "4 of 12"; "" if it wasn't opened from the queue."""
        session = self.screen.session
        shown = session is not None and session.thread_id == self._queue_at
        return "{} of {}".format(*self._queue.place) if shown else ""

    def new(self) -> None:
        """Ask for a graph to start a thread of, then for its input."""
        from hitl_tui.ui.screens.start import StartScreen

        def chosen(graph: KnownGraph | None) -> None:
            if graph is not None:
                self.screen.command(partial(self._start, graph))

        self.screen.app.push_screen(StartScreen(self.screen.hub), chosen)

    async def _start(self, graph: KnownGraph) -> None:
        if not await self.screen.review.send_decision():
            return
        hub = self.screen.hub
        session = await ViewSession.open(hub, await hub.start(graph, self.screen.actor))
        await self.change_to(session)

    def open_next(self, *, back: bool = False) -> None:
        """Open the next thread that waits for a person, and its card; once it is answered the run continues.

        Args:
            back: whether to open the previous one instead.
        """

        async def after_the_last_key() -> None:
            async with self._one_by_one:
                await self._open_next(back=back)

        self.screen.command(after_the_last_key)

    async def _open_next(self, *, back: bool) -> None:
        from hitl_tui.view.queue import MOST, rows_of

        hub, session, review = self.screen.hub, self.screen.session, self.screen.review
        assert session is not None
        # Sent first, so that a thread which asks again is found.
        if not await review.send_decision():
            return
        owners = (owner.thread_id for owner in session.view.owners)
        rows = rows_of(await hub.waiting(MOST))
        queue, screen = self._queue, self.screen
        find = queue.preceding if back else queue.following
        row = find(rows, (session.thread_id, *owners), screen.now(), screen.actor)
        if row is None and back:
            screen.show_message("no earlier thread still waits")
            return
        if row is None:
            passes = f" that matches {queue.view.filter}" if queue.view.filter else ""
            screen.show_message(f"no other thread{passes} waits for a person")
            return
        self._queue_at = row.name
        await self.open(row.name)
        opened = self.screen.session
        decides = opened is not session and not BY_ID["change.decide"].disabled_reason(self.screen.situation)
        if opened is not None and decides:
            self.screen.stepping.go_on(opened)
            review.decide()

    async def open(self, thread_id: str) -> None:
        """Show another thread of the hub; if its log is damaged show what is wrong, with a way back here.

        A decision that could still be undone is sent; if it is refused, its card stays.
        """
        hub = self.screen.hub
        if not await self.screen.review.send_decision():
            return
        driver = await hub.open(thread_id, at_once=True)
        try:
            session = await ViewSession.open(hub, driver)
        except LogCorrupt as error:
            from hitl_tui.ui.screens.damaged import Damage, show_damage

            show_damage(self.screen.app, hub, Damage(driver, error), "Back", self._after_damage)
        else:
            await self.change_to(session)

    def _after_damage(self, outcome: ViewSession | HitlError) -> None:
        if isinstance(outcome, ViewSession):
            self.screen.command(partial(self.change_to, outcome))

    async def change_to(self, session: ViewSession) -> None:
        """Replace the shown session."""
        self.screen.review.forget()
        await self.screen.begin(session)

    def go_inside(self) -> None:
        """Open the branches, or the thread, of the shown step, the selected node, or the running node."""
        session = self.screen.session
        if session is None:
            return
        chosen = self.screen.query_one(GraphPane).chosen
        place = session.inside(chosen)
        if place is None:
            node = chosen or session.view.progress.next_node or ""
            why = session.view.graph.why_closed(node) or "no branches and no thread of its own here"
            self.screen.show_message(why, "Inside", "warning")
        elif place.thread:
            self.enter(place.thread)
        else:
            self._open_branches(session, place)

    def _open_branches(self, session: ViewSession, place: InsidePlace) -> None:
        from hitl_tui.ui.screens.branches import BranchesScreen

        def chosen(path: str | None) -> None:
            request = (
                next((other for other in session.requests if other.path == path), None) if path else None
            )
            if request is not None and session is self.screen.session:
                self.screen.review.open_card(request)

        keys = (*self.screen.keymap.bindings["look.inside"], *self.screen.keymap.bindings["look.outside"])
        self.screen.app.push_screen(BranchesScreen(session, place, self.screen.now, keys), chosen)

    def enter(self, thread_id: str) -> None:
        """Open the thread of a subgraph's run; esc comes back."""
        if self.screen.session is not None:
            self.screen.command(partial(self.open, thread_id))

    async def open_at(self, thread_id: str, step: int | None) -> None:
        """Open an inner thread at one of its steps, if it can be opened."""
        await self.open(thread_id)
        session = self.screen.session
        if step is not None and session is not None and session.thread_id == thread_id:
            self.screen.travel((thread_id, step))

    def go_outside(self) -> None:
        """Go back to the thread that runs this one."""
        if self.screen.session is not None and self.screen.session.view.owners:
            self.screen.command(partial(self._leave_thread, self.screen.session.view.owners[-1].thread_id))

    async def _leave_thread(self, owner: str) -> None:
        """Show the owner; if it was running when it was left, it continues unless something waits."""
        await self.open(owner)
        session = self.screen.session
        if session is not None:
            await self.screen.stepping.come_back(session)
