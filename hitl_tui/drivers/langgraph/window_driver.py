"""The driver of a LangGraph thread that shows its newest page until the whole thread is mirrored."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from hitl_tui.drivers.langgraph.mirror import Mirror
from hitl_tui.drivers.langgraph.window import Window
from hitl_tui.drivers.local import Callback, LocalDriver, refusing_all
from hitl_tui.drivers.protocol import Check, Checked
from hitl_tui.drivers.reading import PAGE
from hitl_tui.engine.commands import Run
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.thread.rebuild import Decoded
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import HitlError, UsageError

R = TypeVar("R")
_READ: Final = "its history is being read"
_REPORT_INTERVAL: Final = 1.0
log = logging.getLogger(__name__)


class WindowDriver(LocalDriver):
    """Drives one line of a LangGraph thread; it is read-only until the thread is mirrored.

    Args:
        thread_id: its name in the mirror.
        open_session: opens its session in the mirror.
        store: the mirror.
        window: the newest page, shown while the thread is being mirrored; None if it is mirrored.
        refusals, options: of `LocalDriver`, once the thread is mirrored.
    """

    def __init__(
        self,
        thread_id: str,
        open_session: Callable[[], Session],
        store: Store,
        *,
        window: Window | None,
        refusals: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        def open_shown() -> Session:
            return open_session() if self._window is None else self._window.session()

        super().__init__(thread_id, open_shown, store, refusals=refusals, **options)
        self._window = window
        self._mirror_store = store
        self._later_refusals = self._refusals
        self._all_mirrored = asyncio.Event()
        self._next_report = time.monotonic() + _REPORT_INTERVAL
        if window is not None:
            self._store = window.store
            self._refusals = refusing_all(_READ)

    async def route(self, step: int, *, load: bool = False) -> None:
        """Return None: what LangGraph's routes read and return is not known."""

    def report_progress(self, done: int, total: int) -> None:
        """Show how much of the thread is mirrored; may be called from any OS thread."""
        far = f"{done:,} of {total:,} checkpoints" if done else f"{total:,} checkpoints so far"
        self._refusals = refusing_all(f"{_READ}: {far}")
        if (now := time.monotonic()) >= self._next_report:
            self._next_report = now + _REPORT_INTERVAL
            with suppress(RuntimeError):  # it was closed meanwhile
                self._engine.loop.call_soon_threadsafe(self._resync)

    def report_failure(self, why: str) -> None:
        """Show why the thread can't be mirrored; may be called from any OS thread."""

        async def report() -> None:
            self._refusals = refusing_all(f"its history can't be read: {why}")
            self._all_mirrored.set()
            self._resync()

        self._run_on_engine(report())

    def take_mirror(self, leaves: Mapping[str, str]) -> None:
        """Switch from the newest page to the mirrored thread; may be called from any OS thread.

        Args:
            leaves: the newest checkpoint of each of its lines.
        """

        async def switch() -> None:
            await self._unfollow()
            self._session = self._watch = self._window = None
            self._store, self._decoded = self._mirror_store, Decoded()
            self._refusals = self._later_refusals
            self._set_leaves(leaves)
            self._opened()
            self._all_mirrored.set()
            self._resync()

        self._run_on_engine(switch())

    def _set_leaves(self, leaves: Mapping[str, str]) -> None:
        """Store the newest checkpoints of the thread's lines, which are mirrored now."""

    def _run_on_engine(self, work: Coroutine[Any, Any, None]) -> None:
        with suppress(HitlError):  # it was closed meanwhile
            self._engine.submit(work).result()

    async def history(self, before: int | None = None, limit: int = PAGE) -> tuple[Checkpoint, ...]:
        """Return the checkpoints before a step, newest first; waits for mirroring if the page lacks them."""
        page = await super().history(before, limit)
        if page or before is None or before <= 0 or self._window is None:
            return page
        await self._engine.call(self._wait_until_mirrored())
        return await super().history(before, limit)

    async def _wait_until_mirrored(self) -> None:
        await self._all_mirrored.wait()

    async def _read_aside(self, read: Callable[[Session, Callable[[Callback], Callback]], R]) -> R:
        self._refuse_window()
        return await super()._read_aside(read)

    async def check(self, kind: Check, watch: Callable[[int, int], object]) -> Checked:
        """Check the thread's log for consistency, once all of it is mirrored."""
        self._refuse_window()
        return await super().check(kind, watch)

    def _refuse_window(self) -> None:
        if self._window is not None:
            raise UsageError("only the newest page of the thread is loaded yet", self.refusal(Run))


class Mirroring:
    """Mirrors threads that are already on screen, each in its own OS thread, until `end` is called."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._ended = False

    def begin(self, driver: WindowDriver, mirror: Mirror) -> None:
        """Mirror the thread of a driver and report progress to the driver."""
        work = partial(self._work, driver, mirror)
        thread = threading.Thread(target=work, name="hitl-tui mirror", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, driver: WindowDriver, mirror: Mirror) -> None:
        def on_progress(done: int, total: int) -> None:
            if self._ended:
                raise _EndedEarly
            driver.report_progress(done, total)

        try:
            leaves = asyncio.run(mirror.sync(driver.thread_id, on_progress=on_progress))
        except _EndedEarly:
            driver.report_failure("it is being closed")
        except Exception as error:  # any error must end the wait for the thread
            log.exception("thread %s could not be mirrored", driver.thread_id)
            driver.report_failure(f"{type(error).__name__}: {error}")
        else:
            driver.take_mirror(leaves)

    def end(self) -> None:
        """Stop after the current checkpoints; those already mirrored are kept."""
        self._ended = True
        for thread in self._threads:
            thread.join()


class _EndedEarly(BaseException):
    """Mirroring was stopped: its driver is closed."""
