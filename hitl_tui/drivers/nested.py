"""The part of the local driver that knows of threads above and below: runs inside runs (SPEC 7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from hitl_tui.drivers.below import Below, Follower, Runner
from hitl_tui.drivers.part import DriverPart
from hitl_tui.engine.graphs.compiled import CompiledGraph
from hitl_tui.engine.log.events import Event, StepCommitted
from hitl_tui.engine.running.loop import Run
from hitl_tui.engine.subgraphs.children import graph_inside
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import ThreadBusy


class Nested(DriverPart):
    """Part of the local driver.

    A thread that runs inside the run of another one is paused, and its node given up, by that run.
    """

    _run: Run | None
    _below: Below
    _follower: Follower | None = None

    @property
    def _above(self) -> Runner | None:
        """In whose run this thread runs now."""
        return self._below.runner(self.thread_id)

    async def pause(self) -> None:
        """Stop at the next node boundary."""

        def ask(_session: Session) -> Runner | None:
            if self._run:
                self._run.pause()
                return None
            return self._above

        above = await self._on_engine(ask)
        if above is not None:
            await above.pause()

    async def cancel_attempt(self) -> None:
        """Give up the node in flight; the thread waits before that node."""

        def drop(_session: Session) -> Runner | None:
            if self._run:
                self._run.drop_attempt("cancelled by hand")
                return None
            return self._above

        above = await self._on_engine(drop)
        if above is not None:
            await above.cancel_attempt()

    async def graph_inside(self, node: str) -> CompiledGraph | None:
        """The graph of a subgraph's node, None where there is no such node any more."""
        return await self._on_engine(lambda session: graph_inside(session.graph, node), graph=True)

    def _begin_following(self, session: Session, catch_up: Callable[[], None]) -> None:
        """Hear what the threads below do, and what this one does inside the run of another."""
        session.on_below = partial(self._below.tell, self)
        loop = asyncio.get_running_loop()
        self._follower = Follower(loop, session.cursor.head, catch_up=catch_up, tell=self._tell)
        self._below.follow(self.thread_id, self._follower)

    def _end_following(self) -> None:
        if self._follower:
            self._below.leave(self.thread_id)

    def _tell_in_order(self, event: Event) -> None:
        """Tell what was found in the store, after what happened before it."""
        if isinstance(event, StepCommitted) and self._follower:
            self._follower.step_is_next(event.checkpoint.step)
        self._tell(event)

    def _refuse_inside(self) -> None:
        above = self._above
        if above is not None:
            raise ThreadBusy(
                f"thread {self.thread_id!r} runs inside {above.thread_id!r}", "pause it first, or wait"
            )
