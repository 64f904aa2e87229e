"""A thread as its log has it, for looking at one whose own graph can't be built any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hitl_tui.drivers.local import LocalDriver
from hitl_tui.drivers.protocol import Capabilities
from hitl_tui.engine import disclosure
from hitl_tui.engine.channels import BoundChannel, Channel
from hitl_tui.engine.compiled import CompiledGraph
from hitl_tui.engine.loop import Run
from hitl_tui.engine.rebuild import state_at
from hitl_tui.engine.records import Limits
from hitl_tui.engine.session import Session
from hitl_tui.engine.store import Store
from hitl_tui.engine.threads import ThreadInfo
from hitl_tui.errors import UsageError

T = TypeVar("T")


class RecordedDriver(LocalDriver):
    """A thread without its graph: it can be looked at, private values too, and not changed.

    Args:
        why: why nothing else can be done, in words.
    """

    def __init__(self, store: Store, info: ThreadInfo, why: str) -> None:
        def opened() -> Session:
            return Session.open(recorded_graph(store, info), store, info.thread_id)

        super().__init__(info.thread_id, opened, store)
        self.capabilities = only_reading(why)

    async def cancel(self, *, actor: str | None = None, note: str | None = None) -> None:
        """Refused."""
        raise self._refusal()

    async def fork(self, step: int, new_thread_id: str, **how: Any) -> str:
        """Refused."""
        raise self._refusal()

    async def reveal(self, channel: str, step: int, *, actor: str) -> Any:
        """A private value; that somebody looked is the one thing that is written."""
        return await super()._write(lambda session: disclosure.reveal(session, channel, step, actor=actor))

    async def _write(self, work: Callable[[Session], T]) -> T:
        raise self._refusal()

    async def _launch(self, make: Callable[..., Run]) -> None:
        raise self._refusal()

    def _refusal(self) -> UsageError:
        return UsageError(f"thread {self.thread_id!r} can only be looked at", self.capabilities.why_not)


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


def only_reading(why: str) -> Capabilities:
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
        streams_tokens=False,
        why_not=why,
    )
