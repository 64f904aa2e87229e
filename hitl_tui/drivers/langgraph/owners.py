"""The parent threads of a subgraph's thread: they move with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from hitl_tui.drivers.langgraph.mirror import Mirror, their_thread
from hitl_tui.drivers.langgraph.pregel import config_of
from hitl_tui.drivers.langgraph.subgraphs import namespace

if TYPE_CHECKING:
    from hitl_tui.engine.thread.session import Session

OVER: Final = "what it ran for is done, or has begun anew: nobody takes what would come of it now"


class Owners:
    """The parents of one mirrored thread, the innermost first; none for a thread of the root graph.

    Args:
        mirror: the mirror of the thread.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._held: list[tuple[Mirror, Session]] = []
        self._stack = ExitStack()

    def _around(self) -> Iterator[tuple[Mirror, Mirror, str]]:
        """Yield each mirror with its parent's mirror and the parent's line."""
        mirror = self._mirror
        while mirror.outer is not None and mirror.place is not None:
            yield mirror, mirror.outer, mirror.place.owner.thread_id
            mirror = mirror.outer

    async def are_unfinished(self, thread: str) -> bool:
        """Whether all tasks that run the thread are unfinished.

        Args:
            thread: the LangGraph thread.
        """
        for inner, outer, _line in self._around():
            saved = await outer.app.state(config_of(thread))
            tasks = saved.tasks if saved else ()
            places = [namespace(outer.app.ns, task.name, task.id) for task in tasks if task.is_unfinished]
            if inner.app.ns not in places:
                return False
        return True

    def hold(self) -> None:
        """Lock the parents for writing, so that nobody else runs them meanwhile.

        Raises:
            ThreadBusy: somebody runs one of them.
        """
        try:
            for _inner, outer, line in self._around():
                session = outer.open(line)
                self._stack.enter_context(session.writing())
                self._stack.enter_context(session.keeping_lease())
                self._held.append((outer, session))
        except BaseException:
            self.release()
            raise

    async def settle(self) -> None:
        """Set the status of the locked parents by LangGraph's current state."""
        for mirror, session in self._held:
            saved = await mirror.app.state(config_of(their_thread(session.info)), subgraphs=True)
            if saved is not None:
                mirror.settle(session, saved)

    def release(self) -> None:
        """Release the parents."""
        self._held.clear()
        self._stack.close()
