"""A worker's sign of life, and its look after others: jobs of workers that have died are queued again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from hitl_tui.engine.log.jobs import HandedGraph
from hitl_tui.errors import HitlError
from hitl_tui.stores.base import Checkpointer
from hitl_tui.stores.postgres.jobs import PostgresJobs

EVERY: Final = 0.5
"""Seconds between two signs of life."""

PATIENCE: Final = 3.0
"""Seconds without one after which a worker counts as dead."""


class Keeper:
    """A thread of its own, so that neither a blocked event loop nor a long node lets the worker look dead.

    Args:
        told: is told each thread that was queued again, and why.
        failed: is told once of each spell in which the server can't be reached.
    """

    def __init__(
        self,
        store: Checkpointer,
        jobs: PostgresJobs,
        graphs: Sequence[HandedGraph],
        concurrency: int,
        *,
        told: Callable[[str, str], object],
        failed: Callable[[HitlError], object],
    ) -> None:
        self._worker: int | None = None
        self.stopping = False
        self._jobs = jobs
        self._lease = store.new_lease(store.now())
        self._graphs = graphs
        self._concurrency = concurrency
        self._told = told
        self._failed = failed
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hitl-tui keeper", daemon=True)

    def begin(self) -> None:
        """Begin."""
        self._thread.start()

    def take(self, worker: int) -> None:
        """Take the number that the worker has from now on."""
        self._worker = worker

    def end(self) -> None:
        """Say nothing more."""
        self._end.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        lost, since = False, time.monotonic()
        while not self._end.wait(EVERY):
            try:
                if self._worker is not None:
                    self._jobs.register(
                        self._worker, self._lease, self._graphs, self._concurrency, stopping=self.stopping
                    )
                if lost:
                    lost, since = False, time.monotonic()
                # After an outage everybody looks dead: those who live are given the time to say so.
                if time.monotonic() - since > PATIENCE:
                    for thread_id, why in self._jobs.reap(PATIENCE):
                        self._told(thread_id, why)
            except HitlError as error:
                if not lost:
                    self._failed(error)
                lost = True
