"""What the parts of the local driver build on: its thread, its store, and work on the engine's thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from hitl_tui.drivers.engine_thread import EngineThread
from hitl_tui.engine.log.events import Event
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.running.loop import Run
from hitl_tui.engine.thread.session import Session

T = TypeVar("T")


class DriverPart(ABC):
    """A part of the local driver, which does the work that it asks for."""

    thread_id: str
    _store: Store
    _engine: EngineThread

    @abstractmethod
    async def _on_engine(self, work: Callable[[Session], T], *, graph: bool = False) -> T:
        """What `work` makes of the session, on the engine's thread.

        Args:
            graph: it takes a graph that can run; without it the one of the log will do.
        """

    @abstractmethod
    async def _write(self, work: Callable[[Session], T], *, graph: bool = True) -> T:
        """As `_on_engine`, with the thread held for writing.

        Raises:
            ThreadBusy: it runs.
        """

    @abstractmethod
    async def _launch(self, make: Callable[..., Run]) -> None:
        """Start a run; returns once it has begun, or found nothing to do."""

    @abstractmethod
    def _tell(self, event: Event) -> None:
        """Tell those who watch."""
