"""Notices commits of other processes as they happen (LISTEN and NOTIFY)."""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress

import psycopg

from hitl_tui.errors import HitlError
from hitl_tui.stores.postgres.server import Connection, Server

log = logging.getLogger(__name__)

_ANYWAY = 30.0
"""Seconds after which subscribers should read again even without a notice."""

_AGAIN = 0.5
"""Seconds between two tries to listen again."""


class Listener:
    """A thread with its own connection that counts notices and wakes subscribers.

    While it is not connected, `count` is None: then callers have to read to find changes.
    """

    def __init__(self, server: Server, channel: str) -> None:
        self._server = server
        self._channel = channel
        self._count = 0
        self._begun = 0
        self._listens = False
        self._threads: dict[str, int] = {}
        self._waiting: dict[object, tuple[str | None, Callable[[], object]]] = {}
        self._stopped = False
        self._ear, self._mouth = os.pipe()
        self._thread = threading.Thread(target=self._run, name="hitl-tui listens", daemon=True)
        self._thread.start()

    def count(self, thread_id: str | None) -> tuple[int, int] | None:
        """Return a number that grows with each write (to a family of threads, or to any), and now and then.

        None while writes are not noticed.
        """
        if not self._listens:
            return None
        count = self._count if thread_id is None else self._threads.get(family(thread_id), 0)
        return self._begun + count, int(time.monotonic() / _ANYWAY)

    def subscribe(self, wake: Callable[[], object], thread_id: str | None = None) -> Callable[[], None]:
        """Call `wake`, on another thread, after each write; returns a function that unsubscribes.

        Args:
            thread_id: only for writes to its family.
        """
        mark = object()
        self._waiting[mark] = (None if thread_id is None else family(thread_id)), wake

        def end() -> None:
            self._waiting.pop(mark, None)

        return end

    def close(self) -> None:
        """Stop listening."""
        if not self._stopped:
            self._stopped = True
            os.write(self._mouth, b".")
            self._thread.join(2.0)

    def count_notice(self, thread_id: str) -> str:
        """Count a notice that a thread was written; returns the thread's family."""
        name = family(thread_id)
        self._threads[name] = self._threads.get(name, 0) + 1
        self._count += 1
        return name

    def wake(self, families: Collection[str] | None = None) -> None:
        """Wake all subscribers, or only those of the given families."""
        for name, wake in list(self._waiting.values()):
            if families is None or name is None or name in families:
                with suppress(RuntimeError):  # its event loop has ended
                    wake()

    def _run(self) -> None:
        try:
            while not self._stopped:
                try:
                    self._listen()
                except (psycopg.Error, HitlError) as error:
                    log.info("the store %s can't be listened to: %s", self._server.name, error)
                self._listens = False
                self.wake()
                select.select([self._ear], [], [], _AGAIN)
        finally:
            for end in (self._ear, self._mouth):
                with suppress(OSError):
                    os.close(end)

    def _listen(self) -> None:
        with self._server.connect() as connection:
            connection.execute(f'LISTEN "{self._channel}"'.encode())
            # Reads from now on miss nothing; writes before sent no notice to us, so all have to read.
            self._begun += 1
            self._listens = True
            self.wake()
            while not self._stopped:
                self._take_notices(connection)
                select.select([connection.fileno(), self._ear], [], [])

    def _take_notices(self, connection: Connection) -> None:
        families = {self.count_notice(notice.payload) for notice in connection.notifies(timeout=0)}
        if families:
            self.wake(families)


def family(thread_id: str) -> str:
    """Return the common beginning of the ids of a thread and of those inside it."""
    return thread_id.partition("/")[0]
