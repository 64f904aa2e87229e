"""A thread as its log has it, for looking at one whose own graph can't be built any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hitl_tui.drivers.below import Below
from hitl_tui.drivers.graph_file import BuildGraph
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.drivers.protocol import Capabilities
from hitl_tui.engine.channels.channel import BoundChannel, Channel
from hitl_tui.engine.graphs.compiled import CompiledGraph
from hitl_tui.engine.humans import disclosure
from hitl_tui.engine.log.records import Limits
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.running.loop import Run
from hitl_tui.engine.thread.rebuild import state_at
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import UsageError
from hitl_tui.loading.sources import source_file

T = TypeVar("T")


class RecordedDriver(LocalDriver):
    """A thread without its graph: it can be looked at, private values too, and not changed.

    Once the file of its graph was mended and reloaded, it is a thread as any other.

    Args:
        why: why nothing else can be done, in words.
        build: makes the graph again when its file was saved; None never does.
        below: as for `LocalDriver`.
    """

    def __init__(
        self,
        store: Store,
        info: ThreadInfo,
        why: str,
        build: BuildGraph | None = None,
        below: Below | None = None,
    ) -> None:
        def opened() -> Session:
            return Session.open(recorded_graph(store, info), store, info.thread_id)

        super().__init__(info.thread_id, opened, store, build, below)
        mendable = build is not None and source_file(info.source) is not None
        self.capabilities = only_reading(why, can_reload=mendable)

    async def cancel(self, *, actor: str | None = None, note: str | None = None) -> None:
        """Refused without the graph."""
        self._refuse_without_graph()
        await super().cancel(actor=actor, note=note)

    async def fork(self, step: int, new_thread_id: str, **how: Any) -> str:
        """Refused without the graph."""
        self._refuse_without_graph()
        return await super().fork(step, new_thread_id, **how)

    async def reveal(self, channel: str, step: int, *, actor: str) -> Any:
        """A private value; that somebody looked is the one thing that is written."""
        return await super()._write(lambda session: disclosure.reveal(session, channel, step, actor=actor))

    async def _write(self, work: Callable[[Session], T]) -> T:
        self._refuse_without_graph()
        return await super()._write(work)

    async def _launch(self, make: Callable[..., Run]) -> None:
        self._refuse_without_graph()
        await super()._launch(make)

    def _refuse_without_graph(self) -> None:
        if not self.capabilities.can_run:
            raise UsageError(f"thread {self.thread_id!r} can only be looked at", self.capabilities.why_not)


def recorded_graph(store: Store, info: ThreadInfo) -> CompiledGraph:
    """The channels that a thread's log has, without nodes, reducers or schemas; nothing can be run with it.

    A channel is private where a record of it says so.
    """
    cursor = store.cursor(info.thread_id)
    head = cursor.head if cursor else -1
    names = state_at(store, info.thread_id, head) if head >= 0 else {}
    private = {
        record.channel for record in store.records(info.thread_id, 0, head) if record.visibility == "private"
    }
    channels = {
        name: BoundChannel(
            name, Channel(None, reducer="overwrite", visibility="private" if name in private else "public")
        )
        for name in names
    }
    return CompiledGraph(
        name=info.graph_name,
        channels=channels,
        nodes={},
        edges={},
        routes={},
        entry="",
        before={},
        after={},
        termination=None,
        limits=Limits(),
        agents={},
        inputs=(),
        output="",
    )


def only_reading(why: str, *, can_reload: bool) -> Capabilities:
    """What can be done with a recorded graph."""
    return Capabilities(
        can_run=False,
        can_edit=False,
        can_edit_past=False,
        can_fork=False,
        can_answer=False,
        can_cancel=False,
        can_roll_back=False,
        can_check=False,
        can_reload=can_reload,
        why_not=why,
    )
