"""The engine's own thread: an event loop that user code and stores may keep busy without anyone noticing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from hitl_tui.errors import HitlError

T = TypeVar("T")


class EngineThread:
    """A daemon thread with an event loop; it never keeps the process alive."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's loop and wait for it on the caller's."""
        return await asyncio.wrap_future(self.submit(work))

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Hand a coroutine over; the future may be waited for from any thread.

        Raises:
            HitlError: the thread has been stopped: nobody would ever answer.
        """
        if self.stopped:
            work.close()
            raise HitlError("the thread has been closed", "open it again")
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self) -> None:
        """End the loop once it has done what it is doing."""
        self.stopped = True
        self.loop.call_soon_threadsafe(self.loop.stop)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()
