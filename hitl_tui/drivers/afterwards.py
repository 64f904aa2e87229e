"""What a local driver does with a thread's past: undo it, check it, replay it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from hitl_tui.drivers.part import DriverPart
from hitl_tui.drivers.protocol import Check, Checked
from hitl_tui.engine.graphs.compensation import RollbackEntry
from hitl_tui.engine.graphs.compiled import CompiledGraph
from hitl_tui.engine.thread.session import Session
from hitl_tui.engine.undo.rollback import Rollback
from hitl_tui.engine.undo.undo_order import rollback_entries
from hitl_tui.engine.verification.replay import replay
from hitl_tui.engine.verification.verify_tree import verify_tree


class Afterwards(DriverPart):
    """Part of the local driver."""

    async def rollback_entries(self) -> tuple[RollbackEntry, ...]:
        """What can be undone, in the order in which a rollback runs it, with what became of it."""

        def look(session: Session) -> tuple[RollbackEntry, ...]:
            return rollback_entries(self._store, session.cursor) if session.exists else ()

        entries: tuple[RollbackEntry, ...] = await self._on_engine(look)
        return entries

    async def rollback(self, *, actor: str | None = None, note: str | None = None) -> None:
        """Undo what the thread's nodes did outside; events tell the rest."""
        await self._engine.call(self._launch(partial(Rollback, actor=actor, note=note)))

    async def check(self, kind: Check, watch: Callable[[int, int], object]) -> Checked:
        """Check the thread's log in a thread of its own, so that neither the run nor the screen waits."""
        # The log tells of its channels itself; what can't be opened can still be looked through.
        graph: CompiledGraph | None = None
        if kind != "log":
            graph = await self._on_engine(lambda session: session.graph, graph=True)
        return await asyncio.to_thread(self._checked, graph, kind, watch)

    def _checked(
        self, graph: CompiledGraph | None, kind: Check, watch: Callable[[int, int], object]
    ) -> Checked:
        if kind == "replay" and graph is not None:
            again = replay(self._store, graph, self.thread_id, watch)
            return Checked(kind, again.mismatches, again.steps, again.records, nodes=again.nodes)
        found = verify_tree(self._store, self.thread_id, graph, strict=kind == "strict", watch=watch)
        return Checked(kind, found.mismatches, found.checkpoints, found.records, unchecked=found.unchecked)
