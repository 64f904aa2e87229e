"""A graph in this process that refuses as a server does that runs a thread already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hitl_tui.drivers.langgraph.server import MadeRoom
from hitl_tui.errors import ServerBusy


class Busy:
    """A compiled graph with what a server's has beside it.

    Attributes:
        runs: what runs there for somebody else; none runs once room was made.
        made_room: how.
        ends: called as a run is refused: what ran there may end then.
    """

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.runs: list[str] = []
        self.made_room: list[str] = []
        self.ends: Callable[[], object] | None = None
        graph.refuse_busy, graph.make_room = self._refuse, self._make_room

    def _refuse(self, _thread: str) -> None:
        if self.ends is not None:
            self.ends()
        if self.runs:
            raise ServerBusy("the server already runs this thread", "wait")

    def _make_room(self, _thread: str, strategy: str) -> MadeRoom:
        self.made_room.append(strategy)
        ended, self.runs = tuple(self.runs), []
        return MadeRoom(ended, frozenset(ended))

    def saves(self, run: str, thread: str = "t") -> None:
        """Let a run of somebody else save one more superstep."""
        config: Any = {"configurable": {"thread_id": thread}, "metadata": {"run_id": run}}
        self.graph.invoke(None, config, interrupt_after="*")

    def refuse_streams(self) -> None:
        """Refuse what begins from now on, as if somebody else had been a moment quicker."""

        def refused(*_given: Any, **_options: Any) -> Iterator[Any]:
            raise ServerBusy("the server already runs this thread", "wait")
            yield

        self.graph.stream = refused
