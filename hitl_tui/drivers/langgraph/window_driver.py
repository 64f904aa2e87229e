"""The driver of a thread of theirs that is shown by its newest page first, and whole once it is mirrored."""

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
from hitl_tui.drivers.local import LocalDriver, Tell, refusing_all
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
_TELL_AGAIN: Final = 1.0
log = logging.getLogger(__name__)


class WindowDriver(LocalDriver):
    """One line of a thread of theirs, which can only be looked at while a window on it is shown.

    Args:
        thread_id: its name in the mirror.
        open_session: opens it there.
        store: the mirror.
        window: what is shown while the thread is being mirrored, None where it is.
        refusals, options: of `LocalDriver`, as they are once it is mirrored.
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
        self._refused_then = self._refusals
        self._whole = asyncio.Event()
        self._tell_again = time.monotonic() + _TELL_AGAIN
        if window is not None:
            self._store = window.store
            self._refusals = refusing_all(_READ)

    async def route(self, step: int, *, load: bool = False) -> None:
        """Nothing: what LangGraph's routes read and return is not known."""

    def mirrored(self, done: int, total: int) -> None:
        """Take how far the thread is mirrored; from any thread."""
        far = f"{done:,} of {total:,} checkpoints" if done else f"{total:,} checkpoints so far"
        self._refusals = refusing_all(f"{_READ}: {far}")
        if (now := time.monotonic()) >= self._tell_again:
            self._tell_again = now + _TELL_AGAIN
            with suppress(RuntimeError):  # it was closed meanwhile
                self._engine.loop.call_soon_threadsafe(self._resync)

    def not_mirrored(self, why: str) -> None:
        """Say why the thread can't be mirrored; from any thread."""

        async def tell() -> None:
            self._refusals = refusing_all(f"its history can't be read: {why}")
            self._whole.set()
            self._resync()

        self._hand_over(tell())

    def take_mirror(self, leaves: Mapping[str, str]) -> None:
        """Go over to the thread as it is mirrored, in place of its newest page; from any thread.

        Args:
            leaves: the newest checkpoint of each of its lines.
        """

        async def take() -> None:
            await self._unfollow()
            self._session = self._watch = self._window = None
            self._store, self._decoded = self._mirror_store, Decoded()
            self._refusals = self._refused_then
            self._gone_over(leaves)
            self._opened()
            self._whole.set()
            self._resync()

        self._hand_over(take())

    def _gone_over(self, leaves: Mapping[str, str]) -> None:
        """Take the newest checkpoints of the thread's lines, now that they are mirrored."""

    def _hand_over(self, work: Coroutine[Any, Any, None]) -> None:
        with suppress(HitlError):  # it was closed meanwhile
            self._engine.submit(work).result()

    async def history(self, before: int | None = None, limit: int = PAGE) -> tuple[Checkpoint, ...]:
        """Checkpoints before a step, newest first; those before the newest page once they are mirrored."""
        page = await super().history(before, limit)
        if page or before is None or before <= 0 or self._window is None:
            return page
        await self._engine.call(self._until_whole())
        return await super().history(before, limit)

    async def _until_whole(self) -> None:
        await self._whole.wait()

    async def _read_aside(self, read: Callable[[Session, Callable[[Tell], Tell]], R]) -> R:
        self._refuse_window()
        return await super()._read_aside(read)

    async def check(self, kind: Check, watch: Callable[[int, int], object]) -> Checked:
        """Check the thread's log against itself, once all of it is there."""
        self._refuse_window()
        return await super().check(kind, watch)

    def _refuse_window(self) -> None:
        if self._window is not None:
            raise UsageError("only the newest page of the thread is loaded yet", self.can(Run))


class Mirroring:
    """Mirrors threads that are shown already, each in a thread of its own, until it is told to end."""

    def __init__(self) -> None:
        self._at_work: list[threading.Thread] = []
        self._ended = False

    def begin(self, driver: WindowDriver, mirror: Mirror) -> None:
        """Mirror the thread of a driver, which is told of it."""
        work = partial(self._work, driver, mirror)
        thread = threading.Thread(target=work, name="hitl-tui mirror", daemon=True)
        self._at_work.append(thread)
        thread.start()

    def _work(self, driver: WindowDriver, mirror: Mirror) -> None:
        def tell(done: int, total: int) -> None:
            if self._ended:
                raise _EndedEarly
            driver.mirrored(done, total)

        try:
            leaves = asyncio.run(mirror.sync(driver.thread_id, tell=tell))
        except _EndedEarly:
            driver.not_mirrored("it is being closed")
        except Exception as error:  # whatever it is, the thread is not to be waited for any longer
            log.exception("thread %s could not be mirrored", driver.thread_id)
            driver.not_mirrored(f"{type(error).__name__}: {error}")
        else:
            driver.take_mirror(leaves)

    def end(self) -> None:
        """Stop behind the checkpoints at hand; what is mirrored stays."""
        self._ended = True
        for thread in self._at_work:
            thread.join()


class _EndedEarly(BaseException):
    """Nobody waits any more for a thread to be mirrored."""
