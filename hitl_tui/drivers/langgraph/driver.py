"""The driver of a LangGraph thread: our reading, deciding and writing down over a mirror, their running."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from hitl_tui.drivers.breakpoints import RunStops
from hitl_tui.drivers.langgraph.interrupts import repeats_of_answer, whole_subgraphs
from hitl_tui.drivers.langgraph.loop import PregelLoop
from hitl_tui.drivers.langgraph.mirror import Mirror, their_thread
from hitl_tui.drivers.langgraph.pregel import config_of
from hitl_tui.drivers.langgraph.values import from_json
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.engine.commands import (
    Command,
    Fork,
    Rerun,
    Run,
    Start,
    Step,
)
from hitl_tui.engine.log.events import Preview
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import UsageError

_WHY_NOT: Final[Mapping[str, str]] = {
    "rollback": "LangGraph keeps nothing that says how to undo a node",
    "rerun": "LangGraph does not tell which code a step was made by",
    "reload_graph": "a LangGraph graph is loaded anew with the program",
    "configure_agents": "the agents of a LangGraph graph are set up in its code",
    "clear_turns": "chat turns of a LangGraph graph are in its channels: edit those",
    "declassify": "LangGraph does not follow what came from outside",
    "allow": "what a LangGraph graph asks is answered each time",
    "revoke": "what a LangGraph graph asks is answered each time",
}


class LangGraphDriver(LocalDriver):
    """One line of a LangGraph thread.

    Args:
        line: the thread of the mirror.
        mirror: the mirror of its graph's threads.
        leaf: the newest checkpoint of the line, "" for a thread that does not exist yet.
        actor: who begins it then.
        options: of `LocalDriver`.
    """

    def __init__(
        self, line: str, mirror: Mirror, leaf: str, *, actor: str | None = None, **options: Any
    ) -> None:
        def open_session() -> Session:
            return mirror.open(line) if leaf else mirror.new(line, actor)

        refusals = {**_WHY_NOT, **(options.pop("refusals", None) or {})}
        super().__init__(line, open_session, mirror.store, refusals=refusals, **options)
        self._mirror = mirror
        self._leaf = leaf
        self._pinned = False
        handlers: dict[type[Command[Any]], Any] = {Start: self._take_input}
        self._handlers.update(handlers)

    async def _with_graph(self, *, ask: bool = True) -> Session:
        """The session: what runs is theirs, and is there."""
        return self._opened()

    async def _take_input(self, command: Start) -> int:
        session = self._opened()
        self._refuse_running()
        if command.context:
            raise UsageError("a LangGraph thread takes no context here", "give it in the graph's config")
        if not isinstance(command.inputs, Mapping):
            raise UsageError("the input is no dict", 'give a dict, as {"messages": "…"}')
        run = PregelLoop(
            session, mirror=self._mirror, leaf=self._leaf, pinned=self._pinned, given=_input(command.inputs)
        )
        await run.take_input()
        self._leaf, self._pinned = run.leaf, run.pinned
        if run.error is not None:
            raise run.error
        return session.cursor.head

    async def _preview_repeats(self, command: Fork | Rerun | Run | Step) -> Preview:
        told = await super()._preview_repeats(command)
        if isinstance(command, (Fork, Rerun)) or told.repeats is not None or not self._leaf:
            return told
        session = self._opened()
        thread, app = their_thread(session.info), self._mirror.app
        saved = await app.state(config_of(thread, self._leaf), subgraphs=True)
        whole = whole_subgraphs(app.graph)
        repeats = repeats_of_answer(saved, session.cursor.head, self._mirror.info, whole) if saved else None
        return replace(told, repeats=repeats)

    async def _step(self, command: Step) -> None:
        await self._go(command.breakpoints, once=True)

    async def _run_on(self, command: Run) -> None:
        await self._go(command.breakpoints, once=False)

    async def _go(self, breakpoints: tuple[Breakpoint, ...], *, once: bool) -> None:
        stops = RunStops(breakpoints, self._opened().graph.info, self._hits) if breakpoints else None

        def make(session: Session, **options: Any) -> Any:
            place: dict[str, Any] = {"leaf": self._leaf, "pinned": self._pinned}
            return PregelLoop(session, mirror=self._mirror, once=once, stops=stops, **place, **options)

        await self._launch(make)

    async def _drive(self, run: Any, session: Session) -> None:
        try:
            await super()._drive(run, session)
        finally:
            self._leaf, self._pinned = run.leaf, run.pinned


def _input(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: from_json(value) for name, value in inputs.items()}
